//! The jobs of a small service: a reminder, a heartbeat, an import that is retried, a blocking report, and a graceful shutdown.
//!
//! `cargo run -p waterwheel-schedule --example scheduler`

use std::time::Duration;

use waterwheel_schedule::{Backoff, Event, Misfire, OnError, Scheduler};

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
        .misfire(Misfire::Skip)
        .run(|context| async move { println!("heartbeat {}", context.run()) });

    // Retried after 10, 20, 40 ms.
    let import = scheduler
        .after(5 * MS)
        .name("import")
        .time_limit(Duration::from_secs(1))
        .retry(Backoff::new(10 * MS, 100 * MS).max_attempts(6))
        .run(|context| async move {
            match context.attempt() {
                1 | 2 => Err("the file does not exist yet"),
                attempt => Ok(format!("42 lines at attempt {attempt}")),
            }
        });

    // Stops where it is when it is cancelled.
    let upload = scheduler
        .after(10 * MS)
        .name("upload")
        .run_value(|context| async move {
            let mut parts = 0;
            loop {
                tokio::select! {
                    () = context.cancelled() => return parts,
                    () = tokio::time::sleep(5 * MS) => parts += 1,
                }
            }
        });

    // A blocking job runs on a thread of `spawn_blocking`.
    let report = scheduler
        .with_delay(30 * MS)
        .name("report")
        .on_error(OnError::Continue)
        .max_runs(2)
        .run_blocking(|context| println!("report {}", context.run()));

    println!(
        "import: {}",
        import.await.expect("the third attempt succeeds")
    );
    report.await.expect("the job ends after two runs");
    upload.cancel();
    println!(
        "upload: cancelled after {} parts",
        upload.await.expect("a run in progress returns its value")
    );
    for job in scheduler.jobs() {
        println!(
            "still scheduled: job {}, {:?}, {:?}, {} runs",
            job.id,
            job.name.unwrap_or_default(),
            job.status,
            job.runs
        );
    }

    // Jobs that run once still run; the heartbeat ends.
    scheduler.shutdown();
    assert!(scheduler.await_termination(Duration::from_secs(60)).await);
    reminder.await.expect("delayed jobs run after a shutdown");
    assert!(
        heartbeat
            .await
            .expect_err("a shutdown ends a repeating job")
            .is_cancelled()
    );
    println!("{:?}", scheduler.counts());
}
