use std::sync::Arc;

use super::{Durable, Namespace};
use crate::calendar::{Calendar, CalendarInfo};
use crate::engine::calendar::Declared;
use crate::engine::{Answer, namespace_in};
use crate::error::Error;

impl Durable {
    /// Declares a calendar: from now on, each of its occurrences is a timer of its [handler](Calendar::handler), durable and delivered as all timers are.
    ///
    /// A service declares its calendars each time it starts. One that is there already, as it is declared, is left as it is. Another one of this name is
    /// replaced: with the same times, it goes on from where it was; with others, from the present. The calendar is in the file, so it goes on also after a
    /// start that does not declare it, until it is [removed](Durable::remove_calendar).
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
    /// **Each occurrence once.** It becomes a timer at its time, in one commit with a note of how far the calendar has come.
    /// [`Delivery::occurrence`](crate::Delivery::occurrence) says for which time it is. The handler may be called again with the same id, as for each timer.
    ///
    /// **What was missed**, because the service was off or its store refused, is for the [`Misfire`](crate::Misfire) to say. A handler that fails for long holds
    /// up no later occurrence.
    ///
    /// **The clock.** If it is set back by a day or less, the calendar waits until it is where it was. By more, the calendar goes on by the clock as it is: an
    /// occurrence that came by the other clock may come again at its right time, as another timer. A clock that was never set, as one of 1970, has missed
    /// nothing once it is set.
    ///
    /// **The zone's rules** are read at the opening and by a declaration. If they have changed, the calendar goes by the new ones. No time of the wall clock
    /// comes twice then; one that the new rules have moved into the past does not come.
    ///
    /// # Errors
    ///
    /// [`Error::Calendar`], which names the part that is wrong, or an [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, the calendar may be there or not.
    pub async fn calendar(&self, name: &str, calendar: Calendar) -> Result<Declared, Error> {
        let plan = calendar.ready(name).map_err(Error::Calendar)?;
        let name = Arc::from(name);
        let declare = self
            .shared
            .ask(|engine, token| engine.declare_calendar(token, &name, plan));
        match declare.await? {
            Answer::Declared(declared) => Ok(declared),
            other => Err(Error::from_answer(other)),
        }
    }

    /// Removes a calendar, durably: nothing more comes of it. Timers that it has filed stay. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, it may be removed or not.
    pub async fn remove_calendar(&self, name: &str) -> Result<bool, Error> {
        let name = Arc::from(name);
        let remove = self
            .shared
            .ask(|engine, token| engine.remove_calendar(token, &name));
        match remove.await? {
            Answer::Done => Ok(true),
            Answer::NotFound => Ok(false),
            other => Err(Error::from_answer(other)),
        }
    }

    /// All calendars, in order of their names. None once the service has shut down.
    #[must_use]
    pub fn calendars(&self) -> Vec<CalendarInfo> {
        let shown: Vec<_> = self.shared.look(|it| it.engine().calendars().collect());
        shown.into_iter().map(CalendarInfo::new).collect()
    }
}

impl Namespace {
    /// As [`Durable::calendar`], for a [handler](Calendar::handler) of this namespace. The calendar's full name is `namespace/name`: [`Durable::calendars`] has it by
    /// that.
    ///
    /// # Errors
    ///
    /// As [`Durable::calendar`].
    ///
    /// # Cancellation
    ///
    /// As [`Durable::calendar`].
    pub async fn calendar(&self, name: &str, calendar: Calendar) -> Result<Declared, Error> {
        let calendar = calendar.handled_by(|handler| self.full_name(handler));
        self.timers.calendar(&self.full_name(name), calendar).await
    }

    /// As [`Durable::remove_calendar`], for one that was declared by this [`calendar`](Namespace::calendar).
    ///
    /// # Errors
    ///
    /// As [`Durable::remove_calendar`].
    ///
    /// # Cancellation
    ///
    /// As [`Durable::remove_calendar`].
    pub async fn remove_calendar(&self, name: &str) -> Result<bool, Error> {
        self.timers.remove_calendar(&self.full_name(name)).await
    }

    /// As [`Durable::calendars`], those of this namespace, by their full names: `shop/nightly` is one of `shop`.
    ///
    /// A calendar is of the namespace in its own name, and its occurrences are of the one in its handler's. [`Durable::calendar`] can declare a `shop/nightly` for
    /// the handler `bank/mail`: it is listed and removed by `shop`.
    #[must_use]
    pub fn calendars(&self) -> Vec<CalendarInfo> {
        let mut all = self.timers.calendars();
        all.retain(|calendar| namespace_in(&calendar.name) == self.name());
        all
    }
}
