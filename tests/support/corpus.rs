//! Inputs that the fuzzer found worth keeping, replayed by plain tests.

use std::fmt::Debug;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

/// Runs each file of `tests/corpus/<name>`. A failing file is named, and printed in steps. To investigate
/// a finding of the fuzzer, put it there and run the tests.
///
/// # Panics
///
/// If a file fails, or if there are hardly any, which would prove nothing.
pub(crate) fn replay<C: Debug>(name: &str, decode: fn(&[u8]) -> C, run: fn(&C)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let files = fs::read_dir(folder.join(name)).expect("the corpus is there");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() >= 10, "{} inputs", files.len());
    for file in files {
        let case = decode(&fs::read(&file).expect("a file"));
        if let Err(panic) = panic::catch_unwind(AssertUnwindSafe(|| run(&case))) {
            eprintln!("{} fails: {case:#?}", file.display());
            panic::resume_unwind(panic);
        }
    }
}
