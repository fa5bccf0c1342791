//! Opening a database, and errors that say what to do.

use std::thread;
use std::time::Duration;

use waterwheel_durable_core::store::Store;
use waterwheel_durable_postgres::Postgres;
use waterwheel_postgres_server::{Server, database_of};

use crate::database::{Database, postgres};

#[test]
fn a_database_without_tables_is_refused() {
    let url = Server::of_process().database();
    let error = postgres(&url).open().unwrap_err();
    let error = error.to_string();
    let begin = format!("database {} on /", database_of(&url));
    let end = ": the tables of waterwheel are missing: call `Postgres::migrate`";
    assert!(error.starts_with(&begin) && error.ends_with(end), "{error}");
}

#[test]
fn tables_of_another_version_are_refused_unless_they_allow_this_one() {
    let database = Database::new();
    // A version that only adds something: a service of this one goes on during a rolling upgrade.
    database.sql("UPDATE waterwheel.version SET version = 2");
    let mut store = database.open();
    store.begin().unwrap();
    store.commit(1, &[]).unwrap();
    database.at(&database.url).migrate().unwrap();
    assert_eq!(
        database.sql("SELECT version FROM waterwheel.version"),
        "2\n"
    );
    for (version, advice) in [(0, "call `Postgres::migrate`"), (2, "upgrade waterwheel")] {
        database.sql(&format!(
            "UPDATE waterwheel.version SET version = {version}, oldest = {version}"
        ));
        let error = database.at(&database.url).open().unwrap_err();
        assert_eq!(error.is_newer(), version == 2);
        let error = error.to_string();
        let text = format!("the schema has version {version}, but this waterwheel ");
        assert!(error.contains(&text) && error.ends_with(advice), "{error}");
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let error = Postgres::new("host=/nowhere user=nobody");
    let error = error.open().unwrap_err().to_string();
    assert!(error.contains("No such file or directory"), "{error}");
    let error = Postgres::new("hst=x").open().unwrap_err().to_string();
    assert!(error.contains("unknown option `hst`"), "{error}");
}

#[test]
fn tables_are_created_once_by_any_number_of_processes() {
    let url = Server::of_process().database();
    let postgres = postgres(&url);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| postgres.migrate().unwrap());
        }
    });
    postgres.open().unwrap().begin().unwrap();
}

/// As of a server with a name that moves to the primary, and of one that does not.
#[test]
fn a_standby_is_not_taken_for_the_primary() {
    let primary = Server::start(&[]).unwrap();
    let (url, standby) = (primary.database(), primary.start_standby().unwrap());
    let name = database_of(&url);
    postgres(&url).migrate().unwrap();
    let caught_up = |sql: &str| standby.try_sql(name, sql).is_ok_and(|count| count == "1\n");
    while !caught_up("SELECT count(*) FROM waterwheel.version") {
        thread::sleep(Duration::from_millis(10));
    }
    let error = postgres(&standby.url(name)).open().unwrap_err().to_string();
    assert!(error.contains("database does not allow writes"), "{error}");
    let (first, second) = (standby.host(), primary.host());
    let both = format!("host={first},{second} user=waterwheel dbname={name}");
    let mut store = postgres(&both).open().unwrap();
    store.begin().unwrap();
    store.commit(1, &[]).unwrap();
}

/// A database is also opened by a task, which must not block on a runtime of its own.
#[tokio::test]
async fn a_task_may_create_and_open_a_database() {
    let database = Database::new();
    let store = database.open();
    let held = database.at(&database.url).wait_at_most(Duration::ZERO);
    assert!(held.open().unwrap_err().is_held());
    drop(store);
}

#[test]
fn a_server_that_cannot_store_every_text_is_refused() {
    let url = Server::of_process().database();
    let name = database_of(&url);
    let latin = format!("CREATE DATABASE {name}_latin TEMPLATE template0 ENCODING 'LATIN1'");
    Server::of_process().sql("postgres", &latin);
    let error = postgres(&format!("{url}_latin")).migrate().unwrap_err();
    let text = "the database has the encoding LATIN1: create one with UTF8";
    assert!(error.to_string().ends_with(text), "{error}");
}

#[test]
fn a_ttl_without_use_is_refused() {
    for (ttl, text) in [
        (0, "0ns"),
        (5_000_000_000_000, "5000000s"),
        (1_000_500, "1.0005s"),
    ] {
        let ttl = Duration::from_micros(ttl);
        let postgres = Postgres::new("host=/nowhere user=nobody").ttl(ttl);
        let error = postgres.open().unwrap_err().to_string();
        let text = format!(": invalid TTL {text}: expected 300ms to 3600s, in whole milliseconds");
        assert!(error.ends_with(&text), "{error}");
    }
}

#[test]
fn all_processes_use_the_ttl_that_the_tables_were_created_with() {
    let database = Database::with_ttl(Duration::from_secs(20));
    let other = Postgres::new(&database.url).ttl(Duration::from_secs(21));
    let text = "this process has a TTL of 21s, but the database one of 20s: ";
    for error in [
        other.open().unwrap_err().to_string(),
        other.migrate().unwrap_err().to_string(),
    ] {
        assert!(error.contains(text), "{error}");
    }
    database.sql("UPDATE waterwheel.version SET ttl = 21000");
    other.open().unwrap().begin().unwrap();
}
