//! Handlers, and the deliveries that are passed to them.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use waterwheel_durable_core::store::{Ended, Handle, Id, Row};

use super::{Durable, Namespace};
use crate::failure::Failure;
use crate::new_timer::check_name;
use crate::options::HandlerOptions;
use crate::shell::worker::Handler;
use waterwheel_durable_core::engine::namespace_in;
use waterwheel_durable_core::policy::{InvalidPolicy, Retries};

/// A due timer, as it is passed to its handler.
///
/// A timer is delivered at least once: after a crash, a timer that was with its handler is delivered again. Its
/// [id](Delivery::id) is the same each time.
pub struct Delivery {
    row: Row,
    /// When the handler was called, in microseconds since 1970.
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

    /// Returns the handle of the timer, which is the one that its insert returned, for example to reschedule it later:
    /// see [`Durable::reschedule`]. Cancelling it during this attempt returns
    /// [`AlreadyFired`](crate::Cancelled::AlreadyFired).
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
        // Always within the range of `SystemTime`, because the clock has shown this time.
        self.row.due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns when the timer was due at its insert, whatever has moved it since: a retry, a reschedule, a snooze or a
    /// redrive. Compare with this rather than with [`due`](Delivery::due) to tell how old the request is: a retry may run
    /// after a later timer of the same order.
    #[must_use]
    pub fn first_due(&self) -> SystemTime {
        self.row.first_due.time().unwrap_or(UNIX_EPOCH)
    }

    /// Returns the time of the [calendar](crate::Calendar) occurrence, or `None` if the timer is not an occurrence. It
    /// is the same in each attempt. A handler that records it can detect occurrences that are repeated because the
    /// clock was wrong by days.
    #[must_use]
    pub fn occurrence(&self) -> Option<SystemTime> {
        self.row.id.occurrence_time()
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

    /// Returns the [tag](crate::NewTimer::tag) of the timer, if it has one.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.row.tag()
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

    /// Returns whether no other process can have taken the timers over by now, and may deliver this one again. It is always `true`
    /// with a store that no other process can take over, such as a SQLite file.
    ///
    /// It becomes `false` when this process could not renew its lease in time, because it was suspended or the database was
    /// unreachable, for example. A handler that runs for long can ask before a step that must not be done twice. This makes a second
    /// call rarer, but does not exclude it: handlers should be idempotent all the same.
    #[must_use]
    pub fn is_lease_held(&self) -> bool {
        self.timers.shared.lease.is_held()
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

impl Durable {
    /// Registers the handler for timers of this name, with the default [`HandlerOptions`].
    ///
    /// Returning `Ok` settles the timer: it is done, and is removed. Returning an `Err`, a panic and an attempt that
    /// exceeds its limit are [failures](Failure). Each attempt runs in its own task, on the runtime that the service
    /// was opened on. Timers that are already due and had no handler are delivered at once. After a shutdown, nothing
    /// is delivered.
    ///
    /// By default an attempt may take any amount of time, and a handler has up to 64 concurrent attempts: if all of
    /// them hang, the handler makes no progress. For a handler that calls another service, set an [attempt
    /// limit](HandlerOptions::attempt_limit) with [`handle_with`](Durable::handle_with).
    ///
    /// ```
    /// # use waterwheel_durable::{Dead, Durable, Retry};
    /// # async fn charge(order: u64) -> Result<(), std::io::Error> { Ok(()) }
    /// # fn example(timers: &Durable) {
    /// timers.handle("charge", |delivery| async move {
    ///     let order: u64 = delivery.json()?; // an error is retried
    ///     if delivery.attempt() > 5 {
    ///         return Err(Dead::because("five attempts have failed")); // this one is not
    ///     }
    ///     charge(order).await.map_err(Retry::backoff)
    /// });
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the name already has a handler, or the namespace before its `/` was not
    /// [created](Durable::create_namespace). Panics if the name is not `name` or `namespace/name`, is longer than
    /// [`NAME_LIMIT`](crate::NAME_LIMIT) bytes, or starts with `default/`.
    #[track_caller]
    pub fn handle<F, A>(&self, name: &str, handler: F)
    where
        F: Fn(Delivery) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.handle_with(name, HandlerOptions::default(), handler);
    }

    /// Registers the handler for timers of this name, with options. See [`handle`](Durable::handle).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::{Durable, HandlerOptions, Retry};
    /// # async fn notify(order: u64) -> Result<(), std::io::Error> { Ok(()) }
    /// # fn example(timers: &Durable) {
    /// let options = HandlerOptions::default().concurrency(16).attempt_limit(Duration::from_secs(30));
    /// timers.handle_with("notify", options, |delivery| async move {
    ///     notify(delivery.json()?).await.map_err(Retry::backoff)
    /// });
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`handle`](Durable::handle), if the [attempt limit](HandlerOptions::attempt_limit) is
    /// zero, and if the [retry delays](HandlerOptions::retry_delays) or the [backoff](HandlerOptions::backoff) are invalid.
    #[track_caller]
    pub fn handle_with<F, A>(&self, name: &str, options: HandlerOptions, handler: F)
    where
        F: Fn(Delivery) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        if let Err(error) = check_name(name) {
            panic!("{error}");
        }
        assert!(
            options.attempt_limit != Some(Duration::ZERO),
            "the attempt limit of the handler {name:?} is zero, so every attempt that has to wait would fail: use a longer limit, or none"
        );
        if let Some(Err(InvalidPolicy { field, why })) =
            options.retries.as_ref().map(Retries::check)
        {
            panic!("the `{field}` of the handler {name:?} is invalid: {why}");
        }
        let handler = Handler {
            name: name.into(),
            attempt_limit: options.attempt_limit,
            function: Box::new(move |row, wall, shared| {
                let attempt = handler(Delivery::new(row, wall, Durable::of_delivery(shared)));
                Box::pin(async move {
                    match attempt.await {
                        Ok(()) => Ended::Well,
                        Err(failure) => failure.into_ended(),
                    }
                })
            }),
        };
        if let Err(error) = self.namespace(namespace_in(name)) {
            panic!("{error}");
        }
        let HandlerOptions {
            concurrency,
            retries,
            ..
        } = options;
        let is_new = self.shared.handle(handler, concurrency, retries);
        assert!(
            is_new,
            "a handler named {name:?} is already registered: register each handler once, or choose another name"
        );
    }
}

impl Namespace {
    /// Same as [`Durable::handle`], for timers of this namespace.
    ///
    /// # Panics
    ///
    /// Panics if the name already has a handler, is empty or too long, or has a `/`.
    #[track_caller]
    pub fn handle<F, A>(&self, name: &str, handler: F)
    where
        F: Fn(Delivery) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.handle_with(name, HandlerOptions::default(), handler);
    }

    /// Same as [`Durable::handle_with`], for timers of this namespace.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`handle`](Namespace::handle), if the [attempt limit](HandlerOptions::attempt_limit) is
    /// zero, and if the [retry delays](HandlerOptions::retry_delays) or the [backoff](HandlerOptions::backoff) are invalid.
    #[track_caller]
    pub fn handle_with<F, A>(&self, name: &str, options: HandlerOptions, handler: F)
    where
        F: Fn(Delivery) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.timers
            .handle_with(&self.full_name(name), options, handler);
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
