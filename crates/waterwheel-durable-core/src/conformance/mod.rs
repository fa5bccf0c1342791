//! One suite for every store of durable timers: does a [`Store`] keep what the trait promises?
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
//! | test what a store keeps when it is opened again | [`all_reopened`] |
//! | look at single cases | [`Report`], [`Verdict`] |
//!
//! A case has a name, begins with an empty store and takes some milliseconds. It compares what the store replies with what the contract says; it does not
//! look for lost writes after a power cut, nor for threads.

mod cases;
mod rows;
mod subject;
mod verdict;

use crate::store::Store;

use subject::Subject;
pub use verdict::{Report, Verdict};

/// Runs all cases. Each begins with a store of its own, which `make` makes: an empty one.
pub fn all(mut make: impl FnMut() -> Box<dyn Store>) -> Report {
    all_reopened(|store| match store {
        Some(store) => store,
        None => make(),
    })
}

/// Runs all cases, and opens the store again between the steps of each.
///
/// `open` is called with `None` for an empty store, and with a store for one that has the same rows: that one itself, or one that is opened in its place.
pub fn all_reopened(mut open: impl FnMut(Option<Box<dyn Store>>) -> Box<dyn Store>) -> Report {
    let verdicts = cases::ALL.iter().map(|(name, case)| {
        let outcome = Subject::new(&mut open).and_then(|mut subject| case(&mut subject));
        Verdict::new(name, outcome.err())
    });
    Report::new(verdicts.collect())
}
