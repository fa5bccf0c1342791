//! Whole futures on a simulated clock, against a naive oracle.

#[path = "../support/bytes.rs"]
mod bytes;
#[path = "../support/corpus.rs"]
mod corpus_files;
mod model;
#[path = "../support/mod.rs"]
mod support;

mod corpus;
mod properties;
