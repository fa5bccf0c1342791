//! Jobs that follow the wall clock.

use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};
use waterwheel_schedule::{Backoff, Context, JobInfo, Scheduler};

use super::support::{
    HOUR, Log, all_end_well, fails_at_first, ms, multi_thread, on_manual_clock, paused, secs,
    within,
};

const START: SystemTime = SystemTime::UNIX_EPOCH;

fn virtual_wall() -> Scheduler {
    Scheduler::builder().virtual_wall_clock(START).build()
}

#[tokio::test(start_paused = true)]
async fn a_job_by_the_wall_clock_runs_when_it_shows_its_time() {
    let (scheduler, start) = (virtual_wall(), Instant::now());
    let job = scheduler.at_wall(START + 100 * 24 * HOUR);
    let job = job.run_value(move |_| async move { start.elapsed() });
    assert_eq!(job.time_left(), Some(100 * 24 * HOUR));
    assert_eq!(job.await.unwrap(), 100 * 24 * HOUR);
    // A time that has passed.
    let past = scheduler.at_wall(START - HOUR).run(|_| async {});
    let waited = Instant::now();
    past.await.unwrap();
    assert_eq!(waited.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn jitter_makes_a_job_by_the_wall_clock_later_never_earlier() {
    let (scheduler, log) = (virtual_wall(), Log::new());
    for _ in 0..200 {
        let job = scheduler.at_wall(START + secs(10)).jitter(ms(100));
        drop(job.run(log.job(())));
    }
    sleep(secs(20)).await;
    let times = log.times();
    assert_eq!(times.len(), 200);
    assert!((10_000..10_020).contains(&times[0]), "{times:?}");
    assert!((10_081..=10_101).contains(&times[199]), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_by_the_wall_clock_can_be_paused_moved_and_cancelled() {
    let (scheduler, start) = (virtual_wall(), Instant::now());
    let at = |seconds| {
        let job = scheduler.at_wall(START + secs(seconds));
        job.run_value(move |_| async move { start.elapsed() })
    };
    let (held, moved, now, never) = (at(10), at(10), at(10), at(10));
    assert!(held.pause() && moved.reschedule_after(secs(3)) && now.trigger_now() && never.cancel());
    sleep(secs(5)).await;
    assert!(held.resume());
    assert_eq!(now.await.unwrap(), ms(0));
    assert_eq!(moved.await.unwrap(), secs(3));
    assert_eq!(held.await.unwrap(), secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_run_by_the_wall_clock_knows_the_time_that_it_is_for() {
    let (scheduler, log) = (virtual_wall(), Log::new());
    let at = START + secs(10);
    let submit = |name: &'static str| {
        let job = scheduler.at_wall(at).name(name).jitter(secs(5));
        job.run(log.each(
            move |context| (name, context.scheduled_wall()),
            |_| async {},
        ))
    };
    let (jittered, moved, early) = (submit("jittered"), submit("moved"), submit("early"));
    assert!(moved.reschedule_after(secs(20)) && early.trigger_now());
    let retried = scheduler.at_wall(at).retry(Backoff::new(secs(30), HOUR));
    let time = |context: &Context| ("retried", context.scheduled_wall());
    let retried = retried.run(log.each(time, fails_at_first));
    all_end_well([early, jittered, moved, retried]).await;
    let mut lines = log.lines();
    lines.sort_unstable();
    let names = ["early", "jittered", "moved", "retried", "retried"];
    assert_eq!(lines, names.map(|name| (name, Some(at))));
    // This job follows only the timer.
    let plain = scheduler.after(ms(1));
    let plain = plain.run_value(|context| async move { context.scheduled_wall() });
    assert_eq!(plain.await.unwrap(), None);
}

// The machine's clock, in real time.
#[test]
fn the_machines_clock_has_passed_when_a_job_runs() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        let jobs: Vec<_> = (0..40_u64)
            .map(|n| {
                // Cancelled jobs must not run before their cancel.
                let time = SystemTime::now() + if n % 4 == 0 { HOUR } else { ms(n * 7 % 50) };
                let job = scheduler.at_wall(time).run(move |_| async move {
                    let shows = SystemTime::now();
                    assert!(shows >= time, "{:?} early", time.duration_since(shows));
                });
                if n % 4 == 0 {
                    job.cancel();
                }
                job
            })
            .collect();
        for (n, job) in (0..).zip(jobs) {
            assert_eq!(job.await.is_ok(), n % 4 != 0);
        }
        assert_eq!(scheduler.counts().pending, 0);
    }));
}

// The timer's clock runs ahead of the wall clock, as if that had been set back: the job is filed again, and waits.
#[tokio::test(start_paused = true)]
async fn a_job_waits_for_a_wall_clock_that_lags_behind() {
    let (clock, scheduler) = on_manual_clock();
    let job = scheduler
        .at_wall(SystemTime::now() + HOUR)
        .run(|_| async {});
    for _ in 0..3 {
        tokio::task::yield_now().await;
        clock.advance(2 * HOUR);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(!job.is_done());
        assert!(job.time_left().unwrap() > HOUR / 2, "filed again");
    }
    job.cancel();
}

// The timer's clock stands still, as if the machine had been suspended: the wall clock alone makes the job due.
#[test]
fn a_wall_clock_that_runs_ahead_brings_a_job_up() {
    multi_thread().block_on(within(async {
        let (_, scheduler) = on_manual_clock();
        let job = scheduler
            .at_wall(SystemTime::now() + ms(30))
            .run(|_| async {});
        job.await.unwrap();
    }));
}

// They become due by the wall clock alone. If all of them were moved at once, no other task would run meanwhile.
#[test]
fn very_many_jobs_by_the_wall_clock_come_up_in_portions() {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(within(async {
        let (clock, scheduler) = on_manual_clock();
        let mut ahead = secs(2);
        let (time, jobs) = loop {
            let time = SystemTime::now() + ahead;
            let jobs = (0..10_000).map(|_| scheduler.at_wall(time).run(|_| async {}));
            let jobs: Vec<_> = jobs.collect();
            if SystemTime::now() < time {
                break (time, jobs);
            }
            // The machine is too busy for such a short time.
            jobs.iter().for_each(|job| assert!(job.abort()));
            ahead *= 5;
        };
        // By this clock, which stands still, the deadline of a job is in the future until the wall clock makes it due.
        let mut most = 0;
        while scheduler.counts().pending > 0 {
            let has_come_up = |job: &&JobInfo| job.next_run.is_some_and(|at| at <= clock.now());
            let listed = scheduler.jobs();
            most = most.max(listed.iter().filter(has_come_up).count());
            // From then on, each poll of the driver is followed by a check.
            match SystemTime::now() < time {
                true => sleep(ms(1)).await,
                false => tokio::task::yield_now().await,
            }
        }
        assert!((1..=5_000).contains(&most), "{most}");
        all_end_well(jobs).await;
    }));
}

// This also holds when the wall clock shows the time without the jitter.
#[test]
fn jitter_holds_a_job_back_on_the_machines_clock() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        let time = SystemTime::now() + ms(20);
        let later = scheduler.at_wall(time).jitter(1_000_000 * HOUR);
        let later = later.run(|_| async {});
        let next = scheduler.at_wall(time + ms(1)).run(|_| async {});
        next.await.unwrap();
        assert!(!later.is_done() && later.time_left().unwrap() > HOUR);
        later.cancel();
    }));
}

// The driver waits for the earliest time: a job that no longer waits for it must neither become due nor delay others.
#[test]
fn a_wall_clock_does_not_bring_up_what_is_paused_or_gone() {
    multi_thread().block_on(within(async {
        let (_, scheduler) = on_manual_clock();
        let now = SystemTime::now();
        let gone = scheduler.at_wall(now + ms(20)).run(|_| async {});
        let held = scheduler.at_wall(now + ms(20)).run(|_| async {});
        let next = scheduler.at_wall(now + ms(40)).run(|_| async {});
        // More than are kept beside the live jobs, which stay.
        for n in 0..1_000 {
            let gone = scheduler.at_wall(now + HOUR + ms(n));
            assert!(gone.run(|_| async {}).cancel());
        }
        assert!(gone.cancel() && held.pause());
        next.await.unwrap();
        assert!(held.is_paused() && held.resume());
        held.await.unwrap();
    }));
}

// By the wall clock it is not due, so the driver would file it again.
#[test]
fn a_job_by_the_wall_clock_that_is_due_and_triggered_runs_now() {
    // In the same tick it is taken together with the others, and in a later one it still waits.
    for before in [Duration::from_micros(1), ms(10)] {
        paused().block_on(within(async {
            let (clock, scheduler) = on_manual_clock();
            let by_wall = scheduler.at_wall(SystemTime::now() + HOUR);
            let by_wall = by_wall.run(|_| async {});
            let at = by_wall.next_run().unwrap() - before;
            let control = by_wall.control();
            let first = scheduler.at(at).run(move |_| async move {
                let is_due = control.time_left() == Some(Duration::ZERO);
                Ok::<_, String>((is_due, control.trigger_now()))
            });
            // More jobs than are started at once.
            let others: Vec<_> = (0..100)
                .map(|_| scheduler.at(at).run(|_| async {}))
                .collect();
            clock.advance(2 * HOUR);
            assert_eq!(first.await.unwrap(), (true, true));
            all_end_well(others).await;
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert!(by_wall.is_done(), "it waits for {:?}", by_wall.time_left());
            by_wall.await.unwrap();
        }));
    }
}
