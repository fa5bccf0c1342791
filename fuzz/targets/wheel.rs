//! The wheel against a naive list: the steps, the list and the checks are those of the tests.
//!
//! These bugs were planted by hand, and found within a second from the corpus:
//!
//! - a dial reaches one slot too far; a timer is filed a slot too late (`Dials::place`)
//! - a slot that comes up keeps its bit, or a slot that a cancel empties does
//! - the slots after the wrap of a dial are not taken
//! - an insert does not lower `quiet_until`
//! - a cancel ignores the key's generation; a drain restarts the generations
//! - an entry leaves its list before it is judged, so that a panicking judge loses it
//! - an iterator that is dropped leaves `quiet_until` too early; its cascades are not bounded
//! - a peek does not look beyond the dials, or at timers that wait to cascade

#![no_main]

#[path = "../../tests/support/bytes.rs"]
mod bytes;
#[path = "../../tests/wheel/edges.rs"]
#[allow(dead_code)]
mod edges;
#[path = "../../tests/wheel/model/mod.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| model::run(&model::decode(bytes)));
