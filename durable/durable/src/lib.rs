//! Timers that outlive the process: delivered at least once, never early, from milliseconds to years ahead.
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
//! let timers = Durable::open(&path).await?; // a SQLite file, created if it is not there
//!
//! // Ok settles the timer; an error is tried again by a ladder of delays.
//! timers.handle("reminder", |delivery: Delivery| async move {
//!     send(delivery.json::<Mail>()?).await.map_err(Retry::backoff)
//! });
//!
//! // Durable, synced to the disk, when it resolves. The key makes it safe to call again.
//! let when = SystemTime::now() + Duration::from_secs(1800);
//! let timer = timers.at("reminder", when).key("order-17").payload(&mail).insert().await?;
//!
//! timers.reschedule(&timer, when + Duration::from_secs(60)).await?;
//! match timers.cancel(&timer).await? {
//!     Cancelled::Done => {} // it is not delivered
//!     Cancelled::AlreadyFired => {} // it is with its handler, or has just been
//!     Cancelled::NotFound => {} // it was settled, or given up
//! }
//!
//! // Many, in as few commits as possible.
//! let batch = (1..=3).map(|days| NewTimer::after("reminder", Duration::from_secs(86_400 * days)).payload(&mail));
//! timers.insert_many(batch).await?;
//!
//! // Waits for handlers that run; what is not due stays in the file.
//! timers.shutdown(Drain::within(Duration::from_secs(5))).await?;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # The index
//!
//! | to | use |
//! |---|---|
//! | have a service on a file, or on another store | [`Durable`], [`Builder`], [`OpenError`], [`FileError`] |
//! | keep businesses apart, each with limits of its own | [`Durable::create_namespace`], [`Durable::namespace`], [`Namespace`], [`Policy`], [`Rate`], [`BackOff`] |
//! | change that at run time, stop one for a while | [`Namespace::policy`], [`Namespace::set_policy`]; [`Namespace::pause`], [`Namespace::resume`]; [`Namespace::drain`] |
//! | handle timers that are due | [`Durable::handle`], [`HandlerOptions`], [`Delivery`], [`InvalidPayload`] |
//! | say how an attempt has failed | [`Failure`], [`Retry`], [`Dead`] |
//! | insert a timer | [`Durable::at`], [`Durable::after`], which give an [`Insert`]; many: [`NewTimer`]; [`Inserted`]; [`NAME_LIMIT`], [`PAYLOAD_LIMIT`] |
//! | name one, also across restarts | [`Handle`], [`Id`]; [`Delivery::handle`], [`DeadLetter::handle`] |
//! | find it by its key | [`Durable::find`], [`Namespace::find`] |
//! | cancel it, move it | [`Durable::cancel`], [`Cancelled`]; [`Durable::reschedule`], [`Rescheduled`] |
//! | have timers that recur | [`Durable::calendar`], [`Namespace::calendar`], [`Calendar`], [`Misfire`], [`Declared`]; [`Durable::remove_calendar`]; [`Durable::calendars`], [`Namespace::calendars`], [`CalendarInfo`]; [`CalendarError`], [`CalendarField`]; [`Delivery::occurrence`] |
//! | see what was given up, and try it again | [`Durable::dead_letters`], [`Namespace::dead_letters`], [`DeadLetter`]; [`Durable::redrive`], [`Redriven`]; or delete it: [`Durable::discard`] |
//! | see what was delivered | [`Namespace::delivered`], [`Delivered`], [`Mark`] |
//! | look into it | [`Durable::metrics`], [`Metrics`], [`NamespaceMetrics`], [`Lateness`], [`Event`] |
//! | stop it | [`Durable::shutdown`], [`Drain`], [`Stopped`] |
//! | know what went wrong | [`Error`] |
//! | write a store of your own | [`store`]: [`store::Store`]; the crate `waterwheel-conformance` tests it |
//!
//! # What it promises
//!
//! - **At least once.** A timer that was inserted is delivered until an attempt ends with `Ok`, or it is a dead letter, or it is cancelled; whatever ends the
//!   process in between, and however long it is off.
//! - **Acknowledged means on the disk.** Each call that changes something resolves after an `fsync` of it. Calls at the same time share one.
//! - **Never early.** The wall clock shows the due time, or a later one, when the handler is called. Due times are rounded up to a millisecond. A clock that is
//!   set back is waited for, one that is set forward is followed at once, and time in suspension counts. The time of a retry is counted from its failure: if the
//!   clock was ahead then, and is set back, the retry waits for the time that was written.
//! - **`Cancelled::Done` is final**: no delivery follows, also after a crash.
//! - **One id for life.** A delivery has the same [`Id`] in each attempt and after each restart. Duplicates are possible only of what was with a handler, or was
//!   being settled, when the process ended.
//! - **A key is one timer** of its handler. Of inserts with one key, at once or again, one creates the timer, and the others get its handle. A key is free when its
//!   timer was cancelled, given up, or settled and not [kept](Policy::retention).
//! - **An occurrence is one timer.** What a [calendar](Durable::calendar) has for a time is filed once, in one commit with how far the calendar has come, by whatever
//!   the process is ended, and whatever is done to the clock within a day. Its id says for which time it is.
//! - **Poison ends.** A timer that was with its handler at each of [five](Policy::starts) unclean ends of the process becomes a dead letter before it is started once
//!   more. Between such ends, each start of a timer that was overdue is noted before its handler is called.
//! - **No distance and no backlog is too large.** Far timers lie in the file in buckets that are coarser with distance, and [`Builder::most_in_memory`] bounds what
//!   is loaded.
//! - **A namespace delays no other.** Not if it has a million timers due and is limited to few a second, fails for an hour, or is paused. Its rate holds over any
//!   window but for one delivery at each opening, also while it is changed, and a wait for it uses up no attempt. With [`Builder::concurrency`], handlers that hang keep
//!   their places: their namespace needs a [concurrency](Policy::concurrency) below that.
//! - **A handler delays no other.** Not if it hangs, fails or panics; if it blocks its thread, on a runtime of several workers that has another one.
//!
//! # What it does not
//!
//! - **Exactly once.** A handler should do the same when it is called twice with one id.
//! - **Order.** Timers of one handler are begun about in order of their due times. Attempts run side by side, and retries come later.
//! - **Several processes on a file.** The second is refused, and [`OpenError`] names the first.
//! - **Virtual time.** Due times are the wall clock's. A tokio clock that is paused moves no due time, and the service keeps a runtime with such a clock busy. Its
//!   sleeps and attempt limits are by that clock, so they pass as it is advanced, and a paused clock that has nothing else to do advances to them: an attempt
//!   limit may be over at once. A [`Drain`] is by the machine's clock.
//!
//! # Trade-offs
//!
//! - An `fsync` each is what a single caller pays: some hundred to some thousand inserts a second, as the disk allows. Callers at the same time, and
//!   [`Durable::insert_many`], share it.
//! - A service has one thread for its store, which blocks in it, and one lock for what is in memory.
//! - Timers of the next seconds are in memory, [2 s](Builder::window) by default, at most [65 536](Builder::most_in_memory) of each handler, and
//!   [64 MiB](Builder::most_bytes_in_memory) of all.
//! - Each request and each turn costs a look at every name that has ever had a timer in the store. It is meant for some hundred of them, up to some thousand. A
//!   name for each user or order is a wrong use: that is what the payload is for.
//! - The timers of a minute are made ready from 15 s before it on, those of all handlers together, in order of their inserts: some two million in time.
//!   What is more in one minute comes later, the last inserted last, by some 5 s a million. After weeks off, the timers that have come due are made ready at
//!   a fifth of that rate, since each goes to a second of its own.
//! - A timer takes some 45 bytes in the file beside its payload. A [key](Insert::key) costs an entry in an index, some 32 bytes. The figures are for
//!   small payloads: with some hundred bytes each, fewer rows share a page, and each write costs more of them.
//! - A reserve of 1 to 16 MiB lies beside the file. When the disk is full, inserts are [refused](Error::Full), and the service goes on in that space.
//! - A disk that lies about an `fsync`, or a machine that does, breaks the promises with it. A failed `fsync` is never tried again: the service reports
//!   [`Event::Failed`], and every call fails until the file is opened again.
//!
//! # Where the ideas are from
//!
//! The buckets are the dials of the [hierarchical timing wheel](waterwheel::wheel) of [Varghese and Lauck](https://doi.org/10.1145/41457.37504), with the outermost on
//! disk. A schedule store with a wheel in memory for the near window, and workers for each business, is the shape of the notification timers of large payment
//! services. That an `fsync` which failed must not be tried again is [PostgreSQL's lesson](https://wiki.postgresql.org/wiki/Fsync_Errors).
//!
//! # Features
//!
//! | feature | what |
//! |---|---|
//! | `sqlite` (default) | [`Durable::open`] |
//! | `calendar` (default) | [`Durable::calendar`], with the crates that read cron expressions and time zones. Without it, the calendars of a file stand still |
//! | `bundled-zones` | a copy of the time zones in the binary, for a system without them, as a small container is. Without either, a calendar in a zone is refused |
//! | `metrics` | `Metrics::publish`, for the crate [`metrics`](https://docs.rs/metrics) |
//! | `tracing` | a span `delivery` for each attempt and an event for each [`Event`], for the crate [`tracing`](https://docs.rs/tracing); their target is `waterwheel_durable` |

#![forbid(unsafe_code)]

/// The code of the pages is tested.
#[cfg(all(doctest, feature = "calendar", feature = "sqlite"))]
mod pages {
    #[doc = include_str!("../../README.md")]
    struct Readme;

    #[cfg(unix)]
    #[doc = include_str!("../../docs/operators.md")]
    struct Operators;

    #[doc = include_str!("../../docs/recipes.md")]
    struct Recipes;

    #[doc = include_str!("../../docs/coming-from.md")]
    struct ComingFrom;
}

mod answer;
#[cfg(feature = "calendar")]
mod calendar;
mod dead_letter;
#[doc(hidden)]
pub mod engine;
mod error;
mod event;
mod failure;
mod limits;
mod new_timer;
mod options;
mod policy;
#[cfg(feature = "metrics")]
mod publish;
mod seen;
mod service;
mod shell;

pub use answer::{Cancelled, Inserted, Redriven, Rescheduled};
#[cfg(feature = "calendar")]
pub use calendar::{Calendar, CalendarError, CalendarField, CalendarInfo, Misfire};
pub use dead_letter::DeadLetter;
#[cfg(feature = "calendar")]
pub use engine::calendar::Declared;
#[cfg(feature = "sqlite")]
pub use error::FileError;
pub use error::{Error, OpenError};
pub use event::Event;
pub use failure::{Dead, Failure, Retry};
#[cfg(feature = "calendar")]
pub use limits::{CALENDAR_PAYLOAD_LIMIT, MISFIRE_LIMIT};
pub use limits::{NAME_LIMIT, PAYLOAD_LIMIT};
pub use new_timer::NewTimer;
pub use options::{Drain, HandlerOptions, Stopped};
pub use policy::{BackOff, Policy, Rate};
pub use seen::{Lateness, Metrics, NamespaceMetrics};
pub use service::InvalidPayload;
pub use service::{Builder, Delivered, Delivery, Durable, Insert, Namespace};
#[doc(hidden)]
pub use shell::clock::Shift;
pub use waterwheel_store as store;
pub use waterwheel_store::{Handle, Id, Mark};
