//! Restored databases, and copies that are meant for something else.

use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver};
use waterwheel_durable::{Cancelled, Drain, Durable, Event};
use waterwheel_durable_core::store::{Id, Store};
use waterwheel_durable_postgres::Postgres;
use waterwheel_postgres_server::{Server, database_of};

use crate::database::{Database, postgres};
use crate::owners::{until, within};

const HOUR: Duration = Duration::from_secs(3_600);

/// A service with one handler.
struct Service {
    timers: Durable,
    delivered: UnboundedReceiver<Id>,
    events: UnboundedReceiver<Event>,
}

impl Service {
    async fn open(postgres: Postgres) -> Service {
        let (sender, events) = mpsc::unbounded_channel();
        let builder = Durable::builder().store(postgres);
        let builder = builder.on_event(move |event| drop(sender.send(event.clone())));
        let timers = builder.open().await.unwrap();
        let (sender, delivered) = mpsc::unbounded_channel();
        timers.handle("mail", move |delivery| {
            sender.send(delivery.id()).unwrap();
            async { Ok(()) }
        });
        Service {
            timers,
            delivered,
            events,
        }
    }

    async fn insert(&self, after: Duration) -> Id {
        let inserted = self.timers.after("mail", after).insert().await;
        inserted.unwrap().handle().id
    }

    /// Waits until it has reported that the database was restored and that deliveries wait.
    async fn until_suspended(&mut self) -> String {
        let mut told = None;
        loop {
            match within(self.events.recv()).await {
                Some(Event::Restored { accept, .. }) => told = Some(accept.to_string()),
                Some(Event::LeaseLost) => return told.unwrap(),
                _ => {}
            }
        }
    }

    async fn shutdown(self) {
        self.timers.shutdown(Drain::within(HOUR)).await.unwrap();
    }
}

#[tokio::test]
async fn a_dump_on_another_server_delivers_nothing_until_it_is_accepted() {
    let database = Database::with_ttl(Duration::from_secs(6));
    let other = Server::start(&[]).unwrap();
    let name = database_of(&database.url).to_owned();
    let mut original = Service::open(database.at(&database.url)).await;
    let due = original.insert(Duration::ZERO).await;
    assert_eq!(within(original.delivered.recv()).await, Some(due));
    let settled = "SELECT count(*) = 0 FROM waterwheel.timers";
    until(|| database.sql(settled) == "t\n");
    let later = original.timers.after("mail", HOUR).insert().await.unwrap();
    let inserted = original.insert(HOUR).await;
    Server::of_process().dump_to(&other, &name).unwrap();
    // The dump misses this one. Its id must not be assigned again.
    let missed = original.insert(HOUR).await;
    original.shutdown().await;

    other.sql(&name, "UPDATE waterwheel.timers SET due = 1000, bucket = 1");
    let restored = database.at(&other.url(&name));
    let mut copy = Service::open(restored.clone()).await;
    let new = copy.insert(Duration::ZERO).await;
    let accept = copy.until_suspended().await;
    assert!(accept.contains("Postgres::accept_restore"), "{accept}");
    assert!(new.get() >> 40 > missed.get() >> 40, "{new} {missed}");
    assert_eq!(copy.timers.cancel(&later).await, Ok(Cancelled::Done));
    // All of them are due.
    assert!(copy.timers.metrics().has_lost_lease);
    assert!(copy.delivered.is_empty());
    copy.shutdown().await;

    let mut copy = Service::open(restored.clone()).await;
    copy.until_suspended().await;
    tokio::task::spawn_blocking(move || restored.accept_restore().unwrap());
    let mut delivered = Vec::new();
    while delivered.len() < 2 {
        delivered.extend(within(copy.delivered.recv()).await);
    }
    delivered.sort_unstable();
    assert_eq!(delivered, [inserted, new]);
    copy.shutdown().await;
}

/// It is on another timeline of the same server, like one that has failed over.
#[test]
fn a_database_that_was_recovered_to_an_old_state_is_suspended() {
    let server = Server::start(&[]).unwrap();
    let cases = [(9, false), (11, false), (11, true)];
    let cases = cases.map(|(minutes, is_accepted)| {
        let url = server.database();
        Postgres::new(&url).migrate().unwrap();
        Postgres::new(&url).open().unwrap().begin().unwrap();
        // A standby that was killed.
        let sql = "INSERT INTO waterwheel.nodes VALUES (7, 5, 'a-host', 4711)";
        server.sql(database_of(&url), sql);
        (database_of(&url).to_owned(), minutes, is_accepted)
    });
    let copy = server.start_standby().unwrap();
    copy.sql("postgres", "SELECT pg_promote()");
    for (name, minutes, is_accepted) in cases {
        let age = format!("interval '{minutes} min'");
        let sql = format!(
            "UPDATE waterwheel.nodes SET seen = now() - {age}; UPDATE waterwheel.partitions SET seen = now() - {age}"
        );
        copy.sql(&name, &sql);
        let opened = Postgres::new(&copy.url(&name));
        if is_accepted {
            opened.accept_restore().unwrap();
        }
        let mut store = opened.open().unwrap();
        let epoch = store.begin().unwrap();
        let is_old = minutes > 10;
        let is_suspended = is_old && !is_accepted;
        assert_eq!(store.lease().is_held(), !is_suspended);
        assert_eq!(store.notices().len(), usize::from(is_suspended));
        assert_eq!(store.notices(), []);
        assert_eq!(epoch > 65_536, is_old, "{epoch}");
        opened.accept_restore().unwrap();
        until(|| store.lease().is_held());
        drop(store);
        assert!(opened.open().unwrap().begin().unwrap() > epoch);
    }
}

#[test]
fn a_database_with_another_cluster_id_is_refused() {
    let url = Server::of_process().database();
    let production = postgres(&url).cluster_id("production");
    production.migrate().unwrap();
    production.migrate().unwrap();
    let staging = postgres(&url).cluster_id("staging");
    let text = "this process has the cluster id \"staging\", but the database the cluster id \"production\"";
    for error in [
        staging.migrate().unwrap_err().to_string(),
        staging.accept_restore().unwrap_err().to_string(),
        staging.open().unwrap_err().to_string(),
    ] {
        assert!(error.contains(text), "{error}");
    }
    let error = postgres(&url).open().unwrap_err().to_string();
    assert!(error.contains("this process has no cluster id"), "{error}");
    production.open().unwrap().begin().unwrap();
    let change = "UPDATE waterwheel.version SET cluster_id = 'staging'";
    Server::of_process().sql(database_of(&url), change);
    staging.open().unwrap().begin().unwrap();
}

/// As if the last heartbeat on another timeline was an hour ago.
const OLD: &str = "
    UPDATE waterwheel.partitions SET known_timeline = known_timeline - 1, seen = now() - interval '1 hour';
    UPDATE waterwheel.nodes SET seen = now() - interval '1 hour'";

fn is_suspended(database: &Database) -> bool {
    let mut store = database.open();
    store.begin().unwrap();
    !store.lease().is_held()
}

#[test]
fn a_copy_on_the_same_server_is_suspended() {
    let database = Database::new();
    // A template that was never used is no copy of anything.
    let name = database_of(&database.url).to_owned();
    let copy = |of: &str, copy: &str| {
        let sql = format!("CREATE DATABASE {copy} TEMPLATE {of}");
        Server::of_process().sql("postgres", &sql);
        let url = database.url.replace(&name, copy);
        let mut store = database.at(&url).open().unwrap();
        store.begin().unwrap();
        !store.lease().is_held()
    };
    assert!(!copy(&name, &format!("{name}_unused")));
    assert!(!is_suspended(&database));
    assert!(copy(&name, &format!("{name}_copy")));
    assert!(!is_suspended(&database));
    // It is a copy of a copy that was not accepted.
    assert!(copy(&format!("{name}_copy"), &format!("{name}_second")));
    let epochs = [format!("{name}_copy"), format!("{name}_second")].map(|name| {
        let epoch = Server::of_process().sql(&name, "SELECT epoch FROM waterwheel.partitions");
        epoch.trim().parse::<u64>().unwrap()
    });
    assert!(epochs[1] > epochs[0] + 65_536, "{epochs:?}");
}

/// Its service fails at once, before it has sent a heartbeat.
#[test]
fn a_process_that_leaves_does_not_hide_a_restore() {
    let database = Database::new();
    let mut store = database.open();
    store.begin().unwrap();
    database.sql("ALTER FUNCTION waterwheel.beat RENAME TO other");
    database.sql(OLD);
    drop(store);
    let left = "SELECT count(*) FROM waterwheel.partitions WHERE node IS NULL";
    assert_eq!(database.sql(left), "1\n");
    database.sql("ALTER FUNCTION waterwheel.other RENAME TO beat");
    assert!(is_suspended(&database));
}

#[test]
fn a_restore_is_accepted_for_good() {
    let database = Database::new();
    assert!(!is_suspended(&database));
    database.sql(OLD);
    database.at(&database.url).accept_restore().unwrap();
    let epoch = "SELECT epoch FROM waterwheel.partitions";
    let accepted: u64 = database.sql(epoch).trim().parse().unwrap();
    assert!(accepted > 65_536, "{accepted}");
    // The services start later.
    database.sql("UPDATE waterwheel.partitions SET seen = now() - interval '1 hour'");
    assert!(!is_suspended(&database));
    let last: u64 = database.sql(epoch).trim().parse().unwrap();
    assert_eq!(last, accepted + 1);
}

#[test]
fn a_running_owner_begins_no_deliveries_while_it_is_suspended() {
    let database = Database::with_ttl(Duration::from_secs(3));
    let mut store = database.open();
    store.begin().unwrap();
    assert!(store.lease().is_held());
    // Each heartbeat tells that it lives, so this is restored behind its back.
    database.sql("UPDATE waterwheel.partitions SET identity = 'another'");
    until(|| !store.lease().is_held());
    store.commit(1, &[]).unwrap();
    database.at(&database.url).accept_restore().unwrap();
    until(|| store.lease().is_held());
    store.commit(2, &[]).unwrap();
}
