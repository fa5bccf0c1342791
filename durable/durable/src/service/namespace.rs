use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use waterwheel_store::{Due, Mark};

use super::{Delivered, Delivery, Durable, Insert};
use crate::answer::Inserted;
use crate::engine::{Answer, DEFAULT, Engine, Token};
use crate::error::Error;
use crate::failure::Failure;
use crate::new_timer::{NewTimer, check_name};
use crate::options::{Drain, HandlerOptions};
use crate::policy::Policy;
use crate::seen::NamespaceMetrics;

/// How much of what is kept is read in a call of the store.
const READ_AT_A_TIME: usize = 4_096;

/// One business's timers, with handlers, a [policy](Policy) and limits of its own: see [`Durable::create_namespace`].
///
/// A cheap handle: clones are the same namespace. It keeps the service alive as a clone of [`Durable`] does. The full name of a handler is `namespace/name`, and that
/// is how [`Durable`], deliveries and handles name it.
///
/// ```
/// # use std::time::Duration;
/// # use waterwheel_durable::{Durable, Policy, Rate, Retry};
/// # async fn notify(order: u64) -> Result<(), std::io::Error> { Ok(()) }
/// # async fn example(timers: &Durable) -> Result<(), Box<dyn std::error::Error>> {
/// let slow_partner = Policy::default().rate(Rate::per_second(100)).concurrency(20);
/// let billing = timers.create_namespace("billing", slow_partner).await?;
///
/// billing.handle("notify", |delivery| async move {
///     notify(delivery.json()?).await.map_err(Retry::backoff)
/// });
/// billing.after("notify", Duration::from_secs(60)).payload(&17).insert().await?;
///
/// billing.pause().await?; // stored: it stays paused after a restart
/// billing.resume().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Namespace {
    pub(super) timers: Durable,
    pub(super) name: Arc<str>,
}

impl Namespace {
    pub(super) fn new(timers: Durable, name: Arc<str>) -> Namespace {
        Namespace { timers, name }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The full name of one of its handlers, as [`Durable`] and [deliveries](Delivery::handler) have it.
    #[must_use]
    pub fn full_name(&self, handler: &str) -> String {
        match &*self.name {
            // One with a `/` is no name, and not another namespace's.
            DEFAULT if !handler.contains('/') => handler.to_owned(),
            name => format!("{name}/{handler}"),
        }
    }

    /// As [`Durable::handle`], for timers of this namespace.
    ///
    /// # Panics
    ///
    /// If there is a handler of this name, or the name is empty, too long, or has a `/`.
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
    /// # Panics
    ///
    /// As [`handle`](Namespace::handle), and for an [attempt limit](HandlerOptions::attempt_limit) of zero.
    #[track_caller]
    pub fn handle_with<F, A>(&self, name: &str, options: HandlerOptions, handler: F)
    where
        F: Fn(Delivery) -> A + Send + Sync + 'static,
        A: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        self.timers
            .handle_with(&self.full_name(name), options, handler);
    }

    /// As [`Durable::at`], for a handler of this namespace.
    pub fn at(&self, handler: &str, when: SystemTime) -> Insert<'_> {
        self.timers.at(&self.full_name(handler), when)
    }

    /// As [`Durable::after`], for a handler of this namespace.
    pub fn after(&self, handler: &str, delay: Duration) -> Insert<'_> {
        self.timers.after(&self.full_name(handler), delay)
    }

    /// As [`Durable::insert_many`], for handlers of this namespace: `NewTimer::after("mail", …)` is for this namespace's `mail`.
    ///
    /// # Errors
    ///
    /// As [`Durable::insert_many`].
    ///
    /// # Cancellation
    ///
    /// As [`Durable::insert_many`].
    pub async fn insert_many(
        &self,
        batch: impl IntoIterator<Item = NewTimer>,
    ) -> Result<Vec<Inserted>, Error> {
        let own = |timer: NewTimer| timer.handled_by(|name| self.full_name(name));
        self.timers.insert_many(batch.into_iter().map(own)).await
    }

    /// The policy that holds.
    ///
    /// # Errors
    ///
    /// [`Error::UnreadablePolicy`]: a newer version has written it, for example. There is nothing to start another policy from: with
    /// [`set_policy`](Namespace::set_policy), all of it has to be named, its retention among the rest.
    pub fn policy(&self) -> Result<Policy, Error> {
        self.timers.shared.look(|look| {
            let namespace = look.engine().namespace(&self.name);
            match namespace {
                Some(namespace) if namespace.is_unreadable => Err(Error::UnreadablePolicy {
                    namespace: Arc::clone(&self.name),
                }),
                namespace => Ok(namespace.map(|it| it.policy.clone()).unwrap_or_default()),
            }
        })
    }

    /// Gives it another policy, durably and without a restart. What is with handlers goes on; the limits hold for what begins from then on. A rate that changes
    /// begins without a burst. Retention holds for what is settled from then on, and what is kept expires by the new one.
    ///
    /// The policy takes the place of all of the old one. To change a part of it, start from [`policy`](Namespace::policy): from [`Policy::default`], a new rate would
    /// also end the retention, and what was kept would be deleted at once. A policy that [cannot be read](Error::UnreadablePolicy) is no start for another one.
    ///
    /// ```
    /// # use waterwheel_durable::{Error, Namespace, Rate};
    /// # async fn example(shop: &Namespace) -> Result<(), Error> {
    /// shop.set_policy(shop.policy()?.rate(Rate::per_second(20))).await?;
    /// // Later, without a limit again:
    /// shop.set_policy(shop.policy()?.rate(None)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Policy`], or an [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, the policy may have changed or not.
    pub async fn set_policy(&self, policy: Policy) -> Result<(), Error> {
        policy.check()?;
        self.ask(|engine, token| engine.set_policy(token, &self.name, &policy, false))
            .await
    }

    /// Begins no delivery of it any more, durably: it stays so after a restart, until [`resume`](Namespace::resume). What is with handlers goes on, inserts and
    /// calendars go on, and a paused time uses up no attempt.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, it may be paused or not.
    pub async fn pause(&self) -> Result<(), Error> {
        self.ask(|engine, token| engine.pause(token, &self.name, true))
            .await
    }

    /// Delivers again, durably, after a [`pause`](Namespace::pause) or a [`drain`](Namespace::drain). What came due meanwhile is delivered at once, within the limits.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, it may be resumed or not.
    pub async fn resume(&self) -> Result<(), Error> {
        self.ask(|engine, token| engine.pause(token, &self.name, false))
            .await
    }

    /// Whether it is [paused](Namespace::pause), or its policy [cannot be read](crate::Event::UnreadablePolicy).
    #[must_use]
    pub fn is_paused(&self) -> bool {
        let is_paused = |engine: &Engine| {
            engine
                .namespace(&self.name)
                .is_some_and(|it| it.is_paused())
        };
        self.timers.shared.look(|look| is_paused(look.engine()))
    }

    /// Begins no delivery of it any more in this process, and waits for the handlers that run as long as `drain` says: before a deploy, for example. Returns how many
    /// still run. The next process delivers again; so does this one, after a [`resume`](Namespace::resume).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::{Drain, Namespace};
    /// # async fn example(reports: &Namespace) {
    /// let running = reports.drain(Drain::within(Duration::from_secs(300))).await;
    /// if running > 0 {
    ///     eprintln!("{running} reports are still being made");
    /// }
    /// # }
    /// ```
    ///
    /// # Cancellation
    ///
    /// If the future is dropped after its first poll, nothing begins.
    pub async fn drain(&self, drain: Drain) -> usize {
        let shared = &self.timers.shared;
        let drained = shared.drain(&self.name);
        let limit = shared.timer.try_timeout(drain.limit(), drained);
        if let Ok(limited) = limit {
            // Its time is over, or none runs any more.
            let _ = limited.await;
        }
        let running = |engine: &Engine| engine.namespace(&self.name).map_or(0, |it| it.running);
        shared.look(|look| running(look.engine()))
    }

    /// What has come of it since the store was opened.
    #[must_use]
    pub fn metrics(&self) -> NamespaceMetrics {
        let shared = &self.timers.shared;
        shared.look(|look| {
            let namespace = look.engine().namespace(&self.name);
            NamespaceMetrics::of(look, &self.name, namespace)
        })
    }

    /// What was delivered by a handler of it and is [kept](Policy::retention), from this time on: the first entries after `after`, at most so many. `None` for the first
    /// page, the last one's [mark](Delivered::mark) for the next. In order of the days (UTC) and, on a day, of when it was written that they are settled.
    ///
    /// ```
    /// # use std::time::{Duration, SystemTime};
    /// # use waterwheel_durable::{Error, Namespace};
    /// # async fn example(shop: &Namespace) -> Result<(), Error> {
    /// let since = SystemTime::now() - Duration::from_secs(3_600);
    /// let mut page = shop.delivered("close", since, None, 1_000).await?;
    /// while let Some(last) = page.last() {
    ///     for delivered in &page {
    ///         println!("{} {:?} {:?}", delivered.id(), delivered.key(), delivered.at());
    ///     }
    ///     page = shop.delivered("close", since, Some(last.mark()), 1_000).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::DueOutOfRange`], or an [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    pub async fn delivered(
        &self,
        handler: &str,
        since: SystemTime,
        after: Option<Mark>,
        most: usize,
    ) -> Result<Vec<Delivered>, Error> {
        let handler: Arc<str> = self.full_name(handler).into();
        check_name(&handler)?;
        let since = Due::at_or_after(since).ok_or(Error::DueOutOfRange)?;
        let first = Mark::before(since.day());
        let mut after = after.map_or(first, |after| after.max(first));
        let mut found = Vec::new();
        let mut size = most.min(READ_AT_A_TIME);
        while found.len() < most {
            // A call of the store each: other calls, and commits, come in between.
            let of = Arc::clone(&handler);
            let read = move |store: &mut dyn waterwheel_store::Store| {
                store.archived(&of, after, i64::MAX, size)
            };
            let page = self.timers.shared.read(read).await?;
            // What was settled before that time on its day is passed over.
            size = READ_AT_A_TIME;
            let Some((last, _)) = page.last() else {
                break;
            };
            after = *last;
            let page = page
                .into_iter()
                .filter(|(_, archived)| archived.at >= since);
            let page = page.map(|(mark, archived)| Delivered::new(&handler, mark, archived));
            found.extend(page.take(most - found.len()));
        }
        Ok(found)
    }

    async fn ask(&self, request: impl FnOnce(&mut Engine, Token)) -> Result<(), Error> {
        match self.timers.shared.ask(request).await? {
            Answer::Done => Ok(()),
            other => Err(Error::from_answer(other)),
        }
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespace")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
