use std::time::Duration;

use waterwheel_durable_core::store::{Due, Id, Level, Op, Row};
use waterwheel_durable_postgres::{Postgres, PostgresStore};
use waterwheel_postgres_server::{Server, database_of};

/// A database with the tables.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) url: String,
    ttl: Duration,
}

impl Database {
    pub(crate) fn new() -> Database {
        Database::with_ttl(TTL)
    }

    pub(crate) fn with_ttl(ttl: Duration) -> Database {
        let url = Server::of_process().database();
        let database = Database { url, ttl };
        database.at(&database.url).migrate().unwrap();
        database
    }

    /// How the database is reached by this URL.
    pub(crate) fn at(&self, url: &str) -> Postgres {
        Postgres::new(url).ttl(self.ttl)
    }

    pub(crate) fn open(&self) -> PostgresStore {
        self.at(&self.url).open().unwrap()
    }

    pub(crate) fn sql(&self, sql: &str) -> String {
        Server::of_process().sql(database_of(&self.url), sql)
    }

    /// Deletes everything but what the protocol needs.
    pub(crate) fn empty(&self) {
        self.sql(
            "DELETE FROM waterwheel.timers; DELETE FROM waterwheel.keys; DELETE FROM waterwheel.dead; DELETE FROM waterwheel.archive;
            DELETE FROM waterwheel.settings; DELETE FROM waterwheel.handlers; DELETE FROM waterwheel.pending_counts;
            DELETE FROM waterwheel.dead_counts; DELETE FROM waterwheel.pending_changes; DELETE FROM waterwheel.dead_changes",
        );
    }
}

/// Calls may take long on a busy machine.
const TTL: Duration = Duration::from_secs(30);

pub(crate) fn postgres(url: &str) -> Postgres {
    Postgres::new(url).ttl(TTL)
}

pub(crate) fn row(count: u64) -> Row {
    let due = Due::from_millis(1_800_000_000_000);
    Row::new(Id::from_stored(1 << 40 | count), due, "mail", vec![7; 10])
}

pub(crate) fn insert(row: &Row) -> Op {
    Op::Insert(row.clone(), Level::Second.bucket(row.due))
}
