//! Pausing, resuming, triggering and rescheduling jobs.

use tokio::time::{Instant, sleep};
use waterwheel_schedule::{JobControl, Misfire, Scheduler};

use super::support::{HOUR, Log, all_end_well, ms, secs};

#[tokio::test(start_paused = true)]
async fn a_paused_job_does_not_run_and_resumes_on_its_grid() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler.every(ms(100)).run(log.job(()));
    sleep(ms(150)).await;
    assert!(job.pause() && !job.pause() && job.is_paused());
    assert_eq!(job.next_run(), None);
    sleep(ms(1_010)).await;
    assert!(job.resume() && !job.resume() && !job.is_paused());
    sleep(ms(200)).await;
    assert_eq!(log.times(), [100, 1_200, 1_300]);
    assert_eq!(scheduler.counts().missed, 0, "nothing was to run");
}

#[tokio::test(start_paused = true)]
async fn a_job_paused_while_it_runs_stops_after_the_run() {
    let scheduler = Scheduler::new();
    let job = scheduler.every(ms(100)).run(|_| sleep(ms(50)));
    sleep(ms(120)).await;
    assert!(job.is_running() && job.pause() && job.is_paused());
    sleep(secs(10)).await;
    assert_eq!(
        (job.runs(), job.is_running(), job.is_paused()),
        (1, false, true)
    );
    job.resume();
    sleep(ms(235)).await;
    assert_eq!(job.runs(), 3);
    // The pause is undone during the run.
    sleep(ms(50)).await;
    assert!(job.is_running() && job.pause() && job.resume());
    sleep(ms(100)).await;
    assert!(!job.is_paused());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_paused_beyond_its_deadline_runs_at_once() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let job = scheduler.after(ms(100));
    let job = job.run_value(move |_| async move { start.elapsed() });
    job.pause();
    sleep(secs(1)).await;
    job.resume();
    assert_eq!(job.await.unwrap(), secs(1));
    // A paused job can also be cancelled.
    let job = scheduler.after(ms(100)).run(|_| async {});
    job.pause();
    assert!(job.cancel() && !job.resume() && !job.pause());
    assert!(job.await.unwrap_err().is_cancelled());
    assert_eq!(scheduler.counts().pending, 0);
}

#[tokio::test(start_paused = true)]
async fn a_triggered_run_is_beside_the_grid() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler.every(ms(100));
    let job = job.run(log.each(|_| (), |_| sleep(ms(5))));
    sleep(ms(130)).await;
    assert!(job.trigger_now());
    sleep(ms(1)).await;
    let is_refused = !job.trigger_now();
    assert!(job.is_running() && is_refused, "runs do not overlap");
    sleep(ms(200)).await;
    assert_eq!(log.times(), [100, 130, 200, 300]);
    // A job that runs once is then done.
    let once = scheduler.after(HOUR).run(|_| async {});
    assert!(once.trigger_now());
    let waited = Instant::now();
    once.await.unwrap();
    assert_eq!(waited.elapsed(), ms(0));
}

// The driver has not seen it, is about to start it, or has queued it behind a limit: the caller need not know.
#[tokio::test(start_paused = true)]
async fn a_trigger_of_a_job_that_is_due_is_true_and_adds_no_run() {
    let (scheduler, at) = (Scheduler::new(), Instant::now() + ms(5));
    let unseen = scheduler.at(Instant::now()).run(|_| async {});
    assert!(unseen.trigger_now());
    unseen.await.unwrap();
    // More jobs than the driver starts in one poll. The first of them runs before the last is started.
    let (hand, handed) = tokio::sync::oneshot::channel::<JobControl>();
    let first = scheduler.at(at).run(|_| async move {
        let last = handed.await.unwrap();
        Ok::<_, String>((last.is_done(), last.is_running(), last.trigger_now()))
    });
    let rest = (0..100).map(|_| scheduler.at(at).run(|_| async {}));
    let rest: Vec<_> = rest.collect();
    assert!(hand.send(rest[99].control()).is_ok());
    assert_eq!(first.await.unwrap(), (false, false, true));
    all_end_well(rest).await;

    let scheduler = Scheduler::builder().concurrency(2).build();
    let group = scheduler.group("one at a time", 1);
    let runs = ["in the group", "queued in the group", "beside it", "queued"].map(|name| {
        let job = scheduler.every(HOUR).name(name);
        let job = match name.ends_with("group") {
            true => job.group(&group),
            false => job,
        };
        job.run(|_| sleep(ms(10)))
    });
    sleep(HOUR + ms(5)).await;
    assert_eq!(
        runs.each_ref().map(|job| job.is_running()),
        [true, false, true, false]
    );
    assert_eq!(
        runs.each_ref().map(|job| job.trigger_now()),
        [false, true, false, true]
    );
    sleep(secs(1)).await;
    assert_eq!(runs.each_ref().map(|job| job.runs()), [1; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_moved_job_runs_at_its_new_deadline() {
    let (scheduler, log, start) = (Scheduler::new(), Log::new(), Instant::now());
    let rate = scheduler.every(ms(100)).max_runs(3).run(log.job(()));
    assert!(rate.reschedule_at(start + ms(35)));
    assert_eq!(rate.next_run(), Some(start + ms(35)));
    rate.await.unwrap();
    assert_eq!(log.times(), [35, 135, 235], "the grid counts on from there");
    // Moved later, moved earlier, and after its end.
    let once = scheduler.after(ms(10)).run(|_| async {});
    assert!(once.reschedule_after(HOUR) && once.time_left() == Some(HOUR));
    assert!(once.reschedule_after(ms(5)));
    sleep(ms(6)).await;
    assert!(once.is_done() && !once.reschedule_after(HOUR) && !once.trigger_now());
}

#[tokio::test(start_paused = true)]
async fn pauses_and_triggers_mix() {
    let scheduler = Scheduler::new();
    let job = scheduler.every(ms(100)).run(|_| async {});
    // Triggered, paused before it runs, and resumed: it is not paused after its run.
    assert!(job.pause() && job.trigger_now() && job.pause() && job.resume());
    sleep(ms(350)).await;
    assert!(!job.is_paused() && job.runs() >= 3);
    // Triggered twice while it is paused: it stays paused.
    assert!(job.pause() && job.trigger_now() && job.trigger_now());
    let runs = job.runs();
    sleep(secs(1)).await;
    assert_eq!((job.runs(), job.is_paused()), (runs + 1, true));
    // Moving the deadline leaves it paused.
    assert!(job.reschedule_after(ms(50)) && job.is_paused());
    sleep(secs(1)).await;
    assert_eq!(job.runs(), runs + 1);
}

#[tokio::test(start_paused = true)]
async fn no_run_is_moved_beyond_the_last_instant() {
    let (scheduler, start) = (Scheduler::new(), Instant::now());
    let job = scheduler
        .every(ms(100))
        .until(start + ms(250))
        .jitter(secs(10));
    let job = job.run(|_| async {});
    assert!(!job.reschedule_at(start + ms(251)));
    assert!(job.next_run().unwrap() <= start + ms(250));
    sleep(secs(20)).await;
    assert!(job.is_done() && job.runs() >= 1);
    job.await.unwrap();
    let held = scheduler
        .every(ms(100))
        .until(Instant::now() + ms(250))
        .run(|_| async {});
    held.pause();
    sleep(secs(1)).await;
    assert!(held.resume() && held.is_done());
    held.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_triggered_and_paused_away_counts_no_place_twice() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler.every(ms(100)).misfire(Misfire::CatchUp);
    let job = job.max_runs(3).run(log.job(()));
    assert!(job.trigger_now() && job.pause());
    sleep(ms(10)).await;
    assert!(job.resume());
    job.await.unwrap();
    assert_eq!(log.times(), [100, 200, 300]);
}

// Runs that came due during a pause were not missed, however the pause ended.
#[tokio::test(start_paused = true)]
async fn a_run_triggered_in_a_pause_catches_up_with_nothing() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler.every(ms(100)).misfire(Misfire::CatchUp);
    let job = job.run(log.job(()));
    assert!(job.pause());
    sleep(ms(1_050)).await;
    assert!(job.trigger_now() && job.resume());
    sleep(ms(200)).await;
    assert_eq!(log.times(), [1_050, 1_100, 1_200]);
    assert!(job.pause());
    sleep(ms(1_000)).await;
    assert!(job.trigger_now());
    sleep(ms(100)).await;
    assert!(job.resume());
    sleep(ms(60)).await;
    assert_eq!(log.times()[3..], [2_250, 2_400]);
    assert_eq!(scheduler.counts().missed, 0, "nothing was to run");
}
