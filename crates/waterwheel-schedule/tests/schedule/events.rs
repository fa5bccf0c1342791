//! The events and lists of a scheduler.

use std::sync::{Arc, Mutex};

use tokio::time::{Instant, sleep};
use waterwheel_schedule::{Backoff, Builder, Event, JobStatus, Misfire, OnError, Scheduler};

use super::support::{HOUR, Log, builder_on_manual_clock, ms, secs, within};

#[tokio::test(start_paused = true)]
async fn each_run_start_end_miss_and_refusal_is_reported() {
    let (log, names_log) = (Log::new(), Log::new());
    let (hook, names) = (log.clone(), names_log.clone());
    let start = Instant::now();
    let scheduler = Scheduler::builder()
        .on_event(move |event| {
            hook.add(match event {
                Event::Started { run, scheduled, .. } => {
                    format!("{run} at {}", (*scheduled - start).as_millis())
                }
                Event::Finished { run, error, .. } => format!("{run} {error:?}"),
                Event::Missed { runs, .. } => format!("missed {runs}"),
                Event::Refused { .. } => "refused".to_owned(),
                other => format!("{other:?}"),
            });
            let (Event::Started { name, .. }
            | Event::Finished { name, .. }
            | Event::Missed { name, .. }
            | Event::Refused { name, .. }) = event
            else {
                return;
            };
            names.add(name.as_deref().unwrap().to_owned());
        })
        .build();
    let job = scheduler
        .every(ms(100))
        .name("tick")
        .misfire(Misfire::Skip)
        .on_error(OnError::Continue)
        .max_runs(2)
        .run(|context| async move {
            if context.run() == 1 {
                sleep(ms(250)).await;
                return Err("slow");
            }
            Ok(())
        });
    job.await.unwrap();
    scheduler.shutdown();
    let late = scheduler.after(ms(1)).name("late");
    assert!(late.try_run(|_| async {}).is_err());
    let ticks = [
        "1 at 100",
        "1 Some(\"slow\")",
        "missed 2",
        "2 at 400",
        "2 None",
    ];
    assert_eq!(log.lines()[..5], ticks);
    assert_eq!(log.lines()[5..], ["refused"]);
    assert_eq!(names_log.lines(), [&["tick"; 5][..], &["late"]].concat());
}

/// The due time of the run since the start, its lateness and its duration, in milliseconds.
fn times_of(event: &Event, start: Instant) -> Option<(u64, [u128; 3])> {
    match event {
        Event::Finished {
            run,
            scheduled,
            lateness,
            duration,
            ..
        } => {
            let times = [*scheduled - start, *lateness, *duration];
            Some((*run, times.map(|it| it.as_millis())))
        }
        _ => None,
    }
}

/// A scheduler that logs these times of each run, relative to `start`.
fn timed(builder: Builder, start: Instant) -> (Scheduler, Log<(u64, [u128; 3])>) {
    let log = Log::new();
    let hook = log.clone();
    let builder = builder.on_event(move |event| {
        if let Some(times) = times_of(event, start) {
            hook.add(times);
        }
    });
    (builder.build(), log)
}

#[tokio::test(start_paused = true)]
async fn an_ended_run_says_how_late_it_was_and_how_long_it_took() {
    let (scheduler, log) = timed(Scheduler::builder().concurrency(1), Instant::now());
    let first = scheduler.after(ms(10)).run(|_| sleep(ms(100)));
    // It waits for its permit.
    let second = scheduler.after(ms(20)).run(|_| sleep(ms(30)));
    first.await.unwrap();
    second.await.unwrap();
    // The grid continues during a slow run, and a failed run is retried when its backoff says so.
    let again = scheduler
        .every(ms(100))
        .misfire(Misfire::CatchUp)
        .on_error(OnError::Backoff(Backoff::new(ms(10), ms(10))))
        .max_runs(2)
        .run(|context| async move {
            sleep(ms(150)).await;
            match context.attempt() {
                1 if context.run() == 1 => Err("not yet"),
                _ => Ok(()),
            }
        });
    again.await.unwrap();
    // One job is aborted, and one takes no time.
    let aborted = scheduler.after(ms(10)).run(|_| sleep(HOUR));
    sleep(ms(15)).await;
    assert!(aborted.abort());
    assert!(aborted.await.is_err());
    scheduler.after(ms(5)).run(|_| async {}).await.unwrap();
    assert_eq!(
        log.lines(),
        [
            (1, [10, 0, 100]),
            (1, [20, 90, 30]),
            (1, [240, 0, 150]),
            (1, [400, 0, 150]),
            // Due at 340 ms by its grid, and delayed by two attempts.
            (2, [340, 210, 150]),
            (1, [710, 0, 5]),
            (1, [720, 0, 0]),
        ]
    );
}

// Measured by the scheduler's timer, from the moment that the thread calls the closure.
#[test]
fn a_blocking_run_is_late_until_it_has_a_thread() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(within(async {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let holds = tokio::task::spawn_blocking(move || released.recv());
        let (clock, builder) = builder_on_manual_clock();
        let (scheduler, log) = timed(builder, clock.now());
        let passes = clock.clone();
        let job = scheduler.after(ms(10));
        let job = job.run_blocking(move |_| passes.advance(ms(5)));
        clock.advance(ms(10));
        clock.advance(ms(30));
        release.send(()).unwrap();
        holds.await.unwrap().unwrap();
        job.await.unwrap();
        assert_eq!(log.lines(), [(1, [10, 30, 5])]);
    }));
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_call_its_scheduler_and_may_panic() {
    let slot: Arc<Mutex<Option<Scheduler>>> = Arc::default();
    let inside = Arc::clone(&slot);
    let scheduler = Scheduler::builder()
        .on_event(move |_| {
            let scheduler = inside.lock().unwrap().clone();
            let _ = scheduler.map(|scheduler| (scheduler.jobs(), scheduler.counts()));
            std::panic::resume_unwind(Box::new("on purpose"));
        })
        .build();
    *slot.lock().unwrap() = Some(scheduler.clone());
    scheduler.after(ms(1)).run(|_| async {}).await.unwrap();
    *slot.lock().unwrap() = None;
    scheduler.drain().await;
}

#[tokio::test(start_paused = true)]
async fn the_list_of_jobs_says_what_each_one_does() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let runs = scheduler.every(ms(10)).name("runs").run(|_| sleep(HOUR));
    let waits = scheduler.after(HOUR).name("waits").run(|_| async {});
    let paused = scheduler.after(HOUR).name("paused").run(|_| async {});
    paused.pause();
    sleep(ms(20)).await;
    let mut jobs = scheduler.jobs();
    jobs.sort_by(|a, b| a.name.cmp(&b.name));
    let [p, r, w] = &jobs[..] else {
        panic!("{jobs:?}")
    };
    assert_eq!(
        (p.status, p.next_run, p.is_periodic),
        (JobStatus::Paused, None, false)
    );
    assert_eq!(
        (r.status, r.next_run, r.is_periodic),
        (JobStatus::Running, Some(start + ms(10)), true)
    );
    assert_eq!(
        (w.status, w.next_run, w.runs),
        (JobStatus::Waiting, Some(start + HOUR), 0)
    );
    assert!(scheduler.next_expiration().unwrap() <= start + HOUR);
    runs.abort();
    assert!(waits.cancel() && paused.cancel());
    sleep(secs(1)).await;
    assert!(scheduler.jobs().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_list_of_jobs_has_periods_and_what_went_wrong() {
    let scheduler = Scheduler::new();
    let backoff = OnError::Backoff(Backoff::new(secs(8), secs(8)));
    let export = scheduler.every(secs(5)).name("export").on_error(backoff);
    // The second run fails at the first attempt.
    let _export = export.run(|context| async move {
        match (context.run(), context.attempt()) {
            (2, 1) => Err("disk full"),
            _ => Ok(()),
        }
    });
    let report = scheduler.with_delay(HOUR).name("report");
    let _report = report.run(|_| async {});
    let retry = scheduler
        .after(ms(1))
        .name("retry")
        .retry(Backoff::new(HOUR, HOUR));
    let _retry = retry.run(|_| async { Err::<(), _>("refused") });
    let _once = scheduler.after(HOUR).name("zeroth").run(|_| async {});
    let shown = || {
        let mut jobs = scheduler.jobs();
        jobs.sort_by(|a, b| a.name.cmp(&b.name));
        let shown = jobs.into_iter().map(|job| {
            let seconds = job.period.map(|period| period.as_secs());
            (seconds, job.runs, job.failures, job.last_error)
        });
        shown.collect::<Vec<_>>()
    };
    sleep(secs(12)).await;
    let (full, refused) = (Some("disk full".into()), Some("refused".into()));
    let retry = (None, 0, 1, refused);
    let (report, once) = ((Some(3_600), 0, 0, None), (None, 0, 0, None));
    let export = (Some(5), 1, 1, full.clone());
    assert_eq!(
        shown(),
        [export, report.clone(), retry.clone(), once.clone()]
    );
    // The second attempt at 18 s succeeded. The error is still visible.
    sleep(secs(7)).await;
    assert_eq!(shown(), [(Some(5), 2, 0, full), report, retry, once]);
}

// More jobs than are read under one lock.
#[tokio::test(start_paused = true)]
async fn the_list_of_very_many_jobs_has_each_of_them_once() {
    let scheduler = Scheduler::new();
    let controls: Vec<_> = (0..5_000)
        .map(|n| {
            let job = scheduler
                .after(secs(9))
                .name(format!("{n}"))
                .run(|_| async {});
            job.control()
        })
        .collect();
    for job in controls.iter().step_by(7) {
        assert!(job.cancel());
    }
    let listed = scheduler.jobs().into_iter().filter_map(|job| job.name);
    let mut listed: Vec<u32> = listed.map(|name| name.parse().unwrap()).collect();
    listed.sort_unstable();
    let left: Vec<u32> = (0..5_000).filter(|n| n % 7 != 0).collect();
    assert_eq!(listed, left);
    assert_eq!(scheduler.find("4999").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_knows_the_name_of_its_job() {
    let scheduler = Scheduler::new();
    let named = scheduler.after(ms(1)).name("import");
    let named = named.run(|context| async move { Ok::<_, String>(context.name()) });
    assert_eq!(named.await.unwrap().as_deref(), Some("import"));
    let unnamed = scheduler.after(ms(1));
    let unnamed = unnamed.run(|context| async move { Ok::<_, String>(context.name()) });
    assert_eq!(unnamed.await.unwrap(), None);
}
