//! The pure wheel against a naive list: the steps, the list and the checks are those of the tests.
//!
//! Broken by hand, and seen to be found within a second from the corpus:
//!
//! - a dial reaches one slot too far; a timer is filed a slot too late (`Dials::place`)
//! - a slot that comes up keeps its bit; one that a cancel empties does
//! - the slots after the wrap of a dial are not taken
//! - an insert does not lower `quiet_until`
//! - a cancel ignores the key's generation; a drain starts the generations anew
//! - an entry leaves its list before it is judged, so that a judge that panics loses it
//! - an iterator that is dropped leaves `quiet_until` too early; its cascades are not bounded
//! - a peek does not look beyond the dials, or at what waits to cascade

#![no_main]

#[path = "../../tests/support/bytes.rs"]
mod bytes;
#[path = "../../tests/wheel/edges.rs"]
#[allow(dead_code)]
mod edges;
#[path = "../../tests/wheel/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| model::run(&model::decode(bytes)));
