//! A poll tells the truth, a reset takes effect, and with nothing due nothing runs.

#[path = "../support/mod.rs"]
mod support;

mod coop;
mod driver_sleep;
mod help;
mod idle;
mod poll;
mod reset;

use waterwheel::Duration;

const LIMIT: Duration = Duration::from_secs(20);
