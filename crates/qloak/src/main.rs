//! The qloak binary.
fn main() {}
