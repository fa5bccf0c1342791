//! What the service carries out, what the command does itself, and what is not done.

use std::future::Future;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc;
use waterwheel_durable::{Cancelled, Dead, Delivery, Drain, Durable, Handle, Policy};
use waterwheel_durable_core::store::{DeadLetters, Op, Row, Scope, Setting, Store};
use waterwheel_durable_sqlite::{Reader, SqliteStore};

use crate::support::{
    DAY, Folder, beside, cli, command, dead, insert, row, set, store, within, words,
};

/// Waits until the command lists three dead letters.
#[track_caller]
fn three_are_dead(file: &Path) -> impl Future<Output = ()> {
    within(async {
        let listed = || async { beside(file, "dead --json").await.json() };
        while listed().await["dead"].as_array().unwrap().len() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
}

fn in_days(days: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(86_400 * days)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_cancels_what_the_command_names() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    let timers = Durable::open(&file).await.unwrap();
    let mut handles: Vec<Handle> = Vec::new();
    for days in [0, 3, 300] {
        let inserted = timers.at("close", in_days(days) + Duration::from_secs(600));
        handles.push(inserted.insert().await.unwrap().handle().clone());
    }
    let said = beside(&file, &format!("cancel {}", handles[0]))
        .await
        .well();
    assert_eq!(said, format!("cancelled {}\n", handles[0].id));
    // By its id, and more than one.
    let line = format!("cancel {} {}", handles[1].id, handles[2]);
    let said = beside(&file, &line).await.well();
    assert_eq!(
        said,
        format!("cancelled {}\ncancelled {}\n", handles[1].id, handles[2].id)
    );
    for handle in &handles {
        assert_eq!(timers.cancel(handle).await.unwrap(), Cancelled::NotFound);
        let said = beside(&file, &format!("cancel {handle}")).await.failure();
        assert!(said.contains("there is no such timer"), "{said}");
        let said = beside(&file, &format!("cancel {}", handle.id))
            .await
            .failure();
        assert!(said.contains("no pending timer has this id"), "{said}");
    }
    timers
        .shutdown(Drain::within(Duration::from_secs(60)))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_pauses_and_resumes_a_namespace() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    let timers = Durable::open(&file).await.unwrap();
    let shop = timers
        .create_namespace("shop", Policy::default())
        .await
        .unwrap();
    let (sender, mut delivered) = mpsc::unbounded_channel();
    let handler = move |delivery: Delivery| {
        let sender = sender.clone();
        async move {
            sender.send(delivery.handler().to_owned()).unwrap();
            Ok(())
        }
    };
    shop.handle("close", handler.clone());
    timers.handle("mail", handler);
    assert_eq!(beside(&file, "pause shop").await.well(), "paused shop\n");
    shop.after("close", Duration::ZERO).insert().await.unwrap();
    // Some time later: these are delivered one after the other.
    for _ in 0..20 {
        timers
            .after("mail", Duration::from_millis(20))
            .insert()
            .await
            .unwrap();
        assert_eq!(within(delivered.recv()).await.unwrap(), "mail");
    }
    let listed = beside(&file, "namespaces --json").await.json();
    assert_eq!(listed["namespaces"][1]["is_paused"], true);
    assert_eq!(listed["namespaces"][1]["pending"], 1);
    assert_eq!(beside(&file, "resume shop").await.well(), "resumed shop\n");
    assert_eq!(within(delivered.recv()).await.unwrap(), "shop/close");
    let said = beside(&file, "pause none").await.failure();
    assert!(
        said.contains("none: there is no namespace \"none\""),
        "{said}"
    );
    timers
        .shutdown(Drain::within(Duration::from_secs(60)))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_redrives_and_discards_its_dead_letters() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    let timers = Durable::open(&file).await.unwrap();
    let (sender, mut delivered) = mpsc::unbounded_channel();
    timers.handle("notify", move |delivery: Delivery| {
        sender.send(delivery.id()).unwrap();
        async { Err(Dead::because("the server has gone")) }
    });
    let mut ids = Vec::new();
    for _ in 0..3 {
        timers
            .after("notify", Duration::ZERO)
            .insert()
            .await
            .unwrap();
        ids.push(within(delivered.recv()).await.unwrap());
    }
    let dead_letters = || beside(&file, "dead --json");
    three_are_dead(&file).await;
    // As `DeadLetter::attempts` has it.
    assert_eq!(dead_letters().await.json()["dead"][1]["attempts"], 1);
    let shown = beside(&file, &format!("show {}", ids[1])).await.well();
    assert!(shown.contains("attempts  1\n"), "{shown}");
    let said = beside(&file, &format!("redrive {}", ids[1])).await.well();
    assert_eq!(said, format!("redriven {}\n", ids[1]));
    assert_eq!(within(delivered.recv()).await, Some(ids[1]));
    three_are_dead(&file).await;
    let said = beside(&file, "redrive --handler notify").await.well();
    assert_eq!(said.lines().count(), 3, "{said}");
    let mut again = Vec::new();
    for _ in 0..3 {
        again.push(within(delivered.recv()).await.unwrap());
    }
    again.sort_unstable();
    assert_eq!(again, ids);
    for line in ["redrive 77", "discard 77"] {
        let said = beside(&file, line).await.failure();
        assert!(said.contains("77: there is no such"), "{said}");
    }
    three_are_dead(&file).await;
    let said = beside(&file, &format!("discard {} {}", ids[0], ids[1]))
        .await
        .well();
    assert_eq!(
        said,
        format!("discarded {}\ndiscarded {}\n", ids[0], ids[1])
    );
    let left = dead_letters().await.json();
    assert_eq!(left["dead"].as_array().unwrap().len(), 1);
    timers
        .shutdown(Drain::within(Duration::from_secs(60)))
        .await
        .unwrap();
}

/// A file with a namespace, timers and dead letters, which no process holds.
fn free(file: &Path) -> Vec<Row> {
    let rows: Vec<_> = (0..4)
        .map(|it| row(it, "shop/close", [60_000, 90 * DAY][it as usize % 2]))
        .collect();
    let mut steps: Vec<_> = rows.iter().map(insert).collect();
    for number in 100..104 {
        let handler = ["mail", "shop/close"][number as usize % 2];
        steps.extend(dead(&row(number, handler, -5_000), "it said no"));
    }
    steps.push(set("namespace/shop", "{}"));
    drop(store(file, &steps));
    rows
}

fn settings(file: &Path) -> Vec<String> {
    let settings = Reader::open(file).unwrap().settings().unwrap();
    let paused = |it: Setting| it.name.strip_prefix("paused/").map(str::to_owned);
    settings.into_iter().filter_map(paused).collect()
}

#[test]
fn what_no_process_holds_is_changed_by_the_command_itself() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    let rows = free(&file);
    let line = format!("cancel {} {}", rows[0].handle(), rows[1].id);
    let said = cli(&file, words(&line)).well();
    assert_eq!(
        said,
        format!("cancelled {}\ncancelled {}\n", rows[0].id, rows[1].id)
    );
    let said = cli(
        &file,
        [
            "cancel",
            &rows[0].handle().to_string(),
            &rows[2].id.to_string(),
        ],
    );
    assert_eq!(said.out, format!("cancelled {}\n", rows[2].id));
    assert!(said.failure().contains("no pending timer has this id"));
    let stats = cli(&file, ["stats", "--json"]).json();
    assert_eq!((&stats["pending"], &stats["dead"]), (&1.into(), &4.into()));
    // Nothing is opened in the sense in which ids are given.
    assert_eq!(stats["epoch"], 1);

    assert_eq!(
        cli(&file, ["redrive", "10000000064"]).well(),
        "redriven 10000000064\n"
    );
    let said = cli(&file, ["redrive", "10000000064"]).failure();
    assert!(said.contains("there is no such dead letter"), "{said}");
    let said = cli(&file, ["redrive", "--namespace", "shop"]).well();
    assert_eq!(said, "redriven 10000000065\nredriven 10000000067\n");
    let due = cli(&file, words("list --overdue --json")).json();
    assert_eq!(due["timers"].as_array().unwrap().len(), 3);
    assert_eq!(due["timers"][0]["failures"], 0);
    assert_eq!(
        cli(&file, ["discard", "--all"]).well(),
        "discarded 10000000066\n"
    );
    let stats = cli(&file, ["stats", "--json"]).json();
    assert_eq!((&stats["pending"], &stats["dead"]), (&4.into(), &0.into()));
    let said = cli(&file, ["discard", "10000000066"]).failure();
    assert!(said.contains("there is no such dead letter"), "{said}");

    assert_eq!(cli(&file, ["pause", "shop"]).well(), "paused shop\n");
    assert_eq!(cli(&file, ["pause", "default"]).well(), "paused default\n");
    assert_eq!(settings(&file), ["default", "shop"]);
    assert_eq!(
        cli(&file, ["resume", "default"]).well(),
        "resumed default\n"
    );
    assert_eq!(settings(&file), ["shop"]);
    for line in ["pause none", "resume none"] {
        let said = cli(&file, words(line)).failure();
        assert!(said.contains("there is no namespace \"none\""), "{said}");
    }
    assert_eq!(settings(&file), ["shop"]);
}

#[test]
fn a_command_that_finds_no_dead_letter_says_so() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    free(&file);
    cli(&file, ["discard", "--all"]).well();
    for line in ["redrive --all", "discard --namespace shop"] {
        let said = cli(&file, words(line)).nothing();
        assert!(said.contains("there are no dead letters"), "{line}: {said}");
    }
}

#[test]
fn a_command_that_carries_a_command_out_makes_no_reserve() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    free(&file);
    let reserve = folder.file("timers.db-reserve");
    // As after a full disk. The service could not make one longer that is another user's.
    std::fs::remove_file(&reserve).unwrap();
    cli(&file, ["pause", "shop"]).well();
    assert!(!reserve.exists());
    assert_eq!(settings(&file), ["shop"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_paused_before_the_start_waits_until_it_is_resumed() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    free(&file);
    for line in ["redrive --all", "pause shop"] {
        beside(&file, line).await.well();
    }
    let timers = Durable::open(&file).await.unwrap();
    let (sender, mut delivered) = mpsc::unbounded_channel();
    let handler = move |delivery: Delivery| {
        sender.send(delivery.handler().to_owned()).unwrap();
        async { Ok(()) }
    };
    timers
        .namespace("shop")
        .unwrap()
        .handle("close", handler.clone());
    timers.handle("mail", handler);
    for _ in 0..2 {
        assert_eq!(within(delivered.recv()).await.unwrap(), "mail");
    }
    beside(&file, "resume shop").await.well();
    for _ in 0..2 {
        assert_eq!(within(delivered.recv()).await.unwrap(), "shop/close");
    }
    timers
        .shutdown(Drain::within(Duration::from_secs(60)))
        .await
        .unwrap();
}

#[test]
fn a_command_that_is_not_answered_is_not_carried_out() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    let rows = free(&file);
    let mut store = SqliteStore::open(&file).unwrap();
    store.begin().unwrap();
    let expected = format!(
        "process {} has the file open and did not respond within 0.3 s",
        std::process::id()
    );
    for line in [
        format!("cancel {} --wait 0.3", rows[0].handle()),
        "redrive 10000000064 --wait 0.3".to_owned(),
        "pause shop --wait 0.3".to_owned(),
    ] {
        let said = cli(&file, words(&line)).failure();
        assert!(said.contains(&expected), "{line}: {said}");
        assert_eq!(store.commands().unwrap(), [], "{line}");
    }
    // Of many, the rest is not asked for one by one.
    let said = cli(&file, words("redrive --all --wait 0.3"));
    assert_eq!((said.code, said.err.lines().count()), (1, 4), "{said:?}");
    assert!(settings(&file).is_empty());
    let stats = cli(&file, ["stats", "--json"]).json();
    assert_eq!((&stats["pending"], &stats["dead"]), (&4.into(), &4.into()));
}

#[test]
fn a_command_that_was_taken_and_not_answered_may_be_carried_out() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    free(&file);
    let mut store = SqliteStore::open(&file).unwrap();
    store.begin().unwrap();
    let said = thread::scope(|scope| {
        let sending = scope.spawn(|| cli(&file, words("pause shop --wait 3")));
        while !sending.is_finished() && store.commands().unwrap().is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
        sending.join().unwrap().failure()
    });
    let expected = format!(
        "process {} accepted the request but did not answer",
        std::process::id()
    );
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("may or may not have been made"), "{said}");
}

#[test]
fn what_a_process_answers_that_will_not_is_said() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    free(&file);
    let mut store = SqliteStore::open(&file).unwrap();
    store.begin().unwrap();
    let said = thread::scope(|scope| {
        let sending = scope.spawn(|| cli(&file, words("pause shop --wait 60")));
        let commands = loop {
            let commands = store.commands().unwrap();
            if sending.is_finished() || !commands.is_empty() {
                break commands;
            }
            thread::sleep(Duration::from_millis(1));
        };
        let reply = Op::Reply(commands[0].0, "the service shuts down".into());
        store.commit(1, &[reply]).unwrap();
        sending.join().unwrap().failure()
    });
    assert_eq!(said, "waterwheel: shop: the service shuts down\n");
}

#[test]
fn a_process_that_ends_without_an_answer_leaves_it_to_the_command() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    free(&file);
    let store = SqliteStore::open(&file).unwrap();
    let said = thread::scope(|scope| {
        let sending = scope.spawn(|| cli(&file, words("pause shop --wait 60")));
        let connection = rusqlite::Connection::open(&file).unwrap();
        let count = "SELECT count(*) FROM commands";
        let count = || {
            connection
                .query_row(count, [], |row| row.get::<_, i64>(0))
                .unwrap()
        };
        while !sending.is_finished() && count() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        drop(store);
        sending.join().unwrap().well()
    });
    assert_eq!(said, "paused shop\n");
    assert_eq!(settings(&file), ["shop"]);
}

#[test]
fn what_another_connection_holds_up_is_done_after_it() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    free(&file);
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said = thread::scope(|scope| {
        let sending = scope.spawn(|| cli(&file, words("pause shop --wait 60")));
        // Ten times as long as the store itself waits.
        thread::sleep(Duration::from_millis(500));
        connection.execute_batch("ROLLBACK").unwrap();
        sending.join().unwrap().well()
    });
    assert_eq!(said, "paused shop\n");
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said = cli(&file, words("resume shop --wait 0.2")).failure();
    assert!(said.contains("database is locked"), "{said}");
    assert_eq!(settings(&file), ["shop"]);
}

#[test]
fn commands_at_once_are_all_carried_out() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    let rows: Vec<_> = (0..8).map(|it| row(it, "mail", DAY)).collect();
    let steps: Vec<_> = rows.iter().map(insert).collect();
    drop(store(&file, &steps));
    let begun = Instant::now();
    thread::scope(|scope| {
        let commands = rows.iter().map(|row| {
            let file = &file;
            let line = format!("cancel {} --wait 60", row.handle());
            scope.spawn(move || cli(file, words(&line)).well())
        });
        let commands: Vec<_> = commands.collect();
        for (command, row) in commands.into_iter().zip(&rows) {
            assert_eq!(command.join().unwrap(), format!("cancelled {}\n", row.id));
        }
    });
    // None has waited until its command was withdrawn.
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(cli(&file, ["stats", "--json"]).json()["pending"], 0);
}

#[test]
fn a_command_that_is_killed_has_done_all_or_nothing() {
    const LETTERS: u64 = 300;
    let folder = Folder::new();
    let (mut killed, mut done) = (0, 0);
    for round in 0..40_u64 {
        let file = folder.file(&format!("{round}.db"));
        let dead_letters = (0..LETTERS).flat_map(|it| dead(&row(it, "mail", 0), "it said no"));
        drop(store(&file, &dead_letters.collect::<Vec<_>>()));
        let mut child = command()
            .arg(&file)
            .args(["redrive", "--all"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(round * 700));
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        let mut store = SqliteStore::open(&file).unwrap();
        store.begin().unwrap();
        let left = DeadLetters::all(&mut store, Scope::All).unwrap().len() as u64;
        assert!(left == 0 || left == LETTERS, "{left} are left");
        done += u32::from(left == 0);
        drop(store);
        let pending = &cli(&file, ["stats", "--json"]).json()["pending"];
        assert_eq!(*pending, LETTERS - left);
    }
    println!("{killed} killed, {done} done");
    assert!(killed > 0, "none was killed in time");
}

#[test]
fn more_dead_letters_than_go_in_one_commit_are_redriven() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    let dead_letters = (0..1_200).flat_map(|it| dead(&row(it, "mail", 0), "it said no"));
    drop(store(&file, &dead_letters.collect::<Vec<_>>()));
    let said = cli(&file, ["redrive", "--all"]).well();
    assert_eq!(said.lines().count(), 1_200);
    let stats = cli(&file, ["stats", "--json"]).json();
    assert_eq!(
        (&stats["overdue"], &stats["dead"]),
        (&1_200.into(), &0.into())
    );
}
