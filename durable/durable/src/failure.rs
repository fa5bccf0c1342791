use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::engine::Ended;

/// Why an attempt has failed, and whether the timer is tried again.
///
/// Made by [`Retry::backoff`], [`Retry::after`] or [`Dead::because`]. `?` makes one that is tried again, of whatever [`Retry::backoff`] takes: an error, an
/// `anyhow::Error`, a `Box<dyn Error + Send + Sync>`, a text.
///
/// ```
/// # use waterwheel_durable::{Durable, Failure};
/// # fn address() -> Result<String, Box<dyn std::error::Error + Send + Sync>> { Ok(String::new()) }
/// # async fn send(address: String) -> Result<(), std::io::Error> { Ok(()) }
/// # fn example(timers: &Durable) {
/// timers.handle("mail", |_| async {
///     let address = address()?; // a boxed error
///     let (_, host) = address.split_once('@').ok_or("an address without a host")?; // a text
///     send(host.to_owned()).await?; // an error
///     Ok(())
/// });
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    error: String,
    then: Then,
}

/// What follows from a failure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// The next delay of the ladder.
    BackOff,
    /// This one in its place.
    After(Duration),
    Dead,
}

/// The attempt has failed, and the timer is tried again.
#[derive(Debug)]
pub enum Retry {}

/// The attempt has failed, and another one would as well: the timer becomes a dead letter.
#[derive(Debug)]
pub enum Dead {}

impl Retry {
    /// Tries the timer again after the next delay of the [ladder](crate::Builder::ladder), and makes it a dead letter after the last one.
    ///
    /// From a text, or from an error, which is kept with its causes.
    #[must_use]
    pub fn backoff(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure::new(error, Then::BackOff)
    }

    /// Tries the timer again after this delay, in the place of the next one of the ladder: where what the handler calls says when to come again, by a
    /// `Retry-After` for example. A delay longer than a year counts as a year.
    ///
    /// It is a failure like any other, and uses up an attempt: where the ladder has ended, it makes the timer a dead letter. To look again later without that,
    /// [insert another timer](crate::Delivery::timers) and end with `Ok`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::{Durable, Retry};
    /// # struct Answer { retry_after: Option<u64> }
    /// # async fn ask() -> Result<Answer, std::io::Error> { Ok(Answer { retry_after: None }) }
    /// # fn example(timers: &Durable) {
    /// timers.handle("notify", |_| async {
    ///     let answer = ask().await?; // after the ladder's delay
    ///     if let Some(seconds) = answer.retry_after {
    ///         return Err(Retry::after(Duration::from_secs(seconds), "the bank is busy"));
    ///     }
    ///     Ok(())
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn after(delay: Duration, error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure::new(error, Then::After(delay))
    }
}

impl Dead {
    /// Makes the timer a dead letter, with this error: a text, or an error, which is kept with its causes.
    #[must_use]
    pub fn because(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure::new(error, Then::Dead)
    }
}

impl Failure {
    fn new(error: impl Into<Box<dyn Error + Send + Sync>>, then: Then) -> Failure {
        let error = with_causes(&*error.into());
        Failure { error, then }
    }

    pub(crate) fn into_ended(self) -> Ended {
        let error = self.error.into();
        match self.then {
            Then::BackOff => Ended::Failed(error),
            Then::After(delay) => Ended::Later(error, delay),
            Then::Dead => Ended::Dead(error),
        }
    }
}

/// As [`Retry::backoff`].
impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Retry::backoff(error)
    }
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.then {
            Then::BackOff => f.debug_tuple("Retry").field(&self.error).finish(),
            Then::After(delay) => f
                .debug_tuple("Retry")
                .field(&self.error)
                .field(&delay)
                .finish(),
            Then::Dead => f.debug_tuple("Dead").field(&self.error).finish(),
        }
    }
}
