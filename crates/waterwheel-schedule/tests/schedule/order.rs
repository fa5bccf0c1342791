//! The order in which jobs start.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use waterwheel::Timer;
use waterwheel_schedule::{Context, Misfire, Scheduler};

use super::support::{Log, all_end_well, ms, multi_thread, secs, within};

#[tokio::test(start_paused = true)]
async fn jobs_start_by_deadline_and_equal_ones_by_submission() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let at = Instant::now() + secs(90);
    // The jobs are spread over all dials, and submitted out of order.
    for (n, before) in (0..3_000_u64).map(|n| (n, ms(n * 7_919 % 80))) {
        drop(scheduler.at(at - before).run(log.job((at - before, n))));
    }
    sleep(secs(100)).await;
    log.assert_sorted(3_000);
}

// Deadlines within one tick are not equal: the earlier one is first.
#[tokio::test(start_paused = true)]
async fn jobs_of_one_tick_start_by_deadline() {
    let timer = Timer::builder().resolution(secs(1)).start().unwrap();
    let scheduler = Scheduler::builder().timer(&timer).build();
    let (log, start) = (Log::new(), Instant::now());
    for n in [7_u64, 3, 9, 3, 1, 8] {
        drop(scheduler.at(start + secs(5) + ms(n)).run(log.job(n)));
    }
    sleep(secs(10)).await;
    assert_eq!(log.lines(), [1, 3, 3, 7, 8, 9]);
}

// More jobs than the driver takes at a time, all within one tick: whole ticks are sorted.
#[tokio::test(start_paused = true)]
async fn a_herd_of_one_tick_starts_in_order() {
    let timer = Timer::builder().resolution(secs(1)).start().unwrap();
    let scheduler = Scheduler::builder().timer(&timer).build();
    let (log, at) = (Log::new(), Instant::now() + secs(5));
    for n in 0..5_000_u64 {
        let deadline = at + Duration::from_micros(n * 7_919 % 5_000);
        drop(scheduler.at(deadline).run(log.job(deadline)));
    }
    sleep(secs(10)).await;
    log.assert_sorted(5_000);
}

#[test]
fn a_group_of_one_starts_in_order_on_many_threads() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        let group = scheduler.group("one", 1);
        let (log, at) = (Log::new(), Instant::now() + ms(20));
        let mut jobs = Vec::new();
        for n in 0..500 {
            let starts = log.clone();
            jobs.push(scheduler.at(at).group(&group).run(move |_| async move {
                starts.add(n);
                tokio::task::yield_now().await;
            }));
        }
        all_end_well(jobs).await;
        assert_eq!(log.lines(), (0..500).collect::<Vec<_>>());
    }));
}

// Like Java's sequence number, which a task keeps when it is queued again.
#[tokio::test(start_paused = true)]
async fn of_equal_deadlines_the_job_submitted_first_starts_first() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let rate = scheduler.every(ms(100)).max_runs(2).run(log.job("rate"));
    drop(scheduler.after(ms(200)).run(log.job("once")));
    rate.await.unwrap();
    sleep(secs(1)).await;
    assert_eq!(log.lines(), ["rate", "rate", "once"]);
}

#[tokio::test(start_paused = true)]
async fn runs_that_are_caught_up_come_before_later_jobs_of_the_group() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let group = scheduler.group("one", 1);
    let rate = scheduler.every(ms(100)).group(&group).max_runs(4);
    let rate = rate
        .misfire(Misfire::CatchUp)
        .run(log.each(Context::scheduled, |context| {
            sleep(ms(if context.run() == 1 { 350 } else { 1 }))
        }));
    let at = Instant::now() + ms(350);
    drop(scheduler.at(at).group(&group).run(log.job(at)));
    rate.await.unwrap();
    sleep(secs(1)).await;
    log.assert_sorted(5);
}
