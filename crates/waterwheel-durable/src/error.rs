use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use waterwheel_durable_core::store::StoreError;

#[cfg(feature = "calendar")]
use crate::calendar::CalendarError;
use waterwheel_durable_core::engine::{Answer, OverQuota};
use waterwheel_durable_core::limits::{
    BEFORE_DEFAULT, LONGEST_NAMESPACE, NAME_LIMIT, PAYLOAD_LIMIT, shown,
};
use waterwheel_durable_core::policy::InvalidPolicy;

/// A request failed.
///
/// # What to do
///
/// | what to do | errors | what was written |
/// |---|---|---|
/// | fix the call: it would fail again | [`Name`](Error::Name), [`NamespaceName`](Error::NamespaceName), [`UnknownNamespace`](Error::UnknownNamespace), [`Policy`](Error::Policy), `Calendar`, [`DueOutOfRange`](Error::DueOutOfRange), [`Timer`](Error::Timer), [`Payload`](Error::Payload), [`TooLong`](Error::TooLong) | nothing |
/// | set another policy for the namespace | [`UnreadablePolicy`](Error::UnreadablePolicy) | nothing |
/// | repeat the call later: these errors [are transient](Error::is_transient) | [`Full`](Error::Full), [`Quota`](Error::Quota), [`Refused`](Error::Refused) | nothing |
/// | open the store again | [`Failed`](Error::Failed), [`ShuttingDown`](Error::ShuttingDown), [`OutOfIds`](Error::OutOfIds) | nothing |
/// | open the store again and repeat the call; for an insert, with the same key | [`Unknown`](Error::Unknown) | all of it, or nothing |
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
/// For batches, see [`insert_many`](crate::Durable::insert_many): some of the timers may have been inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The full name of a handler is empty, too long, or has an invalid `/`.
    Name {
        /// The name.
        name: Arc<str>,
    },
    /// The name of a namespace to be created is empty, too long, or has a `/`.
    NamespaceName {
        /// The name.
        name: Arc<str>,
    },
    /// The namespace, or the namespace in the name of a handler, was not [created](crate::Durable::create_namespace).
    UnknownNamespace {
        /// The name of the namespace.
        name: Arc<str>,
    },
    /// A setting of a [policy](crate::Policy) is invalid.
    Policy {
        /// The name of the setting.
        field: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// The stored [policy](crate::Namespace::policy) of this namespace cannot be read: see
    /// [`Event::UnreadablePolicy`](crate::Event::UnreadablePolicy).
    UnreadablePolicy {
        /// The name of the namespace.
        namespace: Arc<str>,
    },
    /// A namespace has exceeded its [insert quota](crate::Policy::insert_rate). Nothing was written.
    Quota {
        /// The namespace. If a batch exceeds several quotas, it is the namespace with the longest wait.
        namespace: Arc<str>,
        /// The time after which the timer or the whole batch can be inserted, if no other caller comes first. `None` if
        /// it never can: a batch may not have more timers of a namespace than the [burst](crate::Rate::burst) of its
        /// quota.
        retry_after: Option<Duration>,
    },
    /// A field of a calendar is invalid.
    #[cfg(feature = "calendar")]
    Calendar(CalendarError),
    /// A due time, or another time passed to a call, is more than 292 million years before or after 1970.
    DueOutOfRange,
    /// The tag or the retries of a timer are invalid.
    Timer {
        /// The name of the method that sets it.
        field: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A payload cannot be serialized as JSON.
    Payload(Arc<str>),
    /// A payload with its key, tag and retries is too long.
    TooLong {
        /// Their total length in bytes.
        length: usize,
    },
    /// The disk is full, or the store has reached its limit. Nothing was written. Deliveries and all other calls
    /// continue: the store keeps the remaining space for them. Inserts succeed again as soon as there is space, without
    /// a restart.
    Full,
    /// The store refused the request, and nothing was written: for example because the disk has no space left, not even
    /// in the reserve of the store. The call may be repeated.
    Refused(Arc<str>),
    /// The store failed during the request, or the service ended before it answered. It is not known what was written:
    /// open the store again and repeat the call; an insert with the same key.
    Unknown(Arc<str>),
    /// The store had already failed, and nothing was written. It has to be opened again.
    Failed(Arc<str>),
    /// The service is shutting down or has shut down. Nothing was written.
    ShuttingDown,
    /// No ids are left for more timers. Only a store that has refused to assign others while billions were inserted,
    /// or was opened four million times, has none: try again, or open it again.
    OutOfIds,
}

impl Error {
    /// Returns whether it is certain that nothing was written.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        !matches!(self, Error::Unknown(_))
    }

    /// Returns whether the same call may succeed later on the same service: the store is full or has refused the
    /// request, or a quota is exceeded. Nothing was written.
    ///
    /// A batch with more timers than the [burst](crate::Rate::burst) of its quota can never succeed, so its error is
    /// not transient.
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
            other => Error::Unknown(
                format!("the engine gave an unexpected answer ({other:?}; please report this bug)")
                    .into(),
            ),
        }
    }

    /// The error when the service ended before a request was answered.
    pub(crate) fn unanswered() -> Error {
        Error::Unknown("the service ended before it answered".into())
    }

    pub(crate) fn of_read(error: &StoreError) -> Error {
        match error.is_definite() {
            true => Error::Refused(error.to_string().into()),
            // A read writes nothing.
            false => Error::Failed(error.cause().into()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Name { name } if name.starts_with(BEFORE_DEFAULT) => write!(
                f,
                "invalid handler name {:?}: handlers of the namespace `default` are named without the prefix `{BEFORE_DEFAULT}`",
                shown(name)
            ),
            Error::Name { name } => write!(
                f,
                "invalid handler name {:?}: expected `name` or `namespace/name`, with 1 to {NAME_LIMIT} bytes and no NUL",
                shown(name)
            ),
            Error::NamespaceName { name } => write!(
                f,
                "invalid namespace name {:?}: expected 1 to {LONGEST_NAMESPACE} bytes without `/` and NUL",
                shown(name)
            ),
            Error::UnknownNamespace { name } => write!(
                f,
                "there is no namespace {name:?}: create it with `create_namespace`"
            ),
            Error::Policy { field, why } => InvalidPolicy { field, why }.fmt(f),
            Error::UnreadablePolicy { namespace } => write!(
                f,
                "the stored policy of the namespace {namespace:?} cannot be read, so the namespace is paused: open the store with the version that wrote the \
                 policy, or set a complete policy"
            ),
            Error::Quota {
                namespace,
                retry_after: Some(after),
            } => write!(
                f,
                "the namespace {namespace:?} has exceeded its insert quota (`insert_rate` of its policy): try again in {after:?}"
            ),
            Error::Quota {
                namespace,
                retry_after: None,
            } => write!(
                f,
                "the batch has more timers of the namespace {namespace:?} than the burst of its insert quota (`insert_rate` of its policy): insert fewer at a time"
            ),
            #[cfg(feature = "calendar")]
            Error::Calendar(error) => error.fmt(f),
            Error::DueOutOfRange => f.write_str(
                "the time is more than 292 million years before or after 1970: use a time within that range",
            ),
            Error::Timer { field, why } => {
                write!(f, "the timer's `{field}` is invalid: {why}")
            }
            Error::Payload(why) => write!(f, "the payload cannot be serialized as JSON: {why}"),
            Error::TooLong { length } => write!(
                f,
                "the payload, its key, tag and retries have {length} bytes, but at most {PAYLOAD_LIMIT} are allowed: store the data in a table of your own, and put its id into the payload"
            ),
            Error::Full => f.write_str(
                "the store is full, and nothing was written: free space on its disk, or raise its `limit`; once there is space, inserts succeed again without a restart",
            ),
            Error::Refused(why) => write!(f, "{why}: try again later"),
            Error::Failed(why) => write!(
                f,
                "the store failed earlier, and this call wrote nothing: open it again ({why})"
            ),
            Error::Unknown(why) => write!(
                f,
                "it is not known what was written, because {why}: open the store again and repeat the call (an insert with the same key)"
            ),
            Error::ShuttingDown => f.write_str(
                "the service is shutting down, and nothing was written: repeat the call once the store is opened again",
            ),
            Error::OutOfIds => f.write_str(
                "no ids are left, and nothing was written: open the store again",
            ),
        }
    }
}

impl StdError for Error {}

impl From<InvalidPolicy> for Error {
    fn from(InvalidPolicy { field, why }: InvalidPolicy) -> Error {
        Error::Policy { field, why }
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
