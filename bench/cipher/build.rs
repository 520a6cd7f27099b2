//! Remembers the compiler that built the benchmark, because a record names it.

use std::process::Command;

fn main() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output();
    let version = said.map_or_else(
        |_| "rustc (version unknown)".into(),
        |out| String::from_utf8_lossy(&out.stdout).trim().to_owned(),
    );
    println!("cargo::rustc-env=BENCH_RUSTC={version}");
    println!("cargo::rerun-if-changed=build.rs");
}
