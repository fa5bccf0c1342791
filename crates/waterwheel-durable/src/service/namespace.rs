use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use waterwheel_durable_core::store::{ArchiveCursor, Due};

use super::{Archived, Durable};
use crate::error::Error;
use crate::metrics::NamespaceMetrics;
use crate::new_timer::check_name;
use crate::options::Drain;
use crate::pending_timer::PendingTimer;
use waterwheel_durable_core::engine::{Answer, DEFAULT, Engine, Token};
use waterwheel_durable_core::policy::Policy;

/// The number of archived records read in one call of the store.
const READ_AT_A_TIME: usize = 4_096;

/// The timers of one business, with their own handlers, [policy](Policy) and limits: see [`Durable::create_namespace`].
///
/// This is a cheap handle: clones refer to the same namespace. It keeps the service alive as a clone of [`Durable`]
/// does. The full name of a handler is `namespace/name`, which is how [`Durable`], deliveries and handles name it.
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
/// billing.pause().await?; // durable: it stays paused after a restart
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

    /// Returns the name of the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the full name of a handler of this namespace, as used by [`Durable`] and
    /// [deliveries](crate::Delivery::handler).
    #[must_use]
    pub fn full_name(&self, handler: &str) -> String {
        match &*self.name {
            // A name with a `/` is invalid, and must not name a handler of another namespace.
            DEFAULT if !handler.contains('/') => handler.to_owned(),
            name => format!("{name}/{handler}"),
        }
    }

    /// Same as [`Durable::find`], for a handler of this namespace: `shop.find("close", "order-17")`.
    ///
    /// # Errors
    ///
    /// Same as [`Durable::find`].
    pub async fn find(
        &self,
        handler: &str,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<PendingTimer>, Error> {
        self.timers.find(&self.full_name(handler), key).await
    }

    /// Returns the current policy.
    ///
    /// # Errors
    ///
    /// [`Error::UnreadablePolicy`], for example because a newer version has written the policy. There is then no policy
    /// to start from: with [`set_policy`](Namespace::set_policy), every setting has to be given, including the
    /// retention.
    pub fn policy(&self) -> Result<Policy, Error> {
        self.timers.shared.inspect(|view| {
            let namespace = view.engine().namespaces().get(&self.name);
            match namespace {
                Some(namespace) if namespace.is_unreadable => Err(Error::UnreadablePolicy {
                    namespace: Arc::clone(&self.name),
                }),
                namespace => Ok(namespace.map(|it| it.policy.clone()).unwrap_or_default()),
            }
        })
    }

    /// Sets another policy, durably and without a restart. Running deliveries continue; the new limits apply to
    /// everything that starts afterwards. A changed rate starts without a burst. The new retention applies to timers
    /// that are settled afterwards, and to the expiry of existing records.
    ///
    /// The policy replaces the old one completely. To change a part of it, start from [`policy`](Namespace::policy):
    /// setting a new rate on [`Policy::default`] would also end the retention, and immediately delete the archived
    /// records. A policy that [cannot be read](Error::UnreadablePolicy) cannot be used as a starting point.
    ///
    /// ```
    /// # use waterwheel_durable::{Error, Namespace, Rate};
    /// # async fn example(shop: &Namespace) -> Result<(), Error> {
    /// shop.set_policy(shop.policy()?.rate(Rate::per_second(20))).await?;
    /// // Later, to remove the limit:
    /// shop.set_policy(shop.policy()?.rate(None)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Policy`], or an [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the policy may or may not be changed.
    pub async fn set_policy(&self, policy: Policy) -> Result<(), Error> {
        policy.check()?;
        self.request(|engine, token| engine.handle_policy(token, &self.name, &policy, false))
            .await
    }

    /// Pauses the namespace, durably: no delivery starts, also after a restart, until [`resume`](Namespace::resume) is
    /// called. Running handlers, inserts and calendars continue. A pause uses up no attempts.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the namespace may or may not be paused.
    pub async fn pause(&self) -> Result<(), Error> {
        self.request(|engine, token| engine.handle_pause(token, &self.name, true))
            .await
    }

    /// Resumes deliveries, durably, after a [`pause`](Namespace::pause) or a [`drain`](Namespace::drain). Timers that
    /// became due meanwhile are delivered at once, within the limits.
    ///
    /// # Errors
    ///
    /// [`Error`] of the store, or of a shutdown: [what to do](Error#what-to-do).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the namespace may or may not be resumed.
    pub async fn resume(&self) -> Result<(), Error> {
        self.request(|engine, token| engine.handle_pause(token, &self.name, false))
            .await
    }

    /// Returns whether the namespace is [paused](Namespace::pause), or its policy [cannot be
    /// read](crate::Event::UnreadablePolicy).
    #[must_use]
    pub fn is_paused(&self) -> bool {
        let is_paused = |engine: &Engine| {
            engine
                .namespaces()
                .get(&self.name)
                .is_some_and(|it| it.is_paused())
        };
        self.timers.shared.inspect(|view| is_paused(view.engine()))
    }

    /// Starts no further delivery of this namespace in this process, and waits for running handlers as long as `drain`
    /// allows, for example before a deployment. Returns how many are still running. The next process delivers again,
    /// and so does this one after a [`resume`](Namespace::resume).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use waterwheel_durable::{Drain, Namespace};
    /// # async fn example(reports: &Namespace) {
    /// let running = reports.drain(Drain::within(Duration::from_secs(300))).await;
    /// if running > 0 {
    ///     eprintln!("{running} reports are still running");
    /// }
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, no further delivery starts.
    pub async fn drain(&self, drain: Drain) -> usize {
        let shared = &self.timers.shared;
        let drained = shared.drain(&self.name);
        let limit = shared.timer.try_timeout(drain.limit(), drained);
        if let Ok(limited) = limit {
            // Either the limit has passed, or no delivery is running.
            let _ = limited.await;
        }
        let running = |engine: &Engine| {
            engine
                .namespaces()
                .get(&self.name)
                .map_or(0, |it| it.running)
        };
        shared.inspect(|view| running(view.engine()))
    }

    /// Returns the metrics of the namespace since the store was opened.
    #[must_use]
    pub fn metrics(&self) -> NamespaceMetrics {
        let shared = &self.timers.shared;
        shared.inspect(|view| {
            let namespace = view.engine().namespaces().get(&self.name);
            NamespaceMetrics::of(view, &self.name, namespace)
        })
    }

    /// Returns at most `limit` [archived](Policy::retention) records of the timers of `handler` that were settled at
    /// `since` or later, starting after `after`: `None` for the first page, and the [cursor](Archived::cursor) of the last
    /// record for the next page. The records are in order of their days (UTC) and, within a day, in the order in which
    /// they were settled.
    ///
    /// ```
    /// # use std::time::{Duration, SystemTime};
    /// # use waterwheel_durable::{Error, Namespace};
    /// # async fn example(shop: &Namespace) -> Result<(), Error> {
    /// let since = SystemTime::now() - Duration::from_secs(3_600);
    /// let mut page = shop.archived("close", since, None, 1_000).await?;
    /// while let Some(last) = page.last() {
    ///     for delivered in &page {
    ///         println!("{} {:?} {:?}", delivered.id(), delivered.key(), delivered.at());
    ///     }
    ///     page = shop.archived("close", since, Some(last.cursor()), 1_000).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::DueOutOfRange`], or an [`Error`] of the store, or of a shutdown: [what to
    /// do](Error#what-to-do).
    pub async fn archived(
        &self,
        handler: &str,
        since: SystemTime,
        after: Option<ArchiveCursor>,
        limit: usize,
    ) -> Result<Vec<Archived>, Error> {
        let handler: Arc<str> = self.full_name(handler).into();
        check_name(&handler)?;
        let since = Due::at_or_after(since).ok_or(Error::DueOutOfRange)?;
        let first = ArchiveCursor::before(since.day());
        let mut after = after.map_or(first, |after| after.max(first));
        let mut found = Vec::new();
        let mut size = limit.min(READ_AT_A_TIME);
        while found.len() < limit {
            // One call of the store per iteration, so that other calls and commits can come in between.
            let of = Arc::clone(&handler);
            let read = move |store: &mut dyn waterwheel_durable_core::store::Store| {
                store.archived(&of, after, i64::MAX, size)
            };
            let page = self.timers.shared.read(read).await?;
            // Records of the first day that were settled before `since` are skipped.
            size = READ_AT_A_TIME;
            let Some((last, _)) = page.last() else {
                break;
            };
            after = *last;
            let page = page
                .into_iter()
                .filter(|(_, archived)| archived.at >= since);
            let page = page.map(|(cursor, record)| Archived::new(&handler, cursor, record));
            found.extend(page.take(limit - found.len()));
        }
        Ok(found)
    }

    async fn request(&self, request: impl FnOnce(&mut Engine, Token)) -> Result<(), Error> {
        match self.timers.shared.request(request).await? {
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
