//! A round: a scheduler, threads that use it, and its end.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use fastrand::Rng;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use waterwheel::Timer;
use waterwheel_schedule::{JobInfo, Scheduler};

use super::super::support::add_up;
use super::acts::{Pool, Shared, act};
use super::facts::Ground;
use super::home::Home;

const THREADS: usize = 3;
/// The number of operations of one thread.
const ACTS: usize = 120;
const ALL_ACTS: usize = THREADS * ACTS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Shutdown,
    ShutdownNow,
    Drain,
    /// The last scheduler is dropped.
    LastScheduler,
    /// The timer is stopped.
    Timer,
    /// The runtime ends.
    Runtime,
    /// Two of the others, at about the same time.
    Two,
}

impl End {
    /// Whether jobs that run once still run.
    pub(crate) fn spares_delayed(self) -> bool {
        matches!(self, End::Shutdown | End::Drain | End::LastScheduler)
    }
}

/// Runs a round, and returns its errors.
pub(crate) fn round(seed: u64, end: End) -> Vec<String> {
    let mut rng = Rng::with_seed(seed);
    let (home, others) = (Home::new(rng.usize(..3)), Home::new(1));
    let limits = [[1_000_000, 4, 1][rng.usize(..3)], 1, 2];
    let (scheduler, timer) = scheduler(&home, limits[0], &mut rng);
    let ground = Arc::new(Ground::new(limits));
    ground.make_groups(&scheduler);
    let (first, second) = ends(end, &mut rng);
    let at = rng.usize(..ALL_ACTS);
    let round = Round {
        end,
        ground,
        pool: Pool::default(),
        acts: AtomicUsize::new(0),
        at,
        timer,
        others: others.handle.clone(),
    };
    let (mut slot, mut home, mut drains) = (Some(scheduler.clone()), Some(home), Vec::new());
    let later = (at + rng.usize(..20)).min(ALL_ACTS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (scheduler, seed, round) = (scheduler.clone(), rng.u64(..), &round);
            scope.spawn(move || round.thread(scheduler, seed));
        }
        drop(scheduler);
        round.wait_for(at);
        drains.extend(round.finish(first, &mut slot, &mut home));
        if let Some(second) = second {
            round.wait_for(later);
            drains.extend(round.finish(second, &mut slot, &mut home));
        }
    });
    let faults = others.handle.block_on(round.judge(slot, drains, home));
    others.end();
    faults
}

fn scheduler(home: &Home, concurrency: i64, rng: &mut Rng) -> (Scheduler, Timer) {
    let _inside = home.handle.enter();
    let timer = match rng.bool() {
        true => Timer::builder().start().unwrap(),
        false => Timer::current(),
    };
    let mut builder = Scheduler::builder().timer(&timer);
    if concurrency < 1_000 {
        builder = builder.concurrency(concurrency as usize);
    }
    if rng.u8(..4) == 0 {
        builder = builder.max_pending(40);
    }
    (builder.build(), timer)
}

fn ends(end: End, rng: &mut Rng) -> (End, Option<End>) {
    if end != End::Two {
        return (end, None);
    }
    let ends = [End::Shutdown, End::ShutdownNow, End::Drain, End::Timer];
    let second = [ends[rng.usize(..4)], End::Runtime][rng.usize(..2)];
    (ends[rng.usize(..4)], Some(second))
}

struct Round {
    end: End,
    ground: Arc<Ground>,
    pool: Pool,
    /// The number of operations so far.
    acts: AtomicUsize,
    /// The number of operations after which the end comes.
    at: usize,
    timer: Timer,
    /// Where handles are awaited: a runtime that outlives the scheduler's.
    others: Handle,
}

impl Round {
    fn thread(&self, scheduler: Scheduler, seed: u64) {
        let (mut rng, mut scheduler) = (Rng::with_seed(seed), Some(scheduler));
        for _ in 0..ACTS {
            let acts = self.acts.fetch_add(1, SeqCst);
            if self.end == End::LastScheduler && acts >= self.at {
                scheduler = None;
            }
            let scheduler = scheduler.as_ref();
            act(scheduler, &self.ground, &self.pool, &self.others, &mut rng);
        }
    }

    fn wait_for(&self, acts: usize) {
        while self.acts.load(SeqCst) < acts {
            thread::yield_now();
        }
    }

    /// Ends the scheduler. A drain takes its time.
    fn finish(
        &self,
        end: End,
        slot: &mut Option<Scheduler>,
        home: &mut Option<Home>,
    ) -> Option<JoinHandle<()>> {
        let scheduler = slot.clone().expect("it is dropped at the end");
        match end {
            End::Shutdown => scheduler.shutdown(),
            End::ShutdownNow => self.note(&scheduler.shutdown_now()),
            End::Timer => {
                let _ = self.timer.shutdown();
            }
            End::Runtime => home.take().expect("it ends once").end(),
            End::Drain => {
                return Some(self.others.spawn(async move { scheduler.drain().await }));
            }
            // The threads drop their clones.
            End::LastScheduler => *slot = None,
            End::Two => unreachable!("it is two of the others"),
        }
        None
    }

    /// Notes the jobs that `shutdown_now` returned.
    fn note(&self, returned: &[JobInfo]) {
        let jobs = self.ground.jobs.lock().unwrap();
        for info in returned {
            let name = info.name.as_ref().expect("all have names");
            let job = &jobs[name.parse::<usize>().unwrap()];
            job.returned.fetch_add(1, SeqCst);
        }
    }

    /// Checks the round once the threads are done: everything that is left comes to its end.
    async fn judge(
        self,
        scheduler: Option<Scheduler>,
        drains: Vec<JoinHandle<()>>,
        home: Option<Home>,
    ) -> Vec<String> {
        let Round {
            end, ground, pool, ..
        } = self;
        let shared = pool.shared.into_inner().unwrap();
        for job in &shared {
            if job.handle.is_paused() {
                job.facts.count_cancel(job.handle.cancel());
            }
        }
        if let Some(scheduler) = &scheduler {
            scheduler.drain().await;
        }
        for drain in drains {
            drain.await.unwrap();
        }
        for job in shared {
            let Shared { facts, handle } = Arc::into_inner(job).expect("the threads are done");
            let result = handle.await;
            facts.judge(&result, end, &ground);
        }
        for (facts, task) in pool.awaited.into_inner().unwrap() {
            let result = task.await.unwrap();
            facts.judge(&result, end, &ground);
        }
        for ended in pool.ended.into_inner().unwrap() {
            ended.await.unwrap();
        }
        if let Some(scheduler) = &scheduler {
            let counts = scheduler.counts();
            let submitted = ground.jobs.lock().unwrap().len() as u64;
            let is_right = (counts.pending, counts.running) == (0, 0)
                && add_up(&counts)
                && counts.refused == ground.refused.load(SeqCst)
                && counts.submitted + counts.refused == submitted
                && scheduler.is_terminated()
                && scheduler.jobs().is_empty();
            ground.expect(is_right, || format!("{submitted} submitted, {counts:?}"));
        }
        drop(scheduler);
        if let Some(home) = home {
            home.end();
        }
        let is_drained = matches!(end, End::Shutdown | End::Drain);
        for facts in &*ground.jobs.lock().unwrap() {
            facts.judge_end(is_drained, &ground);
        }
        std::mem::take(&mut *ground.faults.lock().unwrap())
    }
}
