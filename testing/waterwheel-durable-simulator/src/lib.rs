//! Runs the engine of durable timers through a life that a seed decides: requests, deliveries that fail, clocks that jump, a store that is slow, refuses,
//! loses and doubles replies, and crashes that lose what was not synced. A [`Model`](model::Model) of what was promised watches.
//!
//! | file | question |
//! |---|---|
//! | `world` | what happens next? |
//! | `disk` | what does the store do, and what is left of it after a crash? |
//! | `model` | what was promised, and was it kept? |
//! | `namespaces/` | and of namespaces? |
//! | `calendars` | and of calendars? |
//! | `beat` | when do these come? |
//!
//! `cargo run --release -p waterwheel-durable-simulator -- --seeds 100000` runs seeds, and says how to repeat one that fails.

pub mod beat;
pub mod calendars;
mod disk;
pub mod model;
pub mod namespaces;
mod world;

pub use disk::Broken;
pub use world::{Broke, run};
