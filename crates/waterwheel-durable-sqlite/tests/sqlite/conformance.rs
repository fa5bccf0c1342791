//! A SQLite file passes the suite of all stores.

use waterwheel_durable_core::conformance::{all, all_reopened, mixed};
use waterwheel_durable_core::store::{Op, Outcome, Store, StoreError, forward};
use waterwheel_durable_sqlite::{OpenOptions, Sizes, SqliteStore};

use crate::folder::*;

#[test]
fn a_sqlite_store_passes_all_cases() {
    let folder = Folder::new();
    let mut count = 0;
    let make = || -> Box<dyn Store> {
        count += 1;
        let path = folder.file(&format!("{count}.db"));
        Box::new(SqliteStore::open_with_options(&path, &OFTEN_OPENED).unwrap())
    };
    all(make).expect_all();
}

/// Without syncs and without the reserve: a suite opens hundreds of files, and cuts no power.
const OFTEN_OPENED: OpenOptions<'static> = OpenOptions {
    synchronous: "OFF",
    reserve: (0, 0),
    ..OpenOptions::DEFAULT
};

#[test]
fn a_sqlite_store_opened_after_each_commit_passes_too() {
    let folder = Folder::new();
    let mut count = 0;
    let open = |store: Option<Box<dyn Store>>| -> Box<dyn Store> {
        // Dropping the store releases the file.
        let is_new = store.is_none();
        drop(store);
        count += u32::from(is_new);
        let path = folder.file(&format!("{count}.db"));
        Box::new(SqliteStore::open_with_options(&path, &OFTEN_OPENED).unwrap())
    };
    all_reopened(open).expect_all();
}

/// A store whose keys are sorted after each commit, in the smallest steps.
struct Maintained(SqliteStore);

impl Store for Maintained {
    forward!(it => it.0; begin maintain reads);

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        let outcomes = self.0.commit(number, steps)?;
        self.0.maintain()?;
        Ok(outcomes)
    }
}

#[test]
fn a_sqlite_store_that_orders_its_keys_passes_too() {
    let folder = Folder::new();
    let options = OpenOptions {
        key_sizes: Sizes { fresh: 1, step: 1 },
        ..OFTEN_OPENED
    };
    let mut count = 0;
    let open = |store: Option<Box<dyn Store>>| -> Box<dyn Store> {
        let is_new = store.is_none();
        drop(store);
        count += u32::from(is_new);
        let path = folder.file(&format!("{count}.db"));
        Box::new(Maintained(
            SqliteStore::open_with_options(&path, &options).unwrap(),
        ))
    };
    all_reopened(open).expect_all();
}

#[test]
fn random_commits_equal_those_of_the_store_in_memory() {
    let folder = Folder::new();
    for seed in 0..200 {
        let path = folder.file(&format!("{seed}.db"));
        let mut store = SqliteStore::open_with_options(&path, &OFTEN_OPENED).unwrap();
        mixed(&mut store, seed, 50);
    }
}
