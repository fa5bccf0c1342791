//! Many threads at once, in real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use waterwheel_schedule::{JobError, Scheduler};

use super::support::{ms, multi_thread, within};

#[test]
fn runs_of_a_job_do_not_overlap_on_many_threads() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        let is_running = Arc::new(AtomicBool::new(false));
        let mut runs = 0_u64;
        let job = scheduler
            .with_delay(Duration::from_micros(1))
            .max_runs(2_000)
            .run(move |context| {
                runs += 1;
                assert_eq!(runs, context.run());
                let is_running = Arc::clone(&is_running);
                async move {
                    assert!(
                        !is_running.swap(true, Ordering::Relaxed),
                        "two runs at once"
                    );
                    tokio::task::yield_now().await;
                    is_running.store(false, Ordering::Relaxed);
                }
            });
        while !job.is_done() {
            job.trigger_now();
            tokio::task::yield_now().await;
        }
        job.await.unwrap();
    }));
}

#[test]
fn every_job_of_many_threads_runs_or_is_cancelled() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::builder().concurrency(16).build();
        let ran = Arc::new(AtomicU64::new(0));
        let submitters: Vec<_> = (0..4_u64)
            .map(|thread| {
                let (scheduler, ran) = (scheduler.clone(), Arc::clone(&ran));
                tokio::spawn(async move {
                    let (mut done, mut cancelled) = (0, 0);
                    for n in 0..2_000_u64 {
                        let ran = Arc::clone(&ran);
                        let delay = Duration::from_micros(n * 7_919 * (thread + 1) % 3_000);
                        let job = scheduler.after(delay).run(move |_| async move {
                            ran.fetch_add(1, Ordering::Relaxed);
                        });
                        if n % 3 == 0 {
                            job.cancel();
                        } else if n % 5 == 0 {
                            job.pause();
                            job.resume();
                        }
                        match n % 64 {
                            0 => tokio::time::sleep(ms(1)).await,
                            _ => tokio::task::yield_now().await,
                        }
                        match job.await {
                            Ok(()) => done += 1,
                            Err(JobError::Cancelled) => cancelled += 1,
                            Err(other) => panic!("{other}"),
                        }
                    }
                    (done, cancelled)
                })
            })
            .collect();
        let (mut done, mut cancelled) = (0, 0);
        for submitter in submitters {
            let (d, c) = submitter.await.unwrap();
            done += d;
            cancelled += c;
        }
        assert_eq!(
            (done + cancelled, ran.load(Ordering::Relaxed)),
            (8_000, done)
        );
        let counts = scheduler.counts();
        assert_eq!(
            (counts.pending, counts.running, counts.submitted),
            (0, 0, 8_000)
        );
    }));
}
