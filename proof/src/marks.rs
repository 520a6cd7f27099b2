//! What a program can say to valgrind's memcheck about its own memory: this is secret, this no more.
//!
//! A request is a row of instructions that do nothing on a CPU and that valgrind knows
//! (`valgrind.h`, `memcheck.h`): on x86-64 four rotations of one register, by 128 bits in all, and an
//! exchange of a register with itself; rax points to six words, the answer comes in rdx.

#![allow(unsafe_code)]

/// Numbers of requests; those of memcheck begin with its letters, M and C.
const RUNNING: usize = 0x1001;
const COUNT_ERRORS: usize = 0x1201;
const MAKE_UNDEFINED: usize = 0x4d43_0001;
const MAKE_DEFINED: usize = 0x4d43_0002;
const GET_VALIDITY: usize = 0x4d43_0008;

/// Whether valgrind runs us.
pub(crate) fn listening() -> bool {
    request([RUNNING, 0, 0, 0, 0, 0]) != 0
}

/// Errors that memcheck has seen and that no suppression covers.
pub(crate) fn errors() -> usize {
    request([COUNT_ERRORS, 0, 0, 0, 0, 0])
}

/// From here on nothing may depend on these octets.
pub(crate) fn secret<T>(octets: &[T]) {
    mark(MAKE_UNDEFINED, octets);
}

/// These may be known again.
pub(crate) fn public<T>(octets: &[T]) {
    mark(MAKE_DEFINED, octets);
}

/// Whether any bit of these octets comes from a secret.
pub(crate) fn is_secret(octets: &[u8]) -> bool {
    let mut validity = vec![0_u8; octets.len()];
    let (from, to) = (
        octets.as_ptr().addr(),
        validity.as_mut_ptr().expose_provenance(),
    );
    request([GET_VALIDITY, from, to, octets.len(), 0, 0]);
    // The bits of validity of a secret are ones, and they themselves are no secret.
    validity.iter().any(|bits| *bits != 0)
}

fn mark<T>(request: usize, octets: &[T]) {
    self::request([
        request,
        octets.as_ptr().addr(),
        size_of_val(octets),
        0,
        0,
        0,
    ]);
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn request(words: [usize; 6]) -> usize {
    let mut answer = 0_usize;
    // SAFETY: on a CPU the rotations and the exchange leave every register as it was; valgrind reads the
    // six words, writes rdx, and writes no other memory than that which GET_VALIDITY was given for it.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") words.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

/// The rows of other CPUs are not written; nobody listens.
#[cfg(not(target_arch = "x86_64"))]
fn request(_: [usize; 6]) -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_bare_cpu_nobody_listens_and_nothing_changes() {
        let octets = [1, 2, 3];
        secret(&octets);
        public(&octets);
        assert_eq!(octets, [1, 2, 3]);
        assert_eq!((listening(), errors()), (false, 0));
        assert!(!is_secret(&octets));
    }
}
