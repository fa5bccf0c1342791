//! The pure wheel against a naive list: the steps, the list and the checks are those of the tests.
//!
//! Broken by hand, and seen to be found within a second from the corpus:
//!
//! - a dial reaches one slot too far (`Dials::place_on`)
//! - a slot that comes up keeps its bit; one that a cancel empties does
//! - a cancel ignores the key's stamp
//! - a record leaves its ring before it is judged, so that a judge that panics loses it

#![no_main]

#[path = "../../tests/support/bytes.rs"]
mod bytes;
#[path = "../../tests/wheel/edges.rs"]
#[allow(dead_code)]
mod edges;
#[path = "../../tests/wheel/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| model::run(&model::decode(bytes)));
