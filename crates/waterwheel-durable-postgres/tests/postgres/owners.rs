//! Which of several processes owns the timers.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use waterwheel_durable::{Drain, Durable, Event};
use waterwheel_durable_core::store::{MemoryStore, OpenStore, Store};
use waterwheel_durable_postgres::Postgres;
use waterwheel_postgres_server::{Server, database_of};

use crate::database::{Database, insert, row};

impl Database {
    fn postgres(&self) -> Postgres {
        self.at(&self.url)
    }

    /// Waits until this is the number of processes that own the timers or wait for them.
    fn until_nodes(&self, count: usize) {
        let sql = "SELECT count(*) FROM waterwheel.nodes WHERE counter > 0";
        while self.sql(sql) != format!("{count}\n") {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// How a process that has observed the owner for one TTL takes the timers over.
const TAKE_OVER: &str = "
    UPDATE waterwheel.partitions SET previous = owner, owner = 7, node = 7;
    INSERT INTO waterwheel.nodes VALUES (7, 1, 'a-host', 4711)";

/// Another process owns the timers until it ends.
#[test]
fn a_store_waits_until_its_timers_are_given_back() {
    let database = Database::new();
    let mut first = database.open();
    let epoch = first.begin().unwrap();
    let second = database.at(&database.url);
    let waiting = thread::spawn(move || second.open().unwrap().begin().unwrap());
    // The second one has looked at the owner.
    while database.sql("SELECT count(*) FROM waterwheel.nodes WHERE counter > 0") != "2\n" {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(!waiting.is_finished());
    first.commit(1, &[]).unwrap();
    drop(first);
    assert!(waiting.join().unwrap() > epoch);
}

#[test]
fn a_standby_takes_over_from_a_node_whose_counter_stands_still() {
    let database = Database::with_ttl(Duration::from_secs(6));
    let ttl = Duration::from_secs(6);
    let postgres = database.at(&database.url);
    database.sql("INSERT INTO waterwheel.nodes VALUES (7, 5, 'a-host', 4711); UPDATE waterwheel.partitions SET node = 7, owner = 8");
    let since = Instant::now();
    postgres.open().unwrap().begin().unwrap();
    assert!(since.elapsed() >= ttl, "{:?}", since.elapsed());
    let dead = "SELECT count(*) FROM waterwheel.nodes WHERE id = 7";
    assert_eq!(database.sql(dead), "0\n");
}

/// A process that was stopped in the middle of a transaction.
#[test]
fn a_connection_that_blocks_a_take_over_is_terminated() {
    let database = Database::with_ttl(Duration::from_secs(6));
    let server = Server::of_process();
    let name = database_of(&database.url);
    thread::scope(|scope| {
        let lock = "BEGIN; SELECT FROM waterwheel.partitions FOR UPDATE; SELECT pg_sleep(600)";
        let blocker = scope.spawn(|| server.try_sql(name, lock));
        let locked = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND wait_event = 'PgSleep'
            AND datname = current_database()";
        while database.sql(locked) != "1\n" {
            thread::sleep(Duration::from_millis(10));
        }
        database.at(&database.url).open().unwrap().begin().unwrap();
        let error = blocker.join().unwrap().unwrap_err();
        assert!(error.contains("terminating connection"), "{error}");
    });
}

#[test]
fn an_owner_is_named_by_an_opening_that_does_not_wait() {
    let database = Database::new();
    let mut first = database.open();
    first.begin().unwrap();
    let second = database.postgres().wait_at_most(Duration::ZERO);
    let error = second.open().unwrap_err();
    let process = std::process::id();
    assert_eq!((error.is_held(), error.holder()), (true, Some(process)));
    let text = error.to_string();
    let (begin, end) = (
        format!("process {process} on "),
        " owns the timers in the database: end it first, or wait for it as a standby (`wait_at_most`)",
    );
    assert!(text.starts_with(&begin) && text.ends_with(end), "{text}");
    assert!(text.len() > begin.len() + end.len(), "{text}");
    // An opening that waits for a while ends as well.
    let begun = Instant::now();
    let wait = Duration::from_millis(700);
    let error = second.clone().wait_at_most(wait).open().unwrap_err();
    assert!(error.is_held() && begun.elapsed() >= wait, "{error}");
    // Both have left no trace, and the owner was not disturbed.
    database.until_nodes(1);
    first.commit(1, &[]).unwrap();
    drop(first);
    second.open().unwrap().begin().unwrap();
}

/// Nothing is as it should be, but the database can be reached.
#[test]
fn an_opening_ends_if_no_heartbeat_succeeds() {
    let database = Database::with_ttl(Duration::from_secs(2));
    database.sql("ALTER FUNCTION waterwheel.beat RENAME TO other");
    let error = database.postgres().open();
    let error = error.unwrap_err();
    assert!(!error.is_held());
    let error = error.to_string();
    assert!(error.contains("waterwheel.beat"), "{error}");
}

/// A service whose start is given up, for example because of a time limit.
#[test]
fn a_dropped_opening_no_longer_waits() {
    let database = Database::new();
    let mut first = database.open();
    first.begin().unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let opening = Durable::builder().store(database.postgres()).open();
        let other = database.clone();
        let waiting = spawn_blocking(move || other.until_nodes(2));
        tokio::select! {
            opened = opening => panic!("{opened:?}"),
            waiting = waiting => waiting.unwrap(),
        }
    });
    database.until_nodes(1);
    first.commit(1, &[]).unwrap();
}

#[test]
fn an_opening_that_is_not_wanted_ends() {
    let database = Database::new();
    let mut first = database.open();
    first.begin().unwrap();
    let error = database.postgres().open_store(&|| false).unwrap_err();
    assert!(!error.is_held(), "{error}");
    assert!(MemoryStore::new().open_store(&|| false).is_ok());
}

/// It was stopped for longer than one TTL, for example.
#[test]
fn an_owner_that_makes_no_commits_notices_that_it_was_replaced() {
    let database = Database::with_ttl(Duration::from_secs(2));
    let mut store = database.postgres().open().unwrap();
    store.begin().unwrap();
    assert!(store.lease().is_held());
    store.maintain().unwrap();
    database.sql(TAKE_OVER);
    while store.lease().is_held() {
        thread::sleep(Duration::from_millis(10));
    }
    let text = store.maintain().unwrap_err().to_string();
    assert!(
        text.contains("another process has taken the store over"),
        "{text}"
    );
    // It does not wait for the timers, which it could not deliver.
    database.sql(
        "UPDATE waterwheel.partitions SET node = NULL; DELETE FROM waterwheel.nodes WHERE id = 7",
    );
    database.until_nodes(0);
    database.open().begin().unwrap();
}

/// The service has to be opened again, which the program may never do.
#[test]
fn a_store_that_has_failed_gives_the_timers_back() {
    let database = Database::new();
    let mut store = database.open();
    store.begin().unwrap();
    store.commit(1, &[]).unwrap();
    database.sql("DELETE FROM waterwheel.commits WHERE number = 1");
    assert!(!store.commit(2, &[]).unwrap_err().is_definite());
    database.open().begin().unwrap();
    // It can be opened again as well.
    store.begin().unwrap();
    store.commit(1, &[insert(&row(1))]).unwrap();
}

/// As if the network between this process and the database was interrupted.
#[test]
fn a_lease_that_is_not_renewed_ends_and_may_begin_again() {
    let database = Database::with_ttl(Duration::from_secs(3));
    let name = database_of(&database.url);
    let mut store = database.postgres().open().unwrap();
    store.begin().unwrap();
    let lease = store.lease();
    assert!(lease.is_held());
    thread::scope(|scope| {
        let lock = "BEGIN; SELECT FROM waterwheel.nodes FOR UPDATE; SELECT pg_sleep(600)";
        scope.spawn(|| Server::of_process().try_sql(name, lock));
        while lease.is_held() {
            thread::sleep(Duration::from_millis(10));
        }
        database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND datname = current_database()");
        while !lease.is_held() {
            thread::sleep(Duration::from_millis(10));
        }
    });
    store.commit(1, &[]).unwrap();
}

#[tokio::test]
async fn a_standby_delivers_what_the_owner_has_left() {
    let database = Database::new();
    let (sender, mut deliveries) = mpsc::unbounded_channel();
    let handle = |timers: &Durable, process: &'static str| {
        let sender = sender.clone();
        timers.handle("mail", move |delivery| {
            sender.send((process, delivery.id())).unwrap();
            async { Ok(()) }
        });
    };
    let first = Durable::builder().store(database.postgres()).open();
    let first = first.await.unwrap();
    handle(&first, "first");
    let now = first.after("mail", Duration::ZERO).insert().await.unwrap();
    assert_eq!(deliveries.recv().await, Some(("first", now.handle().id)));
    let standby = tokio::spawn(Durable::builder().store(database.postgres()).open());
    let later = first.after("mail", Duration::from_secs(3_600)).insert();
    let later = later.await.unwrap();
    first
        .shutdown(Drain::within(Duration::from_secs(30)))
        .await
        .unwrap();
    let second = standby.await.unwrap().unwrap();
    handle(&second, "second");
    second.reschedule(&later, SystemTime::now()).await.unwrap();
    assert_eq!(deliveries.recv().await, Some(("second", later.handle().id)));
    second
        .shutdown(Drain::within(Duration::from_secs(30)))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_service_that_was_replaced_says_so() {
    let database = Database::with_ttl(Duration::from_secs(2));
    let (sender, mut events) = mpsc::unbounded_channel();
    let postgres = database.postgres();
    let builder = Durable::builder().store(postgres);
    let builder = builder.on_event(move |event| drop(sender.send(event.clone())));
    let timers = builder.open().await.unwrap();
    database.sql(TAKE_OVER);
    let event = events.recv().await;
    assert!(
        matches!(&event, Some(Event::Failed { error, .. }) if error.contains("another process owns the timers now")),
        "{event:?}"
    );
    drop(timers);
}
