//! Random scripts, played with tokio's timers and with ours on a paused clock: the same instants, the
//! same readiness, the same `is_elapsed()` and `deadline()`, and the same order of wakes.
//!
//! `WATERWHEEL_SEEDS=10000 cargo test --release --test time beside_tokio` plays this many scripts in
//! each test; without the variable it is a smaller number and a few seconds. A script depends on its
//! seed alone, and `WATERWHEEL_SEED=1234` plays the script of one seed. A script that differs is
//! reduced to the steps that are needed to differ, and printed.

mod by_hand;
mod model;
mod order;
mod tasks;

pub(crate) use model::{Ours, Times, Tokio};
