//! With a paused clock, timers fire at the same instants as tokio's own.

mod advancing;
mod idle_clock;
mod instants;
mod pausing;
