//! Extension points of other crates, with our timers: one recipe per file.

#[path = "../../../../tests/support/mod.rs"]
mod support;

mod backon;
mod openraft;
mod opentelemetry;
mod quinn;
mod reqwest;
