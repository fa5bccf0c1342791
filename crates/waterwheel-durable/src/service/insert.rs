use std::sync::Arc;
use std::time::{Duration, SystemTime};

use waterwheel_durable_core::policy::Backoff;

use super::{Durable, Namespace};
use crate::answer::Inserted;
use crate::error::Error;
use crate::new_timer::NewTimer;

/// The number of timers of a batch that are inserted under one lock.
const CHUNK: usize = 8_192;

/// A timer that is about to be inserted: see [`Durable::at`].
#[derive(Debug)]
#[must_use = "a timer is not inserted until `insert` is called"]
pub struct Insert<'a> {
    timers: &'a Durable,
    timer: NewTimer,
}

impl<'a> Insert<'a> {
    pub(crate) fn new(timers: &'a Durable, timer: NewTimer) -> Insert<'a> {
        Insert { timers, timer }
    }

    /// Sets the business key: see [`NewTimer::key`].
    pub fn key(mut self, key: impl AsRef<[u8]>) -> Insert<'a> {
        self.timer = self.timer.key(key);
        self
    }

    /// Sets a tag: see [`NewTimer::tag`].
    pub fn tag(mut self, tag: &str) -> Insert<'a> {
        self.timer = self.timer.tag(tag);
        self
    }

    /// Sets the delays after the failures of this timer: see [`NewTimer::retry_delays`].
    pub fn retry_delays(mut self, delays: impl IntoIterator<Item = Duration>) -> Insert<'a> {
        self.timer = self.timer.retry_delays(delays);
        self
    }

    /// Sets exponential backoff after the failures of this timer: see [`NewTimer::backoff`].
    pub fn backoff(mut self, backoff: Backoff) -> Insert<'a> {
        self.timer = self.timer.backoff(backoff);
        self
    }

    /// Sets the payload: see [`NewTimer::payload`].
    pub fn payload(mut self, value: &(impl serde::Serialize + ?Sized)) -> Insert<'a> {
        self.timer = self.timer.payload(value);
        self
    }

    /// Sets the payload: see [`NewTimer::bytes`].
    pub fn bytes(mut self, payload: impl Into<Arc<[u8]>>) -> Insert<'a> {
        self.timer = self.timer.bytes(payload);
        self
    }

    /// Inserts the timer. It is durable (synced to disk) when this resolves.
    ///
    /// Concurrent calls share a commit.
    ///
    /// # Errors
    ///
    /// Any [`Error`] except [`Error::NamespaceName`], [`Error::Policy`] and [`Error::Calendar`]: [what to
    /// do](Error#what-to-do). After [`Error::Unknown`], the timer may or may not be inserted: open the store again, and
    /// repeat the insert with the same key.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the timer may or may not be inserted.
    pub async fn insert(self) -> Result<Inserted, Error> {
        self.timers.insert(self.timer).await
    }
}

impl Durable {
    /// Prepares a timer that is delivered to `handler` when the wall clock shows `when` or later. [`Insert::insert`]
    /// inserts it.
    pub fn at(&self, handler: &str, when: SystemTime) -> Insert<'_> {
        Insert::new(self, NewTimer::at(handler, when))
    }

    /// Prepares a timer that is delivered to `handler` after `delay`, counted from the call of
    /// [`insert`](Insert::insert).
    pub fn after(&self, handler: &str, delay: Duration) -> Insert<'_> {
        Insert::new(self, NewTimer::after(handler, delay))
    }

    pub(crate) async fn insert(&self, timer: NewTimer) -> Result<Inserted, Error> {
        let timer = timer.ready(self.shared.clock.wall())?;
        let answer = self.shared.insert(timer).await?;
        Inserted::from_answer(answer)
    }

    /// Inserts a batch of timers in few commits: one for each 8 192 of them. All are durable when this resolves. The
    /// results are in the order of the batch. At most two commits' worth of a batch is in the service at a time, so
    /// other callers proceed concurrently.
    ///
    /// # Errors
    ///
    /// The [`Error`] of the first timer that fails. If the batch itself is invalid, for example because a name is too
    /// long, or if it exceeds a [quota](crate::Policy::insert_rate), nothing is inserted. After an error of the store
    /// or of a shutdown, some of the timers may be inserted: insert the batch again, using keys.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the batch may be inserted completely, up to some timer, or not at
    /// all.
    pub async fn insert_many(
        &self,
        batch: impl IntoIterator<Item = NewTimer>,
    ) -> Result<Vec<Inserted>, Error> {
        let wall = self.shared.clock.wall();
        let timers: Result<Vec<_>, _> = batch.into_iter().map(|it| it.ready(wall)).collect();
        let timers = timers?;
        self.shared.charge(&timers)?;
        let mut inserted = Vec::with_capacity(timers.len());
        let mut timers = timers.into_iter().peekable();
        let mut pending = Vec::new();
        loop {
            let chunk = self.shared.intake.part_of_batch(&mut timers, CHUNK);
            let is_over = chunk.is_empty();
            // The engine has the next part while the previous one is being written.
            let next = self.shared.submit_all(chunk).await?;
            for answer in std::mem::replace(&mut pending, next) {
                let answer = answer.await.map_err(|_| Error::unanswered())?;
                inserted.push(Inserted::from_answer(answer)?);
            }
            if is_over {
                return Ok(inserted);
            }
        }
    }
}

impl Namespace {
    /// Same as [`Durable::at`], for a handler of this namespace.
    pub fn at(&self, handler: &str, when: SystemTime) -> Insert<'_> {
        self.timers.at(&self.full_name(handler), when)
    }

    /// Same as [`Durable::after`], for a handler of this namespace.
    pub fn after(&self, handler: &str, delay: Duration) -> Insert<'_> {
        self.timers.after(&self.full_name(handler), delay)
    }

    /// Same as [`Durable::insert_many`], for handlers of this namespace: `NewTimer::after("mail", …)` is for the
    /// handler `mail` of this namespace.
    ///
    /// # Errors
    ///
    /// Same as [`Durable::insert_many`].
    ///
    /// # Cancel safety
    ///
    /// Same as [`Durable::insert_many`].
    pub async fn insert_many(
        &self,
        batch: impl IntoIterator<Item = NewTimer>,
    ) -> Result<Vec<Inserted>, Error> {
        let own = |timer: NewTimer| timer.handled_by(|name| self.full_name(name));
        self.timers.insert_many(batch.into_iter().map(own)).await
    }
}
