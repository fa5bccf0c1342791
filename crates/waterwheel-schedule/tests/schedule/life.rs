//! Shutdowns, and the ends of timers and runtimes.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};
use waterwheel::{ManualClock, Timer};
use waterwheel_schedule::{JobError, JobHandle, Scheduler};

use super::support::{
    HOUR, Log, add_up, all_end_well, all_shut_down, jumps_to_a_deadline, ms, multi_thread, paused,
    secs, within,
};

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_delayed_jobs_run_and_periodic_ones_end() {
    let scheduler = Scheduler::new();
    let delayed = scheduler.after(ms(100)).run(|_| async {});
    let periodic = scheduler.every(ms(10)).run(|_| async {});
    let running = scheduler.every(ms(5)).run(|_| sleep(ms(50)));
    sleep(ms(8)).await;
    scheduler.shutdown();
    assert!(scheduler.is_shutdown() && !scheduler.is_terminated());
    assert!(periodic.is_done() && running.is_running());
    let refused = scheduler.after(ms(1)).try_run(|_| async {}).unwrap_err();
    assert!(refused.is_shutdown() && refused.to_string().contains("shut down"));
    assert!(!scheduler.await_termination(ms(10)).await);
    let waited = Instant::now();
    assert!(scheduler.await_termination(HOUR).await);
    assert_eq!(waited.elapsed(), ms(82));
    assert!(scheduler.is_terminated());
    delayed.await.unwrap();
    assert!(matches!(periodic.await, Err(JobError::Shutdown)));
    assert_eq!(running.runs(), 1);
    assert!(matches!(running.await, Err(JobError::Shutdown)));
    // Shuts down again, with no job left.
    scheduler.shutdown();
    assert!(scheduler.shutdown_now().is_empty());
    assert!(scheduler.await_termination(Duration::ZERO).await);
}

#[tokio::test(start_paused = true)]
async fn both_policies_can_be_set_and_changed_after_a_shutdown() {
    let scheduler = Scheduler::new();
    scheduler.keep_periodic(true);
    scheduler.keep_delayed(false);
    let delayed = scheduler.after(ms(100)).run(|_| async {});
    let periodic = scheduler.every(ms(10)).run(|_| async {});
    scheduler.shutdown();
    assert!(delayed.is_done() && !periodic.is_done());
    sleep(ms(95)).await;
    assert_eq!(periodic.runs(), 9);
    scheduler.keep_periodic(false);
    assert!(periodic.is_done());
    assert!(
        scheduler.await_termination(Duration::ZERO).await
            || scheduler.await_termination(ms(1)).await
    );

    let other = Scheduler::new();
    let delayed = other.after(ms(100)).run(|_| async {});
    other.shutdown();
    assert!(!delayed.is_done());
    other.keep_delayed(false);
    assert!(matches!(delayed.await, Err(JobError::Shutdown)));
}

// In Java, `get` waits forever for the tasks that `shutdownNow` returns.
#[tokio::test(start_paused = true)]
async fn shutdown_now_returns_what_never_ran_and_ends_every_handle() {
    let scheduler = Scheduler::builder().concurrency(1).build();
    let group = scheduler.group("one", 1);
    let running = scheduler.after(ms(1)).name("running");
    let running = running.run(|context| async move { context.token().cancelled().await });
    let queued = scheduler.after(ms(2)).name("queued").run(|_| async {});
    let [in_group, behind] = ["in group", "behind"].map(|name| {
        let job = scheduler.after(ms(2)).name(name).group(&group);
        job.run(|_| async {})
    });
    let waiting = scheduler.every(HOUR).name("waiting").run(|_| async {});
    let held = scheduler.after(HOUR).name("paused").run(|_| async {});
    held.pause();
    sleep(ms(10)).await;
    let never = scheduler.shutdown_now().into_iter();
    let mut never: Vec<_> = never.map(|job| job.name.unwrap().to_string()).collect();
    never.sort();
    assert_eq!(never, ["behind", "in group", "paused", "queued", "waiting"]);
    assert!(scheduler.shutdown_now().is_empty());
    for job in [queued, in_group, behind, waiting, held] {
        let error = job.await.unwrap_err();
        assert!(matches!(error, JobError::Shutdown) && error.is_cancelled());
    }
    running.await.unwrap();
    assert!(scheduler.await_termination(ms(1)).await);
    assert_eq!(scheduler.counts().finished, 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_the_delayed_jobs() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let jobs: Vec<_> = (1..=5)
        .map(|n| scheduler.after(secs(n)).run(|_| sleep(ms(500))))
        .collect();
    scheduler.drain().await;
    assert_eq!(start.elapsed(), ms(5_500));
    all_end_well(jobs).await;
    // An idle scheduler can be drained.
    Scheduler::new().drain().await;
    assert_eq!(start.elapsed(), ms(5_500));
}

#[tokio::test(start_paused = true)]
async fn a_job_may_shut_its_scheduler_down() {
    let scheduler = Scheduler::new();
    let job = scheduler.every(ms(10)).run(|context| async move {
        assert!(context.scheduler().shutdown_now().len() == 1);
    });
    let other = scheduler.after(HOUR).run(|_| async {});
    assert!(matches!(
        job.await,
        Err(JobError::Cancelled | JobError::Shutdown)
    ));
    assert!(matches!(other.await, Err(JobError::Shutdown)));
    assert!(scheduler.await_termination(ms(1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_is_stopped_ends_what_waits() {
    let timer = Timer::builder().start().unwrap();
    let scheduler = Scheduler::builder().timer(&timer).build();
    let running = scheduler.after(ms(1)).run(|_| sleep(ms(100)));
    let waiting = scheduler.after(HOUR).run(|_| async {});
    sleep(ms(10)).await;
    timer.shutdown();
    assert!(matches!(waiting.await, Err(JobError::Shutdown)));
    running.await.unwrap();
    let refused = scheduler.after(ms(1)).try_run(|_| async {});
    assert!(refused.unwrap_err().is_shutdown());
    scheduler.drain().await;

    // This timer was stopped before its scheduler slept.
    let late = Scheduler::builder().timer(&timer).build();
    match late.after(ms(1)).try_run(|_| async {}) {
        Ok(job) => assert!(matches!(job.await, Err(JobError::Shutdown))),
        Err(error) => assert!(error.is_shutdown()),
    }
}

#[test]
fn the_end_of_the_runtime_ends_every_handle() {
    let held = Arc::new(());
    let (waiting, running, scheduler) = {
        let runtime = paused();
        runtime.block_on(async {
            let scheduler = Scheduler::new();
            let payload = Arc::clone(&held);
            let waiting = scheduler
                .after(HOUR)
                .run(move |_| async move { drop(payload) });
            let payload = Arc::clone(&held);
            let running = scheduler.every(ms(1)).run(move |_| {
                let payload = Arc::clone(&payload);
                async move {
                    sleep(HOUR).await;
                    drop(payload);
                }
            });
            sleep(ms(10)).await;
            (waiting, running, scheduler)
        })
    };
    assert_eq!(Arc::strong_count(&held), 1, "closures and futures are gone");
    paused().block_on(async {
        all_shut_down([waiting, running]).await;
        assert!(scheduler.is_terminated());
        let refused = scheduler.after(ms(1)).try_run(|_| async {});
        assert!(refused.unwrap_err().is_shutdown());
        assert!(scheduler.jobs().is_empty() && scheduler.shutdown_now().is_empty());
        let counts = scheduler.counts();
        assert_eq!((counts.pending, counts.running), (0, 0));
        assert!(scheduler.await_termination(HOUR).await);
        scheduler.drain().await;
    });
}

// Each job runs, or its submission is refused. Each round meets the shutdown at a different point.
#[test]
fn a_submission_beside_a_shutdown_runs_or_is_refused() {
    multi_thread().block_on(within(async {
        for round in 0..200_u64 {
            let (scheduler, log) = (Scheduler::new(), Log::new());
            let submitter = tokio::spawn({
                let (scheduler, log) = (scheduler.clone(), log.clone());
                async move {
                    let mut taken: Vec<JobHandle<()>> = Vec::new();
                    for n in 0.. {
                        let log = log.clone();
                        match scheduler
                            .after(Duration::ZERO)
                            .try_run(move |_| async move { log.add(n) })
                        {
                            Ok(job) => taken.push(job),
                            Err(error) => {
                                assert!(error.is_shutdown());
                                break;
                            }
                        }
                        tokio::task::yield_now().await;
                    }
                    taken
                }
            });
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            scheduler.drain().await;
            let taken = submitter.await.unwrap();
            let count = taken.len();
            all_end_well(taken).await;
            assert_eq!(log.len(), count);
        }
    }));
}

// The pause would take effect after the run, and no run would end it.
#[tokio::test(start_paused = true)]
async fn a_job_paused_while_it_runs_does_not_hold_a_shutdown_up() {
    let scheduler = Scheduler::new();
    scheduler.keep_periodic(true);
    let job = scheduler.every(ms(10)).run(|_| sleep(ms(5)));
    sleep(ms(12)).await;
    assert!(job.is_running() && job.pause());
    scheduler.drain().await;
    assert!(matches!(job.await, Err(JobError::Shutdown)));
    let other = Scheduler::new();
    let job = other.after(ms(10)).run(|_| async {});
    other.shutdown();
    assert!(!job.pause(), "it would never run");
    other.drain().await;
    job.await.unwrap();
}

// A paused clock would jump to the deadline of a job that is gone.
#[tokio::test(start_paused = true)]
async fn a_scheduler_without_jobs_holds_no_deadline() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let jobs = [
        scheduler.after(HOUR).run(|_| async {}),
        scheduler.every(HOUR).run(|_| async {}),
    ];
    sleep(ms(1)).await;
    assert!(jobs[0].cancel() && jobs[1].pause());
    jumps_to_a_deadline().await;
    assert_eq!(start.elapsed(), ms(1));
}

#[test]
fn a_scheduler_is_built_outside_of_its_runtime() {
    let runtime = paused();
    let scheduler = Scheduler::builder().runtime(runtime.handle()).build();
    let job = scheduler.after(HOUR);
    let job = job.run_value(|_| async { (Handle::current().id(), Instant::now()) });
    let repeats = scheduler.every(secs(1)).max_runs(3).run(|_| async {});
    let blocks = scheduler.after(secs(1)).time_limit(secs(1));
    let blocks = blocks.run_blocking_value(|_| Handle::current().id());
    runtime.block_on(async {
        let start = Instant::now();
        let (id, at) = job.await.unwrap();
        // Its clock is that of the runtime: it jumped.
        assert_eq!((id, at - start), (Handle::current().id(), HOUR));
        repeats.await.unwrap();
        assert_eq!(blocks.await.unwrap(), id);
    });
    scheduler.shutdown();
    runtime.block_on(scheduler.drain());
}

// Built in one runtime for another one: its jobs and its time belong to the other one.
#[test]
fn a_runtime_that_is_set_comes_before_the_current_one() {
    let (home, other) = (paused(), multi_thread());
    let (scheduler, job) = other.block_on(async {
        let scheduler = Scheduler::builder().runtime(home.handle()).build();
        let job = scheduler
            .after(HOUR)
            .run_value(|_| async { Handle::current().id() });
        (scheduler, job)
    });
    home.block_on(async {
        // If its timer belonged to the other one, this clock would jump to the limit.
        let found = timeout(2 * HOUR, job).await.expect("an hour is over");
        assert_eq!(found.unwrap(), home.handle().id());
        drop(scheduler);
    });
}

#[test]
fn a_runtime_without_time_takes_a_timer_of_its_own() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone());
    let timer = timer.start_on(runtime.handle()).unwrap();
    let builder = Scheduler::builder().timer(&timer).runtime(runtime.handle());
    let scheduler = builder.build();
    let job = scheduler.after(HOUR).run_value(|_| async { 7 });
    clock.advance(HOUR);
    assert_eq!(runtime.block_on(job).unwrap(), 7);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "without `max_pending`")]
async fn a_timer_with_a_bound_is_refused() {
    let timer = Timer::builder().max_pending(10).start().unwrap();
    let _ = Scheduler::builder().timer(&timer).build();
}

// Its permit of the group must not go to a job that the shutdown also ends.
#[tokio::test(start_paused = true)]
async fn a_shutdown_gives_the_places_of_what_it_ends_to_what_stays() {
    let scheduler = Scheduler::builder().concurrency(1).build();
    let group = scheduler.group("one", 1);
    let running = scheduler.after(ms(1)).run(|_| sleep(ms(50)));
    let ended: Vec<_> = (2..5)
        .map(|n| scheduler.every(ms(n)).group(&group).run(|_| async {}))
        .collect();
    let stays = scheduler.after(ms(6)).group(&group).run(|_| async {});
    sleep(ms(10)).await;
    scheduler.drain().await;
    running.await.unwrap();
    stays.await.unwrap();
    all_shut_down(ended).await;
}

// The closure returns from its thread to a job that has ended.
#[test]
fn a_closure_that_runs_beyond_its_runtime_is_dropped_then() {
    let held = Arc::new(());
    let payload = Arc::clone(&held);
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (begins, begun) = std::sync::mpsc::channel();
    let runtime = multi_thread();
    let (scheduler, job) = {
        let _inside = runtime.enter();
        let scheduler = Scheduler::new();
        let job = scheduler.every(HOUR).first_after(Duration::ZERO);
        let job = job.run_blocking(move |_| {
            begins.send(Arc::downgrade(&payload)).unwrap();
            let _ = released.recv();
        });
        (scheduler, job)
    };
    let payload = begun.recv().unwrap();
    runtime.shutdown_background();
    paused().block_on(async {
        assert!(matches!(job.await, Err(JobError::Shutdown)));
    });
    assert_eq!(payload.strong_count(), 2);
    drop(release);
    while payload.strong_count() > 1 {
        std::thread::yield_now();
    }
    while scheduler.counts().running > 0 {
        std::thread::yield_now();
    }
    let counts = scheduler.counts();
    assert!(add_up(&counts), "{counts:?}");
    assert_eq!((counts.ended, counts.finished), (1, 1));
}

#[test]
fn a_runtime_that_ends_before_the_driver_ran_ends_every_handle() {
    let runtime = paused();
    let (scheduler, job) = {
        let _inside = runtime.enter();
        let scheduler = Scheduler::new();
        let job = scheduler.after(HOUR).run(|_| async {});
        (scheduler, job)
    };
    drop(runtime);
    assert!(scheduler.is_terminated());
    paused().block_on(async {
        assert!(matches!(job.await, Err(JobError::Shutdown)));
    });
}
