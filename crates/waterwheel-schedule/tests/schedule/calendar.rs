//! Jobs by the calendar.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};
use waterwheel_schedule::calendar::Schedule;
use waterwheel_schedule::{Backoff, Context, Event, Misfire, OnError, Repeat, Scheduler};

use super::support::{
    HOUR, Log, all_end_well, builder_on_manual_clock, fails_at_first, ms, paused, secs,
};

pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// A scheduler whose wall clock shows the beginning of 1970, a Thursday.
pub(crate) fn in_1970() -> Scheduler {
    Scheduler::builder()
        .virtual_wall_clock(SystemTime::UNIX_EPOCH)
        .build()
}

#[tokio::test(start_paused = true)]
async fn a_job_at_9_each_tuesday_first_waits_and_then_runs_weekly() {
    let (scheduler, log) = (in_1970(), Log::new());
    let job = scheduler.cron("0 9 * * TUE", "UTC").unwrap().max_runs(3);
    let job = job.run(log.job(()));
    assert_eq!(job.time_left(), Some(5 * DAY + 9 * HOUR));
    assert!(job.is_periodic());
    job.await.unwrap();
    let first = (5 * DAY + 9 * HOUR).as_millis() as u64;
    let week = (7 * DAY).as_millis() as u64;
    assert_eq!(log.times(), [first, first + week, first + 2 * week]);
}

/// The seconds at which the runs of a job began that runs every 10 s and first takes 35 s, and the number of missed runs.
fn runs(misfire: Misfire) -> (Vec<u64>, u64) {
    paused().block_on(async {
        let (scheduler, log) = (in_1970(), Log::new());
        let job = scheduler.cron("*/10 * * * * *", "UTC").unwrap();
        let job = job.misfire(misfire).until(Instant::now() + secs(70));
        let wait = |context: Context| sleep(secs(if context.run() == 1 { 35 } else { 1 }));
        job.run(log.each(|_| (), wait)).await.unwrap();
        let seconds = log.times().into_iter().map(|at| at / 1_000).collect();
        (seconds, scheduler.counts().missed)
    })
}

// The run of second 10 ends at 45: the runs of 20, 30 and 40 are missed.
#[test]
fn missed_times_of_a_calendar_are_treated_as_was_said() {
    for (misfire, late, missed) in [
        (Misfire::Skip, &[][..], 3),
        (Misfire::Once, &[45], 2),
        (Misfire::CatchUpTo(2), &[45, 46], 1),
        (Misfire::CatchUp, &[45, 46, 47], 0),
    ] {
        let expected = [&[10], late, &[50, 60, 70]].concat();
        assert_eq!(runs(misfire), (expected, missed), "{misfire:?}");
    }
}

// More missed runs than are counted: the clock jumps by two months, at 86 400 seconds per day.
#[tokio::test(start_paused = true)]
async fn a_calendar_catches_up_with_the_latest_of_very_many() {
    let (scheduler, log) = (in_1970(), Log::new());
    let job = scheduler.cron("* * * * * *", "UTC").unwrap();
    let job = job.misfire(Misfire::CatchUpTo(3));
    let wait = |context: Context| sleep(if context.run() == 1 { 60 * DAY } else { ms(1) });
    let job = job.run(log.each(|_| (), wait));
    sleep(60 * DAY + secs(1) + ms(500)).await;
    assert_eq!(log.len(), 4, "{:?}", log.times());
    assert_eq!(scheduler.counts().missed, 100 - 3);
    job.cancel();
}

/// The seconds of 1970 that the runs of a job every 10 s are for. The first takes 35 s, and fails once.
fn runs_are_for(misfire: Misfire) -> Vec<Option<u64>> {
    paused().block_on(async {
        let (scheduler, log) = (in_1970(), Log::new());
        let job = scheduler.cron("*/10 * * * * *", "UTC").unwrap();
        let job = job.misfire(misfire).jitter(ms(500)).max_runs(4);
        let job = job.on_error(OnError::Backoff(Backoff::new(secs(1), HOUR)));
        let run = async |context: Context| {
            match (context.run(), context.attempt()) {
                (1, 1) => return Err("fails"),
                (1, _) => sleep(secs(34)).await,
                _ => {}
            }
            Ok(())
        };
        job.run(log.each(second, run)).await.unwrap();
        log.lines()
    })
}

fn second(context: &Context) -> Option<u64> {
    let time = context.scheduled_wall()?;
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(since.subsec_nanos(), 0);
    Some(since.as_secs())
}

#[test]
fn each_run_of_a_calendar_knows_the_time_that_it_is_for() {
    let some = |seconds: [u64; 5]| seconds.map(Some);
    assert_eq!(runs_are_for(Misfire::Skip), some([10, 10, 50, 60, 70]));
    assert_eq!(runs_are_for(Misfire::Once), some([10, 10, 40, 50, 60]));
    assert_eq!(runs_are_for(Misfire::CatchUp), some([10, 10, 20, 30, 40]));
}

#[tokio::test(start_paused = true)]
async fn a_run_beside_its_calendar_is_for_no_time_of_it() {
    let (scheduler, log, contexts) = (in_1970(), Log::new(), Log::new());
    let kept = contexts.clone();
    let job = scheduler.cron("*/10 * * * * *", "UTC").unwrap();
    let job = job
        .first_after(secs(1))
        .run(log.each(second, move |context| {
            kept.add(context);
            async {}
        }));
    sleep(secs(3)).await;
    assert!(job.trigger_now());
    sleep(secs(9)).await;
    // During the run of 20 s, at 25 s.
    assert!(job.reschedule_after(secs(13)));
    sleep(secs(15)).await;
    assert!(job.pause());
    sleep(secs(20)).await;
    assert!(job.resume());
    sleep(secs(5)).await;
    let seconds: Vec<u64> = log.times().iter().map(|at| at / 1_000).collect();
    assert_eq!(seconds, [1, 3, 10, 25, 50]);
    assert_eq!(log.lines(), [None, None, Some(10), Some(20), Some(50)]);
    // The runs have ended, and the job waits for the next one.
    for context in contexts.lines() {
        assert_eq!(context.scheduled_wall(), None, "{context:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_of_a_calendar_is_tried_again_and_then_on_time() {
    let (scheduler, log) = (in_1970(), Log::new());
    let job = scheduler.cron("0 * * * *", "UTC").unwrap().max_runs(2);
    let job = job.on_error(OnError::Backoff(Backoff::new(secs(60), HOUR)));
    let run = async |context: Context| {
        let fails = context.attempt() < 3 && context.run() == 1;
        if fails { Err("fails") } else { Ok(()) }
    };
    let attempt = |context: &Context| (context.run(), context.attempt());
    job.run(log.each(attempt, run)).await.unwrap();
    assert_eq!(log.lines(), [(1, 1), (1, 2), (1, 3), (2, 1)]);
    assert_eq!(minutes(&log), [60, 61, 63, 120]);
}

#[tokio::test(start_paused = true)]
async fn a_job_by_the_calendar_can_be_triggered_moved_and_paused() {
    let (scheduler, log) = (in_1970(), Log::new());
    let job = scheduler.cron("0 * * * *", "UTC").unwrap().run(log.job(()));
    sleep(30 * secs(60)).await;
    assert!(job.trigger_now());
    sleep(HOUR).await;
    // At 90 minutes, the next run at 120 is moved to 100. The one after it is then at 180.
    assert!(job.reschedule_after(10 * secs(60)));
    sleep(HOUR).await;
    assert!(job.pause());
    sleep(5 * HOUR).await;
    assert!(job.resume());
    sleep(HOUR).await;
    assert_eq!(minutes(&log), [30, 60, 100, 480]);
    job.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_first_run_before_the_calendar_begins() {
    let (scheduler, start) = (in_1970(), Instant::now());
    let first: [fn(Repeat<'_>, Instant) -> Repeat<'_>; 2] = [
        |job, _| job.first_after(secs(60)),
        |job, start| job.first_at(start + secs(60)),
    ];
    let jobs = first.map(|first| {
        let log = Log::new();
        let job = first(scheduler.cron("0 * * * *", "UTC").unwrap(), start);
        let job = job.max_runs(2).run(log.job(()));
        (job, log)
    });
    for (job, log) in jobs {
        job.await.unwrap();
        assert_eq!(log.times(), [60_000, 3_600_000]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_has_no_time_left_ends_well_without_a_run() {
    let options = waterwheel_schedule::calendar::ScheduleOptions::new().years(true);
    let past = options.parse("0 0 0 1 1 * 1969", "UTC");
    let scheduler = in_1970();
    let job = scheduler.by_calendar(past.unwrap()).run(|_| async {});
    assert!(job.is_done());
    job.await.unwrap();
    assert_eq!(scheduler.counts().finished, 0);
    assert!(scheduler.cron("60 * * * *", "UTC").is_err());
    assert!(scheduler.cron("* * * * *", "Europe/Atlantis").is_err());
    let daily = Schedule::parse("@daily", "UTC").unwrap();
    let job = scheduler.by_calendar(daily.clone()).run(|_| async {});
    assert!(
        job.time_left().unwrap() <= DAY && daily == Schedule::parse("0 0 * * *", "UTC").unwrap()
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_repeats_can_be_given_another_calendar() {
    let (scheduler, log) = (in_1970(), Log::new());
    let job = scheduler.every(HOUR).max_runs(3).run(log.job(()));
    let daily = Schedule::parse("30 2 * * *", "UTC").unwrap();
    assert!(
        job.pause() && job.reschedule_by_calendar(daily.clone()) && job.is_paused() && job.resume()
    );
    assert_eq!(job.time_left(), Some(2 * HOUR + HOUR / 2));
    job.await.unwrap();
    let first = (2 * HOUR + HOUR / 2).as_millis() as u64;
    let day = DAY.as_millis() as u64;
    assert_eq!(log.times(), [first, first + day, first + 2 * day]);
    let once = scheduler.after(HOUR).run(|_| async {});
    assert!(!once.reschedule_by_calendar(daily));
}

/// An hourly job that logs its runs, the first of which are at 60 and 120 minutes.
fn hourly(scheduler: &Scheduler, log: &Log<()>) -> waterwheel_schedule::JobHandle<()> {
    scheduler.cron("0 * * * *", "UTC").unwrap().run(log.job(()))
}

pub(crate) fn minutes<T: Clone>(log: &Log<T>) -> Vec<u64> {
    log.times().iter().map(|at| at / 60_000).collect()
}

#[tokio::test(start_paused = true)]
async fn a_pause_keeps_what_was_moved_or_triggered_on_a_calendar() {
    let minute = secs(60);
    let (scheduler, moved, triggered) = (in_1970(), Log::new(), Log::new());
    let one = hourly(&scheduler, &moved);
    assert!(one.reschedule_after(150 * minute) && one.pause());
    let two = hourly(&scheduler, &triggered);
    assert!(two.pause());
    sleep(90 * minute).await;
    assert!(one.resume() && two.resume());
    sleep(91 * minute).await;
    assert_eq!(minutes(&moved), [150, 180]);
    assert_eq!(minutes(&triggered), [120, 180]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_retry_of_a_calendar_keeps_its_wait_and_until_holds() {
    let (scheduler, log) = (in_1970(), Log::new());
    let job = scheduler.cron("0 * * * *", "UTC").unwrap().max_runs(1);
    let job = job.on_error(OnError::Backoff(Backoff::new(secs(60), HOUR)));
    let job = job.run(log.each(|_| (), fails_at_first));
    sleep(HOUR + secs(30)).await;
    assert!(job.pause() && job.resume());
    job.await.unwrap();
    assert_eq!(minutes(&log), [60, 61]);
    let until = scheduler.cron("0 * * * *", "UTC").unwrap();
    let until = until.until(Instant::now() + HOUR).run(|_| async {});
    until.pause();
    sleep(2 * HOUR).await;
    assert!(until.resume() && until.is_done() && until.runs() == 0);
}

/// A manual clock, and the builder of a scheduler that follows it, in 1970.
fn by_hand() -> (waterwheel::ManualClock, waterwheel_schedule::Builder) {
    let (clock, builder) = builder_on_manual_clock();
    (clock, builder.virtual_wall_clock(SystemTime::UNIX_EPOCH))
}

/// Lets the clock of an hourly job jump, as after a suspension. Returns its runs, the time to the next, and the missed runs.
fn jump(misfire: Misfire, until: Duration, jump: Duration) -> (u64, Option<Duration>, u64) {
    paused().block_on(async {
        let (clock, builder) = by_hand();
        let scheduler = builder.build();
        let until = scheduler.timer().now() + until;
        let job = scheduler.cron("0 * * * *", "UTC").unwrap();
        let job = job.misfire(misfire).until(until).run(|_| async {});
        sleep(ms(1)).await;
        clock.advance(jump);
        sleep(secs(1)).await;
        let found = (job.runs(), job.time_left(), scheduler.counts().missed);
        assert_eq!(job.is_done(), found.1.is_none(), "{misfire:?}");
        if job.is_done() {
            job.await.unwrap();
            assert_eq!(scheduler.counts().pending, 0);
        }
        found
    })
}

// The policy decides, and adds no further run.
#[test]
fn times_that_come_up_late_are_missed_as_was_said() {
    let ten = 10 * HOUR + secs(600);
    let left = Some(secs(3_000));
    for (misfire, expected, until_half_past_one) in [
        (Misfire::Skip, 0, 0),
        (Misfire::Once, 1, 0),
        (Misfire::CatchUpTo(2), 2, 0),
        // The run of one o'clock, however late.
        (Misfire::CatchUp, 10, 1),
    ] {
        let found = jump(misfire, 1_000 * HOUR, ten);
        assert_eq!(found, (expected, left, 10 - expected), "{misfire:?}");
        let (runs, left, _) = jump(misfire, HOUR + HOUR / 2, ten);
        assert_eq!((runs, left), (until_half_past_one, None), "{misfire:?}");
    }
    // A late run is not missed if the time after it is still to come.
    for misfire in [Misfire::Skip, Misfire::Once, Misfire::CatchUp] {
        let found = jump(misfire, 1_000 * HOUR, HOUR + secs(600));
        assert_eq!(found, (1, left, 0), "{misfire:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn times_that_come_up_late_are_reported_as_missed() {
    let ((clock, builder), log) = (by_hand(), Log::new());
    let events = log.clone();
    let scheduler = builder.on_event(move |event| match event {
        Event::Missed { id, name, runs, .. } => events.add((*id, name.clone(), *runs)),
        Event::Started { id, run, .. } => events.add((*id, None, *run)),
        _ => {}
    });
    let scheduler = scheduler.build();
    let _other = scheduler.after(24 * HOUR).run(|_| async {});
    let job = scheduler.cron("0 * * * *", "UTC").unwrap().name("hourly");
    let job = job.misfire(Misfire::Once).run(|_| async {});
    sleep(ms(1)).await;
    clock.advance(10 * HOUR + secs(600));
    sleep(secs(1)).await;
    let (id, name) = (job.id(), Some("hourly".into()));
    assert_eq!(log.lines(), [(id, name, 9), (id, None, 1)]);
    job.cancel();
}

// Each job takes many searches: if all were done under one lock, a submission would wait for them.
#[tokio::test(start_paused = true)]
async fn late_calendars_are_served_one_by_one() {
    let ((clock, builder), log) = (by_hand(), Log::new());
    let slot: Arc<Mutex<Option<Scheduler>>> = Arc::default();
    let (inside, counted) = (Arc::clone(&slot), log.clone());
    let scheduler = builder.on_event(move |event| {
        if let (Event::Missed { .. }, Some(scheduler)) = (event, &*inside.lock().unwrap()) {
            counted.add(scheduler.counts().missed);
        }
    });
    let scheduler = scheduler.build();
    *slot.lock().unwrap() = Some(scheduler.clone());
    let hourly = Schedule::parse("0 * * * *", "UTC").unwrap();
    let jobs = (0..20).map(|_| scheduler.by_calendar(hourly.clone()).run(|_| async {}));
    let jobs: Vec<_> = jobs.collect();
    sleep(ms(1)).await;
    clock.advance(10 * HOUR + secs(600));
    sleep(secs(1)).await;
    let one_by_one: Vec<u64> = (1..=20).map(|jobs| 10 * jobs).collect();
    assert_eq!(log.lines(), one_by_one);
    assert!(jobs.iter().all(|job| job.cancel()));
    *slot.lock().unwrap() = None;
}

#[tokio::test(start_paused = true)]
async fn jitter_keeps_no_time_of_a_calendar_from_before_until() {
    let (scheduler, log) = (in_1970(), Log::new());
    let until = Instant::now() + HOUR + secs(30);
    let jobs: Vec<_> = (0..50)
        .map(|_| {
            let job = scheduler.cron("0 * * * *", "UTC").unwrap();
            let job = job.jitter(HOUR / 2).until(until);
            job.run(log.each(|_| Instant::now(), |_| async {}))
        })
        .collect();
    all_end_well(jobs).await;
    let times = log.lines();
    assert_eq!(times.len(), 50);
    assert!(times.iter().all(|&at| at <= until + ms(1)), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn jitter_makes_the_runs_of_a_calendar_later_each_by_another_time() {
    let (scheduler, log) = (in_1970(), Log::new());
    let job = scheduler.cron("* * * * *", "UTC").unwrap();
    let job = job.jitter(secs(30)).max_runs(100).run(log.job(()));
    job.await.unwrap();
    let late: Vec<u64> = log.times().iter().map(|at| at % 60_000).collect();
    assert!(late.iter().all(|&late| late <= 30_001), "{late:?}");
    assert!(late[1..].iter().any(|&late| late > 20_000), "{late:?}");
    assert_eq!(minutes(&log), (1..=100).collect::<Vec<_>>());
}
