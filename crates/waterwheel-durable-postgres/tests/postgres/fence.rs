//! Commits are refused after a take-over or a failover, and those whose replies are lost are carried out once.

use fastrand::Rng;
use waterwheel_durable_core::conformance::mixed;
use waterwheel_durable_core::store::{Op, Outcome, Store, StoreError, forward};
use waterwheel_durable_postgres::PostgresStore;
use waterwheel_postgres_server::{Proxy, Server};

use crate::database::{Database, insert, row};

/// How another process takes the timers over, once it has seen that the owner is dead.
const TAKE_OVER: &str = "UPDATE waterwheel.partitions SET previous = owner, owner = 7, node = NULL";

#[test]
fn the_earlier_of_two_openings_is_refused_for_good() {
    let database = Database::new();
    let mut store = database.open();
    store.begin().unwrap();
    store.commit(1, &[insert(&row(1))]).unwrap();
    database.sql(TAKE_OVER);
    for number in 2..5 {
        let error = store.commit(number, &[insert(&row(number))]).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("another process has taken the store over"),
            "{text}"
        );
    }
    assert_eq!(
        database.sql("SELECT count(*) FROM waterwheel.timers"),
        "1\n"
    );
}

/// The reply to the commit was lost, and the owner was then replaced.
#[test]
fn a_commit_in_doubt_is_looked_for_after_a_take_over() {
    let database = Database::new();
    let proxy = Proxy::start(Server::of_process()).unwrap();
    let mut store = database.at(&proxy.url(&database.url)).open().unwrap();
    store.begin().unwrap();
    store.commit(1, &[insert(&row(1))]).unwrap();
    // The end of the transaction changes the owner.
    database.sql(&format!(
        "CREATE FUNCTION replace() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {TAKE_OVER}; RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER replace AFTER INSERT ON waterwheel.commits DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION replace()"
    ));
    proxy.swallow_next_commit();
    let outcomes = store.commit(2, &[insert(&row(2))]).unwrap();
    assert_eq!((outcomes, proxy.swallowed()), (vec![Outcome::Inserted], 1));
    let error = store.commit(3, &[insert(&row(3))]).unwrap_err();
    assert!(!error.is_definite(), "{error}");
    assert_eq!(
        database.sql("SELECT count(*) FROM waterwheel.timers"),
        "2\n"
    );
}

/// As after the promotion of a standby that does not have it.
#[test]
fn a_commit_after_a_lost_one_is_refused() {
    let database = Database::new();
    let mut store = database.open();
    store.begin().unwrap();
    for number in 1..4 {
        store.commit(number, &[insert(&row(number))]).unwrap();
    }
    database.sql("DELETE FROM waterwheel.commits WHERE number = 3");
    let error = store.commit(4, &[insert(&row(4))]).unwrap_err().to_string();
    assert!(
        error.contains("a failover of the database may have lost earlier commits"),
        "{error}"
    );
    assert_eq!(
        database.sql("SELECT count(*) FROM waterwheel.timers"),
        "3\n"
    );
}

/// As after the promotion of a standby that has all commits.
#[test]
fn an_owner_that_holds_its_lease_goes_on_after_a_failover() {
    let database = Database::new();
    let mut store = database.open();
    store.begin().unwrap();
    store.commit(1, &[insert(&row(1))]).unwrap();
    database.sql("UPDATE waterwheel.partitions SET timeline = timeline - 1");
    let outcomes = store.commit(2, &[insert(&row(2))]).unwrap();
    assert_eq!(outcomes, [Outcome::Inserted]);
    let confirmed = "SELECT timeline = waterwheel.timeline() FROM waterwheel.partitions";
    assert_eq!(database.sql(confirmed), "t\n");
}

#[test]
fn old_commit_rows_are_deleted() {
    let database = Database::new();
    let mut store = database.open();
    store.begin().unwrap();
    for number in 1..2_100 {
        store.commit(number, &[]).unwrap();
    }
    let kept: u32 = database
        .sql("SELECT count(*) FROM waterwheel.commits")
        .trim()
        .parse()
        .unwrap();
    assert!((1_024..2_100).contains(&kept), "{kept}");
    store.begin().unwrap();
    store.commit(1, &[]).unwrap();
    store.begin().unwrap();
    assert_eq!(
        database.sql("SELECT count(*) FROM waterwheel.commits"),
        "3\n"
    );
}

/// A store to which something happens during random commits.
struct Disturbed<'a> {
    store: PostgresStore,
    rng: Rng,
    disturb: &'a (dyn Fn() + Sync),
}

impl Store for Disturbed<'_> {
    forward!(it => it.store; begin maintain reads);

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        if self.rng.bool() {
            (self.disturb)();
        }
        self.store.commit(number, steps)
    }
}

fn mixed_with(store: PostgresStore, seed: u64, disturb: &(dyn Fn() + Sync)) {
    let rng = Rng::with_seed(seed);
    mixed(
        &mut Disturbed {
            store,
            rng,
            disturb,
        },
        seed,
        50,
    );
}

#[test]
fn a_commit_whose_reply_is_lost_is_carried_out_once() {
    let database = Database::new();
    let proxy = Proxy::start(Server::of_process()).unwrap();
    let postgres = database.at(&proxy.url(&database.url));
    for seed in 0..4 {
        database.empty();
        mixed_with(postgres.open().unwrap(), seed, &|| {
            proxy.swallow_next_commit();
        });
    }
    assert!(proxy.swallowed() > 50, "{}", proxy.swallowed());
}

#[test]
fn terminated_connections_are_replaced() {
    let database = Database::new();
    let terminate = || {
        database.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
    };
    mixed_with(database.open(), 1, &terminate);
}
