use std::error::Error;
use std::fmt;

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
    is_dead: bool,
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
        Failure {
            error: with_causes(&*error.into()),
            is_dead: false,
        }
    }
}

impl Dead {
    /// Makes the timer a dead letter, with this error: a text, or an error, which is kept with its causes.
    #[must_use]
    pub fn because(error: impl Into<Box<dyn Error + Send + Sync>>) -> Failure {
        Failure {
            error: with_causes(&*error.into()),
            is_dead: true,
        }
    }
}

impl Failure {
    pub(crate) fn into_ended(self) -> Ended {
        match self.is_dead {
            true => Ended::Dead(self.error.into()),
            false => Ended::Failed(self.error.into()),
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
        let name = if self.is_dead { "Dead" } else { "Retry" };
        f.debug_tuple(name).field(&self.error).finish()
    }
}
