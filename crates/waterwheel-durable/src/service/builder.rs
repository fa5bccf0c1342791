use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle as Runtime;
use tokio::sync::oneshot;
use waterwheel::{Timer, Waking};
use waterwheel_durable_core::store::{
    OpenError, OpenStore, Setting, Store, StoreError, refused_by_transfer,
};

use super::Durable;
#[cfg(feature = "calendar")]
use crate::calendar;
use crate::event::{Event, Hook};
use crate::shell::clock::{Clock, Shift};
use crate::shell::intake::Intake;
use crate::shell::shared::Shared;
use crate::shell::store_thread;
use crate::shell::unwound;
#[cfg(feature = "calendar")]
use waterwheel_durable_core::engine::calendar::SETTINGS;
use waterwheel_durable_core::engine::calendar::Stored;
use waterwheel_durable_core::engine::{Config, Engine};
use waterwheel_durable_core::policy::LONGEST_DELAY;

/// How long before its start a bucket of a minute cascades into seconds.
const LONGEST_WINDOW: i64 = 15;

/// Configures and opens a [`Durable`] service. `S` is the store: set it with [`store`](Builder::store) before [`open`](Builder::open).
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # mod example {
/// # use std::time::Duration;
/// # use waterwheel_durable::{Durable, OpenError, Sqlite};
/// # async fn example() -> Result<Durable, OpenError> {
/// Durable::builder()
///     .store(Sqlite::new("timers.db").limit(10 << 30))
///     .retry_delays([15, 60, 600, 3_600].map(Duration::from_secs))
///     .concurrency(256)
///     .on_event(|event| eprintln!("{event:?}"))
///     .open()
///     .await
/// # }
/// # }
/// ```
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until it opens a store"]
pub struct Builder<S = ()> {
    config: Config,
    hook: Option<Hook>,
    clock: Clock,
    store: S,
}

impl Durable {
    /// Opens a SQLite file and creates it if it does not exist. Its directory must exist. Same as
    /// `Durable::builder().store(Sqlite::new(path)).open()`.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: the file is open in another process, is not a timer database, is damaged, or
    /// was written by a newer version.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime, or in a runtime without `enable_time`.
    #[cfg(feature = "sqlite")]
    pub async fn open(path: impl AsRef<std::path::Path>) -> Result<Durable, OpenError> {
        let file = waterwheel_durable_sqlite::Sqlite::new(path);
        Durable::builder().store(file).open().await
    }

    /// Returns a builder, to configure and open a service.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl<S> Builder<S> {
    /// Sets the store: a file, `Sqlite::new(path)`; a database, `Postgres::new(url)` of the crate `waterwheel-durable-postgres`; a
    /// [`MemoryStore`](waterwheel_durable_core::store::MemoryStore), for tests; or a store of your own. To choose one at run time, open it, and
    /// pass it as a `Box<dyn Store>`.
    pub fn store<T: OpenStore>(self, store: T) -> Builder<T> {
        Builder {
            config: self.config,
            hook: self.hook,
            clock: self.clock,
            store,
        }
    }

    /// Sets the default retry schedule, for timers without retries of [their own](crate::NewTimer::retry_delays), of [their
    /// handler](crate::HandlerOptions::retry_delays) or of [their namespace](crate::Policy::retry_delays): the delays after the first, second, … failure of a timer. A failure after the
    /// last delay makes the timer a dead letter; with an empty schedule, the first failure does. A delay longer than a
    /// year counts as a year.
    ///
    /// Default: 15 s, 30 s, 3 min, 10 min, 20 min, 30 min, 1 h, 2 h, 3 h, 6 h.
    pub fn retry_delays(mut self, delays: impl IntoIterator<Item = Duration>) -> Self {
        let delays = delays.into_iter().map(|delay| delay.min(LONGEST_DELAY));
        self.config.retry_delays = delays.collect();
        self
    }

    /// Sets how long before its due time a timer is loaded into memory: whole seconds, rounded up, from 1 to 15.
    /// Default: 2 s.
    ///
    /// A longer window uses more memory, and helps if the store is slow to read. More than 15 s would have no effect:
    /// that is how long before its minute a timer that was inserted minutes ahead is moved to where it can be loaded
    /// from.
    pub fn window(mut self, window: Duration) -> Self {
        let seconds = window.as_secs() + u64::from(window.subsec_nanos() > 0);
        self.config.window =
            i64::try_from(seconds).map_or(LONGEST_WINDOW, |it| it.clamp(1, LONGEST_WINDOW));
        self
    }

    /// Sets the maximum number of timers in memory for each handler; at least one. Further timers wait in the store.
    /// Default: 65 536.
    ///
    /// [`max_bytes_in_memory`](Builder::max_bytes_in_memory) is the limit for all handlers together.
    pub fn max_in_memory(mut self, timers: usize) -> Self {
        self.config.max_in_memory = timers.max(1);
        self
    }

    /// Sets the approximate maximum size of the timers in memory, in bytes: their payloads, their keys, and 256 bytes
    /// for each. Default: 64 MiB.
    ///
    /// A quarter of it is reserved for inserts that wait for their commit. When that is used up, further inserts wait,
    /// in the order of their calls, until some are written. Inserts therefore never wait for handlers. The rest is for
    /// loaded timers, of all handlers.
    ///
    /// A handler that has little in memory may always load some more, so that no handler can block the others. The
    /// limit may therefore be exceeded by 64 KiB and one timer for each handler (if the limit is less than 2 MiB: by a
    /// 32nd of it and one timer).
    pub fn max_bytes_in_memory(mut self, bytes: usize) -> Self {
        self.config.max_bytes_in_memory = bytes;
        self
    }

    /// Sets the maximum number of concurrent deliveries, across all namespaces; at least one. When more are ready,
    /// namespaces share this capacity according to their [priorities](crate::Policy::priority). Default: limited only
    /// by the handlers.
    ///
    /// A handler that hangs occupies its part of the capacity. If that can happen, give its namespace a lower
    /// [concurrency](crate::Policy::concurrency), or the handler an [attempt
    /// limit](crate::HandlerOptions::attempt_limit); otherwise it can leave no capacity for other namespaces.
    pub fn concurrency(mut self, deliveries: usize) -> Self {
        self.config.concurrency = Some(deliveries.max(1));
        self
    }

    /// Calls `hook` for each [`Event`], on the thread that notices it and without holding a lock, so the hook may use
    /// the service. It should return quickly. It must not block until the service has done something, since the service
    /// may be waiting for that thread. A panic of the hook is ignored. A hook that holds a [`Durable`] keeps the
    /// service alive until a shutdown, and is dropped then.
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.hook = Some(Hook::new(hook));
        self
    }

    /// Moves the clocks, for tests.
    #[doc(hidden)]
    pub fn shifted_clocks(mut self, shift: Arc<Shift>) -> Self {
        self.clock = Clock::shifted(shift);
        self
    }
}

impl<S: OpenStore> Builder<S> {
    /// Opens the store. If the future is dropped, a store that waits, for example for the process that owns it, is not
    /// opened.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime, or in a runtime without `enable_time`.
    pub async fn open(self) -> Result<Durable, OpenError> {
        let runtime = Runtime::current();
        // These settings are always valid. This panics if the runtime has no time driver.
        let timer = Timer::builder()
            .name("waterwheel-durable")
            .shards(1)
            // Tokio's clock would add half a millisecond to each delivery.
            .waking(Waking::Thread);
        let timer = timer.start_on(&runtime).map_err(no_thread)?;
        let (opened, receiver) = oneshot::channel();
        let thread = std::thread::Builder::new().name("waterwheel-store".into());
        let thread = thread.spawn(move || {
            match begin(self, (runtime, timer), &|| !opened.is_closed()) {
                Ok((store, shared)) => {
                    shared.start_driver();
                    // Even if the caller is gone: dropping the handle closes the store.
                    unwound(|| drop(opened.send(Ok(Durable::of(&shared)))));
                    store_thread::run(store, &shared);
                }
                Err(error) => unwound(|| drop(opened.send(Err(error)))),
            }
        });
        thread.map_err(no_thread)?;
        receiver.await.unwrap_or_else(|_| {
            let error = StoreError::indeterminate("it panicked (please report this bug)");
            Err(error.into())
        })
    }
}

fn no_thread(error: impl std::fmt::Display) -> OpenError {
    OpenError::new(format!(
        "the thread for the store could not be started: {error}: raise the limit on threads or memory"
    ))
}

fn begin<S: OpenStore>(
    builder: Builder<S>,
    (runtime, timer): (Runtime, Timer),
    is_wanted: &dyn Fn() -> bool,
) -> Result<(Box<dyn Store>, Arc<Shared>), OpenError> {
    let mut store = Box::new(builder.store.open_store(is_wanted)?);
    let epoch = store.begin()?;
    let handlers = store.handlers()?;
    let (intake, max_bytes_in_memory) = Intake::part_of(builder.config.max_bytes_in_memory);
    let config = Config {
        max_bytes_in_memory,
        partition: store.partition(),
        hands_over: store.hands_over(),
        // Calls of the store always return, so no reply is lost.
        reply_micros: u64::MAX,
        ..builder.config
    };
    let mut engine = Engine::new(config, epoch, handlers, builder.clock.now());
    let settings = store.settings()?;
    if let Some(why) = refused_by_transfer(&settings) {
        return Err(OpenError::new(why));
    }
    engine.restore_settings(&settings);
    engine.restore_calendars(calendars(&settings));
    engine.restore_handed_over(store.handed_over()?);
    let lease = store.lease();
    let shared = Shared::new(
        engine,
        lease,
        intake,
        builder.clock,
        runtime,
        timer,
        builder.hook,
    );
    Ok((store, shared))
}

/// Reads the calendars in the store.
#[cfg(feature = "calendar")]
fn calendars(settings: &[Setting]) -> Vec<Stored> {
    let stored = settings.iter().filter_map(|it| {
        let name = Arc::from(it.name.strip_prefix(SETTINGS)?);
        let read = calendar::read(&it.value);
        let read = read.map_err(|error| (error.number, error.why.into()));
        Some(Stored { name, read })
    });
    stored.collect()
}

/// They stay unchanged, because expressions and zones cannot be read.
#[cfg(not(feature = "calendar"))]
fn calendars(_: &[Setting]) -> Vec<Stored> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use waterwheel_durable_core::store::Level;

    use super::*;

    #[test]
    fn a_retry_delay_is_a_year_at_most() {
        let builder = Durable::builder().retry_delays([Duration::MAX, Duration::ZERO]);
        assert_eq!(builder.config.retry_delays, [LONGEST_DELAY, Duration::ZERO]);
    }

    #[test]
    fn a_window_is_as_long_as_far_timers_can_be_loaded_before() {
        for (given, window) in [(0, 1), (1, 1), (1_001, 2), (15_000, 15), (3_600_000, 15)] {
            let builder = Durable::builder().window(Duration::from_millis(given));
            assert_eq!(builder.config.window, window, "{given} ms");
        }
        // Before this time, rows in a bucket of a minute have not moved to a bucket of a second.
        assert_eq!(LONGEST_WINDOW * 1_000, Level::Minute.lead());
    }
}
