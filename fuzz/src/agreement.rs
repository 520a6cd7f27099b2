//! The target `agreement` for libFuzzer. What it does with the octets stands in `crates/qloak-fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| qloak_fuzz::agreement::run(octets));
