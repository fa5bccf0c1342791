//! Whole futures on a simulated clock against a naive oracle: the steps, the oracle and the checks
//! are those of the tests.
//!
//! These bugs were planted by hand, and found within a second from the corpus:
//!
//! - a new waker does not replace the stale one; a timer that fired keeps its waker
//! - the driver does not read the note of a postponed timer; a new timer keeps the old note of its
//!   place
//! - a deadline is rounded down
//! - a shard that has published a turn does not publish an earlier one
//! - a reset to the past wakes nobody; a cancel does not notify the task that waits for a drain
//! - a timer that fired while it was being postponed is not armed again
//! - a poll past the tick of its deadline waits for the driver
//! - in the wheel: a timer is filed a slot too late; the slots after the wrap of a dial are not taken
//! - a slot that comes up keeps its bit: an endless turn, which is found by its time limit
//!
//! Not found here, because the driver checks each deadline before it fires: a timer that is filed in a
//! slot that comes up too soon, and a bit of an empty slot, which cost a needless turn. The wheel's
//! target finds both.

#![no_main]

#[path = "../../tests/support/bytes.rs"]
mod bytes;
#[path = "../../tests/time/futures/model/mod.rs"]
mod model;
#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| model::run(&model::decode(bytes)));
