use std::sync::Arc;
use std::time::{Duration, SystemTime};

use waterwheel_durable_core::policy::{Backoff, InvalidPolicy, Retries};
use waterwheel_durable_core::store::{Due, Extras, Row};

use crate::error::Error;
use waterwheel_durable_core::engine::new_row;
use waterwheel_durable_core::limits::{
    LONGEST_NAMESPACE, PAYLOAD_LIMIT, is_handler_name, is_namespace_name, is_tag,
};

/// A timer to insert: by its full handler name with [`Durable::insert_many`](crate::Durable::insert_many), or by the
/// name within the namespace with [`Namespace::insert_many`](crate::Namespace::insert_many).
#[derive(Debug, Clone)]
#[must_use = "a timer does nothing until it is inserted"]
pub struct NewTimer {
    handler: Arc<str>,
    when: When,
    key: Option<Arc<[u8]>>,
    extras: Option<Box<NewExtras>>,
    payload: Result<Arc<[u8]>, Arc<str>>,
}

/// Optional settings of a timer.
#[derive(Debug, Clone, Default)]
struct NewExtras {
    tag: Option<Box<str>>,
    retries: Option<Retries>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    At(SystemTime),
    After(Duration),
}

impl NewTimer {
    /// Creates a timer that is delivered to `handler` when the wall clock shows `when` or later. A time in the past is
    /// due at once.
    pub fn at(handler: &str, when: SystemTime) -> NewTimer {
        NewTimer::new(handler, When::At(when))
    }

    /// Creates a timer that is delivered to `handler` after `delay`, counted from the call of the insert and measured
    /// by the wall clock.
    pub fn after(handler: &str, delay: Duration) -> NewTimer {
        NewTimer::new(handler, When::After(delay))
    }

    fn new(handler: &str, when: When) -> NewTimer {
        NewTimer {
            handler: handler.into(),
            when,
            key: None,
            extras: None,
            payload: Ok(Arc::from([])),
        }
    }

    /// Sets a business key, such as the number of an order. While a timer of this handler has the key, and afterwards
    /// for the [retention](crate::Policy::retention) of the namespace, an insert with the same key inserts nothing and
    /// returns [`Inserted::Existing`](crate::Inserted::Existing).
    ///
    /// A key costs one index entry, regardless of how random the keys are and how many there are.
    pub fn key(mut self, key: impl AsRef<[u8]>) -> NewTimer {
        self.key = Some(key.as_ref().into());
        self
    }

    /// Sets a tag of 1 to [`TAG_LIMIT`](crate::TAG_LIMIT) bytes, such as the number of an order. Any number of timers may have
    /// the same tag, of any handler of the namespace, and [`Namespace::cancel_tagged`](crate::Namespace::cancel_tagged) cancels
    /// all of them. A tag costs about as much as a second timer without a payload.
    pub fn tag(mut self, tag: &str) -> NewTimer {
        self.extras.get_or_insert_default().tag = Some(tag.into());
        self
    }

    /// Sets the delays after the first, second, … failure of this timer: at most 1 000 delays of at most a year each. A failure
    /// after the last delay makes it a dead letter. Replaces a [backoff](NewTimer::backoff).
    ///
    /// Default: the retries of its [handler](crate::HandlerOptions::retry_delays), or else of its
    /// [namespace](crate::Policy::retry_delays), or else of the [service](crate::Builder::retry_delays).
    pub fn retry_delays(self, delays: impl IntoIterator<Item = Duration>) -> NewTimer {
        self.retries(Retries::RetryDelays(delays.into_iter().collect()))
    }

    /// Sets exponential backoff after the failures of this timer, in place of [delays](NewTimer::retry_delays).
    pub fn backoff(self, backoff: Backoff) -> NewTimer {
        self.retries(Retries::Backoff(backoff))
    }

    fn retries(mut self, retries: Retries) -> NewTimer {
        self.extras.get_or_insert_default().retries = Some(retries);
        self
    }

    /// Sets the payload to `value` as JSON. The handler reads it with [`Delivery::json`](crate::Delivery::json). If the
    /// value cannot be serialized, the insert fails.
    pub fn payload(mut self, value: &(impl serde::Serialize + ?Sized)) -> NewTimer {
        self.payload = match serde_json::to_vec(value) {
            Ok(json) => Ok(json.into()),
            Err(error) => Err(error.to_string().into()),
        };
        self
    }

    /// Sets the payload to these bytes.
    pub fn bytes(mut self, payload: impl Into<Arc<[u8]>>) -> NewTimer {
        self.payload = Ok(payload.into());
        self
    }

    /// Returns the timer with another handler, derived from the name of its own.
    pub(crate) fn handled_by(mut self, name: impl FnOnce(&str) -> String) -> NewTimer {
        self.handler = name(&self.handler).into();
        self
    }

    pub(crate) fn ready(self, wall: i64) -> Result<Row, Error> {
        check_name(&self.handler)?;
        let payload = self.payload.map_err(Error::Payload)?;
        let due = self.when.due(wall)?;
        let mut row = new_row(self.handler, due, self.key, payload);
        if let Some(extras) = self.extras {
            row.extras = extras.ready()?;
        }
        match row.bytes() {
            length if length > PAYLOAD_LIMIT => Err(Error::TooLong { length }),
            _ => Ok(row),
        }
    }
}

impl NewExtras {
    fn ready(self) -> Result<Option<Arc<Extras>>, Error> {
        if self.tag.as_ref().is_some_and(|tag| !is_tag(tag)) {
            let (field, why) = ("tag", "it must have 1 to 255 bytes, and no NUL");
            return Err(Error::Timer { field, why });
        }
        if let Some(Err(InvalidPolicy { field, why })) = self.retries.as_ref().map(Retries::check) {
            return Err(Error::Timer { field, why });
        }
        let retries = self.retries.map(|it| it.to_stored().into());
        Ok(Extras::new(self.tag, retries))
    }
}

impl When {
    /// The due time, given the present `wall` in microseconds since 1970.
    pub(crate) fn due(self, wall: i64) -> Result<Due, Error> {
        match self {
            When::At(time) => Due::at_or_after(time).ok_or(Error::DueOutOfRange),
            When::After(delay) => {
                let present = i128::from(wall) * 1_000;
                let delay = i128::try_from(delay.as_nanos()).map_err(|_| Error::DueOutOfRange)?;
                let millis = (present + delay + 999_999).div_euclid(1_000_000);
                let millis = i64::try_from(millis).map_err(|_| Error::DueOutOfRange)?;
                Ok(Due::from_millis(millis))
            }
        }
    }
}

/// Checks the name of a handler: `name`, or `namespace/name`.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    match is_handler_name(name) {
        true => Ok(()),
        false => Err(Error::Name { name: name.into() }),
    }
}

/// Checks the name of a namespace, which must leave room for a handler's name.
pub(crate) fn check_namespace(name: &str) -> Result<(), Error> {
    match is_namespace_name(name) && name.len() <= LONGEST_NAMESPACE {
        true => Ok(()),
        false => Err(Error::NamespaceName { name: name.into() }),
    }
}
