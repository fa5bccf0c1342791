//! The methods of a handle that report the state of its job.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use waterwheel_schedule::Scheduler;

use super::support::{HOUR, ms, paused, secs};

#[tokio::test(start_paused = true)]
async fn a_handle_follows_its_job_through_its_life() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let job = scheduler.every(ms(100)).max_runs(2).run(|_| sleep(ms(30)));
    let state = || {
        let is = (job.is_periodic(), job.is_running(), job.is_done());
        (is, job.runs(), job.time_left())
    };
    assert_eq!(state(), ((true, false, false), 0, Some(ms(100))));
    assert_eq!(job.next_run(), Some(start + ms(100)));
    sleep(ms(40)).await;
    assert_eq!(job.time_left(), Some(ms(60)));
    sleep(ms(70)).await;
    assert_eq!(state(), ((true, true, false), 0, None));
    assert_eq!(job.next_run(), None);
    sleep(ms(30)).await;
    assert_eq!(state(), ((true, false, false), 1, Some(ms(60))));
    sleep(secs(1)).await;
    assert_eq!(state(), ((false, false, true), 2, None));
    assert!(!job.is_cancelled() && !job.is_paused() && job.last_error().is_none());
    job.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_handle_lets_its_job_run() {
    let scheduler = Scheduler::new();
    drop(scheduler.after(ms(10)).run(|_| async {}));
    sleep(ms(20)).await;
    assert_eq!(scheduler.counts().finished, 1);
}

#[tokio::test(start_paused = true)]
async fn a_handle_can_be_awaited_again_after_it_was_dropped_unready() {
    let scheduler = Scheduler::new();
    let mut job = scheduler.after(ms(100)).run_value(|_| async { 1 });
    for _ in 0..3 {
        assert!(tokio::time::timeout(ms(10), &mut job).await.is_err());
    }
    // The handle is awaited by another task.
    assert_eq!(tokio::spawn(job).await.unwrap().unwrap(), 1);
}

#[test]
fn a_handle_that_was_ready_panics_when_polled_again() {
    let polled = paused().block_on(async {
        let scheduler = Scheduler::new();
        let mut job = scheduler.after(Duration::ZERO).run(|_| async {});
        (&mut job).await.unwrap();
        tokio::spawn(job).await
    });
    assert!(polled.unwrap_err().is_panic());
}

// The scheduler is dropped: its jobs still run, and then it ends.
#[test]
fn jobs_go_on_without_a_scheduler_in_scope() {
    let runtime = paused();
    let before = runtime.block_on(async {
        // This counts the driver of its timer.
        waterwheel::sleep(ms(1)).await;
        runtime.metrics().num_alive_tasks()
    });
    runtime.block_on(async {
        let scheduler = Scheduler::new();
        let job = scheduler.after(secs(10)).run_value(|context| async move {
            // A run can reach the scheduler.
            let scheduler = context.scheduler();
            Some(scheduler.after(secs(10)).run_value(|_| async { 7 }))
        });
        drop(scheduler);
        let next = job.await.unwrap().unwrap();
        assert_eq!(next.await.unwrap(), 7);
        sleep(HOUR).await;
    });
    assert_eq!(runtime.metrics().num_alive_tasks(), before);
}

#[test]
fn waiting_jobs_are_no_tasks() {
    let runtime = paused();
    runtime.block_on(async {
        let scheduler = Scheduler::new();
        let one = runtime.metrics().num_alive_tasks();
        let jobs: Vec<_> = (0..1_000)
            .map(|_| scheduler.every(HOUR).run(|_| async {}))
            .collect();
        sleep(ms(10)).await;
        assert_eq!(runtime.metrics().num_alive_tasks(), one);
        drop(jobs);
    });
}

#[test]
fn an_idle_scheduler_ends_with_its_last_clone() {
    let runtime = paused();
    let tasks = || runtime.metrics().num_alive_tasks();
    runtime.block_on(async {
        waterwheel::sleep(ms(1)).await;
        let before = tasks();
        let scheduler = Scheduler::new();
        let other = scheduler.clone();
        sleep(ms(1)).await;
        drop(scheduler);
        sleep(ms(1)).await;
        assert_eq!(tasks(), before + 1);
        drop(other);
        sleep(ms(1)).await;
        assert_eq!(tasks(), before);
    });
}
