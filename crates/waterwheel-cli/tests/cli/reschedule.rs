//! Timers that are moved to another time, or run now.

use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use waterwheel_durable::{Calendar, Delivery, Durable, Handle, PendingTimer};
use waterwheel_durable_core::store::Due;
use waterwheel_durable_sqlite::Reader;

use crate::support::*;

const HOUR: Duration = Duration::from_secs(3_600);

async fn insert(timers: &Durable, delay: Duration) -> Handle {
    let inserted = timers.after("close", delay).insert().await.unwrap();
    inserted.into_handle()
}

async fn get(timers: &Durable, handle: &Handle) -> PendingTimer {
    timers.get(handle).await.unwrap().unwrap()
}

/// Opens a service with a handler that passes its deliveries on.
async fn open(file: &TimersFile) -> (Durable, mpsc::UnboundedReceiver<Delivery>) {
    let timers = Durable::open(&**file).await.unwrap();
    let (sender, delivered) = mpsc::unbounded_channel();
    timers.handle("close", move |delivery| {
        let _ = sender.send(delivery);
        async { Ok(()) }
    });
    (timers, delivered)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_moves_the_named_timers() {
    let file = TimersFile::new();
    let (timers, mut delivered) = open(&file).await;
    let (first, second) = (
        insert(&timers, HOUR).await,
        insert(&timers, 999 * HOUR).await,
    );
    let begun = SystemTime::now();
    let line = format!("reschedule {first} {} --in 2h30m", second.id);
    let said = file.beside(line).await.well();
    let expected = format!("rescheduled {}\nrescheduled {}\n", first.id, second.id);
    assert_eq!(said, expected);
    for handle in [&first, &second] {
        let timer = get(&timers, handle).await;
        let delay = timer.due().duration_since(begun).unwrap();
        assert!(delay >= HOUR * 5 / 2 && delay < HOUR * 3, "{delay:?}");
        assert_eq!(Some(timer.first_due()), handle.due.time());
    }
    let line = format!("reschedule {first} --at 2100-01-01T01:00:00+01:00");
    file.beside(line).await.well();
    let due = get(&timers, &first).await.due();
    assert_eq!(Some(due), Due::from_millis(4_102_444_800_000).time());

    let said = file.beside(format!("run-now {first}")).await.well();
    assert_eq!(said, format!("due now: {}\n", first.id));
    let delivery = within(delivered.recv()).await.unwrap();
    assert_eq!(delivery.id(), first.id);
    assert!(delivery.due() >= begun && delivery.due() <= SystemTime::now());
    // A time in the past is due at once.
    let line = format!("reschedule {second} --at 1999-01-01T00:00Z");
    file.beside(line).await.well();
    assert_eq!(within(delivered.recv()).await.unwrap().id(), second.id);
    let until_settled = async {
        while timers.metrics().namespaces[0].settled < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(until_settled).await;
    for line in [
        format!("run-now {first}"),
        format!("reschedule {second} --in 1s"),
    ] {
        let said = file.beside(line).await.failure();
        assert!(said.contains("there is no such timer"), "{said}");
    }
    stop(&timers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_of_a_free_file_are_moved_by_the_command_itself() {
    let rows = rows(3, "close", 90 * DAY);
    let file = TimersFile::with(&inserts(&rows));
    let find = |number: usize| {
        let reader = Reader::open(&*file).unwrap();
        reader.find(&rows[number].handle()).unwrap().unwrap().row
    };
    let line = format!("reschedule {} --in 5m", rows[0].id);
    let said = file.beside(line).await.well();
    assert_eq!(said, format!("rescheduled {}\n", rows[0].id));
    let (moved, in_minutes) = (find(0), now().after(Duration::from_secs(300)));
    assert!(moved.due <= in_minutes && moved.first_due == rows[0].due);
    let line = format!("run-now {} {}", rows[1].handle(), rows[2].id);
    file.beside(line).await.well();
    assert!(find(1).due <= now() && find(2).due <= now());
    let said = file.beside("run-now 77").await.failure();
    assert!(said.contains("no pending timer has this id"), "{said}");
    // One that is due keeps its place.
    let dues = [find(1).due, find(2).due];
    let line = format!("run-now {} {}", rows[1].handle(), rows[2].id);
    let said = file.beside(line).await.well();
    let expected = format!("due now: {}\ndue now: {}\n", rows[1].id, rows[2].id);
    assert_eq!(said, expected);
    assert_eq!([find(1).due, find(2).due], dues);
    // A service delivers them, and those that are left at their new time.
    let (timers, mut delivered) = open(&file).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(within(delivered.recv()).await.unwrap().id());
    }
    ids.sort_unstable();
    assert_eq!(ids, [rows[1].id, rows[2].id]);
    assert_eq!(
        Some(get(&timers, &rows[0].handle()).await.due()),
        moved.due.time()
    );
    stop(&timers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_calendar_is_run_now_by_its_service() {
    let file = TimersFile::new();
    let (timers, mut delivered) = open(&file).await;
    for (name, payload) in [("text", &b"{\"all\":true}"[..]), ("bytes", &[0, 255])] {
        let calendar = Calendar::cron("0 3 1 1 *").handler("close").bytes(payload);
        timers.calendar(name, calendar).await.unwrap();
        let next = || async {
            let listed = file.beside("calendars --json").await.json();
            listed["calendars"][0]["occurrences"].clone()
        };
        let before = next().await;
        let line = format!("run-now --calendar {name}");
        let said = file.beside(line).await.well();
        let delivery = within(delivered.recv()).await.unwrap();
        assert_eq!(said, format!("due now: {}\n", delivery.id()));
        assert_eq!(&**delivery.payload(), payload);
        assert_eq!(delivery.occurrence(), None);
        assert_eq!(next().await, before);
    }
    let said = file.beside("run-now --calendar none").await.failure();
    assert!(said.contains("there is no calendar \"none\""), "{said}");
    stop(&timers).await;
    let said = file.beside("run-now --calendar text").await.failure();
    assert!(said.contains("no service has the file open"), "{said}");
    assert_eq!(file.counts(), (0, 0));
}
