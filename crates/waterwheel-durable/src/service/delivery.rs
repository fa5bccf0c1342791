use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable_core::store::{Due, Handle, Id, Row};

use super::{Durable, Namespace};
use waterwheel_durable_core::engine::namespace_in;

/// A due timer, as it is passed to its handler.
///
/// A timer is delivered at least once: after a crash, a timer that was with its handler is delivered again. Its
/// [id](Delivery::id) is the same each time.
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

    /// Returns the id of the timer. It is the same in each attempt and after each restart, and is never used for
    /// another timer.
    #[must_use]
    pub fn id(&self) -> Id {
        self.row.id
    }

    /// Returns the handle of the timer, for example to reschedule it later: see [`Durable::reschedule`]. Cancelling it
    /// during this attempt returns [`AlreadyFired`](crate::Cancelled::AlreadyFired). If the timer was rescheduled since
    /// its insert, this is not the handle that the insert returned, but it is equally valid.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.row.handle()
    }

    /// Returns the number of the attempt, counted from 1. An attempt that was ended by a crash does not count.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.row.failures.saturating_add(1)
    }

    /// Returns when the timer was due; after a failure, when it was to be retried.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        // Not past the range of `SystemTime`: the clock has shown it.
        self.row.due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns the time of the [calendar](crate::Calendar) occurrence, or `None` if the timer is not an occurrence. It
    /// is the same in each attempt. A handler that records it can detect occurrences that are repeated because the
    /// clock was wrong by days.
    #[must_use]
    pub fn occurrence(&self) -> Option<SystemTime> {
        let (_, second) = self.row.id.occurrence()?;
        Due::from_second(second).time()
    }

    /// Returns how long after its due time the handler was called, by the wall clock.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        let due = self.row.due.as_millis().saturating_mul(1_000);
        Duration::from_micros(self.at.saturating_sub(due).max(0).unsigned_abs())
    }

    /// Returns the full name of the handler: `name` or `namespace/name`.
    #[must_use]
    pub fn handler(&self) -> &str {
        &self.row.handler
    }

    /// Returns the business key of the timer, if it has one.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.row.key.as_deref()
    }

    /// Returns the payload that the timer was inserted with.
    #[must_use]
    pub fn payload(&self) -> &Arc<[u8]> {
        &self.row.payload
    }

    /// Deserializes the payload from JSON.
    ///
    /// # Errors
    ///
    /// [`InvalidPayload`] if the payload is not such a value. Returned with `?`, it causes a retry. A new kind of
    /// payload that arrives before its handler is deployed therefore waits for the handler, for as long as the [retry
    /// schedule](crate::Builder::retry_delays) lasts: 13 hours by default. Then the timer becomes a dead letter, which can be
    /// redriven. Each of these attempts is reported as an [`Event::AttemptFailed`](crate::Event::AttemptFailed).
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, InvalidPayload> {
        serde_json::from_slice(&self.row.payload).map_err(InvalidPayload)
    }

    /// Returns the service that delivers the timer, to insert or cancel other timers. It does not keep the service
    /// alive unless it is cloned.
    ///
    /// It uses the full names of handlers: in a handler of `bank`, `timers().after("notify", …)` is for the handler
    /// `notify` of the namespace `default`. For the one of `bank`, use [`namespace`](Delivery::namespace).
    #[must_use]
    pub fn timers(&self) -> &Durable {
        &self.timers
    }

    /// Returns the namespace of the handler, to insert timers for its other handlers. It does not keep the service
    /// alive unless it is cloned.
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

/// A payload that could not be deserialized: see [`Delivery::json`].
#[derive(Debug)]
pub struct InvalidPayload(serde_json::Error);

impl fmt::Display for InvalidPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the payload could not be deserialized from JSON")
    }
}

impl std::error::Error for InvalidPayload {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
