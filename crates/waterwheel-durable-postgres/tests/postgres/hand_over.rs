//! Handlers that are running while their process hands the timers over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use waterwheel_durable::{Cancelled, Delivery, Drain, Durable, Error, HandlerOptions, Stopped};
use waterwheel_durable_core::store::Handle;
use waterwheel_postgres_server::{Server, database_of};

use crate::database::Database;
use crate::owners::within;

const HOUR: Duration = Duration::from_secs(3_600);

/// The deliveries of all processes.
struct Deliveries {
    sender: mpsc::UnboundedSender<(&'static str, Delivery)>,
    receiver: mpsc::UnboundedReceiver<(&'static str, Delivery)>,
}

impl Deliveries {
    fn new() -> Deliveries {
        let (sender, receiver) = mpsc::unbounded_channel();
        Deliveries { sender, receiver }
    }

    /// Opens the timers in a process with two handlers. Each handles one timer at a time, until the gate lets it end.
    async fn open(
        &self,
        database: &Database,
        process: &'static str,
        gate: &Arc<Semaphore>,
    ) -> Durable {
        let timers = Durable::builder().retry_delays([Duration::from_millis(1); 3]);
        let timers = timers.store(database.at(&database.url)).open();
        let timers = timers.await.unwrap();
        for handler in ["mail", "close"] {
            let (sender, gate) = (self.sender.clone(), Arc::clone(gate));
            let options = HandlerOptions::default().concurrency(1);
            timers.handle_with(handler, options, move |delivery| {
                sender.send((process, delivery)).unwrap();
                let gate = Arc::clone(&gate);
                async move {
                    // It fails once the gate is closed for good.
                    gate.acquire().await?.forget();
                    Ok(())
                }
            });
        }
        timers
    }

    async fn next(&mut self) -> (&'static str, Delivery) {
        within(self.receiver.recv()).await.unwrap()
    }

    fn is_empty(&mut self) -> bool {
        self.receiver.is_empty()
    }
}

fn shut() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(0))
}

async fn due_now(timers: &Durable, handler: &str) -> Handle {
    let inserted = timers
        .after(handler, Duration::ZERO)
        .insert()
        .await
        .unwrap();
    inserted.handle().clone()
}

/// Shuts a process down, in a task, and waits until it has handed the timers over.
async fn hand_over(database: &Database, timers: &Durable) -> JoinHandle<Result<Stopped, Error>> {
    let timers = timers.clone();
    let stopping = tokio::spawn(async move { timers.shutdown(Drain::within(HOUR)).await });
    let database = database.clone();
    let sql = "SELECT count(*) FROM waterwheel.partitions WHERE node IS NULL";
    let until = move || crate::owners::until(|| database.sql(sql) == "1\n");
    tokio::task::spawn_blocking(until).await.unwrap();
    stopping
}

/// The number of handlers that are running although their process has given the timers back.
fn running(database: &Database) -> String {
    database.sql("SELECT count(*) FROM waterwheel.attempts WHERE ended IS NULL")
}

/// The number of timers, and of deliveries that were handed over and are not applied.
fn left(database: &Database) -> String {
    database
        .sql("SELECT count(*), (SELECT count(*) FROM waterwheel.attempts) FROM waterwheel.timers")
}

#[tokio::test]
async fn a_handler_goes_on_while_the_next_owner_begins() {
    let database = Database::new();
    let mut deliveries = Deliveries::new();
    let (gate, open) = (shut(), Arc::new(Semaphore::new(1_000)));
    let first = deliveries.open(&database, "first", &gate).await;
    let slow = due_now(&first, "mail").await;
    let (_, delivery) = deliveries.next().await;
    // It waits for a free slot.
    let other = due_now(&first, "mail").await;
    let stopping = hand_over(&database, &first).await;
    let second = deliveries.open(&database, "second", &open).await;
    assert_eq!(running(&database), "1\n");
    assert!(delivery.is_lease_held() && !stopping.is_finished());
    let cancelled = second.cancel(&slow).await.unwrap();
    assert_eq!(cancelled, Cancelled::AlreadyFired);
    // The slot is taken, in both processes together. Other handlers are called.
    let close = due_now(&second, "close").await;
    let (process, delivery) = deliveries.next().await;
    assert_eq!((process, delivery.id()), ("second", close.id));
    gate.add_permits(1);
    let (process, delivery) = deliveries.next().await;
    assert_eq!((process, delivery.id()), ("second", other.id));
    let stopped = within(stopping).await.unwrap().unwrap();
    assert_eq!((stopped.abandoned, stopped.unsettled), (0, 0));
    second.shutdown(Drain::within(HOUR)).await.unwrap();
    assert_eq!(left(&database), "0|0\n");
    assert!(deliveries.is_empty());
}

#[tokio::test]
async fn a_failure_is_counted_by_the_next_owner() {
    let database = Database::new();
    let mut deliveries = Deliveries::new();
    let (gate, open) = (shut(), Arc::new(Semaphore::new(1_000)));
    let first = deliveries.open(&database, "first", &gate).await;
    let timer = due_now(&first, "mail").await;
    assert_eq!(deliveries.next().await.1.attempt(), 1);
    let stopping = hand_over(&database, &first).await;
    gate.close();
    within(stopping).await.unwrap().unwrap();
    // Nobody owns the timers.
    assert_eq!(running(&database), "0\n");
    let second = deliveries.open(&database, "second", &open).await;
    let (process, delivery) = deliveries.next().await;
    assert_eq!((process, delivery.id()), ("second", timer.id));
    assert_eq!(delivery.attempt(), 2);
    second.shutdown(Drain::within(HOUR)).await.unwrap();
    assert_eq!(left(&database), "0|0\n");
}

#[tokio::test]
async fn a_timer_whose_handler_is_abandoned_is_delivered_again() {
    let database = Database::new();
    let mut deliveries = Deliveries::new();
    let (gate, open) = (shut(), Arc::new(Semaphore::new(1_000)));
    let first = deliveries.open(&database, "first", &gate).await;
    let timer = due_now(&first, "mail").await;
    let (_, delivery) = deliveries.next().await;
    let stopping = hand_over(&database, &first).await;
    let second = deliveries.open(&database, "second", &open).await;
    let stopped = first.shutdown(Drain::within(Duration::ZERO)).await;
    assert_eq!(stopped.unwrap().abandoned, 1);
    within(stopping).await.unwrap().unwrap();
    assert!(!delivery.is_lease_held());
    // Much earlier than after one TTL.
    let (process, delivery) = deliveries.next().await;
    assert_eq!((process, delivery.id()), ("second", timer.id));
    assert_eq!(delivery.attempt(), 1);
    second.shutdown(Drain::within(HOUR)).await.unwrap();
    assert_eq!(left(&database), "0|0\n");
}

/// It has handed the timers over and was killed then.
#[tokio::test]
async fn a_process_that_no_longer_sends_heartbeats_loses_what_it_has_handed_over() {
    let ttl = Duration::from_secs(2);
    let database = Database::with_ttl(ttl);
    let mut deliveries = Deliveries::new();
    let open = Arc::new(Semaphore::new(1_000));
    let first = Durable::builder().store(database.at(&database.url)).open();
    let first = first.await.unwrap();
    let timer = due_now(&first, "mail").await;
    first.shutdown(Drain::within(HOUR)).await.unwrap();
    database.sql(
        "INSERT INTO waterwheel.nodes VALUES (7, 1, 'a-host', 4711), (8, 1, 'a-host', 4712);
        INSERT INTO waterwheel.attempts (id, partition, node) SELECT id, 0, 7 FROM waterwheel.timers",
    );
    let begun = Instant::now();
    let second = deliveries.open(&database, "second", &open).await;
    let (process, delivery) = deliveries.next().await;
    assert_eq!((process, delivery.id()), ("second", timer.id));
    assert!(begun.elapsed() >= ttl, "{:?}", begun.elapsed());
    second.shutdown(Drain::within(HOUR)).await.unwrap();
    assert_eq!(left(&database), "0|0\n");
    let nodes = database.sql("SELECT id FROM waterwheel.nodes");
    assert_eq!(nodes, "8\n");
}

/// The version after this one may add a kind of end.
#[tokio::test]
async fn a_timer_whose_end_cannot_be_read_is_delivered_again() {
    let database = Database::new();
    let mut deliveries = Deliveries::new();
    let open = Arc::new(Semaphore::new(1_000));
    let first = Durable::builder().store(database.at(&database.url)).open();
    let first = first.await.unwrap();
    due_now(&first, "mail").await;
    first.shutdown(Drain::within(HOUR)).await.unwrap();
    database.sql("INSERT INTO waterwheel.attempts (id, partition, ended) SELECT id, 0, 'split 5' FROM waterwheel.timers");
    let second = deliveries.open(&database, "second", &open).await;
    assert_eq!(deliveries.next().await.1.attempt(), 2);
    second.shutdown(Drain::within(HOUR)).await.unwrap();
    assert_eq!(left(&database), "0|0\n");
}

/// Otherwise the timers of a shutdown during a restart of the database would be delivered again.
#[tokio::test]
async fn an_end_is_reported_after_an_outage() {
    let database = Database::with_ttl(Duration::from_secs(6));
    let mut deliveries = Deliveries::new();
    let (gate, open) = (shut(), Arc::new(Semaphore::new(1_000)));
    let first = deliveries.open(&database, "first", &gate).await;
    due_now(&first, "mail").await;
    deliveries.next().await;
    let stopping = hand_over(&database, &first).await;
    let name = database_of(&database.url);
    let allow = |connections: bool| {
        let sql = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {connections}");
        Server::of_process().sql("postgres", &sql)
    };
    allow(false);
    let terminate =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    Server::of_process().sql("postgres", &terminate);
    gate.add_permits(1);
    tokio::time::sleep(Duration::from_millis(800)).await;
    allow(true);
    let stopped = within(stopping).await.unwrap().unwrap();
    assert_eq!((stopped.abandoned, stopped.unsettled), (0, 0));
    let second = deliveries.open(&database, "second", &open).await;
    let other = database.clone();
    let applied = move || crate::owners::until(|| left(&other) == "0|0\n");
    tokio::task::spawn_blocking(applied).await.unwrap();
    assert!(deliveries.is_empty());
    second.shutdown(Drain::within(HOUR)).await.unwrap();
}
