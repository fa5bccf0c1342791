//! Jobs that run once and yield a value of any type.

use std::error::Error;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;
use waterwheel_schedule::{Event, JobError, JobHandle, Scheduler};

use super::support::{HOUR, Log, ms};

/// A type that is neither an error nor `Clone`.
#[derive(Debug, PartialEq)]
struct Report(String);

#[tokio::test(start_paused = true)]
async fn a_value_may_be_of_any_type() {
    let scheduler = Scheduler::new();
    let soon = || scheduler.after(ms(10));
    let report = soon().run_value(|context| async move { Report(context.run().to_string()) });
    assert_eq!(report.await.unwrap(), Report("1".to_owned()));
    assert_eq!(
        soon().run_value(|_| async { Some(7) }).await.unwrap(),
        Some(7)
    );
    soon().run_value(|_| async {}).await.unwrap();
    // A future that was created earlier, and a job that is a function.
    let later = async { "later" };
    assert_eq!(soon().run_value(|_| later).await.unwrap(), "later");
    async fn sum(_: waterwheel_schedule::Context) -> u64 {
        42
    }
    let job: JobHandle<u64> = soon().name("sum").try_run_value(sum).unwrap();
    assert_eq!(job.await.unwrap(), 42);
}

#[tokio::test(start_paused = true)]
async fn a_result_is_a_value_like_any_other() {
    let events = Log::new();
    let hook = events.clone();
    let scheduler = Scheduler::builder()
        .on_event(move |event| {
            if let Event::Finished { error, .. } = event {
                hook.add(error.clone());
            }
        })
        .build();
    // This error cannot be boxed.
    let job = scheduler
        .after(ms(10))
        .run_value(|_| async { Err::<u8, _>(Report("no".to_owned())) });
    let control = job.control();
    assert_eq!(job.await.unwrap(), Err(Report("no".to_owned())));
    assert_eq!((control.last_error(), scheduler.counts().failed), (None, 0));
    // For comparison, `run` treats an error as a failure.
    let job = scheduler
        .after(ms(10))
        .run(|_| async { Err::<u8, _>("no") });
    assert_eq!(job.await.unwrap_err().source().unwrap().to_string(), "no");
    assert_eq!(scheduler.counts().failed, 1);
    assert_eq!(events.lines(), [None, Some("no".into())]);
}

#[tokio::test(start_paused = true)]
async fn a_job_with_a_value_ends_badly_as_any_job() {
    let scheduler = Scheduler::new();
    let panics = scheduler.after(ms(10)).run_value(|context| async move {
        if context.run() == 1 {
            // Prints nothing, unlike `panic!`.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        7
    });
    assert!(matches!(panics.await, Err(JobError::Panicked(_))));
    let late = scheduler.after(ms(10)).time_limit(ms(5));
    let late = late.run_value(|_| async {
        sleep(HOUR).await;
        7
    });
    assert!(matches!(late.await, Err(JobError::TimedOut)));
    let cancelled = scheduler.after(ms(10)).run_value(|_| async { 7 });
    assert!(cancelled.cancel());
    assert!(matches!(cancelled.await, Err(JobError::Cancelled)));
    scheduler.shutdown();
    let refused = scheduler.after(ms(10)).try_run_value(|_| async { 7 });
    assert!(refused.unwrap_err().is_shutdown());
    let refused = scheduler.after(ms(10)).try_run_blocking_value(|_| 7);
    assert!(refused.unwrap_err().is_shutdown());
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "accepts no more jobs")]
async fn a_job_with_a_value_that_is_refused_panics() {
    let scheduler = Scheduler::new();
    scheduler.shutdown();
    drop(scheduler.after(ms(10)).run_value(|_| async { 7 }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_closure_may_give_any_value() {
    let scheduler = Scheduler::new();
    let soon = || scheduler.after(Duration::ZERO);
    let here = std::thread::current().id();
    let job = soon().run_blocking_value(move |context| {
        assert_ne!(std::thread::current().id(), here);
        (
            Report(context.attempt().to_string()),
            Handle::current().id(),
        )
    });
    let value = (Report("1".to_owned()), Handle::current().id());
    assert_eq!(job.await.unwrap(), value);
    let job = soon().run_blocking_value(|_| Err::<u8, _>(Report("no".to_owned())));
    assert_eq!(job.await.unwrap(), Err(Report("no".to_owned())));
    assert_eq!(scheduler.counts().failed, 0);
    let job = soon().try_run_blocking_value(|_| "a value").unwrap();
    assert_eq!(job.await.unwrap(), "a value");
}
