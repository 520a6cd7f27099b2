//! Reads the machine's console: the script's marks, the tests' lines, the kernel's last words.
//!
//!     @qloak cpu FLAGS          what the kernel found
//!     @qloak begin NAME         a test program starts
//!     test ... ok               its own lines
//!     @qloak end STATUS         and ends
//!     @qloak done UPTIME        after the last one
//!
//! Nothing counts as passed unless its end was seen.

use super::{cpu::Cpu, guest::MARK};

/// Lines of the console that a failure shows.
const LAST_LINES: usize = 40;

/// What is known so far.
#[derive(Debug, Default)]
pub(super) struct Console {
    half: String,
    lines: Vec<String>,
    flags: Vec<String>,
    running: Option<String>,
    ended: usize,
    failed: Vec<String>,
    passed_tests: u64,
    is_done: bool,
    kernel_died: bool,
}

impl Console {
    /// Takes what came over the line; gives the whole lines that are for people.
    pub(super) fn take(&mut self, text: &str) -> Vec<String> {
        self.half += &text.replace('\r', "");
        let mut shown = Vec::new();
        while let Some((line, rest)) = self.half.split_once('\n') {
            let (line, rest) = (line.to_owned(), rest.to_owned());
            self.half = rest;
            shown.extend(self.line(&line));
            self.lines.push(line);
        }
        shown
    }

    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        self.is_done || self.kernel_died
    }

    /// What it is doing, for a spinner.
    pub(super) fn now(&self) -> &str {
        match (&self.running, self.flags.is_empty()) {
            (_, true) => "booting",
            (Some(_), _) => self.lines.last().map_or("", String::as_str),
            (None, _) => "",
        }
    }

    /// The count of tests that passed, or why the run is a failure.
    pub(super) fn verdict(&self, cpu: Cpu, programs: usize) -> Result<u64, String> {
        if self.flags.is_empty() {
            return Err("the machine never reached the tests: its kernel did not boot".into());
        }
        let found = |flag: &&&str| self.flags.iter().any(|f| f == **flag);
        let missing: Vec<_> = cpu.has().iter().filter(|flag| !found(flag)).collect();
        let surplus: Vec<_> = cpu.lacks().iter().filter(found).collect();
        if !missing.is_empty() || !surplus.is_empty() {
            return Err(format!(
                "the emulated CPU is not of level {}: it lacks {missing:?} and has {surplus:?}",
                cpu.name()
            ));
        }
        if !self.failed.is_empty() {
            return Err(format!("tests failed in {}", self.failed.join(", ")));
        }
        if let Some(name) = &self.running {
            let why = if self.kernel_died {
                "its kernel died"
            } else {
                "it did not end"
            };
            return Err(format!(
                "the machine stopped inside {name}: {why}. Where it was only slow, give more \
                 --minutes, fewer tests (`-- FILTER`) or a smaller PROPTEST_CASES"
            ));
        }
        if !self.is_done || self.ended != programs {
            return Err(format!(
                "the machine ended after {} of {programs} test programs without its end mark",
                self.ended
            ));
        }
        if self.passed_tests == 0 {
            return Err("no test ran; does the filter behind `--` fit one?".into());
        }
        Ok(self.passed_tests)
    }

    /// The last lines.
    pub(super) fn last_lines(&self) -> String {
        let last = &self.lines[self.lines.len().saturating_sub(LAST_LINES)..];
        format!("{}\n{}", last.join("\n"), self.half)
    }

    fn line(&mut self, line: &str) -> Option<String> {
        if line.contains("Kernel panic - not syncing") && !self.is_done {
            self.kernel_died = true;
        }
        // A program that was killed leaves its last line open, and the mark stands behind it.
        let Some((_, mark)) = line.split_once(MARK) else {
            self.count(line);
            return (!line.trim().is_empty()).then(|| line.to_owned());
        };
        let (word, rest) = mark.split_once(' ').unwrap_or((mark, ""));
        match word {
            "cpu" => self.flags = rest.split_whitespace().map(str::to_owned).collect(),
            "begin" => {
                self.running = Some(rest.to_owned());
                return Some(format!("running {rest}"));
            }
            "end" => {
                let name = self.running.take().unwrap_or_default();
                self.ended += 1;
                if rest != "0" {
                    self.failed.push(format!("{name} (status {rest})"));
                }
            }
            "done" => self.is_done = true,
            _ => {}
        }
        None
    }

    fn count(&mut self, line: &str) {
        let passed = line
            .strip_prefix("test result: ok. ")
            .and_then(|rest| rest.split_once(" passed"))
            .and_then(|(number, _)| number.parse::<u64>().ok());
        self.passed_tests += passed.unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: &str = "@qloak cpu flags : fpu sse2 aes pclmulqdq avx2\r\n";
    const RUN: &str = "@qloak begin vectors\r\nrunning 2 tests\r\ntest a ... ok\r\ntest b ... ok\r\n\r\n\
                       test result: ok. 2 passed; 0 failed; 0 ignored\r\n\r\n@qloak end 0\r\n";
    const DONE: &str = "@qloak done 3.2 0.0\r\n";

    fn read(parts: &[&str]) -> Console {
        let mut console = Console::default();
        for part in parts {
            console.take(part);
        }
        console
    }

    #[test]
    fn a_whole_run_passes_wherever_it_is_cut() {
        let text = [CPU, RUN, DONE].concat();
        for cut in 0..text.len() {
            let console = read(&[&text[..cut], &text[cut..]]);
            assert!(console.is_over());
            assert_eq!(console.verdict(Cpu::Aesni, 1), Ok(2), "cut at {cut}");
        }
    }

    #[test]
    fn a_run_without_its_last_mark_fails() {
        assert!(read(&[CPU, RUN]).verdict(Cpu::Aesni, 1).is_err());
        assert!(read(&[CPU, RUN, DONE]).verdict(Cpu::Aesni, 2).is_err());
        assert!(read(&[CPU]).verdict(Cpu::Aesni, 1).is_err());
        assert!(read(&["SeaBIOS\n"]).verdict(Cpu::Aesni, 1).is_err());
    }

    #[test]
    fn a_run_of_no_test_fails() {
        let none = "@qloak begin vectors\ntest result: ok. 0 passed; 0 failed\n@qloak end 0\n";
        let console = read(&[CPU, none, DONE]);
        let why = console.verdict(Cpu::Aesni, 1).expect_err("nothing ran");
        assert!(why.contains("no test ran"), "{why}");
    }

    #[test]
    fn a_program_that_ends_badly_is_named() {
        let console = read(&[
            CPU,
            "@qloak begin vectors\ntest a ... @qloak end 132\n",
            DONE,
        ]);
        let why = console.verdict(Cpu::Aesni, 1).expect_err("status 132");
        assert!(why.contains("vectors (status 132)"), "{why}");
    }

    #[test]
    fn a_kernel_that_dies_ends_the_run_and_fails_it() {
        let console = read(&[
            CPU,
            "@qloak begin vectors\nKernel panic - not syncing: no\n",
        ]);
        assert!(console.is_over());
        let why = console.verdict(Cpu::Aesni, 1).expect_err("the kernel died");
        assert!(why.contains("inside vectors"), "{why}");
    }

    #[test]
    fn a_cpu_of_another_level_fails_the_run() {
        let console = read(&[CPU, RUN, DONE]);
        assert!(
            console.verdict(Cpu::Vaes512, 1).is_err(),
            "it lacks AVX-512"
        );
        assert!(console.verdict(Cpu::Soft, 1).is_err(), "it has AES");
    }

    #[test]
    fn people_see_lines_of_tests_and_no_marks() {
        let mut console = Console::default();
        let shown = console.take(&[CPU, RUN, DONE].concat());
        assert!(shown.contains(&"test a ... ok".to_owned()));
        assert!(shown.iter().all(|line| !line.contains(MARK)));
    }
}
