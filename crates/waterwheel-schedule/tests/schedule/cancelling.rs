//! Cancelling and aborting.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use waterwheel_schedule::{JobError, OnError, Scheduler};

use super::support::{HOUR, Log, ms, multi_thread, secs, within};

#[tokio::test(start_paused = true)]
async fn a_job_cancelled_before_its_run_never_runs() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler.after(ms(10)).run(log.job(()));
    sleep(ms(9)).await;
    assert!(job.cancel());
    assert!(!job.cancel() && !job.abort(), "true exactly once");
    assert!(job.is_cancelled() && job.is_done());
    sleep(HOUR).await;
    assert_eq!(log.len(), 0);
    assert!(matches!(job.await, Err(JobError::Cancelled)));
}

// Java keeps a cancelled job until its deadline, unless `setRemoveOnCancelPolicy` was called.
#[tokio::test(start_paused = true)]
async fn a_cancelled_job_leaves_at_once_with_its_closure() {
    let (scheduler, held) = (Scheduler::new(), Arc::new(()));
    let payload = Arc::clone(&held);
    let job = scheduler.after(HOUR);
    let job = job.run(move |_| async move { drop(payload) });
    let found = || (scheduler.counts().pending, Arc::strong_count(&held));
    assert_eq!(found(), (1, 2));
    job.cancel();
    assert_eq!(found(), (0, 1));
    assert!(scheduler.jobs().is_empty() && scheduler.next_expiration().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_is_let_finish_by_a_cancel() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let ends = log.clone();
    let once = scheduler.after(ms(10)).run(|_| async {
        sleep(ms(100)).await;
        Ok::<_, String>(7)
    });
    let again = scheduler.every(ms(10)).run(move |_| {
        let ends = ends.clone();
        async move {
            sleep(ms(100)).await;
            ends.add(());
        }
    });
    sleep(ms(50)).await;
    assert!(once.cancel() && again.cancel());
    assert!(!once.cancel() && !again.cancel());
    assert!(once.is_running() && again.is_cancelled() && !again.is_done());
    assert_eq!(once.await.unwrap(), 7);
    assert!(matches!(again.await, Err(JobError::Cancelled)));
    sleep(HOUR).await;
    assert_eq!(log.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_cancels_the_token_of_the_run() {
    let scheduler = Scheduler::new();
    let job = scheduler.after(ms(10)).run(|context| async move {
        context.token().cancelled().await;
        Ok::<_, String>("ended early")
    });
    sleep(ms(50)).await;
    job.cancel();
    assert_eq!(job.await.unwrap(), "ended early");
    // The token is requested after the cancel.
    let late = scheduler.after(ms(10)).run(|context| async move {
        sleep(ms(50)).await;
        Ok::<_, String>(context.token().is_cancelled())
    });
    sleep(ms(20)).await;
    late.cancel();
    assert!(late.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_its_cancellation_in_a_select() {
    let scheduler = Scheduler::new();
    let submit = || {
        scheduler.after(ms(10)).run_value(|context| async move {
            let (mut pages, mut each) = (0, tokio::time::interval(ms(10)));
            loop {
                tokio::select! {
                    // Creates a new future each time; the previous one was polled and dropped.
                    () = context.cancelled() => return ("stopped", pages),
                    _ = each.tick() => pages += 1,
                }
                if pages == 20 {
                    return ("done", pages);
                }
            }
        })
    };
    let (by_handle, left_alone) = (submit(), submit());
    sleep(ms(55)).await;
    assert!(by_handle.cancel());
    assert_eq!(by_handle.await.unwrap(), ("stopped", 5));
    assert_eq!(left_alone.await.unwrap(), ("done", 20));
    let (by_scheduler, start) = (submit(), Instant::now());
    sleep(ms(35)).await;
    assert!(scheduler.shutdown_now().is_empty());
    assert_eq!(by_scheduler.await.unwrap(), ("stopped", 3));
    assert_eq!(start.elapsed(), ms(35));
}

#[tokio::test(start_paused = true)]
async fn a_run_is_told_of_its_cancellation_whenever_it_asks() {
    let scheduler = Scheduler::new();
    // One future is created before the cancel and one after it, by two tasks.
    let job = scheduler.after(ms(10)).run_value(|context| async move {
        let early = [context.cancelled(), context.cancelled()].map(tokio::spawn);
        sleep(ms(50)).await;
        assert!(early.iter().all(|task| task.is_finished()));
        context.cancelled().await;
        "told"
    });
    sleep(ms(20)).await;
    assert!(job.cancel());
    assert_eq!(job.await.unwrap(), "told");
    // The run has ended.
    let job = scheduler
        .every(ms(10))
        .max_runs(2)
        .run(|context| async move {
            drop(tokio::spawn(async move {
                sleep(ms(5)).await;
                context.cancelled().await;
            }));
        });
    let before = Handle::current().metrics().num_alive_tasks();
    job.await.unwrap();
    sleep(ms(10)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
}

#[test]
fn a_blocking_run_may_wait_for_its_cancellation() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        // The time limit cancels the token of the first run, and a cancel that of the second.
        let job = scheduler.every(ms(1)).on_error(OnError::Continue);
        let job = job.time_limit(ms(20)).run_blocking(|context| {
            Handle::current().block_on(context.cancelled());
        });
        while scheduler.counts().failed == 0 {
            sleep(ms(1)).await;
        }
        job.cancel();
        assert!(job.await.unwrap_err().is_cancelled());
    }));
}

#[tokio::test(start_paused = true)]
async fn an_abort_drops_the_future_of_the_run() {
    let (scheduler, held) = (Scheduler::new(), Arc::new(()));
    let payload = Arc::clone(&held);
    let job = scheduler.after(ms(10)).run(move |_| async move {
        let _payload = payload;
        sleep(HOUR).await;
    });
    sleep(ms(20)).await;
    assert!(job.abort() && Arc::strong_count(&held) == 2);
    assert!(matches!(job.await, Err(JobError::Cancelled)));
    assert_eq!(Arc::strong_count(&held), 1);
    assert_eq!(scheduler.counts().running, 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cancels_itself_has_its_last_run() {
    let scheduler = Scheduler::new();
    let job = scheduler.every(ms(10)).run(|context| async move {
        if context.run() == 3 {
            assert!(context.cancel());
            assert!(!context.cancel());
        }
    });
    sleep(secs(1)).await;
    assert_eq!(job.runs(), 3);
    assert!(matches!(job.await, Err(JobError::Cancelled)));
}

// The clock of a multi-thread runtime runs: each cancel meets the driver at a different point.
#[test]
fn a_cancel_and_a_start_have_one_winner() {
    multi_thread().block_on(within(async {
        let (scheduler, log) = (Scheduler::new(), Log::new());
        let (mut cancelled, mut ran) = (0, 0);
        for n in 0..4_000_u64 {
            let job = scheduler.after(ms(1)).run(log.job(n));
            sleep(std::time::Duration::from_micros(n * 7 % 1_500)).await;
            // If the job ended before the cancel, the cancel must report that.
            let had_ended = log.lines().contains(&n) && job.is_done();
            let won = job.cancel();
            match job.await {
                Ok(()) => {
                    assert!(!(won && had_ended), "cancelled after its end");
                    ran += 1;
                }
                Err(JobError::Cancelled) => {
                    assert!(won);
                    cancelled += 1;
                }
                Err(other) => panic!("{other}"),
            }
            if n > 400 && cancelled > 50 && ran > 50 {
                break;
            }
        }
        assert!(ran > 0 && cancelled > 0, "{ran} {cancelled}");
        assert_eq!(log.len(), ran);
        assert_eq!(scheduler.counts().pending, 0);
    }));
}

#[tokio::test(start_paused = true)]
async fn an_abort_before_the_first_poll_begins_nothing() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let slot = Arc::new(std::sync::Mutex::new(
        None::<waterwheel_schedule::JobHandle<()>>,
    ));
    let handle = Arc::clone(&slot);
    // Both are started, and the first is polled first.
    let first = scheduler.after(ms(1)).run(move |_| async move {
        let second = handle.lock().unwrap().take().unwrap();
        // The second is about to begin.
        assert!(!second.is_running() && second.trigger_now() && second.next_run().is_some());
        assert!(second.abort() && second.is_done() && !second.abort());
        Ok::<_, String>(second)
    });
    let second = scheduler.after(ms(1)).run(log.job(()));
    *slot.lock().unwrap() = Some(second);
    let second = first.await.unwrap();
    assert!(matches!(second.await, Err(JobError::Cancelled)));
    assert_eq!(log.len(), 0);
}
