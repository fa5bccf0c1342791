//! Calendars with clocks that are set: to the days on which Berlin's clocks change, across days on which the service is off, and to the wrong century.

mod clocks;
mod definitions;
mod handlers;
mod restarts;

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;
use waterwheel_cron::jiff::Timestamp;
use waterwheel_durable::{Calendar, Declared, Durable, Shift, Sqlite};

use crate::support::*;

pub(super) fn time(text: &str) -> SystemTime {
    let at: Timestamp = text.parse().unwrap();
    SystemTime::from(at)
}

pub(super) fn text(time: SystemTime) -> String {
    let at = Timestamp::try_from(time).unwrap();
    at.to_string()
}

/// The clock of a service.
pub(super) struct Clock(pub(super) Arc<Shift>);

impl Clock {
    pub(super) fn at(now: &str) -> Clock {
        let clock = Clock(Arc::default());
        clock.set(now);
        clock
    }

    /// Sets the clock, which then runs like the machine's.
    pub(super) fn set(&self, now: &str) {
        let micros = |time: SystemTime| match time.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap(),
            Err(_) => panic!("{time:?} is before 1970"),
        };
        self.0
            .set_wall(micros(time(now)) - micros(SystemTime::now()));
    }

    pub(super) fn now(&self) -> SystemTime {
        present(&self.0)
    }

    pub(super) async fn open(&self, shelf: &Shelf) -> Durable {
        let builder = Durable::builder().shifted_clocks(Arc::clone(&self.0));
        within(builder.store(shelf.clone()).open()).await.unwrap()
    }

    pub(super) async fn open_file(&self, path: impl AsRef<Path>) -> Durable {
        let builder = Durable::builder().shifted_clocks(Arc::clone(&self.0));
        within(builder.store(Sqlite::new(path)).open())
            .await
            .unwrap()
    }
}

/// The occurrences that were delivered to a handler.
pub(super) struct Occurrences(mpsc::UnboundedReceiver<SystemTime>);

impl Occurrences {
    pub(super) fn of(timers: &Durable, handler: &str) -> Occurrences {
        let (sender, receiver) = mpsc::unbounded_channel();
        timers.handle(handler, move |delivery| {
            let _ = sender.send(delivery.occurrence().expect("it is of a calendar"));
            async { Ok(()) }
        });
        Occurrences(receiver)
    }

    pub(super) async fn next(&mut self) -> String {
        let next = within(self.0.recv()).await;
        text(next.expect("the handler is there"))
    }

    pub(super) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.next().await);
        }
        all
    }

    /// Returns all occurrences that come before the service has ended.
    pub(super) async fn rest(mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(next) = within(self.0.recv()).await {
            all.push(text(next));
        }
        all.sort();
        all
    }
}

/// The next occurrence of a calendar.
pub(super) fn next(timers: &Durable, name: &str) -> Option<String> {
    let all = timers.calendars();
    let calendar = all.iter().find(|it| &*it.name == name).unwrap();
    calendar.next.map(text)
}

/// Waits until the next occurrence of a calendar is the expected one.
pub(super) async fn until_next(timers: &Durable, name: &str, expected: &str) {
    until(|| next(timers, name).as_deref() == Some(expected)).await;
}

pub(super) fn hourly() -> Calendar {
    Calendar::cron("0 * * * *")
        .zone("Europe/Berlin")
        .handler("mail")
}

pub(super) async fn declare(timers: &Durable, name: &str, calendar: Calendar) -> Declared {
    within(timers.calendar(name, calendar)).await.unwrap()
}

/// A service with an in-memory store, whose clock is set to this time.
pub(super) async fn started(now: &str) -> (Durable, Shelf, Clock) {
    let (shelf, clock) = (Shelf::default(), Clock::at(now));
    (clock.open(&shelf).await, shelf, clock)
}
