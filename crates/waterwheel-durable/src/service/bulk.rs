//! Cancels timers by their tag.

use waterwheel_durable_core::engine::{DEFAULT, namespace_in};
use waterwheel_durable_core::store::{Handle, Id, Store};

use super::{Durable, Namespace};
use crate::answer::{Cancelled, CancelledTimers};
use crate::error::Error;

/// The number of timers that are read and cancelled at a time. Commits of other callers proceed in between.
pub(super) const AT_A_TIME: usize = 1_000;

impl Durable {
    /// Same as [`Namespace::cancel_tagged`], for the namespace `default`.
    ///
    /// # Errors
    ///
    /// Same as [`Namespace::cancel_tagged`].
    ///
    /// # Cancel safety
    ///
    /// Same as [`Namespace::cancel_tagged`].
    pub async fn cancel_tagged(&self, tag: &str) -> Result<CancelledTimers, Error> {
        cancel_tagged(self, DEFAULT, tag).await
    }
}

impl Namespace {
    /// Cancels all pending timers of this namespace that have this [tag](crate::NewTimer::tag), durably, whatever their
    /// handlers: for example everything that is planned for an order.
    ///
    /// Each of them is cancelled as by [`Durable::cancel`]. A timer that is inserted or redriven while this runs may or
    /// may not be cancelled. Timers are found through an index, and cancelled a thousand at a time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::{Error, Namespace};
    /// # async fn example(shop: &Namespace) -> Result<(), Error> {
    /// shop.after("remind", Duration::from_secs(600)).tag("order-17").insert().await?;
    /// shop.after("close", Duration::from_secs(1_800)).tag("order-17").insert().await?;
    /// // The order was paid.
    /// let cancelled = shop.cancel_tagged("order-17").await?;
    /// println!("{} cancelled, {} came too late", cancelled.done, cancelled.already_fired);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do). Some of the timers may have been cancelled:
    /// repeat the call.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, some of the timers may be cancelled.
    pub async fn cancel_tagged(&self, tag: &str) -> Result<CancelledTimers, Error> {
        cancel_tagged(&self.timers, &self.name, tag).await
    }
}

async fn cancel_tagged(
    timers: &Durable,
    namespace: &str,
    tag: &str,
) -> Result<CancelledTimers, Error> {
    let mut all = CancelledTimers::default();
    let mut after = Id::NONE;
    loop {
        let tag = tag.to_owned();
        let read = move |store: &mut dyn Store| store.tagged(&tag, after, AT_A_TIME);
        let page: Vec<Handle> = timers.shared.read(read).await?;
        let is_last = page.len() < AT_A_TIME;
        after = page.last().map_or(after, |last| last.id);
        let own = |handle: &Handle| namespace_in(&handle.handler) == namespace;
        cancel(timers, page.into_iter().filter(own).collect(), &mut all).await?;
        if is_last {
            return Ok(all);
        }
    }
}

/// Cancels these timers, and counts the results.
pub(super) async fn cancel(
    timers: &Durable,
    handles: Vec<Handle>,
    cancelled: &mut CancelledTimers,
) -> Result<(), Error> {
    for answer in timers.shared.cancel_all(handles)? {
        let answer = answer.await.map_err(|_| Error::unanswered())?;
        match Cancelled::from_answer(answer)? {
            Cancelled::Done => cancelled.done += 1,
            Cancelled::AlreadyFired => cancelled.already_fired += 1,
            // It has been settled or cancelled meanwhile.
            Cancelled::NotFound => {}
        }
    }
    Ok(())
}
