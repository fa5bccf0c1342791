use std::sync::Arc;

use super::{Durable, Namespace};
use crate::calendar::{Calendar, CalendarInfo};
use crate::error::Error;
use waterwheel_durable_core::engine::calendar::Declared;
use waterwheel_durable_core::engine::{Answer, namespace_in};

impl Durable {
    /// Declares a calendar: from now on, each of its occurrences becomes a durable timer of its
    /// [handler](Calendar::handler).
    ///
    /// A service declares its calendars each time it starts. If an identical calendar exists, nothing changes. If
    /// another calendar has this name, it is replaced: with the same times, the new one continues from where the old
    /// one was; with different times, it starts from now. Calendars are stored in the file. A calendar therefore
    /// continues even if it is not declared at a later start, until it is [removed](Durable::remove_calendar).
    ///
    /// ```
    /// # use waterwheel_durable::{Calendar, Durable, Error};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// timers.handle("nightly", |delivery| async move {
    ///     println!("the report of {:?}", delivery.occurrence());
    ///     Ok(())
    /// });
    /// timers.calendar("nightly", Calendar::cron("0 3 * * *").zone("Europe/Berlin")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// **Each occurrence once.** An occurrence becomes a timer at its time, in the same commit that records the
    /// progress of the calendar. [`Delivery::occurrence`](crate::Delivery::occurrence) returns its time. As with any
    /// timer, the handler may be called again with the same id.
    ///
    /// **Missed occurrences**, because the service was down or its store refused, are handled according to
    /// [`Misfire`](crate::Misfire). A handler that keeps failing delays no later occurrence.
    ///
    /// **Clock changes.** If the clock is set back by up to a day, the calendar waits until the clock is where it was.
    /// If it is set back further, the calendar follows the new time: an occurrence that came by the old time may come
    /// again at its correct time, as another timer. A clock that starts at a wrong time such as 1970 and is set later
    /// causes no missed occurrences.
    ///
    /// **Time zone rules** are read when the store is opened and when a calendar is declared. If they have changed, the
    /// calendar uses the new rules. No time on the wall clock occurs twice because of that, and a time that the new
    /// rules have moved into the past does not occur.
    ///
    /// # Errors
    ///
    /// [`Error::Calendar`], which names the invalid field, or an [`Error`] of the store, or of a shutdown: [what to
    /// do](Error#what-to-do).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the calendar may or may not be declared.
    pub async fn calendar(&self, name: &str, calendar: Calendar) -> Result<Declared, Error> {
        let plan = calendar.ready(name).map_err(Error::Calendar)?;
        let name = Arc::from(name);
        let declare = self
            .shared
            .request(|engine, token| engine.handle_calendar(token, &name, Some(plan)));
        match declare.await? {
            Answer::Declared(declared) => Ok(declared),
            other => Err(Error::from_answer(other)),
        }
    }

    /// Removes a calendar, durably: it produces no further timers. The timers that it has already produced remain.
    /// Returns whether it existed.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the calendar may or may not be removed.
    pub async fn remove_calendar(&self, name: &str) -> Result<bool, Error> {
        let name = Arc::from(name);
        let remove = self
            .shared
            .request(|engine, token| engine.handle_calendar(token, &name, None));
        match remove.await? {
            Answer::Done => Ok(true),
            Answer::NotFound => Ok(false),
            other => Err(Error::from_answer(other)),
        }
    }

    /// Returns all calendars, in order of their names. Empty after the service has shut down.
    #[must_use]
    pub fn calendars(&self) -> Vec<CalendarInfo> {
        let shown: Vec<_> = self.shared.inspect(|it| it.engine().calendars().collect());
        shown.into_iter().map(CalendarInfo::new).collect()
    }
}

impl Namespace {
    /// Same as [`Durable::calendar`], for a [handler](Calendar::handler) of this namespace. The full name of the
    /// calendar is `namespace/name`, which is how [`Durable::calendars`] lists it.
    ///
    /// # Errors
    ///
    /// Same as [`Durable::calendar`].
    ///
    /// # Cancel safety
    ///
    /// Same as [`Durable::calendar`].
    pub async fn calendar(&self, name: &str, calendar: Calendar) -> Result<Declared, Error> {
        let calendar = calendar.handled_by(|handler| self.full_name(handler));
        self.timers.calendar(&self.full_name(name), calendar).await
    }

    /// Same as [`Durable::remove_calendar`], for a calendar that was declared with [`calendar`](Namespace::calendar).
    ///
    /// # Errors
    ///
    /// Same as [`Durable::remove_calendar`].
    ///
    /// # Cancel safety
    ///
    /// Same as [`Durable::remove_calendar`].
    pub async fn remove_calendar(&self, name: &str) -> Result<bool, Error> {
        self.timers.remove_calendar(&self.full_name(name)).await
    }

    /// Returns the calendars of this namespace with their full names, for example `shop/nightly`. See
    /// [`Durable::calendars`].
    ///
    /// A calendar belongs to the namespace in its own name, and its occurrences to the namespace in the name of its
    /// handler. [`Durable::calendar`] can declare a calendar `shop/nightly` for the handler `bank/mail`: it is listed
    /// and removed by `shop`.
    #[must_use]
    pub fn calendars(&self) -> Vec<CalendarInfo> {
        let mut all = self.timers.calendars();
        all.retain(|calendar| namespace_in(&calendar.name) == self.name());
        all
    }
}
