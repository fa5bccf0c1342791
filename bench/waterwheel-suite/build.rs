//! Declares the cfg of the suite's second build (`src/alt_timer.rs`), so that a misspelt name is a warning.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(waterwheel_alt_timer)");
    println!("cargo::rerun-if-changed=build.rs");
}
