//! Capture files of any content; what must hold stands in `crates/qloak-fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| qloak_fuzz::capture::run(octets));
