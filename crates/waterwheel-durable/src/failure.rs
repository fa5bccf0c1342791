use std::error::Error;
use std::fmt;
use std::time::Duration;

use waterwheel_durable_core::store::Ended;

/// Why an attempt did not settle its timer, and what follows.
///
/// Created by [`Retry::backoff`], [`Retry::after`], [`Dead::because`] or [`Snooze::after`]. The `?` operator creates one that is retried,
/// from anything that [`Retry::backoff`] accepts: an error, an `anyhow::Error`, a `Box<dyn Error + Send + Sync>` or a
/// string.
///
/// ```
/// # use waterwheel_durable::{Durable, Failure};
/// # fn address() -> Result<String, Box<dyn std::error::Error + Send + Sync>> { Ok(String::new()) }
/// # async fn send(address: String) -> Result<(), std::io::Error> { Ok(()) }
/// # fn example(timers: &Durable) {
/// timers.handle("mail", |_| async {
///     let address = address()?; // a boxed error
///     let (_, host) = address.split_once('@').ok_or("an address without a host")?; // a string
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

/// The consequence of a failure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Retry after the next retry delay.
    Backoff,
    /// Retry after this delay instead.
    After(Duration),
    /// Deliver again after this delay: not a failure.
    Snooze(Duration),
    Dead,
}

/// The attempt failed, and the timer is retried.
#[derive(Debug)]
pub enum Retry {}

/// It is too early: the timer is delivered again later. This is not a failure.
#[derive(Debug)]
pub enum Snooze {}

/// The attempt failed, and another one would fail as well: the timer becomes a dead letter.
#[derive(Debug)]
pub enum Dead {}

impl Retry {
    /// Retries the timer after the next delay of the [retry schedule](crate::Builder::retry_delays), or makes it a
    /// dead letter if there is none left.
    ///
    /// Takes a string, or an error, which is recorded together with its causes.
    #[must_use]
    pub fn backoff(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure::new(error, Then::Backoff)
    }

    /// Retries the timer after `delay`, instead of the next delay of the retry schedule: for example when the called
    /// service sends `Retry-After`. A delay longer than a year counts as a year.
    ///
    /// This is a failure like any other and uses up an attempt: at the end of the retry schedule, it makes the timer a
    /// dead letter. To check again later without using up attempts, return [`Snooze::after`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::{Durable, Retry};
    /// # struct Answer { retry_after: Option<u64> }
    /// # async fn ask() -> Result<Answer, std::io::Error> { Ok(Answer { retry_after: None }) }
    /// # fn example(timers: &Durable) {
    /// timers.handle("notify", |_| async {
    ///     let answer = ask().await?; // after the next delay of the retry schedule
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

impl Snooze {
    /// Delivers the timer again after `delay`, counted by the wall clock from the end of the attempt, give or take two
    /// milliseconds: for example while the shop is closed. A delay longer than a year counts as a year.
    ///
    /// The attempt neither fails nor succeeds: the next one has the same [number](crate::Delivery::attempt), no
    /// [event](crate::Event) is reported, and there is no limit to how often a timer can be snoozed. Its id, handle, key,
    /// payload and [first due time](crate::Delivery::first_due) stay. A snoozed attempt counts against the rate and the
    /// concurrency of its namespace like any other.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::{Durable, Snooze};
    /// # async fn is_open() -> Result<bool, std::io::Error> { Ok(true) }
    /// # fn example(timers: &Durable) {
    /// timers.handle("collect", |_| async {
    ///     if !is_open().await? {
    ///         return Err(Snooze::after(Duration::from_secs(900)));
    ///     }
    ///     Ok(())
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn after(delay: Duration) -> Failure {
        Failure {
            error: String::new(),
            then: Then::Snooze(delay),
        }
    }
}

impl Dead {
    /// Makes the timer a dead letter with this error: a string, or an error, which is recorded together with its
    /// causes.
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
            Then::Backoff => Ended::Failed(error),
            Then::After(delay) => Ended::Later(error, delay),
            Then::Snooze(delay) => Ended::Snoozed(delay),
            Then::Dead => Ended::Dead(error),
        }
    }
}

/// Same as [`Retry::backoff`].
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
            Then::Backoff => f.debug_tuple("Retry").field(&self.error).finish(),
            Then::After(delay) => f
                .debug_tuple("Retry")
                .field(&self.error)
                .field(&delay)
                .finish(),
            Then::Snooze(delay) => f.debug_tuple("Snooze").field(&delay).finish(),
            Then::Dead => f.debug_tuple("Dead").field(&self.error).finish(),
        }
    }
}
