//! The wheel compared to a naive list, and tested for the bugs that other timers shipped.

#[path = "../support/bytes.rs"]
mod bytes;
#[path = "../support/corpus.rs"]
mod corpus_files;
mod edges;
mod model;
mod support;

mod corpus;
mod cpu;
mod early;
mod expire;
mod fairness;
mod late;
mod memory;
mod order;
mod panics;
mod peek;
mod properties;
mod resolution;
mod verdicts;
mod wraps;
