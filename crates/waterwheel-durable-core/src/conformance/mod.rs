//! One test suite for every store of durable timers, to check that a [`Store`] keeps the promises of the trait.
//!
//! ```
//! use waterwheel_durable_core::store::MemoryStore;
//!
//! let report = waterwheel_durable_core::conformance::all(|| Box::new(MemoryStore::new()));
//! report.expect_all();
//! ```
//!
//! | to | use |
//! |---|---|
//! | test a store | [`all`] |
//! | test that a store keeps its contents when reopened | [`all_reopened`] |
//! | look at individual cases | [`Report`], [`Verdict`] |
//! | compare random commits with the store in memory | [`mixed`] |
//!
//! Each case has a name, starts with an empty store and takes a few milliseconds. It compares the store's replies with the contract. It does not
//! look for writes lost in a power cut, nor for concurrency bugs.

mod cases;
mod mixed;
mod rows;
mod subject;
mod verdict;

use crate::store::Store;

pub use mixed::mixed;
use subject::Subject;
pub use verdict::{Report, Verdict};

/// Runs all cases, each with its own empty store, created by `make`.
pub fn all(mut make: impl FnMut() -> Box<dyn Store>) -> Report {
    all_reopened(|store| match store {
        Some(store) => store,
        None => make(),
    })
}

/// Runs all cases, and opens the store again between the steps of each; after the first of many steps, it does so less often.
///
/// `open` is called with `None` for an empty store. It is called with a store to reopen it, and may return it as it is.
pub fn all_reopened(mut open: impl FnMut(Option<Box<dyn Store>>) -> Box<dyn Store>) -> Report {
    let verdicts = cases::ALL.iter().map(|(name, case)| {
        let outcome = Subject::new(&mut open).and_then(|mut subject| case(&mut subject));
        Verdict::new(name, outcome.err())
    });
    Report::new(verdicts.collect())
}
