//! Combinations of pausing, triggering, rescheduling and ending a job.

use std::sync::{Arc, Mutex};

use tokio::time::{Instant, sleep};
use waterwheel_schedule::{Backoff, Context, JobError, JobHandle, Misfire, OnError, Scheduler};

use super::support::{
    HOUR, Log, all_shut_down, fails_at_first, ms, multi_thread, on_manual_clock, paused, secs,
    within,
};

// More jobs than the driver starts at a time, so the first runs meet jobs that are due and not yet started.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_due_can_be_paused_or_cancelled_before_its_turn() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let handles: Arc<Mutex<Vec<JobHandle<()>>>> = Arc::default();
    let others = Arc::clone(&handles);
    let first = scheduler.after(ms(5)).run(move |_| async move {
        let others = others.lock().unwrap();
        let last = others.len() - 1;
        assert!(others[last].pause() && others[last - 1].cancel());
        // It is queued again, and only once.
        assert!(others[last - 2].pause() && others[last - 2].resume());
        assert!(others[last - 3].trigger_now() && !others[last - 3].reschedule_after(HOUR));
    });
    for n in 0..300 {
        let job = scheduler.after(ms(5)).run(log.job(n));
        handles.lock().unwrap().push(job);
    }
    first.await.unwrap();
    sleep(secs(1)).await;
    let mut ran = log.lines();
    ran.sort_unstable();
    assert_eq!(ran, (0..298).collect::<Vec<_>>());
    let last = handles.lock().unwrap().pop().unwrap();
    assert!(last.is_paused() && last.resume());
    last.await.unwrap();
    assert_eq!(log.lines()[298], 299);
}

#[tokio::test(start_paused = true)]
async fn a_job_triggered_again_and_again_is_not_put_off() {
    let (clock, scheduler) = on_manual_clock();
    let tick = scheduler.timer().resolution();
    let job = scheduler.every(HOUR).run(|_| async {});
    sleep(ms(1)).await;
    for _ in 0..10 {
        assert!(job.trigger_now());
        // Within a tick, so that a postponed job would not be due.
        clock.advance(tick + tick / 3);
    }
    assert!(job.trigger_now());
    sleep(ms(1)).await;
    assert_eq!(job.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_triggered_run_that_is_moved_is_of_the_grid() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler.every(ms(100)).misfire(Misfire::CatchUp);
    let job = job.max_runs(3).run(log.job(()));
    assert!(job.trigger_now() && job.reschedule_after(ms(50)));
    job.await.unwrap();
    assert_eq!(log.times(), [50, 150, 250]);
}

#[tokio::test(start_paused = true)]
async fn the_only_run_of_a_job_cannot_be_paused() {
    let scheduler = Scheduler::new();
    let once = scheduler.after(ms(1)).run(|_| sleep(ms(10)));
    let again = scheduler.every(ms(1)).run(|_| sleep(ms(10)));
    sleep(ms(5)).await;
    assert!(once.is_running() && !once.pause() && !once.is_paused());
    // This also holds for a job that was cancelled in its last run.
    assert!(again.cancel() && !again.pause() && !again.is_paused());
    once.await.unwrap();
    assert!(matches!(again.await, Err(JobError::Cancelled)));
}

#[tokio::test(start_paused = true)]
async fn a_paused_job_ends_with_a_shutdown_that_keeps_its_kind() {
    let scheduler = Scheduler::new();
    scheduler.keep_periodic(true);
    let jobs = [
        scheduler.after(HOUR).run(|_| async {}),
        scheduler.every(HOUR).run(|_| async {}),
    ];
    assert!(jobs.iter().all(JobHandle::pause));
    scheduler.shutdown();
    assert!(scheduler.await_termination(ms(1)).await);
    all_shut_down(jobs).await;
}

// The last job ends, and no `Scheduler` is left, so the driver's task ends.
#[test]
fn a_resume_beyond_the_last_instant_lets_the_scheduler_end() {
    let runtime = paused();
    let tasks = runtime.block_on(async {
        waterwheel::sleep(ms(1)).await;
        runtime.metrics().num_alive_tasks()
    });
    runtime.block_on(async {
        let scheduler = Scheduler::new();
        let until = Instant::now() + ms(250);
        let job = scheduler.every(ms(100)).until(until).run(|_| async {});
        assert!(job.pause());
        drop(scheduler);
        sleep(secs(1)).await;
        assert!(job.resume() && job.is_done());
        sleep(ms(1)).await;
        assert_eq!(runtime.metrics().num_alive_tasks(), tasks);
    });
}

#[tokio::test(start_paused = true)]
async fn an_attempt_whose_wait_passed_in_a_pause_is_made_at_once() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler
        .every(secs(1))
        .on_error(OnError::Backoff(Backoff::new(ms(100), ms(100))))
        .max_runs(1)
        .run(log.each(Context::attempt, fails_at_first));
    sleep(ms(1_050)).await;
    assert!(job.pause());
    sleep(ms(200)).await;
    assert!(job.resume());
    job.await.unwrap();
    assert_eq!((log.lines(), log.times()), (vec![1, 2], vec![1_000, 1_250]));
}

#[tokio::test(start_paused = true)]
async fn the_counts_have_cancelled_jobs_apart_from_those_that_ran() {
    let scheduler = Scheduler::new();
    let [once, again, held, ended] =
        [(); 4].map(|()| scheduler.every(ms(10)).run(|_| sleep(ms(5))));
    assert!(once.cancel() && held.pause() && held.cancel());
    sleep(ms(12)).await;
    // A job cancelled during a run does not count as cancelled before one.
    assert!(again.cancel());
    sleep(ms(5)).await;
    drop(ended);
    assert_eq!(scheduler.shutdown_now().len(), 1);
    let counts = scheduler.counts();
    assert_eq!((counts.submitted, counts.cancelled), (4, 3));
    assert_eq!(counts.finished, 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_aborted_ends_though_it_would_be_ready() {
    let scheduler = Scheduler::new();
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let job = scheduler.after(ms(1)).run(|_| receiver);
    sleep(ms(5)).await;
    // The run sees neither before its next poll.
    sender.send(()).unwrap();
    assert!(job.abort());
    assert!(matches!(job.await, Err(JobError::Cancelled)));
}

#[test]
fn an_aborted_run_that_blocks_goes_on_to_its_end() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let (release, released) = std::sync::mpsc::channel();
        let mut job = scheduler.after(ms(1)).run_blocking(move |context| {
            begin.send(()).unwrap();
            let number = released.recv().unwrap();
            Ok::<_, String>((number, context.token().is_cancelled()))
        });
        begun.await.unwrap();
        assert!(job.abort());
        assert!(tokio::time::timeout(ms(20), &mut job).await.is_err());
        assert!(job.is_running());
        release.send(7).unwrap();
        assert_eq!(job.await.unwrap(), (7, true));
    }));
}
