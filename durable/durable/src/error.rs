use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use waterwheel_store::StoreError;
#[cfg(feature = "sqlite")]
use waterwheel_store_sqlite::OpenError as File;

#[cfg(feature = "calendar")]
use crate::calendar::CalendarError;
use crate::engine::{Answer, OverQuota};
use crate::limits::{LONGEST_NAMESPACE, NAME_LIMIT, PAYLOAD_LIMIT};
use crate::policy::Wrong;

/// No name of a handler begins so: each has one name.
const BEFORE_DEFAULT: &str = "default/";

/// How much of a name is shown.
const LONGEST_SHOWN: usize = 64;

/// A request could not be done.
///
/// # What to do
///
/// | | which | what was written |
/// |---|---|---|
/// | mend the call: it would fail again | [`Name`](Error::Name), [`NamespaceName`](Error::NamespaceName), [`UnknownNamespace`](Error::UnknownNamespace), [`Policy`](Error::Policy), `Calendar`, [`DueOutOfRange`](Error::DueOutOfRange), [`Payload`](Error::Payload), [`TooLong`](Error::TooLong); set the namespace another policy: [`UnreadablePolicy`](Error::UnreadablePolicy) | nothing |
/// | the same call again, later: these [are transient](Error::is_transient) | [`Full`](Error::Full), [`Quota`](Error::Quota), [`Refused`](Error::Refused) | nothing |
/// | open the store again | [`Failed`](Error::Failed), [`ShuttingDown`](Error::ShuttingDown), [`OutOfIds`](Error::OutOfIds) | nothing |
/// | open the store again, and make the same call, an insert with the same key | [`Unknown`](Error::Unknown) | all of it or nothing |
///
/// ```
/// # use std::time::Duration;
/// # use waterwheel_durable::{Durable, Error, Inserted};
/// # async fn example(timers: &Durable, order: u64) -> Result<Inserted, Error> {
/// let key = format!("order-{order}");
/// loop {
///     let insert = timers.after("close", Duration::from_secs(1_800)).key(&key).payload(&order);
///     match insert.insert().await {
///         Err(error) if error.is_transient() => tokio::time::sleep(Duration::from_secs(1)).await,
///         inserted => return inserted,
///     }
/// }
/// # }
/// ```
///
/// Of a batch, see [`insert_many`](crate::Durable::insert_many): some of its timers may have been inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The full name of a handler is empty or too long, or has a `/` where there is none.
    Name {
        /// The name.
        name: Arc<str>,
    },
    /// The name of a namespace that was to be created is empty or too long, or has a `/`.
    NamespaceName {
        /// The name.
        name: Arc<str>,
    },
    /// A namespace, or a namespace in the name of a handler, that was not [created](crate::Durable::create_namespace).
    UnknownNamespace {
        /// Its name.
        name: Arc<str>,
    },
    /// A field of a [policy](crate::Policy) makes no sense.
    Policy {
        /// Which field.
        field: &'static str,
        /// Why.
        why: &'static str,
    },
    /// What the store has of the [policy](crate::Namespace::policy) of this namespace cannot be read: see [`Event::UnreadablePolicy`](crate::Event::UnreadablePolicy).
    UnreadablePolicy {
        /// Its name.
        namespace: Arc<str>,
    },
    /// A namespace has used up its [quota of inserts](crate::Policy::insert_rate), and nothing was written.
    Quota {
        /// The namespace. Of several in a batch, the one that makes it wait for the longest time.
        namespace: Arc<str>,
        /// After this time, the timer can be inserted, or the whole batch, if no other caller comes before. `None` if never: a batch may not have more timers of a
        /// namespace than its quota's [burst](crate::Rate::burst).
        retry_after: Option<Duration>,
    },
    /// A calendar has a part that is wrong.
    #[cfg(feature = "calendar")]
    Calendar(CalendarError),
    /// A due time, or another time that a call was given, is more than 292 million years from 1970.
    DueOutOfRange,
    /// A payload is no JSON.
    Payload(Arc<str>),
    /// A payload and its key are too long.
    TooLong {
        /// Their length in bytes.
        length: usize,
    },
    /// The disk, or what the store may take of it, is full, and nothing was written. Deliveries and all other calls go on: the store keeps what space is left for
    /// them. Inserts are taken again as soon as there is space, without a restart.
    Full,
    /// The store has refused it, and nothing was written: a disk on which not even the store's reserve is left, for example. It may be tried again.
    Refused(Arc<str>),
    /// The store has failed meanwhile, or the service has ended before the answer. It is not known what was written: try again with the same key, once the store is opened again.
    Unknown(Arc<str>),
    /// The store has failed before it was asked, and nothing was written. It has to be opened again.
    Failed(Arc<str>),
    /// The service shuts down, or has, and nothing was written.
    ShuttingDown,
    /// No more timers can be inserted before the store is opened again: there were 2⁴⁰ since the last time.
    OutOfIds,
}

impl Error {
    /// Whether it is certain that nothing was written.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        !matches!(self, Error::Unknown(_))
    }

    /// Whether the same call may be taken later by the same service: the store is full, or has refused it, or a quota is used up. Nothing was written.
    ///
    /// A batch with more timers than the [burst](crate::Rate::burst) of its quota is never taken, and so it is none of these.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Full | Error::Refused(_) => true,
            Error::Quota { retry_after, .. } => retry_after.is_some(),
            _ => false,
        }
    }

    pub(crate) fn from_answer(answer: Answer) -> Error {
        match answer {
            Answer::Full => Error::Full,
            Answer::Refused(why) => Error::Refused(why),
            Answer::Failed(why) => Error::Failed(why),
            Answer::Unknown(why) => Error::Unknown(why),
            Answer::ShuttingDown => Error::ShuttingDown,
            Answer::OutOfIds => Error::OutOfIds,
            Answer::UnknownNamespace(name) => Error::UnknownNamespace { name },
            Answer::Quota(OverQuota {
                namespace,
                retry_after,
            }) => Error::Quota {
                namespace,
                retry_after,
            },
            other => Error::Unknown(format!("the engine has answered {other:?}").into()),
        }
    }

    /// The service has ended before the answer to a request.
    pub(crate) fn unanswered() -> Error {
        Error::Unknown("the service has ended before the answer".into())
    }

    pub(crate) fn of_read(error: &StoreError) -> Error {
        match error.is_definite() {
            true => Error::Refused(error.to_string().into()),
            // A read has written nothing.
            false => Error::Failed(cause(error).into()),
        }
    }
}

/// The cause of a store's error, without what was written.
pub(crate) fn cause(error: &StoreError) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// The beginning of a name.
fn shown(name: &str) -> String {
    name.chars().take(LONGEST_SHOWN).collect()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Name { name } if name.starts_with(BEFORE_DEFAULT) => write!(
                f,
                "{:?} is no name: a handler's is `name` in the namespace `default`, without `{BEFORE_DEFAULT}` before it",
                shown(name)
            ),
            Error::Name { name } => write!(
                f,
                "{:?} is no name: a handler's is `name` or `namespace/name`, of 1 to {NAME_LIMIT} bytes",
                shown(name)
            ),
            Error::NamespaceName { name } => write!(
                f,
                "{:?} is no name of a namespace: that has 1 to {LONGEST_NAMESPACE} bytes, and no `/`",
                shown(name)
            ),
            Error::UnknownNamespace { name } => write!(
                f,
                "there is no namespace {name:?}: it has to be created, by `create_namespace`"
            ),
            Error::Policy { field, why } => Wrong { field, why }.fmt(f),
            Error::UnreadablePolicy { namespace } => write!(
                f,
                "the policy of the namespace {namespace:?} cannot be read, and the namespace is paused: open the store with the version that has written the policy, or \
                 set a whole one"
            ),
            Error::Quota {
                namespace,
                retry_after: Some(after),
            } => write!(
                f,
                "the namespace {namespace:?} has used up its quota of inserts, its policy's `insert_rate`: try again in {after:?}"
            ),
            Error::Quota {
                namespace,
                retry_after: None,
            } => write!(
                f,
                "the batch has more timers of the namespace {namespace:?} than the burst of its quota of inserts, its policy's `insert_rate`: insert fewer at a time"
            ),
            #[cfg(feature = "calendar")]
            Error::Calendar(error) => error.fmt(f),
            Error::DueOutOfRange => f.write_str("the time is more than 292 million years from 1970"),
            Error::Payload(why) => write!(f, "the payload cannot be written as JSON: {why}"),
            Error::TooLong { length } => write!(
                f,
                "a payload and its key have at most {PAYLOAD_LIMIT} bytes, and not {length}: put an id into the payload, and the data into a table of your own"
            ),
            Error::Full => f.write_str(
                "the store is full, and nothing was written: free space on its disk, or raise its `disk_limit`; then inserts are taken again by themselves",
            ),
            Error::Refused(why) => write!(f, "{why}: try again later"),
            Error::Failed(why) => write!(
                f,
                "the store had failed before, and nothing was written: open it again ({why})"
            ),
            Error::Unknown(why) => write!(
                f,
                "{why}: open the store again, and make the same call, an insert with the same key"
            ),
            Error::ShuttingDown => f.write_str(
                "the service shuts down, and nothing was written: make the same call once the store is opened again",
            ),
            Error::OutOfIds => f.write_str(
                "there are no more ids, and nothing was written: open the store again",
            ),
        }
    }
}

impl StdError for Error {}

impl From<Wrong> for Error {
    fn from(Wrong { field, why }: Wrong) -> Error {
        Error::Policy { field, why }
    }
}

/// A store could not be opened.
///
/// Its text says the file, the cause and what to do. `Debug` says the same, since that is what a `main` that returns it prints, and an `unwrap`; `{:#?}` shows the
/// parts.
#[non_exhaustive]
pub enum OpenError {
    /// The file is held by another process, damaged, or no file of ours.
    #[cfg(feature = "sqlite")]
    File(FileError),
    /// The store has failed at once.
    Store(StoreError),
    /// No thread could be started for it.
    Thread(io::Error),
}

/// A file could not be opened: [`OpenError`] says which kind of failure it is, and this says it in words.
#[cfg(feature = "sqlite")]
pub struct FileError {
    pub(crate) path: std::path::PathBuf,
    pub(crate) error: File,
}

#[cfg(feature = "sqlite")]
impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Some name the file themselves, or the one beside it that is the matter.
        match &self.error {
            File::Io { .. } | File::Lock { .. } => self.error.fmt(f),
            error => write!(f, "{}: {error}", self.path.display()),
        }
    }
}

#[cfg(feature = "sqlite")]
impl fmt::Debug for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match f.alternate() {
            true => f
                .debug_struct("FileError")
                .field("path", &self.path)
                .field("error", &self.error)
                .finish(),
            false => fmt::Display::fmt(self, f),
        }
    }
}

#[cfg(feature = "sqlite")]
impl StdError for FileError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}

#[cfg(feature = "sqlite")]
impl OpenError {
    /// Whether another service has the file open, of this process or of another one. It may be opened once that has ended.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.file(), Some(File::Held { .. }))
    }

    /// The number of the process that has the file open, if [that is so](OpenError::is_held) and it is known.
    #[must_use]
    pub fn holder(&self) -> Option<u32> {
        match self.file() {
            Some(File::Held { process, .. }) => *process,
            _ => None,
        }
    }

    /// Whether the file is one of ours, and damaged.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        matches!(self.file(), Some(File::Corrupt(_)))
    }

    /// Whether acknowledged work is gone from the file: [`Builder::accept_loss`](crate::Builder::accept_loss) opens it all the same.
    #[must_use]
    pub fn is_acknowledged_lost(&self) -> bool {
        matches!(self.file(), Some(File::AcknowledgedLost(_)))
    }

    /// Whether the file was written by a newer version of this crate.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        matches!(self.file(), Some(File::Newer { .. }))
    }

    fn file(&self) -> Option<&File> {
        match self {
            OpenError::File(error) => Some(&error.error),
            _ => None,
        }
    }
}

impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        match self {
            #[cfg(feature = "sqlite")]
            OpenError::File(error) => f.debug_tuple("File").field(error).finish(),
            OpenError::Store(error) => f.debug_tuple("Store").field(error).finish(),
            OpenError::Thread(error) => f.debug_tuple("Thread").field(error).finish(),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "sqlite")]
            OpenError::File(error) => error.fmt(f),
            OpenError::Store(error) => error.fmt(f),
            OpenError::Thread(error) => write!(
                f,
                "no thread could be started for the store: {error}: raise the limit of threads or of memory"
            ),
        }
    }
}

impl StdError for OpenError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            #[cfg(feature = "sqlite")]
            OpenError::File(error) => error.source(),
            OpenError::Store(error) => error.source(),
            OpenError::Thread(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_taken_later_is_transient() {
        let why = || Arc::from("why");
        let quota = |retry_after| Error::Quota {
            namespace: "shop".into(),
            retry_after,
        };
        let unreadable = Error::UnreadablePolicy {
            namespace: "shop".into(),
        };
        for (error, is_transient) in [
            (Error::Full, true),
            (Error::Refused(why()), true),
            (quota(Some(Duration::from_secs(9))), true),
            (quota(None), false),
            (Error::Unknown(why()), false),
            (Error::Failed(why()), false),
            (Error::ShuttingDown, false),
            (Error::OutOfIds, false),
            (unreadable, false),
            (Error::DueOutOfRange, false),
            (Error::TooLong { length: 1 }, false),
        ] {
            assert_eq!(error.is_transient(), is_transient, "{error:?}");
            assert!(!is_transient || error.is_definite());
        }
    }
}
