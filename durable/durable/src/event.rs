use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use waterwheel_store::{Id, Notice, Row};

/// What an operator should know, for logs and alerts: see [`Builder::on_event`](crate::Builder::on_event).
///
/// ```
/// use waterwheel_durable::{Durable, Event};
///
/// let builder = Durable::builder().on_event(|event| match event {
///     Event::Failed { error, .. } => eprintln!("the store has failed: {error}"),
///     Event::Dead { handler, id, error, .. } => eprintln!("{handler} has given up {id}: {error}"),
///     // New kinds come with new versions.
///     other => eprintln!("{other:?}"),
/// });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Timers of this name have been due for a second and have no handler. They stay in the store, and are delivered as soon as there is one. Reported once a name,
    /// and again after all that were due have been cancelled or moved. After an opening, there is a second to register handlers.
    #[non_exhaustive]
    Unhandled {
        /// The name.
        handler: Arc<str>,
    },
    /// An attempt has failed, and the timer is tried again.
    #[non_exhaustive]
    AttemptFailed {
        /// The timer.
        id: Id,
        /// Its handler.
        handler: Arc<str>,
        /// The number of the attempt, from 1 on.
        attempt: u32,
        /// What it said.
        error: Arc<str>,
    },
    /// A timer was given up: it is a dead letter.
    #[non_exhaustive]
    Dead {
        /// The timer.
        id: Id,
        /// Its handler.
        handler: Arc<str>,
        /// What its last attempt said.
        error: Arc<str>,
    },
    /// What the file has of this calendar cannot be read, or the machine does not know its zone, or there are more than four million calendars. It files nothing
    /// until the file is opened where it can be read, or it is declared anew.
    #[non_exhaustive]
    UnreadableCalendar {
        /// The name.
        calendar: Arc<str>,
        /// What is wrong.
        error: Arc<str>,
    },
    /// What the file has of this namespace's policy cannot be read: a newer version has written it, perhaps, with a field that this one does
    /// not know. The namespace is paused until the file is opened where it can be read, or it is given [another policy](crate::Namespace::set_policy); nothing of it expires.
    #[non_exhaustive]
    UnreadablePolicy {
        /// The name.
        namespace: Arc<str>,
    },
    /// The store has refused something, as with a full disk. Callers have that as their answer; the service tries its own again. Reported for the first
    /// refusal since the store last did what was asked of it: [`Metrics::refusals`](crate::Metrics::refusals) counts them all.
    #[non_exhaustive]
    Refused {
        /// What has happened.
        error: Arc<str>,
    },
    /// The store is full: an insert was answered with [`Error::Full`](crate::Error::Full). Reported once, until there is [space](Event::HasSpace) again.
    Full,
    /// The store is no longer full: an insert was done.
    HasSpace,
    /// The wall clock was set, by a second or more.
    ClockJumped,
    /// The runtime that the service was opened on has ended, without a [shutdown](crate::Durable::shutdown) before. Nothing is delivered or taken any more, and
    /// the store is closed.
    RuntimeEnded,
    /// The file has another name, by a hard link. Its lock and its log go by its name, so a process that opens it by the other one damages it: delete that name.
    /// Reported at the opening, and when it gets one more; it is looked for after each commit, and once a second.
    #[non_exhaustive]
    HardLinked {
        /// The name that the file was opened by.
        file: Arc<str>,
        /// How many names it has.
        links: u64,
    },
    /// Acknowledged work is gone, and the file was opened without it: see [`Builder::accept_loss`](crate::Builder::accept_loss).
    #[non_exhaustive]
    AcknowledgedLost {
        /// The file.
        file: Arc<str>,
        /// What is gone.
        loss: Arc<str>,
    },
    /// The store cannot note which commits it has acknowledged, in a small file beside its own. They are safe, and the service goes on; but if the log were deleted or
    /// damaged after a crash, the next opening would not detect that acknowledged work is gone. Reported once until it works again: free space on the disk, or
    /// give the process the right to write the file.
    #[non_exhaustive]
    NoteFailed {
        /// The file that cannot be written.
        note: Arc<str>,
        /// What the operating system says.
        error: Arc<str>,
    },
    /// The store has failed. Nothing is delivered or taken until it is opened again.
    #[non_exhaustive]
    Failed {
        /// What has happened.
        error: Arc<str>,
    },
}

impl Event {
    /// What the store notices. `None`: it is of a newer kind.
    pub(crate) fn of_notice(notice: Notice) -> Option<Event> {
        match notice {
            Notice::HardLinked { file, links, .. } => Some(Event::HardLinked { file, links }),
            Notice::AcknowledgedLost { file, loss, .. } => {
                Some(Event::AcknowledgedLost { file, loss })
            }
            Notice::NoteFailed { note, error, .. } => Some(Event::NoteFailed { note, error }),
            _ => None,
        }
    }

    pub(crate) fn dead(row: Row, error: Arc<str>) -> Event {
        Event::Dead {
            id: row.id,
            handler: row.handler,
            error,
        }
    }
}

/// The user's function for events.
pub(crate) struct Hook(Box<dyn Fn(&Event) + Send + Sync>);

impl Hook {
    pub(crate) fn new(hook: impl Fn(&Event) + Send + Sync + 'static) -> Hook {
        Hook(Box::new(hook))
    }

    /// A hook that panics harms no timer.
    pub(crate) fn call(&self, event: &Event) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(event)));
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
