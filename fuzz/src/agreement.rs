//! Key-agreement frames to the reader, and to two nodes at work; what must hold stands in `crates/qloak-fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| qloak_fuzz::agreement::run(octets));
