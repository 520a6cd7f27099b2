//! The only runner.
fn main() {}
