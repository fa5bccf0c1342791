//! The outbox.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::tempdir;
use waterwheel_durable::{Drain, Policy, Shift, Sqlite};

use super::{FOLDER, PART, note, notes, run, statement, until};

include!("relay.rs");

const TEST: &str = "outbox::a_relay_that_crashes_makes_one_timer_of_each_row";

/// The number of rows that are due at once, and of those that are due in an hour.
const HALF: usize = 20;

fn outbox(folder: &Path) -> Connection {
    Connection::open(folder.join("own.db")).unwrap()
}

/// A transaction of the application, with some rows for the outbox.
fn place_orders(database: &mut Connection, commits: bool) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = i64::try_from(now.unwrap().as_millis()).unwrap();
    let transaction = database.transaction().unwrap();
    for order in 1..=2 * HALF {
        let due = if order > HALF { now + 3_600_000 } else { 1_000 };
        let sql = "INSERT INTO timer_outbox (handler, due_millis, payload) VALUES (?1, ?2, ?3)";
        let payload = order.to_string().into_bytes();
        let row = params!["shop/close", due, payload];
        transaction.execute(sql, row).unwrap();
    }
    match commits {
        true => transaction.commit().unwrap(),
        false => transaction.rollback().unwrap(),
    }
}

/// Relays rows until the deletion of this one fails, and aborts. Without one, runs until all are delivered.
async fn serve(folder: PathBuf, crash_at: Option<i64>) {
    let shift = Arc::new(Shift::default());
    if crash_at.is_none() {
        // Timers that wait for an hour are due at once.
        shift.suspend(7_200_000_000);
    }
    let builder = Durable::builder().shifted_clocks(shift);
    let timers = builder
        .store(Sqlite::new(folder.join("timers.db")))
        .open()
        .await
        .unwrap();
    let policy = Policy::default().retention(1);
    let shop = timers.create_namespace("shop", policy).await.unwrap();
    let notes = folder.clone();
    shop.handle("close", move |delivery| {
        let noted = delivery.json().map(|order: usize| {
            note(&notes, &format!("{order} {}", delivery.id()));
        });
        async { Ok(noted?) }
    });
    let delivered = async || {
        let archived = shop.archived("close", SystemTime::UNIX_EPOCH, None, 1_000);
        archived.await.unwrap().len()
    };

    let database = outbox(&folder);
    if let Some(row) = crash_at {
        let sql = format!(
            "CREATE TEMP TRIGGER crash BEFORE DELETE ON timer_outbox WHEN OLD.id = {row}
             BEGIN SELECT RAISE(ABORT, 'a crash'); END"
        );
        database.execute_batch(&sql).unwrap();
    }
    let database = Mutex::new(database);
    match crash_at {
        Some(_) => {
            relay(&timers, &database).await.unwrap_err();
            // Half of the timers are settled, and all of the rows are still there.
            until(async || delivered().await >= HALF).await;
            std::process::abort();
        }
        None => {
            while relay(&timers, &database).await.unwrap() > 0 {}
            until(async || delivered().await >= 2 * HALF).await;
            let drain = Drain::within(Duration::from_secs(60));
            timers.shutdown(drain).await.unwrap();
        }
    }
}

#[test]
fn a_relay_that_crashes_makes_one_timer_of_each_row() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let crash_at = std::env::var(PART).unwrap().parse().ok();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(serve(folder.into(), crash_at));
    }
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let mut database = outbox(folder);
    let create = statement("CREATE TABLE timer_outbox");
    database.execute_batch(create).unwrap();
    place_orders(&mut database, false);
    place_orders(&mut database, true);

    // After the insert and before the first deletion; and between two deletions.
    for row in [1, 25, 1] {
        let ended = run(TEST, folder, &row.to_string());
        assert_eq!(ended.code(), None, "it has not aborted: {ended}");
    }
    assert!(run(TEST, folder, "").success());

    let mut timers: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for line in notes(folder) {
        let (order, id) = line.split_once(' ').unwrap();
        let ids = timers.entry(order.parse().unwrap()).or_default();
        ids.insert(id.into());
    }
    assert!(timers.keys().copied().eq(1..=2 * HALF), "{timers:?}");
    let one_each = timers.values().all(|ids| ids.len() == 1);
    assert!(one_each, "a row has several timers: {timers:?}");
    let sql = "SELECT count(*) FROM timer_outbox";
    let left: i64 = database.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}
