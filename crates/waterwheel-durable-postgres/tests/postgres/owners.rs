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

const HOUR: Duration = Duration::from_secs(3_600);

impl Database {
    fn postgres(&self) -> Postgres {
        self.at(&self.url)
    }

    /// Waits until this is the number of processes that own the timers or wait for them.
    fn until_nodes(&self, count: usize) {
        let sql = "SELECT count(*) FROM waterwheel.nodes WHERE counter > 0";
        until(|| self.sql(sql) == format!("{count}\n"));
    }
}

/// Waits until a condition holds, and panics if it never does.
#[track_caller]
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never holds");
        thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    let limited = tokio::time::timeout(Duration::from_secs(60), future);
    limited.await.unwrap()
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
    database.until_nodes(2);
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
    // That is no owner to wait for.
    let postgres = postgres.wait_at_most(Duration::ZERO);
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
        until(|| database.sql(locked) == "1\n");
        database.at(&database.url).open().unwrap().begin().unwrap();
        let error = blocker.join().unwrap().unwrap_err();
        assert!(error.contains("terminating connection"), "{error}");
    });
}

#[test]
fn the_rows_of_killed_standbys_are_deleted_after_a_day() {
    let database = Database::new();
    database.sql(
        "INSERT INTO waterwheel.nodes VALUES (7, 5, 'a-host', 4711, now() - interval '25 hours'),
            (8, 5, 'a-host', 4712, now() - interval '23 hours'), (9, 5, 'a-host', 4713, now() - interval '25 hours');
        UPDATE waterwheel.partitions SET node = 9",
    );
    let first = database.postgres().wait_at_most(Duration::ZERO);
    let opening = thread::spawn(move || first.open().unwrap());
    let left = "SELECT id FROM waterwheel.nodes WHERE id < 10 AND id > 0 ORDER BY id";
    until(|| database.sql(left) == "8\n9\n");
    // The owner of the timers is observed for one TTL nevertheless.
    assert!(!opening.is_finished());
    database.sql("UPDATE waterwheel.partitions SET node = NULL");
    drop(opening.join().unwrap());
}

/// It may have lost a take-over.
#[test]
fn a_partition_that_was_free_before_a_failover_is_free_after_one_ttl() {
    let ttl = Duration::from_secs(3);
    let database = Database::with_ttl(ttl);
    database.sql("UPDATE waterwheel.partitions SET timeline = timeline - 1");
    let since = Instant::now();
    let postgres = database.postgres().wait_at_most(Duration::ZERO);
    postgres.open().unwrap().begin().unwrap();
    assert!(since.elapsed() >= ttl, "{:?}", since.elapsed());
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
    let begin = format!("process {process} on ");
    let end = ": end it first, or wait for it as a standby (`wait_at_most`)";
    let owns = format!(
        " owns the timers in database {} on ",
        database_of(&database.url)
    );
    assert!(
        text.starts_with(&begin) && text.ends_with(end) && text.contains(&owns),
        "{text}"
    );
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

/// The database is reachable, but every heartbeat fails.
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
    let second = database.postgres();
    let opening = thread::spawn(move || second.open_store(&|| false));
    until(|| opening.is_finished());
    let error = opening.join().unwrap().unwrap_err();
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
    until(|| !(store.lease().is_held()));
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
#[tokio::test]
async fn a_service_that_has_failed_gives_the_timers_back() {
    let database = Database::new();
    let first = Durable::builder().store(database.postgres()).open();
    let first = first.await.unwrap();
    first.after("mail", HOUR).insert().await.unwrap();
    database.sql("DELETE FROM waterwheel.commits");
    let error = first.after("mail", HOUR).insert().await.unwrap_err();
    assert!(first.metrics().has_failed, "{error}");
    let second = Durable::builder().store(database.postgres()).open();
    let second = second.await.unwrap();
    second.after("mail", HOUR).insert().await.unwrap();
    drop(first);
    second.shutdown(Drain::within(HOUR)).await.unwrap();
}

#[test]
fn a_store_that_was_given_up_can_be_opened_again() {
    let database = Database::new();
    let mut store = database.open();
    store.begin().unwrap();
    store.commit(1, &[]).unwrap();
    store.give_up();
    database.open().begin().unwrap();
    assert!(!store.lease().is_held());
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
        until(|| !(lease.is_held()));
        database.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)' AND datname = current_database()");
        until(|| lease.is_held());
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
    assert_eq!(
        within(deliveries.recv()).await,
        Some(("first", now.handle().id))
    );
    let standby = tokio::spawn(Durable::builder().store(database.postgres()).open());
    let later = first.after("mail", HOUR).insert();
    let later = later.await.unwrap();
    first.shutdown(Drain::within(HOUR)).await.unwrap();
    let second = standby.await.unwrap().unwrap();
    handle(&second, "second");
    second.reschedule(&later, SystemTime::now()).await.unwrap();
    assert_eq!(
        within(deliveries.recv()).await,
        Some(("second", later.handle().id))
    );
    second.shutdown(Drain::within(HOUR)).await.unwrap();
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
    let error = loop {
        match within(events.recv()).await {
            Some(Event::Failed { error, .. }) => break error,
            event => assert_eq!(event, Some(Event::LeaseLost)),
        }
    };
    let text = "another process owns the timers now";
    assert!(error.contains(text), "{error}");
    drop(timers);
}
