//! Lists, counts and cancels pending timers.

use std::sync::Arc;

use waterwheel_durable_core::engine::namespace_in;
use waterwheel_durable_core::store::{Counts, PendingCursor, Row, Scope, Store, StoreError};

use super::Durable;
use crate::answer::CancelledTimers;
use crate::error::Error;
use crate::new_timer::check_name;
use crate::pending_timer::{PendingPage, PendingTimer};

/// The maximum number of timers, and the approximate size of those that are read in one call of the store.
const READ_AT_A_TIME: usize = 256;
const BYTES_AT_A_TIME: usize = 4 << 20;

impl Durable {
    /// Returns at most `limit` pending timers, starting after `after`: `None` for the first page, and
    /// [`next`](PendingPage::next) of the previous page.
    ///
    /// Timers are listed in the order of the buckets in which they are stored. Timers of the next minutes are therefore
    /// in order of due time, to the second. Those further ahead are in order of the minute, hour, day or 32 days in
    /// which they are due, and within that in order of their ids. A timer may be listed twice if it moves to a finer
    /// bucket while pages are read, and a timer that is rescheduled or retried meanwhile may be listed twice or not at
    /// all.
    ///
    /// A page is held in memory with its payloads, so a few hundred is a good size. It is read a few megabytes at a
    /// time, and commits proceed in between. A page of all handlers takes the same time however many timers are pending.
    /// For one handler or namespace, the timers of others in the same minutes, hours, days and months are skipped, a few
    /// microseconds each. A `limit` of 0 counts as 1.
    ///
    /// ```
    /// # use waterwheel_durable::{Durable, Error, Scope};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// let mut page = timers.pending(Scope::Namespace("shop"), None, 100).await?;
    /// loop {
    ///     for timer in &page.timers {
    ///         println!("{} {} {:?}", timer.id(), timer.handler(), timer.due());
    ///     }
    ///     match page.next {
    ///         Some(next) => page = timers.pending(Scope::Namespace("shop"), Some(next), 100).await?,
    ///         None => break,
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::UnknownNamespace`], or an [`Error`] of the store, or of a shutdown: [what to
    /// do](Error#what-to-do).
    pub async fn pending(
        &self,
        scope: Scope<'_>,
        mut after: Option<PendingCursor>,
        limit: usize,
    ) -> Result<PendingPage, Error> {
        let scope = self.selected(scope)?;
        let (limit, mut timers) = (limit.max(1), Vec::new());
        while timers.len() < limit {
            let scope = scope.clone();
            let left = limit - timers.len();
            let read = move |store: &mut dyn Store| read(store, scope.get(), after, left);
            let (rows, next) = self.shared.read(read).await?;
            timers.extend(rows.into_iter().map(PendingTimer::new));
            after = next;
            if after.is_none() {
                break;
            }
        }
        let next = after;
        Ok(PendingPage { timers, next })
    }

    /// Returns how many timers are pending, by handler and the [minute or longer bucket](crate::store::Bucket) in which
    /// they are due, and how many dead letters there are, by handler and [kind of error](crate::DeadCount::kind). The
    /// store keeps these counts up to date, so reading them takes no longer when there are millions of timers. Errors
    /// whose first lines differ, for example by an id, are counted one by one.
    ///
    /// ```
    /// # use waterwheel_durable::{Durable, Error};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// let counts = timers.counts().await?;
    /// let close = counts.pending.iter().filter(|it| &*it.handler == "shop/close");
    /// println!("{} timers of shop/close", close.map(|it| it.count).sum::<u64>());
    /// for it in &counts.dead {
    ///     println!("{} dead letters of {}: {}", it.count, it.handler, it.error);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    pub async fn counts(&self) -> Result<Counts, Error> {
        self.shared.read(|store| store.counts()).await
    }

    /// Cancels all pending timers of a handler, of a namespace, or all there are, durably.
    ///
    /// Each of them is cancelled as by [`Durable::cancel`], a thousand at a time, and commits of other callers proceed
    /// in between. A timer that is inserted, redriven, rescheduled or retried while this runs may or may not be
    /// cancelled. [`Namespace::cancel_tagged`](crate::Namespace::cancel_tagged) cancels timers by their tag.
    ///
    /// ```
    /// # use waterwheel_durable::{Durable, Error, Scope};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// let cancelled = timers.cancel_all(Scope::Handler("shop/remind")).await?;
    /// println!("{} reminders cancelled", cancelled.done);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::UnknownNamespace`], or an [`Error`] of the store, or of a shutdown: [what to
    /// do](Error#what-to-do). Some of the timers may have been cancelled: repeat the call.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, some of the timers may be cancelled.
    pub async fn cancel_all(&self, scope: Scope<'_>) -> Result<CancelledTimers, Error> {
        let scope = self.selected(scope)?;
        let mut cancelled = CancelledTimers::default();
        let mut after = None;
        loop {
            let scope = scope.clone();
            let read = move |store: &mut dyn Store| {
                store.handles(scope.get(), after, super::bulk::AT_A_TIME)
            };
            let page = self.shared.read(read).await?;
            let handles = page.handles.into_iter().map(|(_, handle)| handle);
            super::bulk::cancel(self, handles.collect(), &mut cancelled).await?;
            after = page.next;
            if after.is_none() {
                return Ok(cancelled);
            }
        }
    }

    /// Checks the names in a scope.
    fn selected(&self, scope: Scope<'_>) -> Result<Selected, Error> {
        Ok(match scope {
            Scope::All => Selected::All,
            Scope::Handler(name) => {
                check_name(name)?;
                self.namespace(namespace_in(name))?;
                Selected::Handler(name.into())
            }
            Scope::Namespace(name) => {
                self.namespace(name)?;
                Selected::Namespace(name.into())
            }
        })
    }
}

/// A scope that owns its name.
#[derive(Debug, Clone)]
enum Selected {
    All,
    Handler(Arc<str>),
    Namespace(Arc<str>),
}

impl Selected {
    fn get(&self) -> Scope<'_> {
        match self {
            Selected::All => Scope::All,
            Selected::Handler(name) => Scope::Handler(name),
            Selected::Namespace(name) => Scope::Namespace(name),
        }
    }
}

/// Reads the first timers after a position. Returns the position after the last one that was read.
fn read(
    store: &mut dyn Store,
    scope: Scope<'_>,
    after: Option<PendingCursor>,
    limit: usize,
) -> Result<(Vec<Row>, Option<PendingCursor>), StoreError> {
    let page = store.handles(scope, after, limit.min(READ_AT_A_TIME))?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for (cursor, handle) in page.handles {
        if let Some(row) = store.get(&handle)? {
            bytes += row.bytes();
            rows.push(row);
        }
        if bytes >= BYTES_AT_A_TIME {
            return Ok((rows, Some(cursor)));
        }
    }
    Ok((rows, page.next))
}
