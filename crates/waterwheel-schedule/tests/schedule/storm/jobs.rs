//! Random jobs of all kinds.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, SystemTime};

use fastrand::Rng;
use tokio::task::yield_now;
use waterwheel_schedule::{
    Backoff, Context, JobHandle, Misfire, OnError, Repeat, Scheduler, SubmitError,
};

use super::facts::{Facts, Ground, Held, Kind, Live};

pub(crate) fn us(most: u64, rng: &mut Rng) -> Duration {
    Duration::from_micros(rng.u64(0..=most))
}

/// Submits a job. Refusals are checked here.
pub(crate) fn submit(
    scheduler: &Scheduler,
    ground: &Arc<Ground>,
    rng: &mut Rng,
) -> Option<(Arc<Facts>, JobHandle<()>)> {
    let kind = [
        Kind::Once,
        Kind::Once,
        Kind::Once,
        Kind::Retry,
        Kind::Repeat,
    ][rng.usize(..5)];
    let group = [None, None, Some(0), Some(1)][rng.usize(..4)];
    let facts = {
        let mut jobs = ground.jobs.lock().unwrap();
        let facts = Facts::new(jobs.len(), kind, rng.u8(..8) == 0, group);
        jobs.push(Arc::new(facts));
        Arc::clone(&jobs[jobs.len() - 1])
    };
    let was_over = scheduler.is_shutdown();
    let submitted = match kind {
        Kind::Once => once(scheduler, ground, &facts, rng),
        Kind::Retry => retry(scheduler, ground, &facts, rng),
        Kind::Repeat => repeat(scheduler, ground, &facts, rng),
    };
    match submitted {
        Ok(handle) => {
            facts.was_taken.store(true, SeqCst);
            ground.expect(!was_over, || format!("taken after the end: {facts:?}"));
            Some((facts, handle))
        }
        Err(error) => {
            ground.refused.fetch_add(1, SeqCst);
            let is_right = match error.is_shutdown() {
                true => scheduler.is_shutdown(),
                false => error.is_at_capacity() && !was_over,
            };
            ground.expect(is_right, || format!("{error} of {facts:?}"));
            None
        }
    }
}

/// Sets the options that all kinds have.
macro_rules! with_options {
    ($job:expr, $ground:expr, $facts:expr, $rng:expr) => {{
        let mut job = $job.name($facts.id.to_string());
        if let Some(group) = $facts.group {
            job = job.group(&$ground.groups()[group]);
        }
        match $rng.u8(..8) {
            0 => job = job.time_limit(us(2_000, $rng)),
            1 => job = job.jitter(us(300, $rng)),
            _ => {}
        }
        job
    }};
}

fn once(
    scheduler: &Scheduler,
    ground: &Arc<Ground>,
    facts: &Arc<Facts>,
    rng: &mut Rng,
) -> Result<JobHandle<()>, SubmitError> {
    let delay = us(1_500, rng);
    let job = match rng.u8(..6) {
        0 => scheduler.at_wall(SystemTime::now() + delay),
        1 => scheduler.after(Duration::ZERO),
        _ => scheduler.after(delay),
    };
    let job = with_options!(job, ground, facts, rng);
    let work = Work::new(facts, ground, rng);
    match facts.blocks {
        true => job.try_run_blocking(move |context| work.block(&context)),
        false => job.try_run(move |context| work.run(context)),
    }
}

fn retry(
    scheduler: &Scheduler,
    ground: &Arc<Ground>,
    facts: &Arc<Facts>,
    rng: &mut Rng,
) -> Result<JobHandle<()>, SubmitError> {
    let backoff = Backoff::new(us(300, rng), us(600, rng)).max_attempts(4);
    let job = scheduler.after(us(1_000, rng)).retry(backoff);
    let job = with_options!(job, ground, facts, rng);
    let work = Work::new(facts, ground, rng);
    match facts.blocks {
        true => job.try_run_blocking(move |context| work.block(&context)),
        false => job.try_run(move |context| work.run(context)),
    }
}

fn repeat(
    scheduler: &Scheduler,
    ground: &Arc<Ground>,
    facts: &Arc<Facts>,
    rng: &mut Rng,
) -> Result<JobHandle<()>, SubmitError> {
    let period = us(800, rng) + Duration::from_micros(1);
    let job: Repeat<'_> = match rng.bool() {
        true => scheduler.every(period),
        false => scheduler.with_delay(period),
    };
    let misfire = [Misfire::Skip, Misfire::Once, Misfire::CatchUpTo(2)];
    let backoff = OnError::Backoff(Backoff::new(us(300, rng), us(600, rng)).max_attempts(10));
    let on_error = [OnError::End, OnError::Continue, backoff];
    let job = with_options!(job, ground, facts, rng)
        .max_runs(rng.u64(1..6))
        .misfire(misfire[rng.usize(..3)])
        .on_error(on_error[rng.usize(..3)].clone());
    let work = Work::new(facts, ground, rng);
    match facts.blocks {
        true => job.try_run_blocking(move |context| work.block(&context)),
        false => job.try_run(move |context| work.run(context)),
    }
}

/// The closure of a job, with its checks.
struct Work {
    held: Held,
    ground: Arc<Ground>,
    seed: u64,
}

impl Work {
    fn new(facts: &Arc<Facts>, ground: &Arc<Ground>, rng: &mut Rng) -> Work {
        Work {
            held: Held(Arc::clone(facts)),
            ground: Arc::clone(ground),
            seed: rng.u64(..),
        }
    }

    fn run(&self, context: Context) -> impl Future<Output = Result<(), &'static str>> + use<> {
        let (live, mut rng) = self.begin(&context);
        let (facts, ground) = (Arc::clone(&self.held.0), Arc::clone(&self.ground));
        async move {
            let _live = live;
            match rng.u8(..10) {
                0 => tokio::time::sleep(us(1_000, &mut rng)).await,
                1 => {
                    let token = context.token();
                    let limit = us(1_000, &mut rng);
                    let _ = tokio::time::timeout(limit, token.cancelled()).await;
                }
                2 => {
                    facts.count_cancel(context.cancel());
                }
                // Submits few enough that they come to an end.
                3 => drop(submit(&context.scheduler(), &ground, &mut rng)),
                n @ 4..7 => {
                    for _ in 4..n {
                        yield_now().await;
                    }
                }
                _ => {}
            }
            outcome(&mut rng)
        }
    }

    fn block(&self, context: &Context) -> Result<(), &'static str> {
        let (_live, mut rng) = self.begin(context);
        std::thread::sleep(us(300, &mut rng));
        outcome(&mut rng)
    }

    fn begin(&self, context: &Context) -> (Live, Rng) {
        let live = Live::begin(&self.held.0, &self.ground, context);
        let rng = Rng::with_seed(self.seed ^ context.run() ^ u64::from(context.attempt()) << 32);
        (live, rng)
    }
}

fn outcome(rng: &mut Rng) -> Result<(), &'static str> {
    match rng.u8(..6) {
        0 => Err("an error"),
        // Prints nothing, unlike `panic!`.
        1 => std::panic::resume_unwind(Box::new("on purpose")),
        _ => Ok(()),
    }
}
