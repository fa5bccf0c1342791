//! Clocks of a timer's own.

#[path = "../support/mod.rs"]
mod support;

mod manual;
mod premise;
