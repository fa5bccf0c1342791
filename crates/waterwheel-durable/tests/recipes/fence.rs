//! An effect in one's own database, fenced by the id of the delivery.

use std::path::Path;
use std::time::Duration;

use tempfile::tempdir;
use waterwheel_durable::{Drain, Policy};

use super::{FOLDER, PART, note, notes, run, statement, until};

include!("credit.rs");

const TEST: &str = "fence::a_fenced_effect_happens_once_though_it_is_repeated";

const CRASHES: &str = "crashes";

fn own(folder: &Path) -> Connection {
    Connection::open(folder.join("own.db")).unwrap()
}

fn balance(folder: &Path) -> i64 {
    let sql = "SELECT balance FROM accounts WHERE number = 1";
    own(folder).query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Credits as the recipe does, and ends without order before the timer is settled, or in order after that.
async fn serve(folder: &Path, crashes: bool) {
    let timers = Durable::open(folder.join("timers.db")).await.unwrap();
    let policy = Policy::default().retention(1);
    let billing = timers.create_namespace("billing", policy).await.unwrap();
    let database = Arc::new(Mutex::new(own(folder)));
    match crashes {
        true => {
            let folder = folder.to_owned();
            billing.handle("bonus", move |delivery| {
                let (folder, database) = (folder.clone(), database.clone());
                async move {
                    note(&folder, &delivery.id().to_string());
                    bonus(database, delivery).await?;
                    std::process::abort()
                }
            });
        }
        false => register(&timers, database),
    }
    let timer = billing.after("bonus", Duration::ZERO).key("one");
    timer.payload(&(1, 100)).insert().await.unwrap();
    until(async || billing.metrics().settled == 1).await;
    let drain = Drain::within(Duration::from_secs(60));
    timers.shutdown(drain).await.unwrap();
}

#[test]
fn a_fenced_effect_happens_once_though_it_is_repeated() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let crashes = std::env::var(PART).unwrap() == CRASHES;
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(serve(folder.as_ref(), crashes));
    }
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let tables = "CREATE TABLE accounts (number INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
        INSERT INTO accounts VALUES (1, 0);";
    own(folder).execute_batch(tables).unwrap();
    let done = statement("CREATE TABLE done");
    own(folder).execute_batch(done).unwrap();

    for _ in 0..2 {
        let ended = run(TEST, folder, CRASHES);
        assert_eq!(ended.code(), None, "it has not aborted: {ended}");
    }
    assert!(run(TEST, folder, "").success());

    let ids = notes(folder);
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert_eq!(ids[0], ids[1], "it was another timer");
    assert_eq!(balance(folder), 100);
}
