//! How many jobs run at a time, and how many are accepted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{Instant, sleep};
use waterwheel_schedule::{JobHandle, JobStatus, Scheduler};

use super::support::{HOUR, Log, all_end_well, ms, paused, secs};

/// The number of running jobs, and its maximum so far.
#[derive(Clone, Default)]
struct Gauge(Arc<(AtomicUsize, AtomicUsize)>);

impl Gauge {
    async fn run(self) {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        sleep(ms(10)).await;
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

/// The number of jobs that are due and wait for a permit.
fn queued(scheduler: &Scheduler) -> usize {
    let jobs = scheduler.jobs().into_iter();
    jobs.filter(|job| job.status == JobStatus::Queued).count()
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_runs_as_many_as_it_may_and_no_more() {
    let scheduler = Scheduler::builder().concurrency(3).build();
    let (gauge, start) = (Gauge::default(), Instant::now());
    let jobs: Vec<_> = (0..9)
        .map(|_| {
            let gauge = gauge.clone();
            scheduler.after(ms(5)).run(|_| gauge.run())
        })
        .collect();
    sleep(ms(6)).await;
    assert_eq!(queued(&scheduler), 6);
    let counts = scheduler.counts();
    assert_eq!((counts.running, counts.pending), (3, 6));
    all_end_well(jobs).await;
    assert_eq!((gauge.most(), start.elapsed()), (3, ms(35)));
}

#[tokio::test(start_paused = true)]
async fn a_group_holds_up_its_own_jobs_alone() {
    let scheduler = Scheduler::builder().concurrency(4).build();
    let slow = scheduler.group("slow", 2);
    assert_eq!(&*slow.name(), "slow");
    let (inside, outside) = (Gauge::default(), Log::new());
    for _ in 0..10 {
        let gauge = inside.clone();
        drop(scheduler.after(ms(5)).group(&slow).run(|_| gauge.run()));
    }
    for n in 0..4 {
        drop(scheduler.after(ms(5)).run(outside.job(n)));
    }
    sleep(ms(6)).await;
    // They bypass the group's queue.
    assert_eq!(outside.lines(), [0, 1, 2, 3]);
    sleep(secs(1)).await;
    assert_eq!((inside.most(), scheduler.counts().finished), (2, 14));
}

#[tokio::test(start_paused = true)]
async fn a_place_passes_over_jobs_that_left_the_queue() {
    let scheduler = Scheduler::builder().concurrency(1).build();
    let group = scheduler.group("one", 1);
    let log = Log::new();
    let jobs: Vec<_> = (0..6)
        .map(|n| {
            let job = scheduler.after(ms(5));
            let job = if n % 2 == 0 { job.group(&group) } else { job };
            job.run(log.each(move |_| n, |_| sleep(ms(10))))
        })
        .collect();
    sleep(ms(6)).await;
    assert!(jobs[0].is_running());
    // One from the group's queue, one from the scheduler's, and one that is paused in its queue.
    assert!(jobs[2].cancel() && jobs[1].cancel() && jobs[3].pause());
    sleep(secs(1)).await;
    assert_eq!(log.lines(), [0, 4, 5]);
    assert!(jobs[3].resume());
    sleep(secs(1)).await;
    assert_eq!(log.lines(), [0, 4, 5, 3]);
    let counts = scheduler.counts();
    assert_eq!((counts.running, counts.pending), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn one_job_more_than_the_bound_is_refused() {
    let scheduler = Scheduler::builder().max_pending(2).build();
    let submit = || scheduler.after(HOUR).try_run(|_| async {});
    let (first, second) = (submit().unwrap(), submit().unwrap());
    let refused = submit().unwrap_err();
    assert!(refused.is_at_capacity() && !refused.is_shutdown());
    assert!(refused.to_string().contains("max_pending"));
    // A cancelled job frees its place at once, and a running one when it has ended.
    first.cancel();
    let third = submit().unwrap();
    assert!(submit().unwrap_err().is_at_capacity());
    second.await.unwrap();
    drop(third);
    sleep(HOUR).await;
    assert!(submit().is_ok());
    assert_eq!(scheduler.counts().refused, 2);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "max_pending")]
async fn beyond_the_bound_the_infallible_call_panics_with_advice() {
    let scheduler = Scheduler::builder().max_pending(0).build();
    drop(scheduler.after(HOUR).run(|_| async {}));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "another scheduler")]
async fn a_group_of_another_scheduler_is_refused() {
    let group = Scheduler::new().group("theirs", 1);
    let _ = Scheduler::new().after(HOUR).group(&group);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "at least 1")]
async fn a_group_of_none_is_refused() {
    let _ = Scheduler::new().group("none", 0);
}

// Cancelled jobs leave their queue at once, and so do paused ones.
#[tokio::test(start_paused = true)]
async fn what_leaves_a_queue_leaves_no_trace() {
    let scheduler = Scheduler::builder().concurrency(1).build();
    let group = scheduler.group("one", 1);
    let stuck = scheduler.after(ms(1)).group(&group).run(|_| sleep(HOUR));
    let others: Vec<_> = (0..100)
        .map(|_| scheduler.after(ms(1)).group(&group).run(|_| async {}))
        .collect();
    sleep(ms(5)).await;
    for other in &others {
        assert!(other.pause() && other.resume());
    }
    sleep(ms(5)).await;
    assert_eq!(queued(&scheduler), 100);
    assert!(others.iter().all(|other| other.cancel()));
    stuck.abort();
    let start = Instant::now();
    let last = scheduler.after(ms(1)).group(&group);
    last.run(|_| async {}).await.unwrap();
    assert_eq!((start.elapsed(), scheduler.counts().running), (ms(1), 0));
}

// A busy group does not delay the other jobs.
#[tokio::test(start_paused = true)]
async fn jobs_queue_for_the_scheduler_by_deadline_whatever_their_group() {
    let scheduler = Scheduler::builder().concurrency(1).build();
    let group = scheduler.group("two", 2);
    let log = Log::new();
    for n in 0..6_u64 {
        let job = scheduler.after(ms(1 + n));
        let job = if n % 2 == 0 { job.group(&group) } else { job };
        drop(job.run(log.each(move |_| n, |_| sleep(ms(20)))));
    }
    sleep(secs(1)).await;
    // At most two jobs of the group are in the scheduler's queue at a time.
    assert_eq!(log.lines(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_group_goes_on_when_its_first_leaves_the_schedulers_queue() {
    for leave in [JobHandle::cancel, JobHandle::abort, JobHandle::pause] {
        paused().block_on(async {
            let scheduler = Scheduler::builder().concurrency(1).build();
            let group = scheduler.group("one", 1);
            let busy = scheduler.after(ms(1)).run(|_| sleep(ms(100)));
            // It holds the group's permit while it waits for the scheduler's.
            let first = scheduler.after(ms(2)).group(&group).run(|_| async {});
            let second = scheduler.after(ms(3)).group(&group).run(|_| async {});
            sleep(ms(10)).await;
            assert!(busy.is_running() && leave(&first));
            let start = Instant::now();
            second.await.unwrap();
            assert_eq!(start.elapsed(), ms(91));
        });
    }
}
