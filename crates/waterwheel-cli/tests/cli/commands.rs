//! Commands that the service carries out, that the command line does itself, or that are refused.

use std::future::Future;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc;
use waterwheel_durable::{Cancelled, Dead, Delivery, Durable, Handle, Policy};
use waterwheel_durable_core::store::{Command, DeadLetters, Id, Op, Row, Scope, Setting, Store};
use waterwheel_durable_sqlite::{Reader, SqliteStore};

use crate::support::*;

/// Waits until the command lists three dead letters.
#[track_caller]
fn three_are_dead(file: &TimersFile) -> impl Future<Output = ()> {
    within(async {
        let listed = || async { file.beside("dead --json").await.json() };
        while listed().await["dead"].as_array().unwrap().len() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
}

/// The output for these ids.
fn done(verb: &str, ids: impl IntoIterator<Item = Id>) -> String {
    let lines = ids.into_iter().map(|id| format!("{verb} {id}\n"));
    lines.collect()
}

fn in_days(days: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(86_400 * days)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_cancels_what_the_command_names() {
    let file = TimersFile::new();
    let timers = Durable::open(&*file).await.unwrap();
    let mut handles: Vec<Handle> = Vec::new();
    for days in [0, 3, 300] {
        let inserted = timers.at("close", in_days(days) + Duration::from_secs(600));
        handles.push(inserted.insert().await.unwrap().handle().clone());
    }
    let [first, second, third] = &handles[..] else {
        unreachable!();
    };
    let said = file.beside(format!("cancel {first}")).await.well();
    assert_eq!(said, done("cancelled", [first.id]));
    // One by its id, and more than one at once.
    let line = format!("cancel {} {third}", second.id);
    let said = file.beside(line).await.well();
    assert_eq!(said, done("cancelled", [second.id, third.id]));
    for handle in &handles {
        assert_eq!(timers.cancel(handle).await.unwrap(), Cancelled::NotFound);
        let said = file.beside(format!("cancel {handle}")).await.failure();
        assert!(said.contains("there is no such timer"), "{said}");
        let line = format!("cancel {}", handle.id);
        let said = file.beside(line).await.failure();
        assert!(said.contains("no pending timer has this id"), "{said}");
    }
    stop(&timers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_pauses_and_resumes_a_namespace() {
    let file = TimersFile::new();
    let timers = Durable::open(&*file).await.unwrap();
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
    assert_eq!(file.beside("pause shop").await.well(), "paused shop\n");
    shop.after("close", Duration::ZERO).insert().await.unwrap();
    // This takes a while: the timers are delivered one after the other.
    for _ in 0..20 {
        timers
            .after("mail", Duration::from_millis(20))
            .insert()
            .await
            .unwrap();
        assert_eq!(within(delivered.recv()).await.unwrap(), "mail");
    }
    let listed = file.beside("namespaces --json").await.json();
    assert_eq!(listed["namespaces"][1]["is_paused"], true);
    assert_eq!(listed["namespaces"][1]["pending"], 1);
    assert_eq!(file.beside("resume shop").await.well(), "resumed shop\n");
    assert_eq!(within(delivered.recv()).await.unwrap(), "shop/close");
    let said = file.beside("pause none").await.failure();
    assert!(
        said.contains("none: there is no namespace \"none\""),
        "{said}"
    );
    stop(&timers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_redrives_and_discards_its_dead_letters() {
    let file = TimersFile::new();
    let timers = Durable::open(&*file).await.unwrap();
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
    let dead_letters = || file.beside("dead --json");
    three_are_dead(&file).await;
    // Same as `DeadLetter::attempts`.
    assert_eq!(dead_letters().await.json()["dead"][1]["attempts"], 1);
    let shown = file.beside(format!("show {}", ids[1])).await.well();
    assert!(shown.contains("attempts  1\n"), "{shown}");
    let said = file.beside(format!("redrive {}", ids[1])).await.well();
    assert_eq!(said, format!("redriven {}\n", ids[1]));
    assert_eq!(within(delivered.recv()).await, Some(ids[1]));
    three_are_dead(&file).await;
    let said = file.beside("redrive --handler notify").await.well();
    assert_eq!(said.lines().count(), 3, "{said}");
    let mut again = Vec::new();
    for _ in 0..3 {
        again.push(within(delivered.recv()).await.unwrap());
    }
    again.sort_unstable();
    assert_eq!(again, ids);
    for line in ["redrive 77", "discard 77"] {
        let said = file.beside(line).await.failure();
        assert!(said.contains("77: there is no such"), "{said}");
    }
    three_are_dead(&file).await;
    let line = format!("discard {} {}", ids[0], ids[1]);
    let said = file.beside(line).await.well();
    assert_eq!(said, done("discarded", [ids[0], ids[1]]));
    let left = dead_letters().await.json();
    assert_eq!(left["dead"].as_array().unwrap().len(), 1);
    stop(&timers).await;
}

/// A file with a namespace, timers and dead letters, which no process has open.
fn free() -> (TimersFile, Vec<Row>) {
    let rows: Vec<_> = (0..4)
        .map(|it| row(it, "shop/close", [60_000, 90 * DAY][it as usize % 2]))
        .collect();
    let mut steps = inserts(&rows);
    for number in 100..104 {
        let handler = ["mail", "shop/close"][number as usize % 2];
        steps.extend(dead(&row(number, handler, -5_000), "it said no"));
    }
    steps.push(set("namespace/shop", "{}"));
    (TimersFile::with(&steps), rows)
}

/// Runs `pause shop` while `meanwhile` runs, which can check whether the command has ended.
fn paused_while(file: &TimersFile, wait: u32, meanwhile: impl FnOnce(&dyn Fn() -> bool)) -> Said {
    thread::scope(|scope| {
        let sending = scope.spawn(|| file.cli(format!("pause shop --wait {wait}")));
        meanwhile(&|| sending.is_finished());
        sending.join().unwrap()
    })
}

/// Waits until the store has a command, and takes it.
fn take(store: &mut SqliteStore, has_ended: &dyn Fn() -> bool) -> Vec<(u64, Command)> {
    loop {
        let commands = store.commands().unwrap();
        if has_ended() || !commands.is_empty() {
            return commands;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn settings(file: &Path) -> Vec<String> {
    let settings = Reader::open(file).unwrap().settings().unwrap();
    let paused = |it: Setting| it.name.strip_prefix("paused/").map(str::to_owned);
    settings.into_iter().filter_map(paused).collect()
}

#[test]
fn what_no_process_holds_is_changed_by_the_command_itself() {
    let (file, rows) = free();
    let said = file.well(format!("cancel {} {}", rows[0].handle(), rows[1].id));
    assert_eq!(said, done("cancelled", [rows[0].id, rows[1].id]));
    let said = file.cli(format!("cancel {} {}", rows[0].handle(), rows[2].id));
    assert_eq!(said.out, done("cancelled", [rows[2].id]));
    assert!(said.failure().contains("no pending timer has this id"));
    assert_eq!(file.counts(), (1, 4));
    // It does not count as an opening, so it assigns no ids.
    assert_eq!(file.json("stats --json")["epoch"], 1);

    let said = file.well("redrive 10000000064");
    assert_eq!(said, "redriven 10000000064\n");
    let said = file.failure("redrive 10000000064");
    assert!(said.contains("there is no such dead letter"), "{said}");
    let said = file.well("redrive --namespace shop");
    assert_eq!(said, "redriven 10000000065\nredriven 10000000067\n");
    let due = file.json("list --overdue --json");
    assert_eq!(due["timers"].as_array().unwrap().len(), 3);
    assert_eq!(due["timers"][0]["failures"], 0);
    let said = file.well("discard --all");
    assert_eq!(said, "discarded 10000000066\n");
    assert_eq!(file.counts(), (4, 0));
    let said = file.failure("discard 10000000066");
    assert!(said.contains("there is no such dead letter"), "{said}");

    for (line, said, paused) in [
        ("pause shop", "paused shop\n", &["shop"][..]),
        ("pause default", "paused default\n", &["default", "shop"]),
        ("resume default", "resumed default\n", &["shop"]),
    ] {
        assert_eq!(file.well(line), said);
        assert_eq!(settings(&file), paused, "{line}");
    }
    for line in ["pause none", "resume none"] {
        let said = file.failure(line);
        assert!(said.contains("there is no namespace \"none\""), "{said}");
    }
    assert_eq!(settings(&file), ["shop"]);
}

#[test]
fn a_command_that_finds_no_dead_letter_says_so() {
    let (file, _) = free();
    file.well("discard --all");
    for line in ["redrive --all", "discard --namespace shop"] {
        let said = file.cli(line).nothing();
        assert!(said.contains("there are no dead letters"), "{line}: {said}");
    }
}

#[test]
fn a_command_that_carries_a_command_out_makes_no_reserve() {
    let (file, _) = free();
    let reserve = file.sibling("timers.db-reserve");
    // As after a full disk. The service could not extend a reserve owned by another user.
    std::fs::remove_file(&reserve).unwrap();
    file.well("pause shop");
    assert!(!reserve.exists());
    assert_eq!(settings(&file), ["shop"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_paused_before_the_start_waits_until_it_is_resumed() {
    let (file, _) = free();
    for line in ["redrive --all", "pause shop"] {
        file.beside(line).await.well();
    }
    let timers = Durable::open(&*file).await.unwrap();
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
    file.beside("resume shop").await.well();
    for _ in 0..2 {
        assert_eq!(within(delivered.recv()).await.unwrap(), "shop/close");
    }
    stop(&timers).await;
}

#[test]
fn a_command_that_is_not_answered_is_not_carried_out() {
    let (file, rows) = free();
    let mut store = reopened(&file);
    let expected = format!(
        "process {} has the file open and did not respond within 0.3 s",
        std::process::id()
    );
    for line in [
        format!("cancel {} --wait 0.3", rows[0].handle()),
        "redrive 10000000064 --wait 0.3".to_owned(),
        "pause shop --wait 0.3".to_owned(),
    ] {
        let said = file.failure(&line);
        assert!(said.contains(&expected), "{line}: {said}");
        assert_eq!(store.commands().unwrap(), [], "{line}");
    }
    // If there are many, the rest is not tried one by one.
    let said = file.cli("redrive --all --wait 0.3");
    assert_eq!((said.code, said.err.lines().count()), (1, 4), "{said:?}");
    assert!(settings(&file).is_empty());
    assert_eq!(file.counts(), (4, 4));
}

#[test]
fn a_command_that_was_taken_and_not_answered_may_be_carried_out() {
    let (file, _) = free();
    let mut store = reopened(&file);
    let said = paused_while(&file, 3, |has_ended| {
        take(&mut store, has_ended);
    });
    let said = said.failure();
    let expected = format!(
        "process {} accepted the request but did not answer",
        std::process::id()
    );
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("may or may not have been made"), "{said}");
}

#[test]
fn what_a_process_answers_that_will_not_is_said() {
    let (file, _) = free();
    let mut store = reopened(&file);
    let said = paused_while(&file, 60, |has_ended| {
        let commands = take(&mut store, has_ended);
        let reply = Op::Reply(commands[0].0, "the service shuts down".into());
        store.commit(1, &[reply]).unwrap();
    });
    assert_eq!(said.failure(), "waterwheel: shop: the service shuts down\n");
}

#[test]
fn a_process_that_ends_without_an_answer_leaves_it_to_the_command() {
    let (file, _) = free();
    let store = SqliteStore::open(&*file).unwrap();
    let said = paused_while(&file, 60, |has_ended| {
        let connection = rusqlite::Connection::open(&*file).unwrap();
        let count = "SELECT count(*) FROM commands";
        let count = || connection.query_row(count, [], |row| row.get::<_, i64>(0));
        while !has_ended() && count() == Ok(0) {
            thread::sleep(Duration::from_millis(1));
        }
        drop(store);
    });
    assert_eq!(said.well(), "paused shop\n");
    assert_eq!(settings(&file), ["shop"]);
}

#[test]
fn what_another_connection_holds_up_is_done_after_it() {
    let (file, _) = free();
    let connection = rusqlite::Connection::open(&*file).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said = paused_while(&file, 60, |_| {
        // Ten times as long as the store itself waits.
        thread::sleep(Duration::from_millis(500));
        connection.execute_batch("ROLLBACK").unwrap();
    });
    assert_eq!(said.well(), "paused shop\n");
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said = file.failure("resume shop --wait 0.2");
    assert!(said.contains("database is locked"), "{said}");
    assert_eq!(settings(&file), ["shop"]);
}

#[test]
fn commands_at_once_are_all_carried_out() {
    let rows = rows(8, "mail", DAY);
    let file = TimersFile::with(&inserts(&rows));
    let begun = Instant::now();
    thread::scope(|scope| {
        let commands = rows.iter().map(|row| {
            let file = &file;
            let line = format!("cancel {} --wait 60", row.handle());
            scope.spawn(move || file.well(line))
        });
        let commands: Vec<_> = commands.collect();
        for (command, row) in commands.into_iter().zip(&rows) {
            assert_eq!(command.join().unwrap(), format!("cancelled {}\n", row.id));
        }
    });
    // No command has waited until it was withdrawn.
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(file.json("stats --json")["pending"], 0);
}

#[test]
fn a_command_that_is_killed_has_done_all_or_nothing() {
    const LETTERS: u64 = 300;
    let (mut killed, mut done) = (0, 0);
    for round in 0..40_u64 {
        let file = TimersFile::with(&dead_mail(LETTERS));
        let mut child = command()
            .arg(&*file)
            .args(["redrive", "--all"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_micros(round * 700));
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        let mut store = reopened(&file);
        let left = DeadLetters::all(&mut store, Scope::All).unwrap().len() as u64;
        assert!(left == 0 || left == LETTERS, "{left} are left");
        done += u32::from(left == 0);
        drop(store);
        assert_eq!(file.counts(), (LETTERS - left, left));
    }
    println!("{killed} killed, {done} done");
    assert!(killed > 0, "none was killed in time");
}

#[test]
fn more_dead_letters_than_go_in_one_commit_are_redriven() {
    let file = TimersFile::with(&dead_mail(1_200));
    let said = file.well("redrive --all");
    assert_eq!(said.lines().count(), 1_200);
    let stats = file.json("stats --json");
    assert_eq!(
        (&stats["overdue"], &stats["dead"]),
        (&1_200.into(), &0.into())
    );
}
