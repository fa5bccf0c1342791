//! Everything in a file is moved into a database, and back.

use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use waterwheel_durable::Durable;
use waterwheel_durable_core::conformance::mixed;
use waterwheel_durable_core::store::{Id, Level, Op, PageLimit, Scope, Store};
use waterwheel_durable_postgres::Postgres;
use waterwheel_durable_sqlite::{Sqlite, SqliteStore};
use waterwheel_postgres_server::{Server, database_of};

use crate::support::{DAY, TimersFile, cli, command, dead_mail, inserts, now, row, set};

/// The contents of a file.
fn picture(file: &Path) -> Vec<String> {
    let mut store = SqliteStore::open(file).unwrap();
    store.begin().unwrap();
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let page = store.handles(Scope::All, after, 1_000).unwrap();
        for (cursor, handle) in page.handles {
            let row = store.get(&handle).unwrap();
            all.push(format!("{cursor:?} {row:?}"));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let dead = store.dead(Scope::All, Id::NONE, PageLimit::rows(1_000));
    all.extend(dead.unwrap().dead.iter().map(|it| format!("{it:?}")));
    let counts = store.counts().unwrap();
    let mut counted: Vec<_> = counts.pending.iter().map(|it| format!("{it:?}")).collect();
    counted.extend(counts.dead.iter().map(|it| format!("{it:?}")));
    counted.sort_unstable();
    all.extend(counted);
    let settings = store.settings().unwrap().into_iter();
    let settings = settings.filter(|it| !["transfer", "clean"].contains(&&*it.name));
    all.extend(settings.map(|it| format!("{it:?}")));
    all
}

/// Delivered timers that are kept.
fn archived() -> Vec<Op> {
    let row = row(1_000, "kept", 0);
    vec![
        Op::Insert(row.clone(), Level::Second.bucket(row.due)),
        Op::Archive(row, now()),
    ]
}

/// Compares two files, and shows the first difference.
#[track_caller]
fn same(one: &[String], other: &[String]) {
    let differs = one.iter().zip(other).find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(one.len(), other.len());
}

/// A new database, and its URL. Nothing in it is created.
fn database() -> String {
    Server::of_process().database()
}

#[test]
fn a_file_is_moved_into_a_database_and_back() {
    let (file, url) = (TimersFile::new(), database());
    {
        let mut store = SqliteStore::open(&*file).unwrap();
        mixed(&mut store, 1, 400);
        let steps = [dead_mail(20), vec![set("policy", "{}")], archived()].concat();
        store.commit(401, &steps).unwrap();
    }
    let before = picture(&file);
    let error = file.failure(format!("move {url}"));
    assert!(
        error.contains("the tables of waterwheel are missing"),
        "{error}"
    );
    let said = cli(Path::new(&url), "migrate --ttl 30s --cluster-id shop");
    assert_eq!(said.well(), "the tables are up to date\n");
    let error = file.failure(format!("move {url}"));
    assert!(error.contains("this process has no cluster id"), "{error}");

    let moved = file.json(format!("move {url} --cluster-id shop --json"));
    let count = |name: &str| moved[name].as_u64().unwrap();
    let timers = "SELECT count(*) FROM waterwheel.timers";
    let timers = Server::of_process().sql(database_of(&url), timers);
    assert_eq!(timers.trim(), count("timers").to_string());
    assert!(count("timers") > 10 && count("dead_letters") > 0, "{moved}");
    assert!(count("archived") > 0 && count("settings") > 0, "{moved}");
    // It is done.
    assert_eq!(
        file.json(format!("move {url} --cluster-id shop --json")),
        moved
    );
    let other = format!("move {}", file.sibling("other.db").display());
    for line in [&*other, "pause shop"] {
        let error = file.failure(line);
        assert!(
            error.contains("its timers were moved to postgres://waterwheel@"),
            "{error}"
        );
    }
    assert!(file.failure("move --abandon").contains("were moved to"));

    let back = file.sibling("back.db");
    let said = cli(
        Path::new(&url),
        format!("move {} --cluster-id shop", back.display()),
    );
    assert!(said.well().starts_with(&format!(
        "{} has {} timers, ",
        back.display(),
        count("timers")
    )));
    same(&picture(&back), &before);
    assert!(cli(&back, "check").well().contains("no damage"));
}

/// The command is killed at any time, and repeated.
#[test]
fn a_killed_move_is_continued() {
    let near = (10_000..50_000).map(|number| row(number, "mail", 3_600_000));
    let far = (50_000..70_000).map(|number| row(number, "other", DAY));
    let rows: Vec<_> = near.chain(far).collect();
    let steps = [dead_mail(2_000), inserts(&rows)].concat();
    let (file, url) = (TimersFile::with(&steps), database());
    let before = picture(&file);
    let said = cli(Path::new(&url), "migrate --ttl 30s");
    said.well();
    let mut kills = 0;
    let mut patience = Duration::from_millis(300);
    loop {
        let mut child = command()
            .arg(&*file)
            .args(["move", &url])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + patience;
        patience = patience * 3 / 2;
        while Instant::now() < end && child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        if child.wait().unwrap().success() {
            break;
        }
        kills += 1;
        assert!(kills < 30, "it never ends");
        // The killed process is the owner for one TTL, unless the server knows that it has gone.
        Server::of_process().sql(
            database_of(&url),
            "UPDATE waterwheel.partitions SET node = NULL",
        );
    }
    assert!(kills > 0);
    let back = file.sibling("back.db");
    cli(Path::new(&url), format!("move {}", back.display())).well();
    same(&picture(&back), &before);
}

#[tokio::test]
async fn no_service_opens_a_store_that_is_moved() {
    let (file, url) = (TimersFile::filled(), database());
    cli(Path::new(&url), "migrate --ttl 30s").well();
    // A target that is in use.
    let other = Durable::builder()
        .store(Postgres::new(&url))
        .open()
        .await
        .unwrap();
    let busy = file.beside(format!("move {url}")).await.failure();
    assert!(busy.contains("owns the timers in "), "{busy}");
    crate::support::stop(&other).await;
    let said = file.beside(format!("move {url}")).await;
    said.well();
    let open = Durable::builder().store(Sqlite::new(&*file)).open();
    let error = open.await.unwrap_err().to_string();
    assert!(error.contains("its timers were moved to "), "{error}");
    // Its deliveries have to be settled first.
    let sql = "INSERT INTO waterwheel.attempts (id, partition, ended) SELECT id, 0, '\\x00' FROM waterwheel.timers LIMIT 1";
    Server::of_process().sql(database_of(&url), sql);
    let back = file.sibling("back.db");
    let line = format!("move {}", back.display());
    let other = url.clone();
    let said = tokio::task::spawn_blocking(move || cli(Path::new(&other), line));
    let error = said.await.unwrap().failure();
    assert!(
        error.contains("1 deliveries of a process that was shut down"),
        "{error}"
    );
    let moved = Durable::builder()
        .store(Postgres::new(&url))
        .open()
        .await
        .unwrap();
    crate::support::stop(&moved).await;
}

#[test]
fn the_commands_for_a_database_need_its_url() {
    let file = TimersFile::filled();
    for line in ["migrate", "accept-restore"] {
        let error = file.failure(line);
        assert!(
            error.contains("this needs the URL of a PostgreSQL database"),
            "{error}"
        );
    }
    let url = database();
    cli(Path::new(&url), "migrate --ttl 30s").well();
    let said = cli(Path::new(&url), "accept-restore");
    assert_eq!(said.well(), "deliveries may begin\n");
    let missing = cli(&file.sibling("none.db"), format!("move {url}"));
    assert!(missing.failure().contains("there is no such file"));
    let listed = cli(Path::new(&url), "list").failure();
    assert!(listed.contains("for a file only"), "{listed}");
}
