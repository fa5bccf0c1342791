//! The futures that users await: each one by itself, compared to tokio's own, and compared to an oracle.
//!
//! Time is virtual where possible. Tests that need real time are in `tests/driver/`, and tests that need much
//! time in `tests/time_itself/`.

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
