//! When jobs run.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use waterwheel_schedule::{Context, Scheduler};

use super::support::{HOUR, Log, ms, on_manual_clock, secs};

#[tokio::test(start_paused = true)]
async fn a_job_after_a_delay_runs_once_and_gives_its_value() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let job = scheduler.after(ms(250));
    let job = job.run_value(move |_| async move { start.elapsed() });
    assert_eq!(job.await.unwrap(), ms(250));
    assert_eq!(scheduler.counts().finished, 1);
    sleep(HOUR).await;
    assert_eq!(scheduler.counts().finished, 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_at_an_instant_runs_then_and_a_past_one_at_once() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    for at in [start + secs(70), start] {
        let job = scheduler.at(at);
        let job = job.run_value(move |_| async move { start.elapsed() });
        assert_eq!(job.await.unwrap(), secs(70));
    }
}

// JDK-6725789: a delay near the end of the range wrapped and ran at once.
#[tokio::test(start_paused = true)]
async fn the_longest_delays_do_not_overflow() {
    let scheduler = Scheduler::new();
    let far = [
        scheduler.after(Duration::MAX).run(|_| async {}),
        scheduler.every(Duration::MAX).run(|_| async {}),
    ];
    let delayed = scheduler.with_delay(Duration::MAX).jitter(Duration::MAX);
    let first = scheduler.every(ms(1)).first_after(Duration::MAX);
    let later = [delayed, first].map(|job| job.run(|_| async {}));
    sleep(24 * HOUR).await;
    assert_eq!(scheduler.counts().finished, 0);
    for job in far.into_iter().chain(later) {
        assert!(job.time_left().unwrap() > 365 * 24 * HOUR);
    }
    // A period that is longer than the rest of the range.
    let first = scheduler
        .every(Duration::MAX)
        .first_after(ms(1))
        .max_runs(2);
    let first = first.run(|_| async {});
    sleep(HOUR).await;
    assert_eq!((first.runs(), first.is_done()), (1, false));
}

#[tokio::test(start_paused = true)]
async fn a_fixed_rate_keeps_its_grid_beside_slow_runs() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    // Each run is slower than the previous one, but faster than the period.
    let slower = |context: Context| sleep(ms(30 * context.run()));
    let job = scheduler.every(ms(100)).max_runs(4);
    job.run(log.each(Context::run, slower)).await.unwrap();
    assert_eq!(log.times(), [100, 200, 300, 400]);
    assert_eq!(log.lines(), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_fixed_delay_counts_from_the_end_of_a_run() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler.with_delay(ms(100)).max_runs(3);
    job.run(log.each(|_| (), |_| sleep(ms(30)))).await.unwrap();
    assert_eq!(log.times(), [100, 230, 360]);
}

#[tokio::test(start_paused = true)]
async fn the_first_run_is_a_period_from_now_or_as_asked() {
    let scheduler = Scheduler::new();
    let start = Instant::now();
    let log = Log::new();
    let jobs = [
        (1, scheduler.every(ms(100))),
        (2, scheduler.every(ms(100)).first_after(Duration::ZERO)),
        (3, scheduler.every(ms(100)).first_at(start + ms(250))),
    ];
    for (name, job) in jobs {
        drop(job.max_runs(2).run(log.job(name)));
    }
    sleep(secs(1)).await;
    let mut lines: Vec<_> = log.times().into_iter().zip(log.lines()).collect();
    lines.sort_unstable();
    assert_eq!(lines[..4], [(0, 2), (100, 1), (100, 2), (200, 1)]);
    assert_eq!(lines[4..], [(250, 3), (350, 3)]);
}

#[tokio::test(start_paused = true)]
async fn until_and_max_runs_end_a_job_well() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let until = scheduler.every(ms(100)).until(start + ms(300));
    let until = until.run(|_| async {});
    let most = scheduler.every(ms(100)).max_runs(2).run(|_| async {});
    sleep(secs(10)).await;
    assert_eq!((until.runs(), most.runs()), (3, 2));
    assert!(until.is_done() && most.is_done());
    until.await.unwrap();
    most.await.unwrap();
    // None of its runs is due early enough.
    let never = scheduler.every(ms(100)).until(Instant::now() + ms(99));
    let never = never.run(|_| async {});
    let waited = Instant::now();
    never.await.unwrap();
    assert_eq!(waited.elapsed(), Duration::ZERO);
    assert_eq!(scheduler.counts().finished, 5);
}

#[tokio::test(start_paused = true)]
async fn jitter_makes_runs_later_and_moves_no_grid() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler.every(ms(100)).jitter(ms(50)).max_runs(200);
    job.run(log.job(())).await.unwrap();
    let times = log.times();
    for (run, at) in (1_u64..).zip(&times) {
        let after = at.checked_sub(run * 100);
        assert!(after.is_some_and(|it| it <= 51), "run {run} at {at}");
    }
    // Of 200 draws from 51 values, some are early and some are late.
    assert!(times.iter().any(|at| at % 100 < 10) && times.iter().any(|at| at % 100 > 40));
}

// Limited like a delay beyond the range of `Instant`. The random part was once up to 584 years.
#[tokio::test(start_paused = true)]
async fn jitter_without_a_bound_is_thirty_years_at_most() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let thirty_years = 24 * HOUR * 365 * 30;
    let waits: Vec<Duration> = (0..50)
        .map(|n| {
            let (once, again) = (scheduler.after(HOUR), scheduler.every(HOUR));
            let job = match n % 2 {
                0 => once.jitter(Duration::MAX).run(|_| async {}),
                _ => again.jitter(Duration::MAX).run(|_| async {}),
            };
            job.next_run().unwrap() - start
        })
        .collect();
    let latest = waits.iter().max().unwrap();
    assert!(*latest <= HOUR + thirty_years, "{latest:?}");
    // Each of them is in the first third with a probability of one in three.
    assert!(*latest > thirty_years / 3, "{latest:?}");
    assert!(scheduler.shutdown_now().len() == waits.len());
}

#[tokio::test(start_paused = true)]
async fn a_job_of_a_timer_by_hand_waits_for_its_clock() {
    let (clock, scheduler) = on_manual_clock();
    let job = scheduler.after(HOUR).run(|_| async {});
    sleep(24 * HOUR).await;
    assert_eq!(job.time_left(), Some(HOUR));
    clock.advance(HOUR - ms(1));
    sleep(ms(1)).await;
    assert!(!job.is_done());
    clock.advance(ms(1));
    job.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closure_that_blocks_runs_on_a_thread_of_its_own() {
    // A blocking thread keeps a paused clock from jumping, so this uses real time.
    let scheduler = Scheduler::new();
    let here = std::thread::current().id();
    let once = scheduler.after(ms(1)).run_blocking(move |context| {
        assert_eq!(context.run(), 1);
        Ok::<_, String>(std::thread::current().id() != here)
    });
    assert!(once.await.unwrap());
    let mut sum = 0;
    let (sender, receiver) = std::sync::mpsc::channel();
    let again = scheduler
        .every(ms(1))
        .max_runs(3)
        .run_blocking(move |context| {
            sum += context.run();
            sender.send(sum).unwrap();
        });
    again.await.unwrap();
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [1, 3, 6]);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "`period` must be non-zero.")]
async fn a_zero_period_is_refused() {
    let _ = Scheduler::new().every(Duration::ZERO);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "`period` must be non-zero.")]
async fn a_zero_delay_between_runs_is_refused() {
    let _ = Scheduler::new().with_delay(Duration::ZERO);
}

#[test]
#[should_panic(expected = "or name one by `Builder::runtime`")]
fn outside_of_a_runtime_there_is_no_scheduler() {
    let _ = Scheduler::new();
}
