//! What this machine is: names for the record, sizes of its caches, and two things that only
//! instructions tell (the fenced files below).

use std::fs;

use serde::Serialize;

pub(crate) mod counter;
pub(crate) mod instructions;

/// Facts for the head of a table and for the record.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    /// The CPU's own name.
    pub(crate) cpu: String,
    /// Its family for the name of a folder: `amd-family-26-model-2`.
    pub(crate) family: String,
    /// Kernel and its version.
    pub(crate) kernel: String,
    /// The compiler of this program.
    pub(crate) rustc: &'static str,
    /// Data caches, nearest first, in octets.
    pub(crate) caches: Vec<usize>,
}

impl Machine {
    /// This one.
    pub(crate) fn here() -> Self {
        let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = rustix::system::uname();
        Self {
            cpu: field(&about, "model name").map_or_else(
                || format!("{} (model unknown)", std::env::consts::ARCH),
                str::to_owned,
            ),
            family: family(&about),
            kernel: format!(
                "{} {}",
                kernel.sysname().to_string_lossy(),
                kernel.release().to_string_lossy()
            ),
            rustc: env!("BENCH_RUSTC"),
            caches: caches(),
        }
    }

    /// The nearest cache that holds this many octets: `L1`; `memory` when none does.
    pub(crate) fn cache_of(&self, octets: usize) -> String {
        match self.caches.iter().position(|cache| octets <= *cache) {
            Some(index) => format!("L{}", index + 1),
            None if self.caches.is_empty() => "cache unknown".into(),
            None => "memory".into(),
        }
    }
}

/// Stays on the core where we are, so that the figures are those of one core with its caches warm.
pub(crate) fn pin() -> bool {
    let mut core = rustix::thread::CpuSet::new();
    core.set(rustix::thread::sched_getcpu());
    rustix::thread::sched_setaffinity(None, &core).is_ok()
}

fn field<'a>(about: &'a str, name: &str) -> Option<&'a str> {
    about
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(key, value)| (key.trim() == name).then_some(value.trim()))
}

fn family(about: &str) -> String {
    let number = |name| field(about, name).unwrap_or("unknown").to_lowercase();
    let maker = match field(about, "vendor_id") {
        Some("AuthenticAMD") => "amd",
        Some("GenuineIntel") => "intel",
        Some(_) => "x86",
        None if field(about, "CPU part").is_some() => {
            return format!(
                "arm-implementer-{}-part-{}",
                number("CPU implementer"),
                number("CPU part")
            );
        }
        None => return std::env::consts::ARCH.into(),
    };
    format!(
        "{maker}-family-{}-model-{}",
        number("cpu family"),
        number("model")
    )
}

fn caches() -> Vec<usize> {
    let mut found: Vec<(usize, usize)> = (0..8)
        .filter_map(|index| {
            let read = |name: &str| {
                let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
                fs::read_to_string(path).ok()
            };
            let level = read("level")?.trim().parse().ok()?;
            let size = read("size")?;
            (read("type")?.trim() != "Instruction").then_some((level, octets(size.trim())?))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, octets)| octets).collect()
}

/// `32K` and `16M` as the kernel writes them.
fn octets(size: &str) -> Option<usize> {
    let (number, unit) = size.split_at(size.find(|c: char| !c.is_ascii_digit())?);
    let unit = match unit {
        "K" => 1 << 10,
        "M" => 1 << 20,
        _ => return None,
    };
    Some(number.parse::<usize>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_has_a_name_for_a_folder() {
        let zen =
            "vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n";
        assert_eq!(family(zen), "amd-family-26-model-2");
        assert_eq!(field(zen, "model name"), Some("AMD EPYC"));
        let arm = "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        assert_eq!(family(arm), "arm-implementer-0x41-part-0xd40");
    }

    #[test]
    fn sizes_of_caches_as_the_kernel_writes_them() {
        assert_eq!(octets("48K"), Some(48 << 10));
        assert_eq!(octets("32M"), Some(32 << 20));
        assert_eq!(octets("big"), None);
    }

    #[test]
    fn the_cache_is_the_nearest_that_holds_it() {
        let machine = Machine {
            caches: vec![32 << 10, 512 << 10],
            ..Machine::here()
        };
        assert_eq!(machine.cache_of(1000), "L1");
        assert_eq!(machine.cache_of(100_000), "L2");
        assert_eq!(machine.cache_of(1 << 20), "memory");
    }
}
