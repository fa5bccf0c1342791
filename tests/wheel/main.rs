//! The pure wheel against a naive list, and against the bugs that other timers shipped.

mod edges;
mod model;
mod support;

mod cpu;
mod early;
mod fairness;
mod late;
mod memory;
mod panics;
mod properties;
mod resolution;
mod verdicts;
