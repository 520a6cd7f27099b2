//! Line frames of any kind into validate and demux; what must hold stands in `crates/qloak-fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| qloak_fuzz::line::run(octets));
