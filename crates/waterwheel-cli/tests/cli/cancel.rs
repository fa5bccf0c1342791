//! Which timers of a handler or a namespace are cancelled, and which are left?

use std::thread;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use waterwheel_durable::{Cancelled, Delivery, Durable, Handle, Inserted, NewTimer, Policy, Retry};
use waterwheel_durable_core::store::{Bucket, Command, Due, Op, Row, Store};
use waterwheel_durable_sqlite::SqliteStore;

use crate::support::*;

/// The number of timers, more than one page.
const MANY: u64 = 1_200;

/// The number of timers on the first page.
const PAGE: usize = 500;

const HOUR: Duration = Duration::from_secs(3_600);

/// Inserts timers of a handler, an hour apart, the first one in an hour.
async fn insert_many(timers: &Durable, handler: &str, count: u64) -> Vec<Handle> {
    let now = SystemTime::now();
    let batch = (1..=count as u32).map(|it| NewTimer::at(handler, now + HOUR * it));
    let inserted = timers.insert_many(batch).await.unwrap();
    let handle = |it: &Inserted| it.handle().clone();
    inserted.iter().map(handle).collect()
}

/// The output for these cancelled timers.
fn cancelled<'a>(handles: impl IntoIterator<Item = &'a Handle>) -> String {
    let lines = handles
        .into_iter()
        .map(|it| format!("cancelled {}\n", it.id));
    lines.collect()
}

/// Fails unless each handler has this many pending timers.
#[track_caller]
fn expect_pending(file: &TimersFile, expected: &[(&str, u64)]) {
    let stats = file.json("stats --json");
    let handlers = stats["handlers"].as_array().unwrap().iter();
    let counts = handlers.map(|it| {
        let handler = it["handler"].as_str().unwrap();
        (handler, it["pending"].as_u64().unwrap())
    });
    assert_eq!(counts.collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_cancels_all_that_waits_of_a_handler() {
    let file = TimersFile::new();
    let timers = Durable::open(&*file).await.unwrap();
    timers
        .create_namespace("shop", Policy::default())
        .await
        .unwrap();
    let close = insert_many(&timers, "close", MANY).await;
    for other in ["closed", "mail", "shop/close"] {
        insert_many(&timers, other, 3).await;
    }
    let said = file.beside("cancel --handler close").await.well();
    assert_eq!(said, cancelled(&close));
    assert_eq!(timers.metrics().namespaces[0].cancelled, MANY);
    for handle in close.iter().step_by(100) {
        assert_eq!(timers.cancel(handle).await.unwrap(), Cancelled::NotFound);
    }
    let said = file.beside("cancel --namespace shop").await.well();
    assert_eq!(said.lines().count(), 3, "{said}");
    // There is nothing left to do.
    for line in ["cancel --handler close", "cancel --namespace shop"] {
        let said = file.beside(line).await.nothing();
        assert!(said.contains("no timer is pending"), "{line}: {said}");
    }
    stop(&timers).await;
    let expected = [("close", 0), ("closed", 3), ("mail", 3), ("shop/close", 0)];
    expect_pending(&file, &expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_with_its_handler_is_left_and_the_rest_cancelled() {
    let file = TimersFile::new();
    let timers = Durable::open(&*file).await.unwrap();
    let (sender, mut delivered) = mpsc::unbounded_channel();
    let (end, ended) = tokio::sync::watch::channel(false);
    timers.handle("close", move |delivery: Delivery| {
        sender.send(delivery.id()).unwrap();
        let mut ended = ended.clone();
        async move {
            // An error also ends it: the test is over.
            let _: Result<_, _> = ended.wait_for(|it| *it).await;
            Ok(())
        }
    });
    timers
        .after("close", Duration::ZERO)
        .insert()
        .await
        .unwrap();
    let id = within(delivered.recv()).await.unwrap();
    // They are on the same page as the failed one, and on the next.
    let others = insert_many(&timers, "close", 700).await;
    let said = file.beside("cancel --handler close").await;
    assert_eq!(said.out, cancelled(&others));
    let what = format!("{id}: {}\n", Command::FIRED);
    let said = said.failure();
    assert!(said.ends_with(&what), "{said}");
    end.send(true).unwrap();
    stop(&timers).await;
    expect_pending(&file, &[("close", 0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_gone_meanwhile_is_named_and_the_rest_cancelled() {
    let file = TimersFile::new();
    let timers = Durable::open(&*file).await.unwrap();
    let connection = rusqlite::Connection::open(&*file).unwrap();
    let commands = || {
        let count = "SELECT count(*) FROM commands WHERE is_taken = 0";
        let count = connection.query_row(count, [], |row| row.get::<_, i64>(0));
        count.unwrap()
    };
    let mut seen = false;
    // The service may be faster than this caller.
    for _ in 0..30 {
        let handles = insert_many(&timers, "close", 700).await;
        let line = tokio::spawn(file.beside("cancel --handler close"));
        while commands() == 0 && !line.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The command has read the timer, but the service has not yet taken the command.
        let first = timers.cancel(&handles[0]).await.unwrap();
        let said = within(line).await.unwrap();
        if first == Cancelled::Done {
            assert_eq!(said.out, cancelled(&handles[1..]));
            let what = format!("{}: there is no such timer", handles[0].id);
            let said = said.failure();
            assert!(said.contains(&what), "{said}");
            seen = true;
            break;
        }
        assert_eq!(said.well(), cancelled(&handles));
    }
    assert!(seen, "the service was always faster");
    stop(&timers).await;
    expect_pending(&file, &[("close", 0)]);
}

/// Carries out commands as a service does, in one commit each. `answer` returns other steps and another answer for some.
fn serve(
    file: &TimersFile,
    line: &str,
    mut answer: impl FnMut(&Handle) -> Option<(Op, &'static str)>,
) -> (Said, SqliteStore) {
    let mut store = reopened(file);
    let mut commit = 0;
    let said = thread::scope(|scope| {
        let sending = scope.spawn(|| file.cli(line));
        while !sending.is_finished() {
            // Another connection may have the file locked for a moment.
            let commands = store.commands().unwrap_or_default();
            let steps = commands.into_iter().flat_map(|(number, command)| {
                let Command::Cancel(handle) = command else {
                    unreachable!("{command}");
                };
                let cancel = || (Op::Cancel(handle.clone()), "done");
                let (step, words) = answer(&handle).unwrap_or_else(cancel);
                [step, Op::Reply(number, words.into())]
            });
            let steps: Vec<_> = steps.collect();
            if !steps.is_empty() {
                commit += 1;
                while let Err(error) = store.commit(commit, &steps) {
                    assert!(error.is_definite(), "{error:?}");
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
        sending.join().unwrap()
    });
    (said, store)
}

#[test]
fn what_fires_and_is_tried_again_later_is_cancelled_then() {
    let rows = rows(700, "mail", 0);
    let file = TimersFile::with(&inserts(&rows));
    let later = Due::from_millis(now().as_millis() + DAY);
    let mut has_fired = false;
    let fires = |handle: &Handle| {
        let is_it = handle.id == rows[3].id && !std::mem::replace(&mut has_fired, true);
        let retry = || Op::Retry(rows[3].clone(), later, Bucket::of(later, now()));
        is_it.then(|| (retry(), Command::FIRED))
    };
    let (said, store) = serve(&file, "cancel --handler mail --wait 60", fires);
    drop(store);
    assert!(said.out.ends_with(&format!("cancelled {}\n", rows[3].id)));
    assert_eq!(said.out.lines().count(), 700);
    let said = said.failure();
    assert!(said.contains("handler is running"), "{said}");
    expect_pending(&file, &[("mail", 0)]);
}

#[test]
fn the_rest_is_left_once_a_service_refuses() {
    let rows = rows(MANY, "mail", 0);
    let file = TimersFile::with(&inserts(&rows));
    let mut results = 0;
    let refuses = |handle: &Handle| {
        results += 1;
        let nothing = Op::Set("mine".into(), None);
        let is_it = handle.id == rows[3].id;
        is_it.then_some((nothing, "the service shuts down"))
    };
    let (said, store) = serve(&file, "cancel --handler mail --wait 60", refuses);
    assert_eq!((said.out.lines().count(), results), (PAGE - 1, PAGE));
    assert!(said.failure().ends_with("the service shuts down\n"));
    // Likewise if it does not answer.
    let said = file.cli("cancel --handler mail --wait 0.3");
    assert_eq!((said.code, &*said.out), (1, ""));
    assert_eq!(said.err.lines().count(), PAGE);
    drop(store);
    expect_pending(&file, &[("mail", MANY - (PAGE as u64 - 1))]);
}

/// A file that no process has open, with timers of three handlers in buckets of all levels, due or not, retried or not, and dead letters.
fn free() -> (TimersFile, Vec<Row>) {
    let distance = [-5_000, 500, 60_000, 2 * 3_600_000, 3 * DAY, 200 * DAY];
    let rows = (0..MANY).map(|number| {
        let mut row = row(number, "mail", distance[number as usize % 6]);
        row.failures = u32::try_from(number % 4).unwrap();
        row.key = (number % 7 == 0).then(|| format!("key-{number}").into_bytes().into());
        row
    });
    let mut rows: Vec<_> = rows.collect();
    let mut steps = inserts(&rows);
    for number in 2_000..2_006 {
        let handler = ["shop/close", "shop/mail", "mails"][number as usize % 3];
        steps.push(insert(&row(number, handler, 3 * DAY)));
    }
    for number in 3_000..3_004 {
        let handler = ["mail", "shop/close"][number as usize % 2];
        steps.extend(dead(&row(number, handler, -5_000), "it said no"));
    }
    rows.sort_by_key(|row| (row.due, row.id));
    (TimersFile::with(&steps), rows)
}

#[test]
fn what_no_process_holds_is_cancelled_by_the_command_itself() {
    let (file, rows) = free();
    let handles: Vec<_> = rows.iter().map(Row::handle).collect();
    let said = file.well("cancel --handler mail");
    assert_eq!(said, cancelled(&handles));
    let left = [
        ("mail", 0),
        ("mails", 2),
        ("shop/close", 2),
        ("shop/mail", 2),
    ];
    expect_pending(&file, &left);
    // Their keys are free.
    let said = file.failure("show --handler mail --key key-7");
    assert!(said.contains("no timer of mail has the key"), "{said}");
    let said = file.well("cancel --namespace shop");
    assert_eq!(said.lines().count(), 4, "{said}");
    // Dead letters are not cancelled.
    assert_eq!(file.counts(), (2, 4));
    assert_eq!(file.json("stats --json")["epoch"], 1);
    for line in ["cancel --handler mail", "cancel --namespace shop"] {
        let said = file.cli(line).nothing();
        assert!(said.contains("no timer is pending"), "{line}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_cancels_a_timer_between_two_attempts() {
    let file = TimersFile::new();
    let timers = Durable::open(&*file).await.unwrap();
    let policy = Policy::default().retry_delays([HOUR]);
    let shop = timers.create_namespace("shop", policy).await.unwrap();
    let (sender, mut delivered) = mpsc::unbounded_channel();
    shop.handle("notify", move |delivery: Delivery| {
        sender.send(delivery.id()).unwrap();
        async { Err(Retry::backoff("it is down")) }
    });
    shop.after("notify", Duration::ZERO).insert().await.unwrap();
    let id = within(delivered.recv()).await.unwrap();
    within(async {
        while shop.metrics().retried == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let said = file.beside("cancel --handler shop/notify").await.well();
    assert_eq!(said, format!("cancelled {id}\n"));
    stop(&timers).await;
    expect_pending(&file, &[("shop/notify", 0)]);
}
