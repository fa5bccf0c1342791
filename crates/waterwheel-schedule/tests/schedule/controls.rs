//! Controls, used while the handle is awaited.

use std::sync::Arc;

use tokio::time::{Instant, sleep};
use waterwheel_schedule::{JobControl, Misfire, Scheduler};

use super::support::{HOUR, Log, ms, multi_thread, within};

#[tokio::test(start_paused = true)]
async fn a_job_is_cancelled_while_another_task_awaits_its_handle() {
    let scheduler = Scheduler::new();
    let job = scheduler.after(HOUR).run(|_| async {});
    let (control, start) = (job.control(), Instant::now());
    let waiting = tokio::spawn(job);
    sleep(ms(10)).await;
    assert!(control.cancel());
    assert!(waiting.await.unwrap().unwrap_err().is_cancelled());
    assert_eq!(start.elapsed(), ms(10));
    assert!(control.is_cancelled() && control.is_done());
}

#[tokio::test(start_paused = true)]
async fn a_control_does_and_sees_what_its_handle_does() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let job = scheduler.every(ms(100)).misfire(Misfire::Skip);
    let job = job.run(log.each(|_| (), async |_| Err("as ever")));
    let control = job.control();
    let both = |of: fn(&JobControl) -> bool| of(&control) && of(&job.control());
    assert!(both(JobControl::is_periodic) && !both(JobControl::is_running));
    assert_eq!(control.time_left(), Some(ms(100)));
    assert_eq!(control.next_run(), job.next_run());
    assert!(control.pause() && job.is_paused() && control.is_paused());
    sleep(ms(200)).await;
    assert!(control.resume() && !job.is_paused());
    assert!(control.reschedule_after(ms(50)));
    assert_eq!(job.time_left(), Some(ms(50)));
    assert!(control.reschedule_at(Instant::now() + ms(20)));
    assert_eq!(job.time_left(), Some(ms(20)));
    assert!(control.trigger_now());
    assert!(job.await.is_err());
    assert_eq!((log.times(), control.runs()), (vec![200], 1));
    assert_eq!(control.last_error().as_deref(), Some("as ever"));
    assert!(control.is_done() && !control.is_periodic() && !control.abort());
}

#[test]
fn of_handle_and_controls_one_cancels() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        for _ in 0..200 {
            let job = scheduler.after(HOUR).run(|_| async {});
            let tasks = [job.control(), job.control(), job.control()]
                .map(|control| tokio::spawn(async move { control.cancel() }));
            let mut cancels = u32::from(job.cancel());
            for task in tasks {
                cancels += u32::from(task.await.unwrap());
            }
            assert_eq!(cancels, 1);
        }
    }));
}

#[tokio::test(start_paused = true)]
async fn a_control_of_a_job_that_has_ended_reaches_no_other() {
    let scheduler = Scheduler::new();
    let gone = scheduler.after(HOUR).run(|_| async {});
    let control = gone.control();
    gone.cancel();
    // This job takes the place of the first one in the wheel.
    let job = scheduler.after(HOUR).run(|_| async {});
    assert!(!control.cancel() && !control.pause() && !control.trigger_now());
    assert!(control.is_done() && control.next_run().is_none());
    assert!(!job.is_done() && !job.is_cancelled());
}

// Like a detached task of tokio.
#[tokio::test(start_paused = true)]
async fn a_control_keeps_no_value_of_a_job_without_a_handle() {
    let scheduler = Scheduler::new();
    let value = Arc::new(());
    let submit = || {
        let value = Arc::clone(&value);
        scheduler.after(ms(10)).run_value(|_| async { value })
    };
    let (before, after, kept) = (submit(), submit(), submit());
    let controls = [before.control(), after.control(), kept.control()];
    drop(before);
    sleep(ms(20)).await;
    assert_eq!(Arc::strong_count(&value), 3);
    drop(after);
    assert_eq!(Arc::strong_count(&value), 2);
    drop(kept.await.unwrap());
    assert_eq!(Arc::strong_count(&value), 1);
    assert!(controls.iter().all(|it| it.is_done() && it.runs() == 1));
}

#[tokio::test(start_paused = true)]
async fn jobs_are_found_by_their_name() {
    let scheduler = Scheduler::new();
    let first = scheduler.after(HOUR).name("report").run(|_| async {});
    let second = scheduler.every(HOUR).name("report").run(|_| async {});
    let other = scheduler.after(HOUR).name("reports").run(|_| async {});
    let _unnamed = scheduler.after(HOUR).run(|_| async {});
    let found = scheduler.find("report");
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(JobControl::cancel));
    assert!(first.is_done() && second.is_done() && !other.is_done());
    assert!(scheduler.find("report").is_empty() && scheduler.find("").is_empty());
}
