//! Durable timers for tokio: delivered at least once, never early, from milliseconds to years ahead.
//!
//! A service keeps its timers in a SQLite file. When a timer is due, the service calls the handler that is registered
//! for its name. A failed attempt is retried, and a timer whose retries are used up becomes a dead letter. Timers
//! survive restarts and crashes of the process.
//!
//! ```
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct Mail { to: String }
//! # async fn send(mail: Mail) -> Result<(), String> { match mail.to.is_empty() { true => Err("no address".into()), false => Ok(()) } }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::{Duration, SystemTime};
//! use waterwheel_durable::{Cancelled, Delivery, Drain, Durable, NewTimer, Retry};
//!
//! # let folder = std::env::temp_dir().join(format!("waterwheel-durable-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("timers.db");
//! # let mail = Mail { to: "an address".into() };
//! let timers = Durable::open(&path).await?; // a SQLite file, created if it does not exist
//!
//! // `Ok` settles the timer: it is done. An error is retried, with increasing delays.
//! timers.handle("reminder", |delivery: Delivery| async move {
//!     send(delivery.json::<Mail>()?).await.map_err(Retry::backoff)
//! });
//!
//! // Durable (synced to disk) when it resolves. The key makes the call safe to repeat.
//! let when = SystemTime::now() + Duration::from_secs(1800);
//! let timer = timers.at("reminder", when).key("order-17").payload(&mail).insert().await?;
//!
//! timers.reschedule(&timer, when + Duration::from_secs(60)).await?;
//! match timers.cancel(&timer).await? {
//!     Cancelled::Done => {} // it will not be delivered
//!     Cancelled::AlreadyFired => {} // its handler is running, or has just run
//!     Cancelled::NotFound => {} // it was settled, or is a dead letter
//! }
//!
//! // A batch, in as few commits as possible.
//! let batch = (1..=3).map(|days| NewTimer::after("reminder", Duration::from_secs(86_400 * days)).payload(&mail));
//! timers.insert_many(batch).await?;
//!
//! // Waits for running handlers; timers that are not due stay in the file.
//! timers.shutdown(Drain::within(Duration::from_secs(5))).await?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Index
//!
//! | to | use |
//! |---|---|
//! | open a service on a file, or on another store | [`Durable`], [`Builder`], `Sqlite`, [`OpenError`] |
//! | separate businesses, each with its own limits | [`Durable::create_namespace`], [`Durable::namespace`], [`Namespace`], [`Policy`], [`Rate`], [`Backoff`] |
//! | change limits at run time, pause a namespace | [`Namespace::policy`], [`Namespace::set_policy`]; [`Namespace::pause`], [`Namespace::resume`]; [`Namespace::drain`] |
//! | handle due timers | [`Durable::handle`], [`HandlerOptions`], [`Delivery`], [`InvalidPayload`] |
//! | report a failed attempt, or ask for a later one | [`Failure`], [`Retry`], [`Dead`]; [`Snooze`] |
//! | insert a timer | [`Durable::at`], [`Durable::after`], which return an [`Insert`]; in batches: [`NewTimer`]; [`Inserted`]; [`NAME_LIMIT`], [`PAYLOAD_LIMIT`], [`TAG_LIMIT`] |
//! | refer to a timer, also across restarts | [`Handle`], [`Id`]; [`Delivery::handle`], [`DeadLetter::handle`] |
//! | read a timer by its handle or key | [`Durable::get`]; [`Durable::find`], [`Namespace::find`]; [`PendingTimer`] |
//! | list and count pending timers | [`Durable::pending`], [`Scope`], [`PendingPage`], [`PendingCursor`]; [`Durable::counts`], [`Counts`], [`PendingCount`], [`DeadCount`] |
//! | cancel or reschedule a timer | [`Durable::cancel`], [`Cancelled`]; [`Durable::reschedule`], [`Rescheduled`] |
//! | cancel all timers of a handler or a namespace, or with a tag | [`Durable::cancel_all`], [`Scope`]; [`NewTimer::tag`], [`Durable::cancel_tagged`], [`Namespace::cancel_tagged`]; [`CancelledTimers`] |
//! | delete what belongs to a key, for example after a customer's request | [`Durable::erase`], [`Erased`] |
//! | use recurring timers | [`Durable::calendar`], [`Namespace::calendar`], [`Calendar`], [`Misfire`], [`Declared`]; [`Durable::remove_calendar`]; [`Durable::calendars`], [`Namespace::calendars`], [`CalendarInfo`]; [`CalendarError`], [`CalendarField`]; [`Delivery::occurrence`] |
//! | list dead letters, and retry or delete them | [`Durable::dead_letters`], [`Namespace::dead_letters`], [`DeadLetter`]; [`Durable::redrive`], [`Redriven`]; [`Durable::discard`] |
//! | list archived timers | [`Namespace::archived`], [`Archived`], [`ArchiveCursor`] |
//! | monitor the service | [`Durable::metrics`], [`Metrics`], [`NamespaceMetrics`], [`DeliveryLateness`], [`Event`] |
//! | shut down | [`Durable::shutdown`], [`Drain`], [`Stopped`] |
//! | handle errors | [`Error`] |
//! | write your own store | [`store`]: [`store::Store`]; the crate `waterwheel-durable-core` tests it, with its feature `testing` |
//!
//! # What it promises
//!
//! - **At least once.** An inserted timer is delivered until an attempt returns `Ok`, the timer becomes a dead letter,
//!   or it is cancelled, however the process ends in between and however long it is down.
//! - **Acknowledged means on disk.** A call that changes something resolves after its change has been synced with
//!   `fsync`. Concurrent calls share one.
//! - **Never early.** When a handler is called, the wall clock shows the due time or a later one. Due times are rounded
//!   up to a millisecond. If the clock is set back, timers wait for it; if it is set forward, they follow at once; time
//!   in suspend counts. The time of a retry is computed when the attempt fails, and stored: if the clock was ahead at
//!   that moment and is set back later, the retry waits for the stored time.
//! - **`Cancelled::Done` is final.** No delivery follows, not even after a crash.
//! - **One id for life.** A timer has the same [`Id`] in each attempt and after each restart. Only timers that were
//!   with a handler, or were being settled, when the process ended can be delivered twice.
//! - **A key identifies one timer** of its handler. If several inserts use the same key, concurrently or one after
//!   another, one of them creates the timer and the others return its handle. The key becomes free when the timer is
//!   cancelled, becomes a dead letter, or is settled and not [archived](Policy::retention).
//! - **A calendar occurrence is one timer.** It is inserted once, in the same commit that records the progress of its
//!   [calendar](Durable::calendar), however the process ends, and even if the clock is changed by up to a day. Its id
//!   contains the time of the occurrence.
//! - **Poison timers end.** A timer that was with its handler at [five](Policy::starts) unclean exits of the process in
//!   a row becomes a dead letter before it is delivered again. After two unclean exits in a row, the delivery of a
//!   timer that was already overdue when the store was opened is recorded before its handler is called.
//! - **No distance or backlog is too large.** Timers far ahead are stored in buckets, which get coarser with distance,
//!   and [`Builder::max_in_memory`] limits how many timers are loaded.
//! - **A namespace does not delay another one**, even if it has a million timers due and a low rate, fails for an hour,
//!   or is paused. Its rate holds over any window, apart from one extra delivery each time the store is opened, and
//!   also while the rate is changed. Waiting for the rate uses up no attempt. With [`Builder::concurrency`], handlers
//!   that hang occupy the shared capacity, so their namespace needs a [concurrency](Policy::concurrency) below it.
//! - **A handler does not delay another one** if it hangs, fails or panics. If it blocks its thread, this requires a
//!   runtime with another worker thread.
//!
//! # What it does not do
//!
//! - **Exactly once.** Handlers should be idempotent: a second call with the same id should have no further effect.
//! - **Ordering.** The timers of a handler start roughly in order of their due times. Attempts run concurrently, and
//!   retries come later.
//! - **Several processes on one file.** The second process is refused, and [`OpenError`] names the first.
//! - **Virtual time.** Due times follow the wall clock. Pausing tokio's clock does not change them, and the service
//!   keeps a runtime with a paused clock busy. The service's own sleeps and attempt limits do follow tokio's clock:
//!   they elapse as it is advanced, and an otherwise idle paused clock advances to them automatically, so an attempt
//!   limit may elapse at once. A [`Drain`] follows the machine's clock.
//!
//! # Trade-offs
//!
//! - A single sequential caller pays one `fsync` for each insert: a few hundred to a few thousand inserts a second,
//!   depending on the disk. Concurrent callers share the sync, and so does [`Durable::insert_many`].
//! - A service has one thread for its store, which blocks on I/O, and one lock for its state in memory.
//! - The timers of the next few seconds are in memory: [2 s](Builder::window) by default, at most
//!   [65 536](Builder::max_in_memory) of each handler and [64 MiB](Builder::max_bytes_in_memory) in total.
//! - Each request and each turn visits every handler name that has ever had a timer in the store. The service is meant
//!   for hundreds of names, up to a few thousand. Do not create a name for each user or order: put that into the
//!   payload.
//! - The timers of a minute are prepared from 15 s before it, for all handlers together and in the order in which they
//!   were inserted. About two million are ready in time. If a minute has more, the last inserted are late, by about 5 s
//!   for each further million. After weeks of downtime, overdue timers are prepared at a fifth of that rate, because
//!   each of them belongs to a different second.
//! - In the file, a timer takes about 45 bytes in addition to its payload, and a [key](Insert::key) takes an index
//!   entry of about 32 bytes. The figures here are for small payloads: with a few hundred bytes each, fewer rows fit on
//!   a page, and each write touches more pages.
//! - A reserve of 1 to 16 MiB is kept next to the file. When the disk is full, inserts are [refused](Error::Full), and
//!   the rest of the service continues in that space.
//! - A disk or a machine that reports an `fsync` that did not happen breaks these promises. A failed `fsync` is never
//!   retried: the service reports [`Event::Failed`], and every call fails until the file is opened again.
//!
//! # Origins
//!
//! The buckets are the dials of the [hierarchical timing wheel](waterwheel::wheel) of [Varghese and
//! Lauck](https://doi.org/10.1145/41457.37504), with the outermost dials on disk. A schedule store with a wheel in
//! memory for the near window, and workers for each business, is how large payment services build their notification
//! timers. That a failed `fsync` must not be retried is [PostgreSQL's
//! lesson](https://wiki.postgresql.org/wiki/Fsync_Errors).
//!
//! # Features
//!
//! | feature | enables |
//! |---|---|
//! | `sqlite` (default) | [`Durable::open`] and the SQLite store |
//! | `calendar` (default) | [`Durable::calendar`]; depends on crates for cron expressions and time zones. Without it, the calendars in a file do not advance |
//! | `bundled-zones` | a copy of the time zone database in the binary, for systems without one, such as minimal containers. Without either, a calendar in a time zone is refused |
//! | `metrics` | `Metrics::publish`, for the crate [`metrics`](https://docs.rs/metrics) |
//! | `tracing` | a span `delivery` for each attempt and an event for each [`Event`], for the crate [`tracing`](https://docs.rs/tracing); both with the target `waterwheel_durable` |

#![forbid(unsafe_code)]

/// Tests the code in the Markdown pages.
#[cfg(all(doctest, feature = "calendar", feature = "sqlite"))]
mod pages {
    #[doc = include_str!("../README.md")]
    struct Readme;

    #[cfg(unix)]
    #[doc = include_str!("../docs/operators.md")]
    struct Operators;

    #[doc = include_str!("../docs/recipes.md")]
    struct Recipes;

    #[doc = include_str!("../docs/coming-from.md")]
    struct ComingFrom;
}

mod answer;
#[cfg(feature = "calendar")]
mod calendar;
mod dead_letter;
mod error;
mod event;
mod failure;
mod metrics;
mod new_timer;
mod options;
mod pending_timer;
#[cfg(feature = "metrics")]
mod publish;
mod service;
mod shell;

pub use answer::{Cancelled, CancelledTimers, Erased, Inserted, Redriven, Rescheduled};
#[cfg(feature = "calendar")]
pub use calendar::{Calendar, CalendarError, CalendarField, CalendarInfo};
pub use dead_letter::DeadLetter;
pub use error::Error;
pub use event::Event;
pub use failure::{Dead, Failure, Retry, Snooze};
pub use metrics::{DeliveryLateness, Metrics, NamespaceMetrics};
pub use new_timer::NewTimer;
pub use options::{Drain, HandlerOptions, Stopped};
pub use pending_timer::{PendingPage, PendingTimer};
pub use service::InvalidPayload;
pub use service::{Archived, Builder, Delivery, Durable, Insert, Namespace};
#[doc(hidden)]
pub use shell::clock::Shift;
#[cfg(feature = "calendar")]
#[doc(inline)]
pub use waterwheel_durable_core::engine::calendar::{Declared, Misfire};
#[cfg(feature = "calendar")]
#[doc(inline)]
pub use waterwheel_durable_core::limits::{CALENDAR_PAYLOAD_LIMIT, MISFIRE_LIMIT};
#[doc(inline)]
pub use waterwheel_durable_core::limits::{NAME_LIMIT, PAYLOAD_LIMIT, TAG_LIMIT};
#[doc(inline)]
pub use waterwheel_durable_core::policy::{Backoff, Policy, Rate};
pub use waterwheel_durable_core::store;
#[doc(inline)]
pub use waterwheel_durable_core::store::{
    ArchiveCursor, Counts, DeadCount, Handle, Id, OpenError, PendingCount, PendingCursor, Scope,
};
#[cfg(feature = "sqlite")]
#[doc(inline)]
pub use waterwheel_durable_sqlite::Sqlite;
