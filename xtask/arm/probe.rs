//! Says on which CPU it runs: one line for `cargo xtask arm`, which compares it with the CPU that it
//! asked the emulator for. Without this, a run "without AES" could quietly be a second one with it.

fn main() {
    let aes = std::arch::is_aarch64_feature_detected!("aes");
    let pmull = std::arch::is_aarch64_feature_detected!("pmull");
    println!("{} aes={aes} pmull={pmull}", std::env::consts::ARCH);
}
