//! Here tokio is built without its feature `test-util`: the shared test support then has no paused runtime.
fn main() {
    println!("cargo::rustc-cfg=without_test_util");
}
