//! Under a paused clock: as tokio's own timers, to the instant.

#[path = "../support/mod.rs"]
mod support;

mod advancing;
mod beside_tokio;
mod idle_clock;
mod pausing;
