//! The jobs of a scheduler, as the meter shows them.

use std::cmp::Ordering;

use waterwheel::Instant;
use waterwheel_schedule::{JobInfo, JobStatus, Scheduler};

use crate::job::{Job, JobList};

impl JobList {
    /// The jobs of a scheduler: first those that repeat, by name; then those that run once, the next one first.
    ///
    /// At most `most` of them are shown. All are [listed](Scheduler::jobs) and counted: O(jobs), with the scheduler's lock held for a
    /// portion of them at a time.
    ///
    /// ```no_run
    /// use waterwheel_meter::{JobList, Meter};
    /// use waterwheel_schedule::Scheduler;
    ///
    /// fn show(scheduler: Scheduler) -> std::io::Result<()> {
    ///     let meter = Meter::new(scheduler.timer());
    ///     meter.jobs(move |most| JobList::of(&scheduler, most)).run()
    /// }
    /// ```
    #[must_use]
    pub fn of(scheduler: &Scheduler, most: usize) -> JobList {
        let mut jobs = scheduler.jobs();
        let total = jobs.len();
        if most < total {
            jobs.select_nth_unstable_by(most, in_order);
            jobs.truncate(most);
        }
        jobs.sort_unstable_by(in_order);
        let now = scheduler.timer().now();
        JobList {
            total,
            shown: jobs.iter().map(|job| Job::of(job, now)).collect(),
        }
    }
}

impl Job {
    fn of(job: &JobInfo, now: Instant) -> Job {
        // For a running job, this is when the current run was due.
        let next_run = job.next_run.filter(|_| job.status != JobStatus::Running);
        Job {
            name: job.name.as_deref().unwrap_or("–").to_owned(),
            state: match job.status {
                JobStatus::Waiting if job.failures > 0 => "backoff".to_owned(),
                status => format!("{status:?}").to_lowercase(),
            },
            next_run: next_run.map(|next| next.saturating_duration_since(now)),
            period: job.period,
            runs: job.runs,
            last_error: job.last_error.as_deref().map(str::to_owned),
        }
    }
}

/// An order that keeps the rows of repeating jobs in their places from frame to frame.
fn in_order(a: &JobInfo, b: &JobInfo) -> Ordering {
    let by_kind = b.is_periodic.cmp(&a.is_periodic);
    // `None` comes after all others.
    let by_name = || (a.name.is_none(), &a.name).cmp(&(b.name.is_none(), &b.name));
    let by_next = || (a.next_run.is_none(), a.next_run).cmp(&(b.next_run.is_none(), b.next_run));
    by_kind.then_with(|| match a.is_periodic {
        true => by_name().then_with(by_next),
        false => by_next().then_with(by_name),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::runtime::Builder;
    use waterwheel::{ManualClock, Timer};
    use waterwheel_schedule::{Backoff, Scheduler};

    use crate::job::JobList;
    use crate::view;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Calls `look` with a scheduler in virtual time, and its clock.
    fn with_scheduler(look: impl AsyncFnOnce(Scheduler, &ManualClock)) {
        let runtime = Builder::new_current_thread().build().unwrap();
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone());
        let timer = timer.start_on(runtime.handle()).unwrap();
        runtime.block_on(async {
            let scheduler = Scheduler::builder().timer(&timer).build();
            look(scheduler, &clock).await;
        });
    }

    /// Advances the clock, and runs the jobs that are due then.
    async fn pass(clock: &ManualClock, time: Duration) {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        clock.advance(time);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn jobs_that_repeat_come_first_and_then_what_is_next() {
        with_scheduler(async |scheduler, _| {
            for minutes in [5, 3, 9, 4] {
                let once = scheduler.after(minutes * MINUTE);
                drop(once.name(format!("in {minutes}")).run(|_| async {}));
            }
            let paused = scheduler.after(MINUTE).name("paused").run(|_| async {});
            assert!(paused.pause());
            drop(scheduler.after(8 * MINUTE).run(|_| async {}));
            drop(scheduler.every(MINUTE).run(|_| async {}));
            for name in ["report", "export"] {
                drop(scheduler.every(7 * MINUTE).name(name).run(|_| async {}));
            }
            let names = |most| {
                let list = JobList::of(&scheduler, most);
                assert_eq!(list.total, 9);
                let names = list.shown.into_iter().map(|job| job.name);
                names.collect::<Vec<_>>()
            };
            let all = [
                "export", "report", "–", "in 3", "in 4", "in 5", "–", "in 9", "paused",
            ];
            for most in [0, 1, 3, 8, 9, 10, usize::MAX] {
                assert_eq!(names(most), all[..most.min(all.len())]);
            }
        });
    }

    #[test]
    fn each_state_of_a_job_has_its_row() {
        with_scheduler(async |scheduler, clock| {
            let group = scheduler.group("one at a time", 1);
            for name in ["a runs", "b is queued"] {
                let job = scheduler.every(MINUTE).name(name).group(&group);
                drop(job.run(|_| std::future::pending::<()>()));
            }
            let paused = scheduler.with_delay(MINUTE).name("c is paused");
            let paused = paused.run(|_| async {});
            assert!(paused.pause());
            let backoff = Backoff::new(8 * MINUTE, 8 * MINUTE);
            let fails = scheduler.after(MINUTE).name("d fails").retry(backoff);
            drop(fails.run(|_| async { Err::<(), _>("timeout") }));
            drop(
                scheduler
                    .after(9 * MINUTE)
                    .name("e waits")
                    .run(|_| async {}),
            );
            pass(clock, MINUTE).await;
            let shown = JobList::of(&scheduler, usize::MAX).shown;
            let rows: Vec<String> = shown.iter().map(|job| view::row_of_job(job, 78)).collect();
            let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
            let expected = [
                "a runs           running  –          1 m     0",
                "b is queued      queued   now        1 m     0",
                "c is paused      paused   –          1 m     0",
                "d fails          backoff  in 8 m     –       0        timeout",
                "e waits          waiting  in 8 m     –       0",
            ];
            assert_eq!(rows, expected);
        });
    }

    #[test]
    fn a_scheduler_without_jobs_has_an_empty_list() {
        with_scheduler(async |scheduler, _| {
            let list = JobList::of(&scheduler, 7);
            assert_eq!((list.total, list.shown.len()), (0, 0));
        });
    }
}
