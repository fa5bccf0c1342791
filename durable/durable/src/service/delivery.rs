use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_store::{Due, Handle, Id, Row};

use super::{Durable, Namespace};
use crate::engine::namespace_in;

/// A timer that is due, as its handler gets it.
///
/// A delivery comes at least once: after a crash, what was with a handler is delivered again. The [id](Delivery::id) is the same each time.
pub struct Delivery {
    row: Row,
    /// Microseconds since 1970.
    at: i64,
    timers: Durable,
}

impl Delivery {
    pub(crate) fn new(row: Row, at: i64, timers: Durable) -> Delivery {
        Delivery { row, at, timers }
    }

    /// The timer's id: the same in each attempt and after each restart, and never another timer's.
    #[must_use]
    pub fn id(&self) -> Id {
        self.row.id
    }

    /// What names the timer, to move it later, say: see [`Durable::reschedule`]. A cancel in this attempt is [`AlreadyFired`](crate::Cancelled::AlreadyFired). It is not the
    /// handle that its insert gave if the timer has moved since, and is as good as that.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.row.handle()
    }

    /// The number of the attempt, from 1 on. An attempt that a crash has ended does not count.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.row.failures.saturating_add(1)
    }

    /// When the timer was due; after a failure, when it was to be tried again.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        // Not past the range of `SystemTime`: the clock has shown it.
        self.row.due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Which occurrence of a [calendar](crate::Calendar) it is, by its time, if it is one: the same in each attempt. A handler that notes it bears what a clock
    /// may do that was wrong by days.
    #[must_use]
    pub fn occurrence(&self) -> Option<SystemTime> {
        let (_, second) = self.row.id.occurrence()?;
        Due::from_second(second).time()
    }

    /// How long after its due time the handler was called, by the wall clock.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        let due = self.row.due.as_millis().saturating_mul(1_000);
        Duration::from_micros(self.at.saturating_sub(due).max(0).unsigned_abs())
    }

    /// The full name of its handler: `name`, or `namespace/name`.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.row.handler
    }

    /// The business key, if the timer has one.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.row.key.as_deref()
    }

    /// What the timer was inserted with.
    #[must_use]
    pub fn payload(&self) -> &Arc<[u8]> {
        &self.row.payload
    }

    /// Reads the payload as JSON.
    ///
    /// # Errors
    ///
    /// [`InvalidPayload`] if it is no such value. By `?` the timer is tried again: so a new kind of payload that comes before its handler is deployed waits for
    /// it, as long as the [ladder](crate::Builder::ladder) is, 13 hours by default. Then it is a dead letter, which can be redriven. Each such attempt is an
    /// [`Event::AttemptFailed`](crate::Event::AttemptFailed).
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, InvalidPayload> {
        serde_json::from_slice(&self.row.payload).map_err(InvalidPayload)
    }

    /// The service that has delivered it, to insert or cancel others. It does not keep the service alive, unless it is cloned.
    ///
    /// It takes full names of handlers: in a handler of `bank`, `timers().after("notify", …)` is for the `notify` of the namespace `default`. For that of `bank`, use
    /// [`namespace`](Delivery::namespace).
    #[must_use]
    pub fn timers(&self) -> &Durable {
        &self.timers
    }

    /// The namespace of the handler, to insert timers for its other handlers. It does not keep the service alive, unless it is cloned.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::Namespace;
    /// # fn example(bank: &Namespace) {
    /// bank.handle("charge", |delivery| async move {
    ///     let bank = delivery.namespace();
    ///     bank.after("notify", Duration::from_secs(60)).bytes(delivery.payload().clone()).insert().await?;
    ///     Ok(())
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn namespace(&self) -> Namespace {
        let timers = Durable::of_delivery(&self.timers.shared);
        Namespace::new(timers, namespace_in(&self.row.handler).into())
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("id", &self.row.id)
            .field("handler", &self.row.handler)
            .field("attempt", &self.attempt())
            .field("due", &self.row.due)
            .finish_non_exhaustive()
    }
}

/// A payload does not parse.
#[derive(Debug)]
pub struct InvalidPayload(serde_json::Error);

impl fmt::Display for InvalidPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the payload does not parse")
    }
}

impl std::error::Error for InvalidPayload {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
