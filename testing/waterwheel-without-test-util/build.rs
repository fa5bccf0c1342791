//! `tests/support` leaves out everything that needs tokio's feature `test-util`.

fn main() {
    println!("cargo::rustc-cfg=without_test_util");
}
