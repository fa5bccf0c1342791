//! Runs the engine of durable timers through a life that a seed decides: requests, deliveries that fail, clocks that jump, a store that is slow, refuses,
//! loses and doubles replies, and crashes that lose what was not synced. A [`Model`](model::Model) of what was promised watches.
//!
//! | file | question |
//! |---|---|
//! | `life` | what comes of the life of a seed, and of some of its steps? |
//! | `shrink` | which few steps are enough to break a promise? |
//! | `world` | what happens next? |
//! | `disk` | what does the store do, and what is left of it after a crash? |
//! | `model` | what was promised, and was it kept? |
//! | `namespaces/` | and of namespaces? |
//! | `calendars` | and of calendars? |
//! | `beat` | when do these come? |
//!
//! `cargo run --release -p waterwheel-durable-simulator -- --seeds 100000` runs seeds. One that fails is shrunk to a few of its
//! steps, which are printed with the command that repeats them.

pub mod beat;
pub mod calendars;
mod disk;
mod life;
pub mod model;
pub mod namespaces;
mod shrink;
mod world;

pub use disk::Broken;
pub use life::{Broke, Life, Step, Tell, run};
pub use shrink::{Shrunk, shrink};
