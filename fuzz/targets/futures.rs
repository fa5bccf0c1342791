//! Whole futures on a simulated clock against a naive oracle: the steps, the oracle and the checks
//! are those of the tests.

#![no_main]

#[path = "../../tests/support/bytes.rs"]
mod bytes;
#[path = "../../tests/futures/model/mod.rs"]
mod model;
#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| model::run(&model::decode(bytes)));
