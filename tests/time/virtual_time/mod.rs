//! Under a paused clock: as tokio's own timers, to the instant.

mod advancing;
mod idle_clock;
mod instants;
mod pausing;
