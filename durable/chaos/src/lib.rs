//! Ends durable timers in the worst moment, and looks at what is left. Each command has a checker of its own, which shares no code with what it checks.
//!
//! | file | question |
//! |---|---|
//! | `power_cut` | is each commit that was answered there after a power cut, and nothing else? |
//! | `power_cut/life` | what does the life of a seed do, and when is its power cut? |
//! | `power_cut/steps` | what is a store asked to commit? |
//! | `power_cut/tables` | what must the tables have, and what do they have? |
//! | `arguments` | what was asked for? |
//!
//! `cargo run --release -p waterwheel-chaos -- power-cut --seeds 1000` says how to repeat a seed that fails.

pub mod arguments;
pub mod power_cut;
