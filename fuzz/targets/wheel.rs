//! The pure wheel against a naive list: the steps, the list and the checks are those of the tests.

#![no_main]

#[path = "../../tests/support/bytes.rs"]
mod bytes;
#[path = "../../tests/wheel/edges.rs"]
#[allow(dead_code)]
mod edges;
#[path = "../../tests/wheel/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| model::run(&model::decode(bytes)));
