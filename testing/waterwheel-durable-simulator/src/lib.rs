//! Runs the engine of durable timers through a life that a seed determines: requests, failing deliveries, jumping clocks, a store that is slow, refuses
//! requests, loses and duplicates replies, and crashes that lose unsynced work. A [`Model`](model::Model) checks the promises.
//!
//! | file | question |
//! |---|---|
//! | `life` | what is the outcome of the life of a seed, and of some of its steps? |
//! | `shrink` | which few steps are enough to break a promise? |
//! | `world` | what happens next? |
//! | `disk` | what does the store do, and what survives a crash? |
//! | `model` | what was promised, and was it kept? |
//! | `namespaces/` | were the promises about namespaces kept? |
//! | `calendars` | were the promises about calendars kept? |
//! | `beat` | when do calendars occur? |
//!
//! `cluster/` does the same for several processes on a simulated database.
//!
//! `cargo run --release -p waterwheel-durable-simulator -- --seeds 100000` runs seeds. A failing seed is shrunk to a few of its
//! steps, which are printed with the command that repeats them.

pub mod beat;
pub mod calendars;
pub mod cluster;
mod disk;
mod life;
pub mod model;
pub mod namespaces;
mod shrink;
mod world;

pub use disk::Broken;
pub use life::{Broke, Fault, Life, Step, Tell, run};
pub use shrink::{Shrunk, shrink};
