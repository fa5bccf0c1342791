//! The parts of the models: a timer, its driver polled by hand, tasks, and time that goes on when
//! there is nothing left to do.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use loom::model::Builder;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread::JoinHandle;
use tokio::runtime::{Handle, Runtime};

use super::host;
use crate::Sleep;
use crate::clock::ManualClock;
use crate::driver::Timer;
use crate::driver::core::{Core, Plan};
use crate::driver::turn::DriverTask;
use crate::driver::wakeup::Waking;
use crate::wheel::Resolution;

/// Runs a scenario in every interleaving with at most this many preemptions, and returns its
/// outcomes, each once: a scenario that always ends the same way has not met its race.
///
/// `LOOM_MAX_PREEMPTIONS` in the environment goes deeper.
pub(crate) fn explore<O: Ord + Send + 'static>(
    preemptions: usize,
    scenario: impl Fn() -> O + Send + Sync + 'static,
) -> BTreeSet<O> {
    home();
    let outcomes = Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let found = Arc::clone(&outcomes);
    let scenario = Arc::new(scenario);
    let mut builder = Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 10_000;
    builder.check(move || {
        let scenario = Arc::clone(&scenario);
        // Not on loom's first thread, whose stack is small.
        let outcome = host::spawn_thread(move || scenario()).join();
        found.lock().unwrap().insert(outcome.unwrap());
    });
    std::mem::take(&mut *outcomes.lock().unwrap())
}

/// A runtime for the timers to be at home on. Its clock cannot be paused, and it runs nothing.
fn home() -> &'static Handle {
    static HOME: OnceLock<Runtime> = OnceLock::new();
    HOME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .expect("a runtime")
    })
    .handle()
}

/// How a model's timer is built: as a rule with one shard, whose driver sleeps on tokio's clock.
pub(super) struct Setup {
    pub(super) waking: Waking,
    pub(super) has_two_shards: bool,
    pub(super) max_pending: Option<usize>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            waking: Waking::TokioOnly,
            has_two_shards: false,
            max_pending: None,
        }
    }
}

impl Setup {
    pub(super) fn start(self) -> (Timer, Driver) {
        let plan = Plan {
            is_of_runtime: false,
            resolution: Some(Resolution::MILLISECOND),
            shards: Some(if self.has_two_shards { 2 } else { 1 }),
            max_pending: self.max_pending,
            name: None,
            waking: self.waking,
            clock: None,
        };
        let timer = Timer {
            core: Core::new(home(), plan),
        };
        let driver = Driver::new(&timer);
        (timer, driver)
    }
}

pub(super) fn start() -> (Timer, Driver) {
    Setup::default().start()
}

pub(super) fn start_two_shards() -> (Timer, Driver) {
    let setup = Setup {
        has_two_shards: true,
        ..Setup::default()
    };
    setup.start()
}

/// Has a sleep of 5 ms armed, and a driver that is asleep.
pub(super) fn start_armed() -> (Timer, Driver, Task<Sleep>) {
    let (timer, mut driver) = start();
    let mut task = Task::new(timer.sleep_until(host::at(5)));
    settle_until_asleep(&mut [&mut task, &mut driver]);
    (timer, driver, task)
}

/// A timer on a manual clock. Its driver never turns it, so it is not run.
pub(crate) fn start_by_hand(clock: &ManualClock) -> Timer {
    let plan = Plan {
        resolution: Some(Resolution::MILLISECOND),
        clock: Some(clock.clone()),
        ..Plan::of_runtime()
    };
    Timer {
        core: Core::new(home(), plan),
    }
}

/// A waker that counts its wakes. A thread can read the count, or wait for the next wake.
pub(super) struct Flag {
    state: Mutex<FlagState>,
    woken: Condvar,
}

struct FlagState {
    wakes: usize,
    /// The number of wakes of all flags at its last wake, including that one.
    last: usize,
    is_awaited: bool,
}

loom::lazy_static! {
    /// The wakes of all flags. loom's, so that it tries each order of two wakes.
    static ref WAKES: AtomicUsize = AtomicUsize::new(0);
}

impl Flag {
    fn new() -> Arc<Flag> {
        Arc::new(Flag {
            state: Mutex::new(FlagState {
                wakes: 0,
                last: 0,
                is_awaited: false,
            }),
            woken: Condvar::new(),
        })
    }

    pub(super) fn wakes(&self) -> usize {
        self.state.lock().unwrap().wakes
    }

    /// A number that is larger the later it was woken last.
    pub(super) fn last_wake(&self) -> usize {
        self.state.lock().unwrap().last
    }

    /// Whether no waker of it is left.
    pub(super) fn is_let_go(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }

    fn wait_beyond(&self, seen: usize) {
        let mut state = self.state.lock().unwrap();
        while state.wakes == seen {
            state.is_awaited = true;
            state = self.woken.wait(state).unwrap();
        }
        state.is_awaited = false;
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state.lock().unwrap();
        state.wakes += 1;
        state.last = WAKES.fetch_add(1, Ordering::Relaxed) + 1;
        if state.is_awaited {
            self.woken.notify_all();
        }
    }
}

/// A future and its waker, polled when it was woken and no more, as a runtime would.
pub(crate) struct Task<F> {
    pub(crate) future: F,
    flag: Arc<Flag>,
    /// The wakes that were there at the last poll; `None` before the first.
    seen: Option<usize>,
    /// The millisecond at which it was found ready.
    pub(crate) done_at: Option<u64>,
}

impl<F: Future + Unpin> Task<F> {
    pub(crate) fn new(future: F) -> Task<F> {
        Task {
            future,
            flag: Flag::new(),
            seen: None,
            done_at: None,
        }
    }

    /// Polls it, woken or not; whether it is ready.
    pub(super) fn poll(&mut self) -> bool {
        assert_eq!(self.done_at, None, "a task that is done is not polled");
        self.seen = Some(self.flag.wakes());
        let waker = Waker::from(Arc::clone(&self.flag));
        let poll = Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker));
        self.done_at = poll.is_ready().then(host::now);
        poll.is_ready()
    }

    /// From now on it is polled with another waker. Gives the one from before.
    pub(super) fn change_flag(&mut self) -> Arc<Flag> {
        self.seen = None;
        std::mem::replace(&mut self.flag, Flag::new())
    }

    pub(super) fn flag(&self) -> &Arc<Flag> {
        &self.flag
    }

    /// Polls it each time that it is woken, until it is ready.
    pub(super) fn block_on(&mut self) {
        while self.done_at.is_none() {
            if let Some(seen) = self.seen {
                self.flag.wait_beyond(seen);
            }
            self.poll();
        }
    }

    /// Drops the future. Gives its waker's flag.
    pub(super) fn cancel(self) -> Arc<Flag> {
        drop(self.future);
        self.flag
    }
}

/// Something that can be woken, and has something to do then.
pub(crate) trait Run {
    /// Does it, once; whether there was anything.
    fn run(&mut self) -> bool;
}

impl<F: Future + Unpin> Run for Task<F> {
    fn run(&mut self) -> bool {
        let is_idle = self.done_at.is_some() || self.seen == Some(self.flag.wakes());
        if !is_idle {
            self.poll();
        }
        !is_idle
    }
}

/// The real driver's task, on whichever thread runs it.
pub(super) struct Driver {
    /// `None` once it has ended.
    task: Option<Pin<Box<DriverTask<()>>>>,
    flag: Arc<Flag>,
    /// As for a [`Task`].
    seen: Option<usize>,
}

impl Driver {
    fn new(timer: &Timer) -> Driver {
        Driver {
            task: Some(Box::pin(timer.core.driver(None))),
            flag: Flag::new(),
            seen: None,
        }
    }

    /// Runs it each time it is woken, up to this many times.
    pub(super) fn run_at_most(&mut self, times: usize) {
        for _ in 0..times {
            if !self.run() {
                return;
            }
        }
    }

    /// Starts a thread that runs it up to this many times, and returns it.
    pub(super) fn run_on_thread(mut self, at_most: usize) -> JoinHandle<Driver> {
        host::spawn_thread(move || {
            self.run_at_most(at_most);
            self
        })
    }

    /// A thread that fires what is due at 5 ms and lets the driver have a turn.
    pub(super) fn fires_at_5(mut self) -> JoinHandle<Driver> {
        host::spawn_thread(move || {
            host::move_clock(5);
            self.run_at_most(1);
            self
        })
    }

    /// Runs it until this is so or it ends, and waits in between.
    pub(super) fn run_until(&mut self, is_enough: impl Fn() -> bool) {
        while !self.is_over() && !is_enough() {
            if let Some(seen) = self.seen {
                self.flag.wait_beyond(seen);
            }
            self.run();
        }
    }

    /// Has it run once more.
    pub(super) fn wake(&mut self) {
        self.seen = None;
    }

    pub(super) fn is_over(&self) -> bool {
        self.task.is_none()
    }
}

impl Run for Driver {
    fn run(&mut self) -> bool {
        let wakes = self.flag.wakes();
        let Some(task) = self.task.as_mut().filter(|_| self.seen != Some(wakes)) else {
            return false;
        };
        self.seen = Some(wakes);
        let waker = Waker::from(Arc::clone(&self.flag));
        if task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()) {
            self.task = None;
        }
        true
    }
}

/// Runs what is woken, but lets no time pass.
pub(super) fn settle_until_asleep(parts: &mut [&mut dyn Run]) {
    while parts.iter_mut().any(|part| part.run()) {}
}

/// Runs everything that is woken. When nothing is, moves the clock to the next moment that tokio's clock knows of, until there is
/// none. So a timer that the driver does not know of is never served, and a timer that it learns of too late is late.
pub(super) fn settle(parts: &mut [&mut dyn Run]) {
    for _ in 0..100 {
        let mut any = host::run_tasks() > 0;
        for part in parts.iter_mut() {
            any |= part.run();
        }
        if any {
            continue;
        }
        match host::next_sleep() {
            Some(next) => host::move_clock(next.max(host::now())),
            None => return,
        }
    }
    panic!("something spins");
}

/// The counters of a timer. The books always balance.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Books {
    pub(super) armed: u64,
    pub(super) fired: u64,
    pub(super) cancelled: u64,
    pub(super) stopped: u64,
    pub(super) pending: u64,
}

pub(super) fn books(timer: &Timer) -> Books {
    let metrics = timer.metrics();
    let books = Books {
        armed: metrics.armed(),
        fired: metrics.fired(),
        cancelled: metrics.cancelled(),
        stopped: metrics.stopped(),
        pending: metrics.pending(),
    };
    let ended = books.fired + books.cancelled + books.stopped;
    assert_eq!(books.armed, ended + books.pending, "{books:?}");
    books
}

/// The books of a timer that has armed and fired this many timers, and nothing else.
pub(super) fn all_fired(armed: u64) -> Books {
    Books {
        armed,
        fired: armed,
        ..Books::default()
    }
}
