//! A PostgreSQL database passes the suite of all stores.

use waterwheel_durable_core::conformance::{all, all_reopened, mixed};
use waterwheel_durable_core::store::Store;
use waterwheel_postgres_server::{Pooler, Server};

use crate::database::Database;

#[test]
fn a_postgres_store_passes_all_cases() {
    let database = Database::new();
    let make = || -> Box<dyn Store> {
        database.empty();
        Box::new(database.open())
    };
    all(make).expect_all();
}

#[test]
fn a_postgres_store_opened_after_each_commit_passes_too() {
    let database = Database::new();
    let open = |store: Option<Box<dyn Store>>| -> Box<dyn Store> {
        let is_new = store.is_none();
        // Dropping the store gives the timers back.
        drop(store);
        if is_new {
            database.empty();
        }
        Box::new(database.open())
    };
    all_reopened(open).expect_all();
}

#[test]
fn a_postgres_store_behind_a_pooler_passes_too() {
    let database = Database::new();
    let pooler = Pooler::start(Server::of_process()).unwrap();
    let postgres = database.at(&pooler.url(&database.url));
    let make = || -> Box<dyn Store> {
        database.empty();
        Box::new(postgres.open().unwrap())
    };
    all(make).expect_all();
}

/// `WATERWHEEL_SEEDS` sets the number of seeds. Each has 50 commits.
#[test]
fn random_commits_equal_those_of_the_store_in_memory() {
    let seeds = std::env::var("WATERWHEEL_SEEDS").map_or(20, |it| it.parse().unwrap());
    let database = Database::new();
    for seed in 0..seeds {
        database.empty();
        mixed(&mut database.open(), seed, 50);
    }
}
