//! Shared by the tests: wakers that count and wakers that act, random numbers, panics with the place
//! that they blame, time limits, runtimes, timers and the check of their counters.

// Every test crate uses a part of this.
#![allow(dead_code)]

use std::cell::RefCell;
use std::future::{Future, pending};
use std::ops::Deref;
use std::panic::{self, AssertUnwindSafe, Location};
use std::pin::pin;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::unconstrained;
use waterwheel::error::Error;
use waterwheel::{ManualClock, Metrics, Sleep, Timer, Waking};

/// This many milliseconds.
pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// This many microseconds.
pub(crate) const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// The limit of `within` for a test that takes a second or two on an idle machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// An hour: far enough never to fire while a test runs in real time.
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// All ways of waking a driver.
pub(crate) const WAKINGS: [Waking; 4] = [
    Waking::Watched,
    Waking::WatchedClosely,
    Waking::Thread,
    Waking::TokioOnly,
];

/// About 30 years, the maximum of relative delays, as in tokio.
pub(crate) const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);

/// The last instant, apart from some nanoseconds.
pub(crate) fn end_of_time() -> waterwheel::Instant {
    let mut end = waterwheel::Instant::now();
    let mut step = Duration::from_secs(1 << 62);
    while step > Duration::from_nanos(1) {
        match end.checked_add(step) {
            Some(later) => end = later,
            None => step /= 2,
        }
    }
    end
}

// ----- polling by hand -----

/// Polls once, with a waker that does nothing.
pub(crate) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_with(future, Waker::noop())
}

/// A sleep that `poll` has found pending. On a busy machine some may be over before their first poll.
pub(crate) fn armed(
    timer: &Timer,
    duration: Duration,
    poll: impl Fn(&mut Sleep) -> Poll<()>,
) -> Sleep {
    loop {
        let mut sleep = timer.sleep(duration);
        if poll(&mut sleep).is_pending() {
            return sleep;
        }
    }
}

/// Polls once, with this waker, regardless of the coop budget of the test's own task.
pub(crate) fn poll_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    pin!(unconstrained(future)).poll(&mut Context::from_waker(waker))
}

/// Returns the future after a poll has found it pending.
#[track_caller]
pub(crate) fn waiting<F: Future + Unpin>(mut future: F) -> F {
    assert!(poll_once(&mut future).is_pending());
    future
}

/// Returns the future after a poll with this waker has found it pending; only the future may keep a clone.
#[track_caller]
pub(crate) fn waiting_with<F: Future + Unpin>(mut future: F, waker: Waker) -> F {
    assert!(poll_giving(&mut future, waker).is_pending());
    future
}

/// Uses up the remaining budget of the task that is polled.
pub(crate) fn burn_the_budget(context: &mut Context<'_>) {
    while tokio::task::coop::has_budget_remaining() {
        let _ = tokio::task::coop::poll_proceed(context).map(|it| it.made_progress());
    }
}

/// A waker that counts its wakes and the clones of it that are held.
pub(crate) struct Probe(Arc<Wakes>);

struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Probe {
    pub(crate) fn new() -> Probe {
        Probe(Arc::new(Wakes(AtomicUsize::new(0))))
    }

    pub(crate) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.0))
    }

    /// Polls once with this waker; only the future may keep a clone of it.
    pub(crate) fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        poll_with(future, &self.waker())
    }

    /// Returns the future after a poll with this waker has found it pending.
    #[track_caller]
    pub(crate) fn waiting<F: Future + Unpin>(&self, mut future: F) -> F {
        assert!(self.poll(&mut future).is_pending());
        future
    }

    /// The number of wakes.
    pub(crate) fn wakes(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    /// The number of clones that are held by others.
    pub(crate) fn held(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

/// A waker that calls `act` each time it is woken.
pub(crate) fn waker_on_wake(act: impl Fn() + Send + Sync + 'static) -> Waker {
    struct OnWake<F>(F);
    impl<F: Fn() + Send + Sync> Wake for OnWake<F> {
        fn wake(self: Arc<Self>) {
            self.wake_by_ref();
        }
        fn wake_by_ref(self: &Arc<Self>) {
            (self.0)();
        }
    }
    Waker::from(Arc::new(OnWake(act)))
}

/// A waker that calls `act` when its last clone is woken or dropped.
pub(crate) fn waker_on_drop(act: impl FnOnce() + Send + 'static) -> Waker {
    struct OnDrop(Mutex<Option<Box<dyn FnOnce() + Send>>>);
    impl Wake for OnDrop {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for OnDrop {
        fn drop(&mut self) {
            let act = self.0.lock().ok().and_then(|mut act| act.take());
            if let Some(act) = act {
                act();
            }
        }
    }
    Waker::from(Arc::new(OnDrop(Mutex::new(Some(Box::new(act))))))
}

/// Polls once with a waker of which only the future may keep a clone.
pub(crate) fn poll_giving<F: Future + Unpin>(future: &mut F, waker: Waker) -> Poll<F::Output> {
    let poll = poll_with(future, &waker);
    drop(waker);
    poll
}

// ----- chance -----

/// Random numbers, the same ones in every run: splitmix64.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from zero to less than `sides`.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.next() % sides
    }

    /// A number from one to `most`, where seven digits are as likely as two: both very long and very short times.
    pub(crate) fn any_magnitude(&mut self, most: u64) -> u64 {
        let shift = self.roll(u64::from(most.ilog2()) + 1);
        (self.roll(most) >> shift) + 1
    }
}

// ----- panics -----

/// A panic, and the file that it blamed.
#[derive(Debug)]
pub(crate) struct Panicked {
    pub(crate) message: String,
    pub(crate) file: String,
}

thread_local! {
    /// The file of the last panic of this thread, while it is being recorded.
    static BLAMED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The message of a future that is polled outside its timer's runtime after that has ended.
const OVER: &str = "the runtime of this timer has ended";

/// Asserts that `poll` panics because the runtime of its timer has ended.
#[track_caller]
pub(crate) fn assert_over<R>(poll: impl FnOnce() -> R) {
    let panicked = panic_of(poll);
    assert!(panicked.message.contains(OVER), "{panicked:?}");
}

/// Calls `poll`. `None` if it panics because the runtime of its timer has ended.
#[track_caller]
pub(crate) fn unless_over<R>(poll: impl FnOnce() -> R) -> Option<R> {
    match try_quietly(poll) {
        Ok(result) => Some(result),
        Err(panicked) if panicked.message.contains(OVER) => None,
        Err(panicked) => panic!("{panicked:?}"),
    }
}

/// Returns the panic of `act`, printing nothing.
#[track_caller]
pub(crate) fn panic_of<R>(act: impl FnOnce() -> R) -> Panicked {
    match try_quietly(act) {
        Ok(_) => panic!("this was to panic"),
        Err(panicked) => panicked,
    }
}

/// Returns the result of `act` or its panic, printing nothing.
pub(crate) fn try_quietly<R>(act: impl FnOnce() -> R) -> Result<R, Panicked> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let wanted = BLAMED.try_with(|blamed| {
                if let Some(file) = &mut *blamed.borrow_mut() {
                    *file = info.location().map_or("", Location::file).to_owned();
                    return true;
                }
                false
            });
            if wanted != Ok(true) {
                previous(info);
            }
        }));
    });
    BLAMED.set(Some(String::new()));
    let result = panic::catch_unwind(AssertUnwindSafe(act));
    let file = BLAMED.take().unwrap_or_default();
    let payload = match result {
        Ok(result) => return Ok(result),
        Err(payload) => payload,
    };
    let message = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    Err(Panicked {
        message: message.unwrap_or("no message").to_owned(),
        file,
    })
}

/// Asserts that `act` panics, blames this call's file for it, and that the message contains each of these.
#[track_caller]
pub(crate) fn assert_panics_here<R>(says: &[&str], act: impl FnOnce() -> R) {
    let panicked = panic_of(act);
    assert_eq!(panicked.file, Location::caller().file(), "{panicked:?}");
    for said in says {
        assert!(panicked.message.contains(said), "{said:?} in {panicked:?}");
    }
}

// ----- limits of time -----

/// Runs `act` on its own thread, and fails if that takes longer than the limit: a deadlock
/// fails one test instead of blocking all.
#[track_caller]
pub(crate) fn within<R: Send + 'static>(
    limit: Duration,
    act: impl FnOnce() -> R + Send + 'static,
) -> R {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || {
        let _ = done.send(panic::catch_unwind(AssertUnwindSafe(act)));
    });
    match wait.recv_timeout(limit) {
        Ok(Ok(result)) => result,
        Ok(Err(payload)) => panic::resume_unwind(payload),
        Err(_) => panic!("not done within {limit:?}"),
    }
}

/// Waits in real time until this holds; fails if it does not hold within a minute: a busy machine may take long.
#[track_caller]
pub(crate) fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "never: {what}");
        thread::sleep(ms(1));
    }
}

/// Runs the calling test's body in its own process, for at most three minutes: for values that
/// are counted per process, and for faults that could affect other tests.
///
/// `body` must be a closure written in the test itself: its type name contains the test's name.
#[track_caller]
pub(crate) fn alone<F: FnOnce()>(body: F) {
    alone_with([], body);
}

/// Like [`alone`], with these variables in the environment.
#[track_caller]
pub(crate) fn alone_with<'a, F: FnOnce()>(
    environment: impl IntoIterator<Item = (&'a str, &'a str)>,
    body: F,
) {
    const CHILD: &str = "WATERWHEEL_TEST_ALONE";
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let name = std::any::type_name::<F>().replace("::{{closure}}", "");
    let name = name.split_once("::").map_or("", |(_crate, test)| test);
    let this = std::env::current_exe().expect("the path of this test");
    let mut child = Command::new(this)
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .envs(environment)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("this test, again");
    let mut out = child.stdout.take().expect("it is piped");
    let reader = thread::spawn(move || std::io::read_to_string(&mut out).unwrap_or_default());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the state of a child of ours") {
            break status;
        }
        if start.elapsed() > Duration::from_secs(180) {
            child.kill().expect("a child of ours to end");
            panic!("{name}: not done within three minutes");
        }
        thread::sleep(ms(2));
    };
    let said = reader.join().unwrap_or_default();
    assert!(status.success(), "{name}: {status}\n{said}");
    assert!(said.contains("1 passed"), "{name} was not found\n{said}");
}

// ----- runtimes and timers -----

pub(crate) fn current_thread() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// A runtime whose clock stands still, and jumps when it is idle.
#[cfg(not(without_test_util))]
pub(crate) fn paused() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

pub(crate) fn multi_thread(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_time()
        .build()
        .expect("a runtime")
}

/// Calls `act` in a task of a runtime with one worker.
pub(crate) fn in_a_task<R: Send + 'static>(act: impl FnOnce() -> R + Send + 'static) -> R {
    multi_thread(1).block_on(async {
        let task = tokio::spawn(async { act() });
        task.await.expect("it does not panic")
    })
}

/// Calls `act` in a task that was in the middle of a poll when its runtime was shut down, after the driver's task was dropped.
pub(crate) fn in_an_ending_runtime<R: Send + 'static>(
    act: impl FnOnce() -> R + Send + 'static,
) -> R {
    let runtime = multi_thread(2);
    let (begins, begun) = mpsc::channel();
    let (sender, result) = mpsc::channel();
    runtime.spawn(async move {
        let timer = Timer::current();
        begins.send(()).expect("it is awaited");
        while !format!("{timer:?}").contains("state: Ending") {
            thread::yield_now();
        }
        let _ = sender.send(act());
    });
    begun.recv().expect("the task has begun");
    runtime.shutdown_background();
    result.recv_timeout(LIMIT).expect("it does not panic")
}

/// Calls `act` within the runtime, but in none of its tasks.
pub(crate) fn inside<R>(runtime: &Runtime, act: impl FnOnce() -> R) -> R {
    let _entered = runtime.enter();
    act()
}

/// A separate timer on the current runtime.
#[track_caller]
pub(crate) fn own_timer() -> OwnTimer {
    OwnTimer(Timer::builder().start().expect("a timer"))
}

/// A runtime, and a separate timer on it.
#[track_caller]
pub(crate) fn with_timer(runtime: Runtime) -> (Runtime, OwnTimer) {
    let timer = inside(&runtime, own_timer);
    (runtime, timer)
}

/// Calls `act` with a runtime and a separate timer on it, within the limit.
#[track_caller]
pub(crate) fn with_timer_within(
    runtime: Runtime,
    act: impl FnOnce(Runtime, OwnTimer) + Send + 'static,
) {
    within(LIMIT, || {
        let (runtime, timer) = with_timer(runtime);
        act(runtime, timer);
    });
}

/// Runs a future in a runtime, within the limit.
#[track_caller]
pub(crate) fn block_on_within(runtime: Runtime, act: impl AsyncFnOnce() + Send + 'static) {
    within(LIMIT, move || runtime.block_on(act()));
}

/// A separate timer with a bound, on the current runtime.
#[track_caller]
pub(crate) fn bounded_timer(max_pending: usize) -> OwnTimer {
    let timer = Timer::builder().max_pending(max_pending).start();
    OwnTimer(timer.expect("a timer"))
}

/// A clock that is advanced by hand, and a timer on it, with this runtime as its home.
pub(crate) fn on_manual_clock(runtime: &Runtime) -> (ManualClock, Timer) {
    let clock = ManualClock::new();
    let builder = Timer::builder().clock(clock.clone());
    let timer = builder.start_on(runtime.handle());
    (clock, timer.expect("a timer"))
}

/// A clock that is an hour ahead of tokio's, which is paused, or an hour behind it; with a timer.
#[cfg(not(without_test_util))]
pub(crate) async fn other_clock(is_before: bool) -> (ManualClock, Timer) {
    let clock = ManualClock::new();
    if is_before {
        clock.advance(HOUR);
    } else {
        tokio::time::advance(HOUR).await;
    }
    let timer = Timer::builder().clock(clock.clone()).start();
    (clock, timer.expect("a timer"))
}

/// A timer whose counters must add up when the test drops it.
pub(crate) struct OwnTimer(Timer);

impl Deref for OwnTimer {
    type Target = Timer;

    fn deref(&self) -> &Timer {
        &self.0
    }
}

impl Drop for OwnTimer {
    fn drop(&mut self) {
        if !thread::panicking() {
            metrics(&self.0);
        }
    }
}

/// The errors of all calls that may be refused; each call must be refused.
#[track_caller]
pub(crate) fn refusals(timer: &Timer) -> [Error; 6] {
    let later = waterwheel::Instant::now() + ms(1);
    [
        timer.try_sleep(ms(1)).err(),
        timer.try_sleep_until(later).err(),
        timer.try_timeout(ms(1), pending::<()>()).err(),
        timer.try_timeout_at(later, pending::<()>()).err(),
        timer.try_interval(ms(1)).err(),
        timer.try_interval_at(later, ms(1)).err(),
    ]
    .map(|error| error.expect("the timer takes nothing"))
}

/// Checks at the end of a test that the timer's counters add up, and that nothing is pending.
#[track_caller]
pub(crate) fn assert_settled(timer: &Timer) -> Metrics {
    let metrics = metrics(timer);
    assert_eq!(metrics.pending(), 0, "{metrics}");
    metrics
}

/// Returns the metrics, which must add up.
#[track_caller]
pub(crate) fn metrics(timer: &Timer) -> Metrics {
    let metrics = timer.metrics();
    assert_eq!(
        metrics.armed(),
        metrics.fired() + metrics.cancelled() + metrics.stopped() + metrics.pending(),
        "{metrics}"
    );
    metrics
}
