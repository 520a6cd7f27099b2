//! Client frames of any size muxed into line frames, and demuxed again; what must hold stands in `crates/qloak-fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| qloak_fuzz::mux::run(octets));
