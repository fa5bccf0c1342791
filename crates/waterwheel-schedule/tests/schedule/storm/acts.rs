//! The operations of a thread on its own jobs and on those of other threads.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread;

use fastrand::Rng;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use waterwheel_schedule::{JobError, JobHandle, Scheduler};

use super::super::support::add_up;
use super::facts::{Facts, Ground};
use super::jobs::{submit, us};

/// A job that every thread may reach.
pub(crate) struct Shared {
    pub(crate) facts: Arc<Facts>,
    pub(crate) handle: JobHandle<()>,
}

pub(crate) type Awaited = (Arc<Facts>, JoinHandle<Result<(), JobError>>);

/// The jobs whose results are to be checked. The others are detached.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) shared: Mutex<Vec<Arc<Shared>>>,
    /// Tasks that poll the handles from the beginning.
    pub(crate) awaited: Mutex<Vec<Awaited>>,
    /// Tasks that wait for the end of a job via its control, with or without a handle.
    pub(crate) ended: Mutex<Vec<JoinHandle<()>>>,
}

/// Performs one operation.
pub(crate) fn act(
    scheduler: Option<&Scheduler>,
    ground: &Arc<Ground>,
    pool: &Pool,
    other_runtime: &Handle,
    rng: &mut Rng,
) {
    if let Some(scheduler) = scheduler {
        let counts = scheduler.counts();
        ground.expect(add_up(&counts), || format!("at some moment: {counts:?}"));
    }
    let submits = rng.u8(..3) > 0;
    if let Some(scheduler) = scheduler.filter(|_| submits) {
        if let Some((facts, handle)) = submit(scheduler, ground, rng) {
            pool.keep(facts, handle, other_runtime, rng);
        }
    } else if let Some(job) = pool.any(rng) {
        control(&job, ground, rng);
    }
    match rng.u8(..24) {
        0 => thread::sleep(us(300, rng)),
        1..4 => thread::yield_now(),
        _ => {}
    }
}

impl Pool {
    fn keep(&self, facts: Arc<Facts>, handle: JobHandle<()>, awaits: &Handle, rng: &mut Rng) {
        if rng.u8(..4) == 0 {
            let ended = awaits.spawn(handle.control().ended());
            self.ended.lock().unwrap().push(ended);
        }
        match rng.u8(..8) {
            0 => drop(handle),
            1 | 2 => {
                let awaited = (facts, awaits.spawn(handle));
                self.awaited.lock().unwrap().push(awaited);
            }
            _ => {
                let shared = Arc::new(Shared { facts, handle });
                self.shared.lock().unwrap().push(shared);
            }
        }
    }

    /// A job, mostly one of the latest, which still have something ahead of them.
    fn any(&self, rng: &mut Rng) -> Option<Arc<Shared>> {
        let jobs = self.shared.lock().unwrap();
        let from = match rng.bool() {
            true => jobs.len().saturating_sub(8),
            false => 0,
        };
        let latest = &jobs[from..];
        (!latest.is_empty()).then(|| Arc::clone(&latest[rng.usize(..latest.len())]))
    }
}

fn control(job: &Shared, ground: &Ground, rng: &mut Rng) {
    let (facts, handle) = (&job.facts, &job.handle);
    let was_done = handle.is_done();
    let did = match rng.u8(..10) {
        0 => facts.count_cancel(handle.cancel()),
        1 => {
            let did = handle.abort();
            facts.was_aborted.fetch_or(did, SeqCst);
            did
        }
        2 | 3 => {
            // Counted before the pause, because a shutdown may follow it immediately.
            facts.pauses.fetch_add(1, SeqCst);
            let did = handle.pause();
            facts.pauses.fetch_sub(u64::from(!did), SeqCst);
            did
        }
        4 | 5 => handle.resume(),
        6 | 7 => handle.trigger_now(),
        8 => handle.reschedule_after(us(1_500, rng)),
        _ => handle.reschedule_at(Instant::now()),
    };
    ground.expect(!(was_done && did), || {
        format!("moved after its end: {facts:?}")
    });
    // These calls must work, whatever happens meanwhile.
    let _ = (handle.next_run(), handle.is_running(), handle.runs());
}
