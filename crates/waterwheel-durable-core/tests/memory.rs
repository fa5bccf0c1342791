//! Checks that the in-memory store passes the conformance suite.

use waterwheel_durable_core::store::{MemoryStore, Store};

#[test]
fn the_store_in_memory_passes_all_cases() {
    let report = waterwheel_durable_core::conformance::all(|| Box::new(MemoryStore::new()));
    assert!(report.verdicts().len() >= 60);
    report.expect_all();
}

#[test]
fn a_store_may_be_another_one_each_time() {
    let open = |store: Option<Box<dyn Store>>| match store {
        Some(store) => store,
        None => Box::new(MemoryStore::new()),
    };
    waterwheel_durable_core::conformance::all_reopened(open).expect_all();
}
