//! A value whose memory is zeros once it is gone, padding and unused variants of enums included.
//!
//! The parts of a key zeroise themselves. But a value is made on the stack and moved, and with it move
//! the octets between its parts, which may be left over from whatever lay there before.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;

use zeroize::Zeroize;

/// The value. Wherever it lies when it is dropped, zeros are left.
pub(crate) struct Wiped<T>(ManuallyDrop<T>);

impl<T> Wiped<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Wiped<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Wiped<T> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the value is dropped here alone, and not touched as a `T` again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
        let memory = (&raw mut self.0).cast::<MaybeUninit<u8>>();
        // SAFETY: the memory is this wrapper's own, as many octets as the value has, and any octet is a
        // `MaybeUninit<u8>`.
        let octets = unsafe { std::slice::from_raw_parts_mut(memory, size_of::<T>()) };
        octets.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_dropped_once() {
        struct Counts<'a>(&'a std::cell::Cell<u32>);
        impl Drop for Counts<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let drops = std::cell::Cell::new(0);
        drop(Wiped::new(Counts(&drops)));
        assert_eq!(drops.get(), 1);
    }
}
