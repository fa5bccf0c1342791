//! Runs that fail.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep};
use waterwheel_schedule::{Backoff, Context, JobError, JobHandle, OnError, Scheduler};

use super::support::{HOUR, Log, ms, multi_thread, paused, secs, within};

fn panics() {
    // Prints nothing, unlike `panic!`.
    std::panic::resume_unwind(Box::new("on purpose"));
}

#[tokio::test(start_paused = true)]
async fn an_error_ends_its_job_and_the_handle_says_why() {
    let scheduler = Scheduler::new();
    let job = scheduler.every(ms(10)).run(|context| async move {
        match context.run() {
            3 => Err("the disk is full"),
            _ => Ok(()),
        }
    });
    sleep(secs(1)).await;
    assert_eq!((job.runs(), scheduler.counts().failed), (3, 1));
    assert_eq!(job.last_error().as_deref(), Some("the disk is full"));
    let error = job.await.unwrap_err();
    assert!(matches!(error, JobError::Failed(_)) && !error.is_cancelled());
    assert_eq!(error.source().unwrap().to_string(), "the disk is full");
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_its_job_and_no_other() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let other = scheduler.every(ms(10)).run(log.job(()));
    let in_future = scheduler.every(ms(10)).run(|_| async { panics() });
    let in_closure = scheduler.every(ms(10)).run(|_| {
        panics();
        async {}
    });
    let once = scheduler.after(ms(10)).run(|_| async { panics() });
    for job in [in_future, in_closure, once] {
        match job.await {
            Err(JobError::Panicked(panic)) => {
                assert_eq!(panic.message(), "on purpose");
                assert!(panic.into_payload().is::<&str>());
            }
            other => panic!("{other:?}"),
        }
    }
    sleep(ms(100)).await;
    assert!(log.len() >= 10 && !other.is_done());
    assert_eq!(
        (scheduler.counts().failed, scheduler.counts().running),
        (3, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_on_after_errors_if_it_was_said() {
    let scheduler = Scheduler::new();
    let job = scheduler
        .every(ms(10))
        .on_error(OnError::Continue)
        .max_runs(6);
    let job = job.run(|context| async move {
        match context.run() {
            2 => panics(),
            // Includes the last run.
            3 | 6 => return Err("an error"),
            _ => {}
        }
        Ok(())
    });
    sleep(secs(1)).await;
    assert_eq!(
        (job.runs(), job.last_error().as_deref()),
        (6, Some("an error"))
    );
    job.await.unwrap();
    assert_eq!(scheduler.counts().failed, 3);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_tried_again_later_each_time() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let backoff = OnError::Backoff(Backoff::new(ms(100), ms(300)));
    let job = scheduler.every(secs(1)).on_error(backoff).max_runs(3);
    job.run(log.each(
        |context| (context.run(), context.attempt()),
        |context| async move {
            match context.run() == 2 && context.attempt() < 5 {
                true => Err("not yet"),
                false => Ok(()),
            }
        },
    ))
    .await
    .unwrap();
    assert_eq!(
        log.lines(),
        [(1, 1), (2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (3, 1)]
    );
    // After 100, 200, 300 and 300 ms, it returns to the grid.
    assert_eq!(log.times(), [1000, 2000, 2100, 2300, 2600, 2900, 3000]);
}

#[tokio::test(start_paused = true)]
async fn after_the_last_retry_the_job_ends_with_the_last_error() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let backoff = Backoff::new(ms(100), HOUR).max_attempts(3);
    let job = scheduler.after(ms(100)).retry(backoff.clone());
    let job =
        job.run(|context| async move { Err::<u8, _>(format!("attempt {}", context.attempt())) });
    assert_eq!(
        job.await.unwrap_err().source().unwrap().to_string(),
        "attempt 3"
    );
    assert_eq!(start.elapsed(), ms(100 + 100 + 200));
    let well = scheduler
        .after(ms(0))
        .retry(backoff)
        .run(|context| async move {
            match context.attempt() {
                2 => Ok(context.attempt()),
                _ => Err("not yet"),
            }
        });
    assert_eq!(well.await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_of_a_closure_that_blocks_keeps_its_state() {
    let scheduler = Scheduler::new();
    let mut calls = 0;
    let backoff = Backoff::new(ms(1), ms(1)).max_attempts(6);
    let job = scheduler
        .after(ms(1))
        .retry(backoff)
        .run_blocking(move |_| {
            calls += 1;
            match calls {
                1 => Err("an error"),
                2 => {
                    panics();
                    Err("a panic")
                }
                _ => Ok(calls),
            }
        });
    assert_eq!(job.await.unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_beyond_its_time_limit_has_failed() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let job = scheduler
        .after(ms(10))
        .time_limit(ms(50))
        .run(|_| sleep(HOUR));
    assert!(matches!(job.await, Err(JobError::TimedOut)));
    assert_eq!(start.elapsed(), ms(60));
    let again = scheduler
        .every(ms(100))
        .time_limit(ms(50))
        .on_error(OnError::Continue);
    let again = again
        .max_runs(3)
        .run(|context| sleep(ms(20 * context.run())));
    again.await.unwrap();
    assert_eq!(scheduler.counts().failed, 2);
}

// No budget is left for the sleep of its limit at any poll. If the limit fails, the run ends by itself here.
#[test]
fn a_run_that_uses_up_its_budget_at_each_poll_has_its_limit() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        let polls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&polls);
        let job = scheduler.after(ms(1)).time_limit(ms(20));
        let job = job.run(|_| async move {
            let start = std::time::Instant::now();
            while start.elapsed() < secs(5) {
                // Continues in the next poll when no budget is left.
                tokio::task::consume_budget().await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(matches!(job.await, Err(JobError::TimedOut)));
        assert!(polls.load(Ordering::Relaxed) > 128);
    }));
}

#[test]
fn a_blocking_run_beyond_its_limit_is_waited_for() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        let job = scheduler
            .after(ms(1))
            .time_limit(ms(5))
            .run_blocking(|context| {
                let token = context.token();
                // The time limit cancels the token.
                while !token.is_cancelled() {
                    std::thread::yield_now();
                }
            });
        assert!(matches!(job.await, Err(JobError::TimedOut)));
    }));
}

/// A job that continues after errors, in its only run, which never finishes.
async fn in_its_last_run() -> (JobHandle<()>, Scheduler) {
    let scheduler = Scheduler::new();
    let job = scheduler.every(secs(1)).max_runs(1);
    let job = job.on_error(OnError::Continue);
    let job = job.run(|_| std::future::pending::<()>());
    sleep(ms(1_500)).await;
    assert!(job.is_running());
    (job, scheduler)
}

#[tokio::test(start_paused = true)]
async fn an_aborted_last_run_gives_no_value() {
    let (job, scheduler) = in_its_last_run().await;
    assert!(job.abort());
    assert!(job.await.unwrap_err().is_cancelled());
    let counts = scheduler.counts();
    assert_eq!((counts.finished, counts.failed), (1, 0));
}

#[test]
fn a_last_run_that_its_runtime_drops_gives_no_value() {
    let runtime = paused();
    let (job, _) = runtime.block_on(in_its_last_run());
    drop(runtime);
    let ended = paused().block_on(job);
    assert!(matches!(ended, Err(JobError::Shutdown)), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_asked_for_after_the_time_limit_is_cancelled() {
    // The clock does not jump while a thread blocks.
    let scheduler = Scheduler::new();
    let (begins, began) = tokio::sync::oneshot::channel();
    let (limit, over) = std::sync::mpsc::channel::<()>();
    let (says, said) = tokio::sync::oneshot::channel();
    let job = scheduler
        .after(Duration::ZERO)
        .time_limit(secs(5))
        .run_blocking(move |context| {
            begins.send(()).unwrap();
            over.recv().unwrap_err();
            says.send(context.token().is_cancelled()).unwrap();
        });
    began.await.unwrap();
    advance(secs(6)).await;
    for _ in 0..100 {
        yield_now().await;
    }
    drop(limit);
    assert_eq!(said.await, Ok(true), "the token is not cancelled");
    assert!(matches!(job.await, Err(JobError::TimedOut)));
}

#[tokio::test(start_paused = true)]
async fn the_token_of_a_past_run_is_not_that_of_the_next() {
    let scheduler = Scheduler::new();
    let mut kept = None;
    let job = scheduler.every(secs(1)).max_runs(2).run(move |context| {
        let before: Option<Context> = kept.replace(context.clone());
        assert!(before.is_none_or(|before| before.token().is_cancelled()));
        assert!(!context.token().is_cancelled());
        async {}
    });
    job.await.unwrap();
}

// The thread continues beyond the limit, and the next run must not overlap with it.
#[test]
fn runs_that_block_beyond_their_limit_do_not_overlap() {
    multi_thread().block_on(within(async {
        let (scheduler, log) = (Scheduler::new(), Log::new());
        let runs = log.clone();
        let job = scheduler
            .every(ms(1))
            .time_limit(ms(1))
            .on_error(OnError::Continue)
            .max_runs(3)
            .run_blocking(move |context| {
                runs.add("begins");
                while !context.token().is_cancelled() {
                    std::thread::yield_now();
                }
                std::thread::sleep(ms(5));
                runs.add("ends");
            });
        while !job.is_done() {
            sleep(ms(1)).await;
        }
        let last = job.last_error().unwrap();
        assert!(last.contains("time limit"), "{last}");
        assert_eq!((job.runs(), scheduler.counts().failed), (3, 3));
        job.await.unwrap();
        assert_eq!(log.lines(), ["begins", "ends"].repeat(3));
    }));
}
