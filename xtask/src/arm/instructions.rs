//! Which instructions the backend `armv8` was compiled to: a look at its functions in a test program.
//!
//! Answers alone would not show it if a kernel had fallen back to plain Rust, or if its rounds were
//! calls and not instructions. So the functions that have the backend's CPU features on, and everything
//! that was inlined into them, are disassembled and counted.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use crate::ui::{Context, Done, Failure};

/// The disassembler of the C compiler's package.
const DISASSEMBLER: &str = "aarch64-linux-gnu-objdump";

/// What names a function of the backend: its value, and the function that `backend!` gives it.
const BACKEND: [&str; 2] = ["Armv8", "with_features"];

/// What the ciphers, the modes and GHASH cannot be without there.
const NEEDED: [&str; 7] = ["aese", "aesmc", "aesd", "aesimc", "pmull", "pmull2", "tbl"];

/// How often each instruction stands in the backend's functions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    functions: usize,
    instructions: BTreeMap<String, usize>,
    inside: bool,
}

/// Counts them in a program; fails when one that is needed is not there.
pub(super) fn check(program: &Path) -> Done<String> {
    let mut disassembler = Command::new(DISASSEMBLER)
        .args(["--disassemble", "--no-show-raw-insn", "--section=.text"])
        .arg(program)
        .stdout(Stdio::piped())
        .spawn()
        .cannot(format_args!("start {DISASSEMBLER}"))?;
    let mut count = Count::default();
    if let Some(output) = disassembler.stdout.take() {
        for line in BufReader::new(output).lines() {
            count.line(&line?);
        }
    }
    if !disassembler.wait()?.success() {
        return Err(Failure::new(format!(
            "{DISASSEMBLER} cannot read {}",
            program.display()
        )));
    }
    count.verdict()
}

impl Count {
    /// `0012340 <name>:` begins a function; an instruction is its address, a tab, its name, a tab, operands.
    fn line(&mut self, line: &str) {
        if let Some((_, name)) = line
            .strip_suffix(">:")
            .and_then(|line| line.split_once(" <"))
        {
            self.inside = BACKEND.iter().all(|part| name.contains(part));
            self.functions += usize::from(self.inside);
        } else if let (true, Some(name)) = (self.inside, line.split('\t').nth(1)) {
            *self.instructions.entry(name.trim().to_owned()).or_default() += 1;
        }
    }

    fn of(&self, name: &str) -> usize {
        self.instructions.get(name).copied().unwrap_or(0)
    }

    fn verdict(&self) -> Done<String> {
        let all: usize = self.instructions.values().sum();
        let counts = NEEDED.map(|name| format!("{} {name}", self.of(name)));
        let text = format!(
            "{} functions of armv8 hold {all} instructions: {}",
            self.functions,
            counts.join(", ")
        );
        if NEEDED.iter().all(|name| self.of(name) > 0) {
            Ok(text)
        } else {
            Err(Failure::new(format!(
                "{text}; one that is not there was not compiled to what armv8 is for"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Count {
        let mut count = Count::default();
        text.lines().for_each(|line| count.line(line));
        count
    }

    #[test]
    fn only_functions_of_the_backend_are_counted() {
        let count = count(
            "0000000000000010 <_ZN5armv85Armv83run13with_features17h0E>:\n\
             \x20     10:\taese\tv0.16b, v1.16b\n\
             \x20     14:\taesmc\tv0.16b, v0.16b\n\
             \x20     18:\tret\n\
             \n\
             0000000000000020 <_ZN3aes5armv87encrypt17h0E>:\n\
             \x20     20:\taese\tv0.16b, v1.16b\n",
        );
        assert_eq!((count.functions, count.of("aese")), (1, 1));
        assert_eq!((count.of("aesmc"), count.of("ret")), (1, 1));
    }

    #[test]
    fn a_missing_instruction_is_a_failure_that_says_so() {
        let function = "0000000000000010 <Armv8 with_features>:\n";
        let mut text = function.to_owned();
        for name in NEEDED {
            text += &format!("      10:\t{name}\tv0.16b\n");
        }
        assert!(count(&text).verdict().is_ok());
        let failure = count(&text.replace("\tpmull\t", "\tnop\t")).verdict();
        let failure = failure.expect_err("one is missing").to_string();
        assert!(failure.contains("0 pmull,"), "{failure}");
    }
}
