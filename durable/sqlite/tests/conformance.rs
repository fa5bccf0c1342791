//! A SQLite file passes the suite of all stores.

mod folder;

use folder::Folder;
use waterwheel_conformance::{all, all_reopened};
use waterwheel_store::Store;
use waterwheel_store_sqlite::SqliteStore;

#[test]
fn a_sqlite_store_passes_all_cases() {
    let folder = Folder::new("all");
    let mut count = 0;
    let make = || -> Box<dyn Store> {
        count += 1;
        Box::new(SqliteStore::open(folder.file(&format!("{count}.db"))).unwrap())
    };
    all(make).expect_all();
}

#[test]
fn a_sqlite_store_opened_after_each_commit_passes_too() {
    let folder = Folder::new("reopened");
    let mut count = 0;
    let open = |store: Option<Box<dyn Store>>| -> Box<dyn Store> {
        // Dropped, it releases the file.
        let is_new = store.is_none();
        drop(store);
        count += u32::from(is_new);
        Box::new(SqliteStore::open(folder.file(&format!("{count}.db"))).unwrap())
    };
    all_reopened(open).expect_all();
}
