//! The driver and its thread, which wake the futures; the runtimes that they live in, the end of each, and
//! faults meanwhile. Mostly in real time.

#[path = "../support/mod.rs"]
mod support;

mod asleep;
mod catch_up;
mod current;
mod faults;
mod given;
mod idle;
mod local_runtime;
mod reentrancy;
mod snapshot;
mod stopping;
mod stress;
mod watchdog;
