//! The inputs that the fuzzer keeps, on the stable toolchain.

use super::model::{decode, run};
use crate::corpus_files::replay;

#[test]
fn what_the_fuzzer_kept_does_what_the_oracle_says() {
    replay("futures", decode, run);
}
