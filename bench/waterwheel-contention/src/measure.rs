//! The measurements, each in a new runtime.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

use crate::heap::allocated;
use crate::timers::{Instant, Timers};

/// Far beyond the end of a measurement: all these timers are cancelled.
const LONG: Duration = Duration::from_secs(30);
/// The number of operations between two readings of the clock.
const BATCH: u32 = 128;
const BEAT: Duration = Duration::from_millis(1);
/// How long after its deadline a timer that has not fired is lost.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 5 } else { 20 });
/// The number of timers that each worker keeps pending while it arms and cancels others: without any, each new timer would be the earliest.
const HELD: u64 = 10_000;
/// The minimum time between arming the herd and its deadline.
const CALM: Duration = Duration::from_millis(30);

/// A figure, and the promises that were broken while it was measured.
pub(crate) struct Measured<F> {
    pub(crate) figure: F,
    pub(crate) failures: Vec<String>,
}

fn runtime(workers: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_time()
        .build()
}

/// The time that a worker takes to arm a sleep of 30 s and to cancel it, in nanoseconds, while all workers do so and each has 10 000
/// others pending.
pub(crate) fn arm_and_cancel<T: Timers>(
    workers: usize,
    window: Duration,
) -> io::Result<Measured<f64>> {
    let runtime = runtime(workers)?;
    let started = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..workers)
        .map(|_| {
            let started = Arc::clone(&started);
            runtime.spawn(async move {
                let mut ready = 0_u32;
                let mut held = Vec::new();
                for number in 0..HELD {
                    let mut sleep = Box::pin(T::sleep(LONG / 2 + Duration::from_millis(number)));
                    ready += u32::from(poll_once(sleep.as_mut()).await.is_ready());
                    held.push(sleep);
                }
                started.fetch_add(1, SeqCst);
                while started.load(SeqCst) < workers {
                    yield_now().await;
                }
                let (start, mut operations) = (Instant::now(), 0_u32);
                while start.elapsed() < window {
                    for _ in 0..BATCH {
                        ready += u32::from(poll_once(pin!(T::sleep(LONG))).await.is_ready());
                    }
                    operations += BATCH;
                    yield_now().await;
                }
                let taken = start.elapsed().as_nanos() as f64;
                drop(held);
                (taken / f64::from(operations), ready)
            })
        })
        .collect();
    runtime.block_on(async move {
        let (mut nanoseconds, mut failures) = (0.0, Vec::new());
        for task in tasks {
            let (of_one, ready) = task.await.map_err(io::Error::other)?;
            nanoseconds += of_one / workers as f64;
            if ready > 0 {
                failures.push(format!("{ready} sleeps of 15 s or more were ready at once"));
            }
        }
        failures.extend(T::complaint());
        Ok(Measured {
            figure: nanoseconds,
            failures,
        })
    })
}

async fn poll_once<F: Future<Output = ()>>(mut future: Pin<&mut F>) -> Poll<()> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// The heartbeat that runs next to the herd.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beats {
    /// The longest gap. `None` if the heartbeat stopped.
    pub(crate) longest_gap: Option<Duration>,
    /// The times of the beats, in seconds from the deadline of the herd.
    pub(crate) at: Vec<f64>,
}

/// Lets this many tasks sleep until the same instant, while a task sleeps 1 ms again and again. `None` if the machine was
/// too busy to arm them in time.
pub(crate) fn herd<T: Timers>(workers: usize, tasks: usize) -> io::Result<Option<Measured<Beats>>> {
    let mut lead =
        CALM * 3 + Duration::from_nanos(1_000) * u32::try_from(tasks).unwrap_or(u32::MAX);
    for _ in 0..3 {
        if let Some(measured) = herd_after::<T>(workers, tasks, lead)? {
            return Ok(Some(measured));
        }
        lead *= 2;
    }
    Ok(None)
}

fn herd_after<T: Timers>(
    workers: usize,
    tasks: usize,
    lead: Duration,
) -> io::Result<Option<Measured<Beats>>> {
    let runtime = runtime(workers)?;
    let herd = Arc::new(Herd {
        instant: Instant::now() + lead,
        armed: AtomicUsize::new(0),
        waiting: AtomicUsize::new(tasks),
        early: AtomicU64::new(0),
        is_over: AtomicBool::new(tasks == 0),
    });
    let spawned = runtime.spawn({
        let herd = Arc::clone(&herd);
        async move {
            for task in 0..tasks {
                tokio::spawn(Herd::asleep::<T>(Arc::clone(&herd)));
                if task % 256 == 255 {
                    yield_now().await;
                }
            }
            while herd.armed.load(SeqCst) < tasks {
                yield_now().await;
            }
        }
    });
    runtime.block_on(spawned).map_err(io::Error::other)?;
    if Instant::now() + CALM > herd.instant {
        runtime.shutdown_background();
        return Ok(None);
    }
    let (done, ended) = mpsc::channel();
    runtime.spawn({
        let herd = Arc::clone(&herd);
        async move {
            let beats = herd.heartbeat::<T>().await;
            // The receiver is gone if it ran out of patience.
            let _ = done.send((beats, T::complaint()));
        }
    });
    let mut failures = Vec::new();
    let figure = match ended.recv_timeout(lead + PATIENCE) {
        Ok((beats, complaint)) => {
            failures.extend(complaint);
            beats
        }
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            let waiting = herd.waiting.load(SeqCst);
            failures.push(format!(
                "{waiting} of {tasks} timers never fired, or the heartbeat stopped"
            ));
            // No figure, so that it wins nothing.
            Beats::default()
        }
    };
    let early = herd.early.load(SeqCst);
    if early > 0 {
        failures.push(format!("{early} timers fired before their deadline"));
    }
    runtime.shutdown_background();
    Ok(Some(Measured { figure, failures }))
}

struct Herd {
    instant: Instant,
    armed: AtomicUsize,
    waiting: AtomicUsize,
    early: AtomicU64,
    is_over: AtomicBool,
}

impl Herd {
    async fn asleep<T: Timers>(herd: Arc<Herd>) {
        let mut sleep = pin!(T::sleep_until(herd.instant));
        let mut is_armed = false;
        poll_fn(|context: &mut Context<'_>| {
            let polled = sleep.as_mut().poll(context);
            if !is_armed {
                is_armed = true;
                herd.armed.fetch_add(1, SeqCst);
            }
            polled
        })
        .await;
        if Instant::now() < herd.instant {
            herd.early.fetch_add(1, SeqCst);
        }
        if herd.waiting.fetch_sub(1, SeqCst) == 1 {
            herd.is_over.store(true, SeqCst);
        }
    }

    /// Beats until the whole herd has run; the beat after that ends the last gap.
    async fn heartbeat<T: Timers>(&self) -> Beats {
        let mut beats = Beats::default();
        let mut last = Instant::now();
        while !self.is_over.load(SeqCst) {
            T::sleep(BEAT).await;
            let now = Instant::now();
            if now - last < BEAT {
                self.early.fetch_add(1, SeqCst);
            }
            if now >= self.instant {
                beats.longest_gap = beats.longest_gap.max(Some(now - last));
            }
            let before = self.instant.saturating_duration_since(now);
            let after = now.saturating_duration_since(self.instant);
            beats.at.push(after.as_secs_f64() - before.as_secs_f64());
            last = now;
        }
        beats
    }
}

/// The heap that each of this many pending boxed sleeps takes, in bytes: the sleep, and the timer's own data for it.
pub(crate) fn heap<T: Timers>(sleeps: usize) -> io::Result<Measured<f64>> {
    let runtime = runtime(1)?;
    runtime.block_on(async {
        // The timer is started before its memory is counted, with no room for the sleeps that follow.
        let _ = poll_once(pin!(T::sleep(LONG))).await;
        let mut held: Vec<Pin<Box<T::Sleep>>> = Vec::with_capacity(sleeps);
        let before = allocated();
        let mut failures = Vec::new();
        for _ in 0..sleeps {
            let mut sleep = Box::pin(T::sleep(LONG));
            if poll_once(sleep.as_mut()).await.is_ready() {
                failures.push("a sleep of 30 s was ready at once".to_owned());
            }
            held.push(sleep);
        }
        let bytes = allocated().saturating_sub(before);
        drop(held);
        failures.extend(T::complaint());
        Ok(Measured {
            figure: bytes as f64 / sleeps as f64,
            failures,
        })
    })
}

/// The median lateness of timers that fire at 1000 a second, in milliseconds.
pub(crate) fn lateness<T: Timers>(workers: usize, timers: u32) -> io::Result<Measured<f64>> {
    let runtime = runtime(workers)?;
    let (late, lateness) = mpsc::channel();
    let start = Instant::now() + Duration::from_millis(20);
    for timer in 0..timers {
        let late = late.clone();
        // 997 µs, so that the deadlines do not all fall on the same part of a millisecond.
        let deadline = start + Duration::from_micros(997) * timer;
        runtime.spawn(async move {
            T::sleep_until(deadline).await;
            let now = Instant::now();
            let _ = late.send(now.checked_duration_since(deadline));
        });
    }
    drop(late);
    let end = start + Duration::from_millis(1) * timers + PATIENCE;
    let (mut milliseconds, mut early) = (Vec::new(), 0);
    while let Ok(late) = lateness.recv_timeout(end.saturating_duration_since(Instant::now())) {
        match late {
            Some(late) => milliseconds.push(late.as_secs_f64() * 1e3),
            None => early += 1,
        }
    }
    let mut failures = Vec::new();
    let fired = milliseconds.len() + early;
    if fired < timers as usize {
        failures.push(format!(
            "{} of {timers} timers never fired",
            timers as usize - fired
        ));
    }
    if early > 0 {
        failures.push(format!("{early} timers fired before their deadline"));
    }
    milliseconds.sort_by(f64::total_cmp);
    let figure = milliseconds
        .get(milliseconds.len() / 2)
        .copied()
        .unwrap_or(f64::NAN);
    runtime.shutdown_background();
    Ok(Measured { figure, failures })
}
