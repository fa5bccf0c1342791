//! Each accepted job is counted in exactly one state at every moment.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};
use waterwheel_schedule::{Backoff, Event, JobControl, JobError, JobStatus, OnError, Scheduler};

use super::support::{Log, add_up, ms, paused, secs, within};

/// An action on the jobs, by the test or from inside one of them.
#[derive(Debug, Clone, Copy)]
enum Act {
    Cancel(usize),
    Abort(usize),
    Pause(usize),
    Resume(usize),
    Trigger(usize),
    Postpone(usize),
    Shutdown,
    ShutdownNow,
    KeepDelayed(bool),
    KeepPeriodic(bool),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Once,
    Retry,
    Rate,
    Delay,
    /// The job is due after its last instant.
    Never,
}

#[derive(Debug, Clone)]
enum Step {
    Submit {
        kind: Kind,
        /// Few values, so that many are due together.
        at: u64,
        /// How long a run takes; most runs finish at their first poll.
        takes: u64,
        fails: bool,
        in_group: bool,
        does: Option<Act>,
    },
    Do(Act),
    Wait(u64),
}

fn acts() -> impl Strategy<Value = Act> {
    let job = 0..40_usize;
    prop_oneof![
        6 => job.clone().prop_map(Act::Cancel),
        3 => job.clone().prop_map(Act::Abort),
        3 => job.clone().prop_map(Act::Pause),
        3 => job.clone().prop_map(Act::Resume),
        3 => job.clone().prop_map(Act::Trigger),
        3 => job.prop_map(Act::Postpone),
        1 => Just(Act::Shutdown),
        1 => Just(Act::ShutdownNow),
        1 => any::<bool>().prop_map(Act::KeepDelayed),
        1 => any::<bool>().prop_map(Act::KeepPeriodic),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    use Kind::{Delay, Never, Once, Rate, Retry};
    let kind = prop::sample::select(vec![Once, Once, Once, Once, Retry, Rate, Delay, Never]);
    let takes = prop::sample::select(vec![0, 0, 0, 3, 30]);
    let at = prop::sample::select(vec![1_u64, 10, 10, 10, 20]);
    let does = prop::option::weighted(0.3, acts());
    let (fails, in_group) = (any::<bool>(), prop::bool::weighted(0.2));
    let submit = (kind, at, takes, fails, in_group, does);
    prop_oneof![
        8 => submit.prop_map(|(kind, at, takes, fails, in_group, does)| {
            Step::Submit { kind, at, takes, fails, in_group, does }
        }),
        2 => acts().prop_map(Step::Do),
        1 => (0..15_u64).prop_map(Step::Wait),
    ]
}

struct World {
    scheduler: Scheduler,
    jobs: Mutex<Vec<JobControl>>,
    /// The number of runs that were reported to have started, but not to have finished.
    started: Arc<AtomicI64>,
}

impl World {
    fn act(&self, act: Act) {
        let on = |number: usize, act: fn(&JobControl) -> bool| {
            // A job that was not submitted yet is skipped.
            let job = self.jobs.lock().unwrap().get(number).cloned();
            if let Some(job) = job {
                act(&job);
            }
        };
        match act {
            Act::Cancel(number) => on(number, JobControl::cancel),
            Act::Abort(number) => on(number, JobControl::abort),
            Act::Pause(number) => on(number, JobControl::pause),
            Act::Resume(number) => on(number, JobControl::resume),
            Act::Trigger(number) => on(number, JobControl::trigger_now),
            Act::Postpone(number) => on(number, |job| job.reschedule_after(ms(5))),
            Act::Shutdown => self.scheduler.shutdown(),
            Act::ShutdownNow => drop(self.scheduler.shutdown_now()),
            Act::KeepDelayed(keep) => self.scheduler.keep_delayed(keep),
            Act::KeepPeriodic(keep) => self.scheduler.keep_periodic(keep),
        }
        self.check();
    }

    /// Checks the counts. No task runs meanwhile, and no run is between its closure and its report.
    fn check(&self) {
        let (counts, jobs) = (self.scheduler.counts(), self.scheduler.jobs());
        assert!(add_up(&counts), "{counts:?}");
        let running = jobs.iter().filter(|job| job.status == JobStatus::Running);
        let running = running.count() as u64;
        let pending = jobs.len() as u64 - running;
        assert_eq!((counts.running, counts.pending), (running, pending));
        assert_eq!(self.started.load(Ordering::SeqCst), running as i64);
    }
}

async fn play(steps: Vec<Step>, concurrency: Option<usize>) {
    let started = Arc::new(AtomicI64::new(0));
    let hook = Arc::clone(&started);
    let mut builder = Scheduler::builder().on_event(move |event| match event {
        Event::Started { .. } => drop(hook.fetch_add(1, Ordering::SeqCst)),
        Event::Finished { .. } => drop(hook.fetch_sub(1, Ordering::SeqCst)),
        _ => {}
    });
    if let Some(most) = concurrency {
        builder = builder.concurrency(most);
    }
    let scheduler = builder.build();
    let group = scheduler.group("two", 2);
    let start = Instant::now();
    let world = Arc::new(World {
        scheduler,
        jobs: Mutex::default(),
        started,
    });
    let (mut handles, mut refused) = (Vec::new(), 0);
    for step in steps {
        match step {
            Step::Do(act) => world.act(act),
            Step::Wait(millis) => sleep(ms(millis)).await,
            Step::Submit {
                kind,
                at,
                takes,
                fails,
                in_group,
                does,
            } => {
                let at = start + ms(at);
                let inside = Arc::clone(&world);
                let run = move |_| {
                    inside.check();
                    if let Some(act) = does {
                        inside.act(act);
                    }
                    async move {
                        if takes > 0 {
                            sleep(ms(takes)).await;
                        }
                        if fails { Err("on purpose") } else { Ok(()) }
                    }
                };
                let once = || match in_group {
                    true => world.scheduler.at(at).group(&group),
                    false => world.scheduler.at(at),
                };
                let on_error = OnError::Backoff(Backoff::new(ms(2), ms(4)).max_attempts(4));
                let taken = match kind {
                    Kind::Once => once().try_run(run),
                    Kind::Retry => {
                        let backoff = Backoff::new(ms(2), ms(4)).max_attempts(3);
                        once().retry(backoff).try_run(run)
                    }
                    Kind::Rate => {
                        let job = world.scheduler.every(ms(7)).first_at(at).max_runs(4);
                        job.on_error(on_error).try_run(run)
                    }
                    Kind::Delay => {
                        let job = world.scheduler.with_delay(ms(7)).first_at(at);
                        job.max_runs(3).try_run(run)
                    }
                    Kind::Never => {
                        let job = world.scheduler.every(ms(7)).first_at(at);
                        job.until(at - ms(1)).try_run(run)
                    }
                };
                match taken {
                    Ok(handle) => {
                        world.jobs.lock().unwrap().push(handle.control());
                        handles.push(handle);
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        world.check();
    }
    for job in &*world.jobs.lock().unwrap() {
        job.resume();
    }
    world.scheduler.drain().await;
    world.check();
    let counts = world.scheduler.counts();
    let taken = handles.len() as u64;
    assert_eq!((counts.submitted, counts.refused), (taken, refused));
    assert_eq!((counts.pending, counts.running), (0, 0));
    for handle in handles {
        assert!(handle.is_done());
        drop(handle.await);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_counts_add_up_after_every_step_and_in_every_run(
        steps in vec(steps(), 1..60),
        concurrency in prop::option::weighted(0.3, 1..4_usize),
    ) {
        paused().block_on(within(play(steps, concurrency)));
    }
}

// Two jobs are due together: the second start must not be reported before the first job has begun.
#[test]
fn a_start_is_reported_where_the_closure_is_called() {
    for (jobs, blocks) in [(2, false), (50, false), (2, true), (50, true)] {
        // A single thread runs them one after the other.
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(within(async {
            let log = Log::new();
            let hook = log.clone();
            let scheduler = Scheduler::builder()
                .on_event(move |event| match event {
                    Event::Started { name, .. } => hook.add(format!("start of {name:?}")),
                    Event::Finished { .. } => {}
                    other => panic!("{other:?}"),
                })
                .build();
            let at = Instant::now() + ms(5);
            let handles: Vec<_> = (0..jobs)
                .map(|number| {
                    let (job, calls) = (scheduler.at(at).name(format!("{number}")), log.clone());
                    let call = move |name| calls.add(format!("call of {name:?}"));
                    match blocks {
                        true => job.run_blocking(move |context| call(context.name())),
                        false => job.run(move |context| {
                            call(context.name());
                            async {}
                        }),
                    }
                })
                .collect();
            for job in handles {
                job.await.unwrap();
            }
            let expected = (0..jobs).flat_map(|number| {
                let name = Some(number.to_string());
                [format!("start of {name:?}"), format!("call of {name:?}")]
            });
            assert_eq!(log.lines(), expected.collect::<Vec<_>>());
        }));
    }
}

// tokio panics if there is no thread at all for blocking closures.
#[test]
fn a_run_that_finds_no_thread_has_failed() {
    let runtime = Builder::new_current_thread()
        .thread_stack_size(1 << 60)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(within(async {
        let scheduler = Scheduler::new();
        let once = scheduler.after(Duration::ZERO).run_blocking(|_| {});
        assert!(matches!(once.await, Err(JobError::Panicked(_))));
        let again = scheduler.every(secs(1)).first_after(Duration::ZERO);
        let again = again.run_blocking(|_| {});
        assert!(again.await.is_err());
        let counts = scheduler.counts();
        assert!(add_up(&counts), "{counts:?}");
        assert_eq!((counts.ended, counts.failed, counts.running), (2, 2, 0));
    }));
}
