use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use waterwheel_durable_core::engine::Output;
use waterwheel_durable_core::store::{Id, Notice};

/// Something that an operator should know, for logs and alerts: see [`Builder::on_event`](crate::Builder::on_event).
///
/// ```
/// use waterwheel_durable::{Durable, Event};
///
/// let builder = Durable::builder().on_event(|event| match event {
///     Event::Failed { error, .. } => eprintln!("the store failed: {error}"),
///     Event::Dead { handler, id, error, .. } => eprintln!("{handler}: {id} is a dead letter: {error}"),
///     // New versions add new events.
///     other => eprintln!("{other:?}"),
/// });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Timers of this handler name have been due for a second, and no handler is registered. They stay in the store and
    /// are delivered as soon as there is one. Reported once for each name, and again after all the due timers of the
    /// name have been cancelled or rescheduled. After the store is opened, there is a second to register handlers.
    #[non_exhaustive]
    Unhandled {
        /// The name of the handler.
        handler: Arc<str>,
    },
    /// An attempt failed, and the timer will be retried.
    #[non_exhaustive]
    AttemptFailed {
        /// The id of the timer.
        id: Id,
        /// The name of its handler.
        handler: Arc<str>,
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// The error of the attempt.
        error: Arc<str>,
    },
    /// A timer became a dead letter.
    #[non_exhaustive]
    Dead {
        /// The id of the timer.
        id: Id,
        /// The name of its handler.
        handler: Arc<str>,
        /// The error of its last attempt.
        error: Arc<str>,
    },
    /// The stored form of this calendar cannot be read, its time zone is unknown on this machine, or there are more
    /// than four million calendars. The calendar produces no timers until the file is opened by a program that can read
    /// it, or the calendar is declared again.
    #[non_exhaustive]
    UnreadableCalendar {
        /// The name of the calendar.
        calendar: Arc<str>,
        /// The cause.
        error: Arc<str>,
    },
    /// The stored policy of this namespace cannot be read. It may have been written by a newer version, with a field
    /// that this version does not know. The namespace is paused until the file is opened by a program that can read the
    /// policy, or until it is given [another policy](crate::Namespace::set_policy). What it retains does not expire
    /// meanwhile.
    #[non_exhaustive]
    UnreadablePolicy {
        /// The name of the namespace.
        namespace: Arc<str>,
    },
    /// The store refused a request, for example because the disk is full. Callers get the error as their result; the
    /// service retries its own requests. Of consecutive refusals, the first one is reported, separately for reads and
    /// writes; [`Metrics::refusals`](crate::Metrics::refusals) counts all of them.
    #[non_exhaustive]
    Refused {
        /// The error of the store.
        error: Arc<str>,
    },
    /// The store is full: an insert failed with [`Error::Full`](crate::Error::Full). Reported once, until there is
    /// [space](Event::HasSpace) again.
    Full,
    /// The store is no longer full: an insert succeeded.
    HasSpace,
    /// The wall clock was set, by a second or more.
    ClockJumped,
    /// The runtime that the service was opened on ended without a [shutdown](crate::Durable::shutdown). Nothing is
    /// delivered or accepted any more, and the store is closed.
    RuntimeEnded,
    /// The file has a second name, a hard link. Locking and the WAL depend on the name, so a process that opens the
    /// file by the other name damages it: delete that name. Reported when the store is opened and whenever the file
    /// gets another name; this is checked after each commit, and once a second.
    #[non_exhaustive]
    HardLinked {
        /// The name by which the file was opened.
        file: Arc<str>,
        /// The number of names that the file has.
        links: u64,
    },
    /// Acknowledged work is missing, and the file was opened without it: see
    /// [`Sqlite::accept_loss`](crate::Sqlite::accept_loss).
    #[non_exhaustive]
    AcknowledgedLost {
        /// The file.
        file: Arc<str>,
        /// The loss, in words.
        loss: Arc<str>,
    },
    /// The store cannot record which commits it has acknowledged, in a small file next to the database. The commits are
    /// safe, and the service continues. But if the WAL were deleted or damaged after a crash, the next open could not
    /// detect that acknowledged work is missing. Reported once until it works again: free space on the disk, or give
    /// the process permission to write the file.
    #[non_exhaustive]
    NoteFailed {
        /// The file that cannot be written.
        note: Arc<str>,
        /// The error of the operating system.
        error: Arc<str>,
    },
    /// The store was restored from a backup, or moved to another server. No deliveries begin until that is accepted, since timers that were delivered after the
    /// backup would be delivered again, and a copy made for tests would deliver real timers. Everything else works.
    #[non_exhaustive]
    Restored {
        /// The store.
        store: Arc<str>,
        /// How it is accepted.
        accept: Arc<str>,
    },
    /// The lease of the store is not held. No deliveries begin: this process could not renew it in time, because the database is unreachable or the process was
    /// suspended, for example, and another process may have taken the timers over. If one has, the store [fails](Event::Failed). Or the store was
    /// [restored](Event::Restored).
    LeaseLost,
    /// The lease of the store is held again: deliveries continue.
    LeaseHeld,
    /// The store failed. Nothing is delivered or accepted until it is opened again.
    #[non_exhaustive]
    Failed {
        /// The cause.
        error: Arc<str>,
    },
}

impl Event {
    /// The event for a notice of the store. `None` if the notice is of a newer kind.
    pub(crate) fn of_notice(notice: Notice) -> Option<Event> {
        match notice {
            Notice::HardLinked { file, links, .. } => Some(Event::HardLinked { file, links }),
            Notice::AcknowledgedLost { file, loss, .. } => {
                Some(Event::AcknowledgedLost { file, loss })
            }
            Notice::NoteFailed { note, error, .. } => Some(Event::NoteFailed { note, error }),
            Notice::Restored { store, accept, .. } => Some(Event::Restored { store, accept }),
            _ => None,
        }
    }

    /// The event for an output of the engine. `None` if the output is not an event.
    pub(crate) fn of_output(output: Output) -> Option<Event> {
        Some(match output {
            Output::Unhandled(handler) => Event::Unhandled { handler },
            Output::Dead(row, error) => Event::Dead {
                id: row.id,
                handler: row.handler,
                error,
            },
            Output::UnreadableCalendar(calendar, error) => {
                Event::UnreadableCalendar { calendar, error }
            }
            Output::UnreadablePolicy(namespace) => Event::UnreadablePolicy { namespace },
            Output::Refused(error) => Event::Refused { error },
            Output::Full => Event::Full,
            Output::HasSpace => Event::HasSpace,
            Output::LeaseLost => Event::LeaseLost,
            Output::LeaseHeld => Event::LeaseHeld,
            Output::Failed(error) => Event::Failed { error },
            Output::Commit { .. }
            | Output::Read(..)
            | Output::Deliver(_)
            | Output::Answer(..)
            | Output::NoneDue(_) => return None,
        })
    }
}

/// The user's function for events.
pub(crate) struct Hook(Box<dyn Fn(&Event) + Send + Sync>);

impl Hook {
    pub(crate) fn new(hook: impl Fn(&Event) + Send + Sync + 'static) -> Hook {
        Hook(Box::new(hook))
    }

    /// Calls the hook. A panic in it harms no timer.
    pub(crate) fn call(&self, event: &Event) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(event)));
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
