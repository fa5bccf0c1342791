//! Timers with their own clocks.

#[path = "../support/mod.rs"]
mod support;

mod manual;
mod premise;
