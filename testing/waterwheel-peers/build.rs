//! Here tokio comes without its feature `test-util`: what the tests share then has no paused runtime.
fn main() {
    println!("cargo::rustc-cfg=without_test_util");
}
