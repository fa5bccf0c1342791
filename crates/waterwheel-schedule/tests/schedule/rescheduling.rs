//! Jobs that get another calendar, or are triggered and paused in addition to their calendar.

use tokio::time::{Instant, sleep};
use waterwheel_schedule::calendar::Schedule;
use waterwheel_schedule::{Backoff, Context, Misfire, OnError, Scheduler};

use super::calendar::{DAY, in_1970, minutes};
use super::support::{HOUR, Log, secs};

#[tokio::test(start_paused = true)]
async fn a_run_triggered_and_paused_away_counts_no_time_twice() {
    let (scheduler, log) = (in_1970(), Log::new());
    let job = hourly_catching_up(&scheduler, &log);
    assert!(job.trigger_now() && job.pause());
    sleep(secs(1)).await;
    assert!(job.resume());
    sleep(3 * HOUR).await;
    assert_eq!(minutes(&log), [60, 120, 180]);
    assert_eq!(scheduler.counts().missed, 0);
}

/// An hourly job that catches up with its missed runs.
fn hourly_catching_up(scheduler: &Scheduler, log: &Log<()>) -> waterwheel_schedule::JobHandle<()> {
    let job = scheduler.cron("0 * * * *", "UTC").unwrap();
    job.misfire(Misfire::CatchUp).run(log.job(()))
}

#[tokio::test(start_paused = true)]
async fn another_calendar_begins_anew() {
    let at_90 = Schedule::parse("30 1 * * *", "UTC").unwrap();
    let (scheduler, log) = (in_1970(), Log::new());
    let job = hourly_catching_up(&scheduler, &log);
    assert!(job.reschedule_by_calendar(at_90.clone()));
    let triggered = Log::new();
    let other = hourly_catching_up(&scheduler, &triggered);
    assert!(other.trigger_now() && other.reschedule_by_calendar(at_90));
    sleep(2 * DAY).await;
    assert_eq!(minutes(&log), [90, 1_530]);
    assert_eq!(minutes(&triggered), [90, 1_530]);
    assert_eq!(scheduler.counts().missed, 0);
}

#[tokio::test(start_paused = true)]
async fn another_calendar_forgets_the_attempts_of_the_one_before() {
    let (scheduler, log) = (in_1970(), Log::new());
    let job = scheduler.cron("0 * * * *", "UTC").unwrap();
    let job = job.on_error(OnError::Backoff(Backoff::new(HOUR, HOUR)));
    let attempt = |context: &Context| (context.run(), context.attempt());
    let job = job.run(log.each(attempt, async |_| Err::<(), _>("fails")));
    sleep(HOUR + secs(1)).await;
    assert!(job.reschedule_by_calendar(Schedule::parse("30 * * * *", "UTC").unwrap()));
    sleep(HOUR).await;
    assert_eq!(log.lines(), [(1, 1), (1, 1)]);
    job.cancel();
}

#[tokio::test(start_paused = true)]
async fn another_calendar_is_refused_in_a_run_and_beyond_the_last_instant() {
    let scheduler = in_1970();
    let daily = Schedule::parse("@daily", "UTC").unwrap();
    let runs = scheduler.every(HOUR).run(|_| sleep(HOUR));
    let until = scheduler.every(HOUR).until(Instant::now() + 2 * HOUR);
    let until = until.run(|_| async {});
    sleep(HOUR + secs(1)).await;
    assert!(runs.is_running() && !runs.reschedule_by_calendar(daily.clone()));
    assert!(!until.reschedule_by_calendar(daily));
    assert_eq!(until.time_left(), Some(HOUR - secs(1)));
    runs.abort();
}

#[tokio::test(start_paused = true)]
async fn another_calendar_that_is_earlier_wakes_the_driver() {
    let scheduler = in_1970();
    let job = scheduler.every(10 * HOUR).run(|_| async {});
    // The driver sleeps for ten hours.
    sleep(secs(1)).await;
    assert!(job.reschedule_by_calendar(Schedule::parse("0 * * * *", "UTC").unwrap()));
    sleep(HOUR).await;
    assert_eq!(job.runs(), 1);
    job.cancel();
}
