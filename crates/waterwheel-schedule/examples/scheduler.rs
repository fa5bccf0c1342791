//! The jobs of a small service: a reminder, a heartbeat, an import that fails at first, a report that blocks, and an orderly end.
//!
//! `cargo run -p waterwheel-schedule --example scheduler`

use std::time::Duration;

use waterwheel_schedule::{BackOff, Event, Missed, OnError, Scheduler};

const MS: Duration = Duration::from_millis(1);

#[tokio::main]
async fn main() {
    let scheduler = Scheduler::builder()
        .concurrency(8)
        .on_event(|event| {
            if let Event::Finished {
                name: Some(name),
                run,
                error: Some(error),
                ..
            } = event
            {
                println!("{name}: run {run} failed: {error}");
            }
        })
        .build();

    let reminder = scheduler
        .after(60 * MS)
        .name("reminder")
        .run(|_| async { println!("reminder: tea is ready") });

    let heartbeat = scheduler
        .every(20 * MS)
        .name("heartbeat")
        .missed(Missed::Skip)
        .run(|context| async move { println!("heartbeat {}", context.run()) });

    // Tried again after 10, 20, 40 ms.
    let import = scheduler
        .after(5 * MS)
        .name("import")
        .time_limit(Duration::from_secs(1))
        .retry(BackOff::new(10 * MS, 100 * MS).retries(5))
        .run(|context| async move {
            match context.attempt() {
                1 | 2 => Err("the file is not there yet"),
                attempt => Ok(format!("42 lines, at attempt {attempt}")),
            }
        });

    // It blocks, so it runs on a thread that may.
    let report = scheduler
        .with_delay(30 * MS)
        .name("report")
        .on_error(OnError::Continue)
        .max_runs(2)
        .run_blocking(|context| println!("report {}", context.run()));

    println!(
        "import: {}",
        import.await.expect("it goes well at the third attempt")
    );
    report.await.expect("a job with `max_runs` ends well");
    for job in scheduler.jobs() {
        println!(
            "there is still {:?}: {:?}, {} runs",
            job.name.unwrap_or_default(),
            job.status,
            job.runs
        );
    }

    // What runs once still runs; the heartbeat ends.
    scheduler.shutdown();
    assert!(scheduler.await_termination(Duration::from_secs(60)).await);
    reminder.await.expect("a delayed job runs after a shutdown");
    assert!(
        heartbeat
            .await
            .expect_err("a periodic one ends")
            .is_cancelled()
    );
    println!("{:?}", scheduler.counts());
}
