//! Plugs of other crates, with our timers in them: a recipe a file.

#[path = "../../../../tests/support/mod.rs"]
mod support;

mod backon;
mod openraft;
mod opentelemetry;
mod quinn;
mod reqwest;
