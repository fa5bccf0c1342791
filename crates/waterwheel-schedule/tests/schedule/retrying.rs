//! A job between a failed run and the next attempt.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use waterwheel_schedule::{Backoff, Context, JobError, JobHandle, Misfire, OnError, Scheduler};

use super::support::{HOUR, Log, ms, secs};

/// A job that fails at 100 ms, and is retried at 1 100 ms.
fn retried(scheduler: &Scheduler, log: &Log<u32>) -> JobHandle<u32> {
    let job = scheduler.after(ms(100));
    let job = job.retry(Backoff::new(secs(1), secs(1)));
    job.run(log.each(Context::attempt, |context| async move {
        match context.attempt() {
            1 => Err("not yet"),
            attempt => Ok(attempt),
        }
    }))
}

#[tokio::test(start_paused = true)]
async fn a_job_is_cancelled_between_two_attempts() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = retried(&scheduler, &log);
    sleep(ms(500)).await;
    assert_eq!((job.runs(), job.time_left()), (0, Some(ms(600))));
    assert!(job.cancel());
    assert!(matches!(job.await, Err(JobError::Cancelled)));
    assert_eq!(log.lines(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_cancelled_during_an_attempt_is_the_last() {
    let scheduler = Scheduler::new();
    let job = scheduler
        .after(ms(1))
        .retry(Backoff::new(ms(1), ms(1)))
        .run(|_| async {
            sleep(ms(50)).await;
            Err::<(), _>("fails")
        });
    sleep(ms(20)).await;
    assert!(job.cancel() && !job.is_done());
    assert!(matches!(job.await, Err(JobError::Cancelled)));
    assert_eq!(scheduler.counts().finished, 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_between_two_attempts_keeps_the_wait() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = retried(&scheduler, &log);
    sleep(ms(500)).await;
    assert!(job.pause() && job.resume());
    assert_eq!(job.await.unwrap(), 2);
    assert_eq!(log.times(), [100, 1_100]);
}

#[tokio::test(start_paused = true)]
async fn a_triggered_attempt_is_no_run_beside_the_grid() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler
        .every(secs(1))
        .misfire(Misfire::CatchUp)
        .on_error(OnError::Backoff(Backoff::new(ms(500), ms(500))))
        .max_runs(2)
        .run(log.each(
            |context| (context.run(), context.attempt()),
            |context| async move {
                let fails = (context.run(), context.attempt()) == (1, 1);
                if fails { Err("fails") } else { Ok(()) }
            },
        ));
    sleep(ms(1_100)).await;
    assert!(job.trigger_now());
    job.await.unwrap();
    assert_eq!(log.lines(), [(1, 1), (1, 2), (2, 1)]);
    assert_eq!(log.times(), [1_000, 1_100, 2_000]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_between_two_attempts_lets_a_delayed_job_go_on() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = retried(&scheduler, &log);
    sleep(ms(500)).await;
    scheduler.drain().await;
    assert_eq!(job.await.unwrap(), 2);
    let other = Scheduler::new();
    let job = retried(&other, &log);
    sleep(ms(500)).await;
    assert_eq!(other.shutdown_now().len(), 1);
    assert!(matches!(job.await, Err(JobError::Shutdown)));
}

#[tokio::test(start_paused = true)]
async fn shutdown_now_during_an_attempt_is_the_end_of_it() {
    let scheduler = Scheduler::new();
    let job = scheduler
        .after(ms(1))
        .retry(Backoff::new(ms(1), ms(1)))
        .run(|context| async move {
            context.token().cancelled().await;
            Err::<(), _>("was cancelled")
        });
    sleep(ms(20)).await;
    assert!(scheduler.shutdown_now().is_empty());
    scheduler.drain().await;
    assert!(job.is_cancelled());
    assert!(matches!(job.await, Err(JobError::Shutdown)));
}

#[tokio::test(start_paused = true)]
async fn the_token_of_a_run_beyond_its_limit_is_not_the_next_ones() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler.every(ms(100)).time_limit(ms(50)).max_runs(3);
    let job = job.on_error(OnError::Continue).run(log.each(
        |context| context.token().is_cancelled(),
        |context| sleep(if context.run() == 1 { HOUR } else { ms(1) }),
    ));
    job.await.unwrap();
    assert_eq!(log.lines(), [false; 3]);
}

#[tokio::test(start_paused = true)]
async fn an_error_whose_display_panics_ends_its_job_all_right() {
    #[derive(Debug)]
    struct Mute;
    impl std::fmt::Display for Mute {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            std::panic::resume_unwind(Box::new("on purpose"))
        }
    }
    impl std::error::Error for Mute {}
    let scheduler = Scheduler::builder().concurrency(1).build();
    let job = scheduler.after(ms(1)).run(|_| async { Err::<(), _>(Mute) });
    assert!(matches!(job.await, Err(JobError::Failed(_))));
    scheduler.after(ms(1)).run(|_| async {}).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_limited_run_goes_on_when_its_timer_is_stopped() {
    let timer = waterwheel::Timer::builder().start().unwrap();
    let scheduler = Scheduler::builder().timer(&timer).build();
    let held = Arc::new(());
    let payload = Arc::clone(&held);
    let job = scheduler
        .after(ms(1))
        .time_limit(ms(100))
        .run(move |_| async move {
            sleep(ms(50)).await;
            drop(payload);
        });
    sleep(ms(10)).await;
    timer.shutdown();
    let start = Instant::now();
    job.await.unwrap();
    assert_eq!((start.elapsed(), Arc::strong_count(&held)), (ms(41), 1));
    // If the scheduler has no jobs, it notices the stop at the next one.
    let late = scheduler.after(ms(1)).run(|_| async {});
    assert!(matches!(late.await, Err(JobError::Shutdown)));
    assert!(scheduler.is_shutdown());
}

#[tokio::test(start_paused = true)]
async fn no_attempt_is_made_after_the_last_instant() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let job = scheduler
        .every(ms(100))
        .until(start + ms(150))
        .on_error(OnError::Backoff(Backoff::new(ms(30), ms(30))));
    let job = job.run(|_| async { Err::<(), _>("fails") });
    assert!(matches!(job.await, Err(JobError::Failed(_))));
    assert_eq!((start.elapsed(), scheduler.counts().finished), (ms(130), 2));
}

// 2 to the 32nd does not fit into the factor.
#[test]
fn a_backoff_never_gets_shorter_after_any_number_of_failures() {
    let backoff = Backoff::new(Duration::from_nanos(1), HOUR).max_attempts(u32::MAX);
    let delays: Vec<_> = (1..=70)
        .map(|failures| backoff.delay(failures).unwrap())
        .collect();
    assert!(delays.is_sorted(), "{delays:?}");
    assert_eq!(delays[31], Duration::from_nanos(1 << 31));
    assert_eq!(delays[41], Duration::from_nanos(1 << 41));
    assert_eq!(delays[42], HOUR);
    assert_eq!(backoff.delay(u32::MAX - 1), Some(HOUR));
}
