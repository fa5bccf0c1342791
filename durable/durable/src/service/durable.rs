use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use waterwheel_store::{Handle, Id};

use super::{Builder, Delivery, Insert, Namespace};
use crate::answer::{Cancelled, Inserted, Redriven, Rescheduled};
use crate::engine::{Answer, Ended, Engine, Token, namespace_in};
use crate::error::Error;
use crate::failure::Failure;
use crate::new_timer::{NewTimer, When, check_name, check_namespace};
use crate::options::{Drain, HandlerOptions, Stopped};
use crate::policy::Policy;
use crate::seen::Metrics;
use crate::shell::handlers::Handler;
use crate::shell::shared::Shared;
use crate::shell::state::Look;

/// How many timers of a batch are inserted under one lock.
const CHUNK: usize = 8_192;

/// Durable timers: see the [crate](crate).
///
/// A cheap handle: clones are the same service. When the last one is dropped, no delivery begins any more; the store is closed when those under way have
/// ended. A handler that keeps a clone in its closure keeps the service alive until [`shutdown`](Durable::shutdown), or the end of the runtime: use
/// [`Delivery::timers`] there, which does not.
///
/// Deliveries are tasks of the runtime that the service was opened on. When that runtime ends, the store is closed after what it was asked by then, and each
/// call fails with [`Error::ShuttingDown`]; an [`Event::RuntimeEnded`](crate::Event::RuntimeEnded) says so. Calls may come from any runtime, or from none.
pub struct Durable {
    pub(crate) shared: Arc<Shared>,
    /// Whether it keeps the service alive.
    is_counted: bool,
}

impl Durable {
    /// Opens a file, and creates it if it is not there. Its folder must be there. The same as `Durable::builder().open(path)`.
    ///
    /// # Errors
    ///
    /// [`OpenError`](crate::OpenError): another process has the file open, it is no file of ours, damaged, or of a newer version.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, or in one without `enable_time`.
    #[cfg(feature = "sqlite")]
    pub async fn open(path: impl AsRef<std::path::Path>) -> Result<Durable, crate::OpenError> {
        Durable::builder().open(path).await
    }

    /// Settings, and then a service.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn of(shared: &Arc<Shared>) -> Durable {
        shared.enter();
        Durable {
            shared: Arc::clone(shared),
            is_counted: true,
        }
    }

    /// The handle of a delivery: a service that nothing else refers to ends, however many deliveries go on.
    pub(crate) fn of_delivery(shared: &Arc<Shared>) -> Durable {
        Durable {
            shared: Arc::clone(shared),
            is_counted: false,
        }
    }

    /// Timers of this name are delivered to this function from now on, with the options of [`HandlerOptions::default`].
    ///
    /// `Ok` settles the timer. An `Err`, a panic, and an attempt that takes too long are a [`Failure`]. Each attempt is a task's, on the runtime that the service
    /// was opened on. What is due by now, and had no handler, is delivered at once. After a shutdown, nothing is delivered.
    ///
    /// An attempt may take as long as it likes, and 64 of a handler go on at a time: if they hang, the handler stands still. A handler that calls another service
    /// should have an [attempt limit](HandlerOptions::attempt_limit), by [`handle_with`](Durable::handle_with).
    ///
    /// ```
    /// # use waterwheel_durable::{Dead, Durable, Retry};
    /// # async fn charge(order: u64) -> Result<(), std::io::Error> { Ok(()) }
    /// # fn example(timers: &Durable) {
    /// timers.handle("charge", |delivery| async move {
    ///     let order: u64 = delivery.json()?; // an error is tried again
    ///     if delivery.attempt() > 5 {
    ///         return Err(Dead::because("five attempts have failed")); // this one is not
    ///     }
    ///     charge(order).await.map_err(Retry::backoff)
    /// });
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If there is a handler of this name, the name is empty, longer than [`NAME_LIMIT`](crate::NAME_LIMIT) bytes, or has more than one `/`, or the namespace
    /// before its `/` was not [created](Durable::create_namespace).
    #[track_caller]
    pub fn handle<F, A>(&self, name: &str, handler: F)
    where
        F: Fn(Delivery) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.handle_with(name, HandlerOptions::default(), handler);
    }

    /// The same, with options.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::{Durable, HandlerOptions, Retry};
    /// # async fn notify(order: u64) -> Result<(), std::io::Error> { Ok(()) }
    /// # fn example(timers: &Durable) {
    /// let options = HandlerOptions::default().concurrency(16).attempt_limit(Duration::from_secs(30));
    /// timers.handle_with("notify", options, |delivery| async move {
    ///     notify(delivery.json()?).await.map_err(Retry::backoff)
    /// });
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// As [`handle`](Durable::handle), and for an [attempt limit](HandlerOptions::attempt_limit) of zero.
    #[track_caller]
    pub fn handle_with<F, A>(&self, name: &str, options: HandlerOptions, handler: F)
    where
        F: Fn(Delivery) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        if let Err(error) = check_name(name) {
            panic!("{error}");
        }
        assert!(
            options.attempt_limit != Some(Duration::ZERO),
            "the attempt limit of the handler {name:?} is zero, so each attempt that waits for something would fail: leave it out, or make it longer"
        );
        let handler = Handler {
            name: name.into(),
            attempt_limit: options.attempt_limit,
            function: Box::new(move |row, wall, shared| {
                let attempt = handler(Delivery::new(row, wall, Durable::of_delivery(shared)));
                Box::pin(async move {
                    match attempt.await {
                        Ok(()) => Ended::Well,
                        Err(failure) => failure.into_ended(),
                    }
                })
            }),
        };
        if let Err(error) = self.namespace(namespace_in(name)) {
            panic!("{error}");
        }
        let is_new = self.shared.handle(handler, options.concurrency);
        assert!(is_new, "there is a handler named {name:?} already");
    }

    /// Creates a namespace with this policy, durably. One that was created before keeps its own policy: [`Namespace::set_policy`] changes that. Of several calls at the same
    /// time, the last one's policy holds.
    ///
    /// There is always a namespace `default`, of the handlers whose name has no `/`. The first call with its name gives it a policy.
    ///
    /// So a policy that is changed in a program does nothing by itself at the next start. Where the program is to decide, and not what was set at run time:
    ///
    /// ```
    /// # use waterwheel_durable::{Durable, Error, Policy, Rate};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// let policy = Policy::default().rate(Rate::per_second(100));
    /// let bank = timers.create_namespace("bank", policy.clone()).await?;
    /// // Not in the place of one that a newer version has written, and this one cannot read.
    /// if bank.policy().is_ok_and(|held| held != policy) {
    ///     bank.set_policy(policy).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NamespaceName`], [`Error::Policy`], or an [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, the namespace may be there or not.
    pub async fn create_namespace(&self, name: &str, policy: Policy) -> Result<Namespace, Error> {
        check_namespace(name)?;
        policy.check()?;
        let name: Arc<str> = name.into();
        let answer = self
            .ask(|engine, token| engine.set_policy(token, &name, &policy, true))
            .await?;
        match answer {
            Answer::Done => Ok(Namespace::new(self.clone(), name)),
            other => Err(Error::from_answer(other)),
        }
    }

    /// A namespace that was created, by this process or by one before it.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNamespace`].
    pub fn namespace(&self, name: &str) -> Result<Namespace, Error> {
        let is_known =
            |look: &Look<'_>| look.engine().namespace(name).is_some_and(|it| it.is_known);
        match self.shared.look(is_known) {
            true => Ok(Namespace::new(self.clone(), name.into())),
            false => Err(Error::UnknownNamespace { name: name.into() }),
        }
    }

    /// A timer that is delivered to `handler` when the wall clock shows `when`, or later. It is inserted by [`Insert::insert`].
    pub fn at(&self, handler: &str, when: SystemTime) -> Insert<'_> {
        Insert::new(self, NewTimer::at(handler, when))
    }

    /// The same, this long after [`insert`](Insert::insert) is called.
    pub fn after(&self, handler: &str, delay: Duration) -> Insert<'_> {
        Insert::new(self, NewTimer::after(handler, delay))
    }

    pub(crate) async fn insert(&self, timer: NewTimer) -> Result<Inserted, Error> {
        let timer = timer.ready(self.shared.clock.wall())?;
        let answer = self.shared.insert(timer).await?;
        Inserted::from_answer(answer)
    }

    /// Inserts many timers, with few commits: one for 8 192 of them. They are durable when it resolves, and in the order of the batch in what it returns. Two
    /// commits' worth of a batch is with the service at a time, so other callers go on beside it.
    ///
    /// # Errors
    ///
    /// [`Error`], of the first timer that has one. If it is one of the batch's own, such as a name that is too long, or if the batch is beyond a
    /// [quota](crate::Policy::insert_rate), nothing was inserted. If it is the store's, or of a shutdown, some may have been: insert the batch again, with keys.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, the first timers of the batch may be inserted, up to some point, or all or none of them.
    pub async fn insert_many(
        &self,
        batch: impl IntoIterator<Item = NewTimer>,
    ) -> Result<Vec<Inserted>, Error> {
        let wall = self.shared.clock.wall();
        let timers: Result<Vec<_>, _> = batch.into_iter().map(|it| it.ready(wall)).collect();
        let timers = timers?;
        self.shared.charge(&timers)?;
        let mut inserted = Vec::with_capacity(timers.len());
        let mut timers = timers.into_iter().peekable();
        let mut pending = Vec::new();
        loop {
            let chunk = self.shared.intake.part_of_batch(&mut timers, CHUNK);
            let is_over = chunk.is_empty();
            // The next one is with the engine while the one before it is written.
            let next = self.shared.submit_all(chunk).await?;
            for answer in std::mem::replace(&mut pending, next) {
                let answer = answer.await.map_err(|_| Error::unanswered())?;
                inserted.push(Inserted::from_answer(answer)?);
            }
            if is_over {
                return Ok(inserted);
            }
        }
    }

    /// Cancels a timer, durably.
    ///
    /// After [`Done`](Cancelled::Done) it is not delivered, or not again: between two attempts, a timer that waits to be tried again is cancelled like any other.
    /// What is with its handler is [`AlreadyFired`](Cancelled::AlreadyFired), and nothing is changed: it goes on, and if the attempt fails, it is tried again. To
    /// stop that, cancel it again later.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, the timer may be cancelled or not.
    pub async fn cancel(&self, timer: impl AsRef<Handle>) -> Result<Cancelled, Error> {
        let handle = timer.as_ref().clone();
        let answer = self
            .ask(|engine, token| engine.cancel(token, handle))
            .await?;
        Cancelled::from_answer(answer)
    }

    /// Moves a timer to another due time, durably: its id, handle, key, payload and number of failures stay. What is past is delivered at once; `when` is rounded
    /// up to a millisecond.
    ///
    /// # Errors
    ///
    /// [`Error::DueOutOfRange`], or an [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, the timer may have been moved or not.
    pub async fn reschedule(
        &self,
        timer: impl AsRef<Handle>,
        when: SystemTime,
    ) -> Result<Rescheduled, Error> {
        let handle = timer.as_ref().clone();
        let due = When::At(when).due(self.shared.clock.wall())?;
        let answer = self
            .ask(|engine, token| engine.reschedule(token, handle, due))
            .await?;
        Rescheduled::from_answer(answer)
    }

    /// Makes a dead letter a timer again, durably: due now, with its attempts counted from 1 again, and without its key, which another timer may have by now. It
    /// keeps its id, and its handle names it again.
    ///
    /// ```
    /// # use waterwheel_durable::{Durable, Error, Redriven};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// // All of a handler that was mended.
    /// let mut after = None;
    /// loop {
    ///     let page = timers.dead_letters(after, 100).await?;
    ///     let Some(last) = page.last() else { break };
    ///     after = Some(last.id());
    ///     for dead in page.iter().filter(|dead| dead.handler() == "bank/notify") {
    ///         match timers.redrive(dead.id()).await? {
    ///             Redriven::Done => {} // due now
    ///             Redriven::NotFound => {} // the command has redriven or discarded it meanwhile
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
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, it may be a timer or not.
    pub async fn redrive(&self, dead: Id) -> Result<Redriven, Error> {
        let answer = self
            .ask(|engine, token| engine.redrive(token, dead))
            .await?;
        Redriven::from_answer(answer)
    }

    /// Deletes a dead letter, durably. Returns whether there was one. Nothing else deletes dead letters: they stay until they are redriven or discarded.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, it may be deleted or not.
    pub async fn discard(&self, dead: Id) -> Result<bool, Error> {
        let answer = self.ask(|engine, token| engine.discard(token, dead));
        match answer.await? {
            Answer::Done => Ok(true),
            Answer::NotFound => Ok(false),
            other => Err(Error::from_answer(other)),
        }
    }

    /// What goes on at the moment.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.shared.look(Metrics::new)
    }

    /// Begins no delivery and takes nothing new, waits for the handlers that run as long as `drain` says, and closes the store.
    ///
    /// A handler that has not ended by then is dropped at its next `await`, and its timer is delivered again after the next opening. The lock on the file is
    /// free when this resolves. It can be called more than once, also at the same time: each call resolves when the store is closed, and the shortest limit
    /// counts.
    ///
    /// The limit holds also if handlers block all threads of the runtime, or nothing drives it. A call of the store that is under way is waited for, and
    /// so is its last sync of the file, which may take long on a slow disk. What the store refuses to write holds nothing up: see [`Stopped::unsettled`].
    ///
    /// A handler that awaits it waits for itself, until the limit, and is dropped then: spawn a task for it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::{Drain, Durable, Error};
    /// # async fn example(timers: &Durable) -> Result<(), Error> {
    /// let stopped = timers.shutdown(Drain::within(Duration::from_secs(20))).await?;
    /// if stopped.abandoned > 0 {
    ///     eprintln!("{} deliveries were ended, and come again after the start", stopped.abandoned);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if the store has failed. It is closed even so.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, the service has stopped, and the store is closed when the handlers have ended or the limit has passed.
    pub async fn shutdown(&self, drain: Drain) -> Result<Stopped, Error> {
        let shared = &self.shared;
        shared.stop();
        shared.close_when_idle();
        // None: it is later than any time that the clock can show.
        if let Some(at) = Instant::now().checked_add(drain.limit()) {
            shared.queue.abandon_at(at);
        }
        shared.until_closed().await;
        let (left, failure) = shared.look(|it| (it.left(), it.failure()));
        match failure {
            Some(error) => Err(Error::Failed(error)),
            None => Ok(Stopped {
                abandoned: left.abandoned,
                unsettled: left.unsettled,
            }),
        }
    }

    async fn ask(&self, request: impl FnOnce(&mut Engine, Token)) -> Result<Answer, Error> {
        self.shared.ask(request).await
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

    use super::*;
    use crate::Event;

    #[tokio::test]
    async fn an_engine_that_panics_leaves_no_caller_waiting() {
        let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
        let builder = Durable::builder().on_event(move |event| drop(sender.send(event.clone())));
        let store = waterwheel_store::MemoryStore::new();
        let timers = builder.open_store(store).await.unwrap();
        let shared = Arc::clone(&timers.shared);
        // It waits for an answer that never comes.
        let waiting = shared.submit(None, |_, _| {}).unwrap();
        let bug = || shared.submit(None, |_, _| resume_unwind(Box::new("a bug")));
        assert!(catch_unwind(AssertUnwindSafe(bug)).is_err());
        assert!(matches!(waiting.await, Ok(Answer::Unknown(_))));
        let event = events.recv().await;
        assert!(matches!(event, Some(Event::Failed { .. })), "{event:?}");
        let due = SystemTime::now();
        let late = timers.at("mail", due).insert().await;
        assert!(matches!(late, Err(Error::Failed(_))), "{late:?}");
        let stopped = timers.shutdown(Drain::within(Duration::MAX)).await;
        assert!(matches!(stopped, Err(Error::Failed(_))), "{stopped:?}");
    }
}
