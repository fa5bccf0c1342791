//! A model's substitute for the machine and for tokio: sleeps on the model's clock, tasks that run when the model runs them,
//! and the watchdog thread. The clock is `clock/model`.

#![cfg_attr(not(test), allow(dead_code))]

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::{Condvar, Mutex};
use loom::thread::{self, JoinHandle};
use tokio::runtime::Handle;
use tokio::time::{Duration, Instant};

use crate::clock::model::tokio_now;
use crate::driver::wakeup;

pub(super) use crate::clock::model::{at, millis as now, set as set_clock};

/// In words. loom's own stacks are an eighth of it, which a panic's message outgrows.
const STACK: usize = 0x8000;

loom::lazy_static! {
    static ref HOST: Mutex<Host> = Mutex::new(Host::default());
    static ref NUDGED: Condvar = Condvar::new();
}

#[derive(Default)]
struct Host {
    /// The sleeps that tokio's clock knows.
    sleeps: Vec<Entry>,
    last_id: u64,
    has_ended: bool,
    tasks: Vec<Spawned>,
    queue_length: usize,
    thread: Option<JoinHandle<()>>,
    has_no_threads: bool,
    nudges: Nudges,
    nudged: bool,
}

/// A task that the driver or a future has spawned.
pub(super) type Spawned = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Entry {
    id: u64,
    at: Instant,
    has_fired: bool,
    waker: Option<Waker>,
}

/// As good as never.
const FAR: Duration = Duration::from_secs(86_400 * 30);

/// When a tokio sleep fires that is moved to the past.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Nudges {
    /// The sleep fires on the thread that moves it, as it does if tokio's clock was turned just before.
    #[default]
    FireAtOnce,
    /// The sleep fires when tokio's clock is turned, by whichever worker waits on it.
    WaitForAWorker,
}

// ----- what the driver sees -----

/// A sleep on tokio's clock.
pub(in crate::driver) struct TokioSleep {
    /// Zero until it is first polled, and known to the clock.
    id: u64,
    at: Instant,
}

pub(in crate::driver) fn sleep_until(at: Instant) -> TokioSleep {
    TokioSleep { id: 0, at }
}

impl TokioSleep {
    pub(in crate::driver) fn is_elapsed(&self) -> bool {
        let host = HOST.lock().unwrap();
        host.sleeps.iter().any(|s| s.id == self.id && s.has_fired)
    }

    pub(in crate::driver) fn reset(mut self: Pin<&mut Self>, at: Instant) {
        self.at = at;
        let is_past = at <= tokio_now();
        let mut host = HOST.lock().unwrap();
        let fires_here = is_past && host.nudges == Nudges::FireAtOnce;
        if is_past {
            host.nudged = true;
            NUDGED.notify_all();
        }
        let Some(entry) = host.entry(self.id) else {
            return;
        };
        entry.at = at;
        entry.has_fired = fires_here;
        let waker = if fires_here { entry.waker.take() } else { None };
        drop(host);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Future for TokioSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let now = tokio_now();
        let mut host = HOST.lock().unwrap();
        if self.id == 0 {
            host.last_id += 1;
            self.id = host.last_id;
            let entry = Entry {
                id: self.id,
                at: self.at,
                has_fired: false,
                waker: None,
            };
            host.sleeps.push(entry);
        }
        let entry = host.entry(self.id).expect("it has just been added");
        entry.has_fired |= entry.at <= now;
        if entry.has_fired {
            return Poll::Ready(());
        }
        let replaced = entry.waker.replace(waker);
        drop(host);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for TokioSleep {
    fn drop(&mut self) {
        if self.id == 0 {
            return;
        }
        let mut host = HOST.lock().unwrap();
        let at = host.sleeps.iter().position(|s| s.id == self.id);
        let entry = at.map(|at| host.sleeps.swap_remove(at));
        drop(host);
        drop(entry);
    }
}

pub(in crate::driver) fn await_end_of_clock(
    _: &Handle,
    waker: Waker,
) -> Option<Pin<Box<TokioSleep>>> {
    if HOST.lock().unwrap().has_ended {
        return None;
    }
    let mut sleep = Box::pin(sleep_until(tokio_now() + FAR));
    let poll = sleep.as_mut().poll(&mut Context::from_waker(&waker));
    poll.is_pending().then_some(sleep)
}

/// No model runs a task of the home runtime.
pub(in crate::driver) fn runs_this_task(_: &Handle) -> bool {
    false
}

/// The model's milliseconds begin where its clock does.
pub(in crate::driver) fn is_processed_by_tokio(_: Instant) -> impl FnMut(Instant) -> bool {
    |instant| instant <= at(0)
}

pub(crate) fn spawn(_: &Handle, task: impl Future<Output = ()> + Send + 'static) {
    HOST.lock().unwrap().tasks.push(Box::pin(task));
}

pub(in crate::driver) fn queue_length(_: &Handle) -> usize {
    HOST.lock().unwrap().queue_length
}

pub(in crate::driver) fn start_watchdog(run: fn()) -> io::Result<()> {
    let mut host = HOST.lock().unwrap();
    if host.has_no_threads {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let before = host.thread.replace(spawn_thread(run));
    drop(host);
    // The thread is about to end, and needs nothing more from us.
    drop(before);
    Ok(())
}

// ----- what the models do with it -----

/// Moves the clock and turns tokio's.
pub(super) fn move_clock(millis: u64) {
    set_clock(millis);
    turn_tokios_clock();
}

/// Moves the clock and ends the watchdog thread's wait if it is over. No worker waits on tokio's clock.
pub(super) fn move_clock_for_thread(millis: u64) {
    set_clock(millis);
    wakeup::clock_has_moved();
}

/// Fires the sleeps that are due, as a worker does that waits on tokio's clock.
pub(super) fn turn_tokios_clock() {
    let now = tokio_now();
    let mut due = Vec::new();
    let mut host = HOST.lock().unwrap();
    for entry in &mut host.sleeps {
        if entry.at <= now && !entry.has_fired {
            entry.has_fired = true;
            due.extend(entry.waker.take());
        }
    }
    drop(host);
    due.into_iter().for_each(Waker::wake);
}

/// Ends tokio's clock, which wakes every sleep, as a runtime does that has dropped its tasks.
pub(super) fn end_clock() {
    let mut host = HOST.lock().unwrap();
    host.has_ended = true;
    let mut waiting = Vec::new();
    for entry in &mut host.sleeps {
        entry.has_fired = true;
        waiting.extend(entry.waker.take());
    }
    drop(host);
    waiting.into_iter().for_each(Waker::wake);
}

/// When the next of tokio's sleeps is due, but for the one that waits to be nudged.
pub(super) fn next_sleep() -> Option<u64> {
    let host = HOST.lock().unwrap();
    let waiting = host.sleeps.iter().filter(|s| !s.has_fired);
    let next = waiting
        .map(|s| s.at)
        .filter(|&s| s < at(86_400_000))
        .min()?;
    let since = next.saturating_duration_since(at(0));
    // Rounded up, as tokio does.
    Some(since.as_nanos().div_ceil(1_000_000) as u64)
}

/// Runs what was spawned until it ends. Returns how many there were.
pub(crate) fn run_tasks() -> usize {
    let tasks = take_tasks();
    let count = tasks.len();
    tasks.into_iter().for_each(run_to_the_end);
    count
}

/// Takes what was spawned, to be run by this thread.
pub(super) fn take_tasks() -> Vec<Spawned> {
    std::mem::take(&mut HOST.lock().unwrap().tasks)
}

pub(super) fn run_to_the_end(mut task: Spawned) {
    while poll_spawned(&mut task).is_pending() {}
}

/// Polls it once.
pub(super) fn poll_spawned(task: &mut Spawned) -> Poll<()> {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let poll = task.as_mut().poll(&mut Context::from_waker(&waker));
    let runs_again = woken.0.load(Ordering::Relaxed);
    assert!(
        poll.is_ready() || runs_again,
        "what is spawned waits for nothing"
    );
    poll
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// From now on, this many tasks wait in the queue that all workers take from.
pub(super) fn set_queue_length(tasks: usize) {
    HOST.lock().unwrap().queue_length = tasks;
}

pub(super) fn set_nudges(nudges: Nudges) {
    HOST.lock().unwrap().nudges = nudges;
}

/// Waits until a sleep of tokio's is moved to the past.
pub(super) fn wait_for_nudge() {
    let mut host = HOST.lock().unwrap();
    while !host.nudged {
        host = NUDGED.wait(host).unwrap();
    }
}

/// From now on the watchdog thread cannot be started.
pub(super) fn refuse_threads() {
    HOST.lock().unwrap().has_no_threads = true;
}

/// Waits until the watchdog thread has ended.
pub(super) fn join_watchdog() {
    let thread = HOST.lock().unwrap().thread.take();
    if let Some(thread) = thread {
        thread.join().expect("it does not panic");
    }
}

pub(crate) fn spawn_thread<R: Send + 'static>(
    run: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    let thread = thread::Builder::new().stack_size(STACK);
    thread.spawn(run).expect("loom has room for it")
}

impl Host {
    fn entry(&mut self, id: u64) -> Option<&mut Entry> {
        self.sleeps.iter_mut().find(|entry| entry.id == id)
    }
}
