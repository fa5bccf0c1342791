//! The inputs that the fuzzer keeps, as a plain test.

use crate::corpus_files::replay;
use crate::model::{decode, run};

#[test]
fn what_the_fuzzer_found_worth_keeping_does_what_a_list_does() {
    replay("wheel", decode, run);
}
