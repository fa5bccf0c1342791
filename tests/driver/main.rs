//! What wakes the futures: the driver and its thread, the runtimes that they live in, the end of each, and
//! what goes wrong meanwhile. In real time for the most part.

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
