//! What users await: each future by itself, beside tokio's own, and beside an oracle.
//!
//! Time is virtual where it can be. What needs the machine's is in `tests/driver/`, and what needs much of it in
//! `tests/time_itself/`.

#[macro_use]
#[path = "../support/auto_traits.rs"]
mod has_auto_traits;

#[path = "../support/bytes.rs"]
mod bytes;
#[path = "../support/corpus.rs"]
mod corpus_files;
#[path = "../support/mod.rs"]
mod support;

mod auto_traits;
mod bad_input;
mod beside_tokio;
mod bounded;
mod coop;
mod futures;
mod interval;
mod poll;
mod reset;
mod side_by_side;
mod slack;
mod sleep;
mod switching;
#[cfg(feature = "test-util")]
mod test_util;
mod timeout;
mod virtual_time;
