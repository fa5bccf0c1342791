use std::fmt;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use waterwheel_durable_core::store::{Handle, Id, Store};

use super::Namespace;
use crate::answer::{Cancelled, Erased, Redriven, Rescheduled};
use crate::error::Error;
use crate::metrics::Metrics;
use crate::new_timer::{When, check_name, check_namespace};
use crate::options::{Drain, Stopped};
use crate::pending_timer::PendingTimer;
use waterwheel_durable_core::engine::{Answer, Engine, Token, namespace_in};
use waterwheel_durable_core::policy::Policy;

use crate::shell::shared::Shared;
use crate::shell::shared::View;

/// A service of durable timers: see the [crate documentation](crate).
///
/// This is a cheap handle: clones refer to the same service. When the last one is dropped, no further delivery starts,
/// and the store is closed when the running ones have ended. A handler that captures a clone in its closure keeps the
/// service alive until [`shutdown`](Durable::shutdown) or the end of the runtime: use [`Delivery::timers`](crate::Delivery::timers) there
/// instead, which does not.
///
/// Deliveries are tasks on the runtime that the service was opened on. When that runtime ends, the store is closed
/// after the work that was already requested, all further calls fail with [`Error::ShuttingDown`], and an
/// [`Event::RuntimeEnded`](crate::Event::RuntimeEnded) is reported. Calls may come from any runtime, or from outside of
/// one.
pub struct Durable {
    pub(crate) shared: Arc<Shared>,
    /// Whether this handle keeps the service alive.
    is_counted: bool,
}

impl Durable {
    pub(crate) fn of(shared: &Arc<Shared>) -> Durable {
        shared.enter();
        Durable {
            shared: Arc::clone(shared),
            is_counted: true,
        }
    }

    /// The handle of a delivery, which does not keep the service alive, however many deliveries are running.
    pub(crate) fn of_delivery(shared: &Arc<Shared>) -> Durable {
        Durable {
            shared: Arc::clone(shared),
            is_counted: false,
        }
    }

    /// Creates a namespace with this policy, durably. An existing namespace keeps its stored policy; use
    /// [`Namespace::set_policy`] to change it. If several calls run concurrently, the policy of the last one applies.
    ///
    /// The namespace `default` always exists. It contains the handlers whose names have no `/`. The first call with its
    /// name sets its policy.
    ///
    /// A policy that is changed in the code therefore has no effect when the program is started again. If the code
    /// should override what was set at run time:
    ///
    /// ```
    /// # use waterwheel_durable::{Durable, Error, Policy, Rate};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// let policy = Policy::default().rate(Rate::per_second(100));
    /// let bank = timers.create_namespace("bank", policy.clone()).await?;
    /// // Keeps a policy that this version cannot read because a newer one has written it.
    /// if bank.policy().is_ok_and(|held| held != policy) {
    ///     bank.set_policy(policy).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NamespaceName`], [`Error::Policy`], or an [`Error`] of the store, or of a shutdown: [what to
    /// do](Error#what-to-do).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the namespace may or may not be created.
    pub async fn create_namespace(&self, name: &str, policy: Policy) -> Result<Namespace, Error> {
        check_namespace(name)?;
        policy.check()?;
        let name: Arc<str> = name.into();
        let answer = self
            .request(|engine, token| engine.handle_policy(token, &name, &policy, true))
            .await?;
        match answer {
            Answer::Done => Ok(Namespace::new(self.clone(), name)),
            other => Err(Error::from_answer(other)),
        }
    }

    /// Returns a namespace that was created before, by this process or an earlier one.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNamespace`].
    pub fn namespace(&self, name: &str) -> Result<Namespace, Error> {
        let is_known = |view: &View<'_>| {
            view.engine()
                .namespaces()
                .get(name)
                .is_some_and(|it| it.is_known)
        };
        match self.shared.inspect(is_known) {
            true => Ok(Namespace::new(self.clone(), name.into())),
            false => Err(Error::UnknownNamespace { name: name.into() }),
        }
    }

    /// Reads a timer by its handle: when it is due, its payload, its failed attempts. Returns `None` if it is not
    /// pending: it was settled or cancelled, or is a [dead letter](Durable::dead_letters).
    ///
    /// All calls that have resolved before are taken into account. A timer that is with its handler is pending until
    /// it is settled.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    pub async fn get(&self, timer: impl AsRef<Handle>) -> Result<Option<PendingTimer>, Error> {
        let handle = timer.as_ref().clone();
        let read = move |store: &mut dyn Store| store.get(&handle);
        let found = self.shared.read(read).await?;
        Ok(found.map(PendingTimer::new))
    }

    /// Finds the timer of a handler that has this [key](crate::Insert::key), to read, cancel or reschedule it:
    /// `find("shop/close", "order-17")`. Writes nothing.
    ///
    /// Returns `None` if there is no timer to cancel: it was never inserted, was settled or cancelled, or is a
    /// dead letter. This also applies while the [retention](crate::Policy::retention) of the namespace keeps the key taken.
    ///
    /// All calls that have resolved before are taken into account. The timer may be delivered just as this resolves;
    /// cancelling it then returns [`AlreadyFired`](crate::Cancelled::AlreadyFired) or
    /// [`NotFound`](crate::Cancelled::NotFound). The cost is one lookup in the index of the keys, however many there
    /// are, and one of the timer.
    ///
    /// ```
    /// # use waterwheel_durable::{Durable, Error};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// if let Some(timer) = timers.find("shop/close", "order-17").await? {
    ///     println!("would have been due at {:?}", timer.due());
    ///     timers.cancel(timer).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::UnknownNamespace`], or an [`Error`] of the store, or of a shutdown: [what to
    /// do](Error#what-to-do).
    pub async fn find(
        &self,
        handler: &str,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<PendingTimer>, Error> {
        check_name(handler)?;
        self.namespace(namespace_in(handler))?;
        let handler: Arc<str> = handler.into();
        let key: Arc<[u8]> = key.as_ref().into();
        let read = move |store: &mut dyn Store| match store.find(&handler, &key)? {
            Some(handle) => store.get(&handle),
            None => Ok(None),
        };
        let found = self.shared.read(read).await?;
        Ok(found.map(PendingTimer::new))
    }

    /// Cancels a timer, durably.
    ///
    /// After [`Done`](Cancelled::Done) the timer is not delivered (again): a timer that waits for a retry is cancelled
    /// like any other. If its handler is running, the result is [`AlreadyFired`](Cancelled::AlreadyFired), and nothing
    /// changes: the attempt continues and, if it fails, is retried. To stop that, cancel the timer again later.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the timer may or may not be cancelled.
    pub async fn cancel(&self, timer: impl AsRef<Handle>) -> Result<Cancelled, Error> {
        let handle = timer.as_ref().clone();
        let answer = self
            .request(|engine, token| engine.handle_cancel(token, handle))
            .await?;
        Cancelled::from_answer(answer)
    }

    /// Deletes everything that is stored under a [key](crate::Insert::key) of this handler, durably: the pending timer is
    /// cancelled, dead letters with the key are deleted, and an [archived](crate::Policy::retention) record loses it.
    ///
    /// A timer that is with its handler stays: [`Erased::pending`] is then [`AlreadyFired`](Cancelled::AlreadyFired), and
    /// the call should be repeated once its handler has ended. A timer that was [redriven](Durable::redrive) has no key,
    /// and is not found. The bytes may stay in free pages of the file until these are used again, and in backups.
    ///
    /// If the key is archived, the archive of the handler is searched for its record, in one commit. The search reads one
    /// block for each commit that has settled timers of this handler, so in a large archive it can take seconds.
    ///
    /// ```
    /// # use waterwheel_durable::{Cancelled, Durable, Error};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// let erased = timers.erase("shop/close", "customer-17").await?;
    /// if erased.pending == Cancelled::AlreadyFired {
    ///     // Repeat it later.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::UnknownNamespace`], or an [`Error`] of the store, or of a shutdown: [what to
    /// do](Error#what-to-do). A part may have been deleted: repeat the call.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, none, a part or all of it may be deleted.
    pub async fn erase(&self, handler: &str, key: impl AsRef<[u8]>) -> Result<Erased, Error> {
        let key: Arc<[u8]> = key.as_ref().into();
        let pending = match self.find(handler, &key).await? {
            Some(timer) => self.cancel(timer).await?,
            None => Cancelled::NotFound,
        };
        let handler: Arc<str> = handler.into();
        let answer = self
            .request(|engine, token| engine.handle_erase(token, &handler, &key))
            .await?;
        match answer {
            Answer::Erased(erased) => Ok(Erased {
                pending,
                dead_letters: erased.dead_letters,
                is_archived: erased.is_archived,
            }),
            other => Err(Error::from_answer(other)),
        }
    }

    /// Moves a timer to another due time, durably. Its id, handle, key, payload and number of failures do not change. A
    /// time in the past is due at once; `when` is rounded up to a millisecond.
    ///
    /// # Errors
    ///
    /// [`Error::DueOutOfRange`], or an [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the timer may or may not be rescheduled.
    pub async fn reschedule(
        &self,
        timer: impl AsRef<Handle>,
        when: SystemTime,
    ) -> Result<Rescheduled, Error> {
        let handle = timer.as_ref().clone();
        let due = When::At(when).due(self.shared.clock.wall())?;
        let answer = self
            .request(|engine, token| engine.handle_reschedule(token, handle, due))
            .await?;
        Rescheduled::from_answer(answer)
    }

    /// Makes a dead letter a pending timer again, durably. It is due now, and its attempts are counted from 1 again. It
    /// has no key, because another timer may have it by now. It keeps its id, and its handle is valid again.
    ///
    /// ```
    /// # use waterwheel_durable::{Durable, Error, Redriven};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// // All dead letters of a handler that was fixed.
    /// let mut after = None;
    /// loop {
    ///     let page = timers.dead_letters(after, 100).await?;
    ///     let Some(last) = page.last() else { break };
    ///     after = Some(last.id());
    ///     for dead in page.iter().filter(|dead| dead.handler() == "bank/notify") {
    ///         match timers.redrive(dead.id()).await? {
    ///             Redriven::Done => {} // due now
    ///             Redriven::NotFound => {} // it was redriven or discarded meanwhile, from the command line
    ///         }
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the dead letter may or may not be redriven.
    pub async fn redrive(&self, dead: Id) -> Result<Redriven, Error> {
        let answer = self
            .request(|engine, token| engine.handle_redrive(token, dead))
            .await?;
        Redriven::from_answer(answer)
    }

    /// Deletes a dead letter, durably. Returns whether it existed. Nothing else deletes dead letters: they stay until
    /// they are redriven or discarded.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the dead letter may or may not be deleted.
    pub async fn discard(&self, dead: Id) -> Result<bool, Error> {
        let answer = self.request(|engine, token| engine.handle_discard(token, dead));
        match answer.await? {
            Answer::Done => Ok(true),
            Answer::NotFound => Ok(false),
            other => Err(Error::from_answer(other)),
        }
    }

    /// Returns a snapshot of the metrics.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.shared.inspect(Metrics::new)
    }

    /// Stops deliveries and accepts no further calls, waits for running handlers as long as `drain` allows, and closes
    /// the store.
    ///
    /// A store that other processes can take over is handed over at once, while handlers still run. The next process counts
    /// them against its limits, and settles or retries their timers once they have ended.
    ///
    /// A handler that has not ended by then is dropped at its next `await`, and its timer is delivered again when the
    /// store is next opened, or by the process that has taken over. When this resolves, the lock on the file is released. `shutdown` can be called more than
    /// once, also concurrently: each call resolves when the store is closed, and the shortest limit counts.
    ///
    /// The limit holds even if handlers block all threads of the runtime, or if nothing drives the runtime. A store
    /// call in progress is waited for, and so is the last sync of the file, which may take long on a slow disk. Work
    /// that the store refuses to write delays nothing: see [`Stopped::unsettled`].
    ///
    /// A handler that awaits `shutdown` waits for itself until the limit, and is then dropped: spawn a task for it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::{Drain, Durable, Error};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// let stopped = timers.shutdown(Drain::within(Duration::from_secs(20))).await?;
    /// if stopped.abandoned > 0 {
    ///     eprintln!("{} deliveries were aborted, and will be repeated after the restart", stopped.abandoned);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if the store has failed. It is closed even then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the service has stopped, and the store is closed when the
    /// handlers have ended or the limit has passed.
    pub async fn shutdown(&self, drain: Drain) -> Result<Stopped, Error> {
        let shared = &self.shared;
        shared.stop();
        shared.close_when_idle();
        // `None` if it is later than any time that the clock can show.
        if let Some(at) = Instant::now().checked_add(drain.limit()) {
            shared.queue.abandon_at(at);
        }
        shared.until_closed().await;
        let (left, failure) = shared.inspect(|it| (it.left(), it.failure()));
        match failure {
            Some(error) => Err(Error::Failed(error)),
            None => Ok(Stopped {
                abandoned: left.abandoned,
                unsettled: left.unsettled,
            }),
        }
    }

    async fn request(&self, request: impl FnOnce(&mut Engine, Token)) -> Result<Answer, Error> {
        self.shared.request(request).await
    }
}

impl Clone for Durable {
    fn clone(&self) -> Durable {
        Durable::of(&self.shared)
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        if self.is_counted {
            self.shared.leave();
        }
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durable")
            .field("metrics", &self.metrics())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::time::Duration;

    use tokio::sync::oneshot;
    use waterwheel_durable_core::store::{MemoryStore, Op, Outcome, StoreError, forward};

    use super::*;
    use crate::Event;

    /// A store that another process takes over once it is given up.
    struct Shared {
        store: MemoryStore,
        given_up: Option<oneshot::Sender<()>>,
    }

    impl Store for Shared {
        forward!(it => it.store; load_level begin maintain load first_second first_bucket handlers dead find get handles counts rest);

        fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
            self.store.commit(number, steps)
        }

        fn commands_every(&self) -> Option<Duration> {
            Some(Duration::from_millis(10))
        }

        fn give_up(&mut self) {
            drop(self.given_up.take());
        }
    }

    #[tokio::test]
    async fn an_engine_that_panics_leaves_no_caller_waiting() {
        let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
        let builder = Durable::builder().on_event(move |event| drop(sender.send(event.clone())));
        let (sender, given_up) = oneshot::channel();
        let store = Shared {
            store: MemoryStore::new(),
            given_up: Some(sender),
        };
        let timers = builder.store(store).open().await.unwrap();
        let shared = Arc::clone(&timers.shared);
        // This request waits for an answer that never comes.
        let waiting = shared.submit(None, |_, _| {}).unwrap();
        let bug = || shared.submit(None, |_, _| resume_unwind(Box::new("a bug")));
        assert!(catch_unwind(AssertUnwindSafe(bug)).is_err());
        assert!(matches!(waiting.await, Ok(Answer::Unknown(_))));
        let event = events.recv().await;
        assert!(matches!(event, Some(Event::Failed { .. })), "{event:?}");
        let given_up = tokio::time::timeout(Duration::from_secs(60), given_up);
        assert!(given_up.await.unwrap().is_err());
        let due = SystemTime::now();
        let late = timers.at("mail", due).insert().await;
        assert!(matches!(late, Err(Error::Failed(_))), "{late:?}");
        let stopped = timers.shutdown(Drain::within(Duration::MAX)).await;
        assert!(matches!(stopped, Err(Error::Failed(_))), "{stopped:?}");
    }
}
