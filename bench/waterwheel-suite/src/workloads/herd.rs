//! `herd`: N tasks that sleep until the same instant, and a heartbeat that sleeps 1 ms again and again.
//!
//! Two figures: the time from that instant until the last of the tasks ran, and the longest gap between two beats that
//! overlaps that time (the gap includes the 1 ms of the sleep). The instant is set before the first task is spawned;
//! every task has been polled to `Pending` before it comes, or the sample is taken again with twice the time to arm.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::Instant;
use waterwheel_suite::{Absent, Metric, Sample, Target, Want};

use crate::contestant::{
    AsyncIo, Current, FuturesTimer, Measure, Own, PINGORA, PINGORA_IS_EARLY, Sleeps, Start, Tokio,
    TokioOnly, Watched, entrant,
};
use crate::lead;
use crate::patience;
use crate::stage::{BATCH, Stage};
use crate::targets::of_both;
use crate::workload::Workload;

const GAP: &str = "longest heartbeat gap";
const UNTIL_ALL_RAN: &str = "until all ran";
const METRICS: &[Metric] = &[Metric::lower(GAP, "ms"), Metric::lower(UNTIL_ALL_RAN, "ms")];
const BEAT: Duration = Duration::from_millis(1);
/// The minimum time from arming the last timer to the instant.
const CALM: Duration = Duration::from_millis(100);
/// The number of tasks that count down together before they touch the herd's own counters.
const GROUP: usize = 64;

pub(crate) fn title(tasks: usize) -> String {
    format!("herd, {tasks} tasks")
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    vec![workload(if quick { 100_000 } else { 1_000_000 })]
}

pub(crate) fn targets() -> Vec<Target> {
    [
        (GAP, Want::AtMost(4.0)),
        (GAP, Want::times(Tokio::NAME, 20.0)),
        (UNTIL_ALL_RAN, Want::share(Tokio::NAME, 0.6)),
    ]
    .into_iter()
    .flat_map(|(metric, want)| of_both(&title(1_000_000), metric, want))
    .collect()
}

fn workload(tasks: usize) -> Workload {
    let size = Size(tasks);
    Workload {
        title: title(tasks),
        work: "all asleep to one instant".to_owned(),
        metrics: METRICS,
        entrants: vec![
            entrant(size, || Tokio),
            entrant(size, Own::<Watched>::start),
            entrant(size, || Current),
            entrant(size, Own::<TokioOnly>::start),
            entrant(size, || AsyncIo),
            entrant(size, || FuturesTimer),
        ],
        absent: vec![Absent::new(PINGORA, PINGORA_IS_EARLY)],
    }
}

/// The number of tasks.
#[derive(Clone, Copy)]
struct Size(usize);

impl Measure for Size {
    fn sample<S: Sleeps>(self, start: impl Start<S>) -> Sample {
        let guess = CALM * 2 + Duration::from_nanos(1200) * self.0 as u32;
        lead::long_enough(guess, |lead| sample(start, self.0, lead))
    }
}

/// Takes a sample. `None` if the tasks were not armed in time.
fn sample<S: Sleeps>(start: impl Start<S>, tasks: usize, lead: Duration) -> Option<Sample> {
    let stage = Stage::new();
    let sleeps = stage.run(async move { start() });
    let herd = Arc::new(Herd::new(Instant::now() + lead, tasks));
    stage.run(spawn_tasks(sleeps.clone(), herd.clone(), tasks));
    if Instant::now() + CALM > herd.instant {
        return None;
    }
    let beats = stage.spawn(heartbeat(sleeps, herd.clone()));
    let heart_stopped = !patience::wait_for(|| beats.is_finished());
    let beats = if heart_stopped {
        Beats::default()
    } else {
        stage.wait(beats)
    };
    let until_all_ran = Duration::from_nanos(herd.all_ran_after.load(SeqCst));
    Some(Sample {
        values: vec![
            beats.longest_gap.as_secs_f64() * 1e3,
            until_all_ran.as_secs_f64() * 1e3,
        ],
        early: beats.early + herd.early.load(SeqCst),
        lost: herd.running.load(SeqCst) as u64 + u64::from(heart_stopped),
        ..Sample::default()
    })
}

/// Returns when every task has been polled once.
async fn spawn_tasks<S: Sleeps>(sleeps: S, herd: Arc<Herd>, tasks: usize) {
    for start in (0..tasks).step_by(GROUP) {
        let members = GROUP.min(tasks - start);
        let group = Arc::new(Group::new(herd.clone(), members));
        for _ in 0..members {
            tokio::spawn(asleep(sleeps.sleep_until(herd.instant), group.clone()));
        }
        if (start / GROUP) % (BATCH / GROUP) == 1 {
            yield_now().await;
        }
    }
    while herd.arming.load(SeqCst) > 0 {
        yield_now().await;
    }
}

/// One task of the herd.
async fn asleep(sleep: impl Future<Output = ()>, group: Arc<Group>) {
    let mut sleep = pin!(sleep);
    let mut armed = false;
    poll_fn(|context| {
        let polled = sleep.as_mut().poll(context);
        if !armed {
            armed = true;
            group.one_armed();
        }
        polled
    })
    .await;
    group.one_ran(Instant::now());
}

#[derive(Default)]
struct Beats {
    longest_gap: Duration,
    early: u64,
}

/// Beats until all tasks ran, including the beat that ends the last gap.
async fn heartbeat<S: Sleeps>(sleeps: S, herd: Arc<Herd>) -> Beats {
    let mut beats = Beats::default();
    let mut last = Instant::now();
    while !herd.all_ran.load(SeqCst) {
        sleeps.sleep(BEAT).await;
        let now = Instant::now();
        let gap = now - last;
        beats.early += u64::from(gap < BEAT);
        if now >= herd.instant {
            beats.longest_gap = beats.longest_gap.max(gap);
        }
        last = now;
    }
    beats
}

struct Herd {
    instant: Instant,
    arming: AtomicUsize,
    running: AtomicUsize,
    early: AtomicU64,
    all_ran: AtomicBool,
    /// The time from the instant until all ran, in nanoseconds.
    all_ran_after: AtomicU64,
}

impl Herd {
    fn new(instant: Instant, tasks: usize) -> Self {
        Self {
            instant,
            arming: AtomicUsize::new(tasks),
            running: AtomicUsize::new(tasks),
            early: AtomicU64::new(0),
            all_ran: AtomicBool::new(false),
            all_ran_after: AtomicU64::new(0),
        }
    }
}

/// Consecutively spawned tasks, which therefore mostly run on one worker. They share one reference to the herd and
/// touch its counters once: a million tasks on one contended counter would cost as much as the measured work.
struct Group {
    herd: Arc<Herd>,
    members: usize,
    arming: AtomicUsize,
    running: AtomicUsize,
}

impl Group {
    fn new(herd: Arc<Herd>, members: usize) -> Self {
        Self {
            herd,
            members,
            arming: AtomicUsize::new(members),
            running: AtomicUsize::new(members),
        }
    }

    fn one_armed(&self) {
        if self.arming.fetch_sub(1, SeqCst) == 1 {
            self.herd.arming.fetch_sub(self.members, SeqCst);
        }
    }

    fn one_ran(&self, now: Instant) {
        if now < self.herd.instant {
            self.herd.early.fetch_add(1, SeqCst);
        }
        if self.running.fetch_sub(1, SeqCst) != 1 {
            return;
        }
        let after = now.saturating_duration_since(self.herd.instant);
        self.herd
            .all_ran_after
            .fetch_max(after.as_nanos() as u64, SeqCst);
        if self.herd.running.fetch_sub(self.members, SeqCst) == self.members {
            self.herd.all_ran.store(true, SeqCst);
        }
    }
}
