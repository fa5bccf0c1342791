//! Closures, futures, results and wakers that misbehave.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use tokio::time::sleep;
use waterwheel_schedule::{JobError, OnError, Scheduler};

use super::support::{HOUR, Log, ms, secs};

/// Calls its scheduler when it is dropped, and may then panic.
struct Unruly {
    scheduler: Scheduler,
    panics: bool,
    log: Log<()>,
}

impl Drop for Unruly {
    fn drop(&mut self) {
        // This would hang if it were dropped with the lock held.
        let _ = self.scheduler.counts();
        drop(self.scheduler.after(HOUR).try_run(|_| async {}));
        self.log.add(());
        if self.panics {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_job_holds_is_dropped_without_the_lock() {
    for panics in [false, true] {
        let (scheduler, log) = (Scheduler::builder().max_pending(8).build(), Log::new());
        let unruly = || Unruly {
            scheduler: scheduler.clone(),
            panics,
            log: log.clone(),
        };
        // Once cancelled, and once shut down.
        for _ in 0..2 {
            let held = unruly();
            let job = scheduler.after(HOUR);
            let job = job.run(move |_| async move { drop(held) });
            assert!(job.cancel());
            assert!(matches!(job.await, Err(JobError::Cancelled)));
        }
        // A closure that is called again, and a future.
        let (closure, future) = (unruly(), unruly());
        let mut future = Some(future);
        let job = scheduler
            .every(ms(1))
            .on_error(OnError::Continue)
            .max_runs(2);
        job.run(move |_| {
            let _held = &closure;
            let held = future.take();
            async move {
                sleep(ms(1)).await;
                drop(held);
            }
        })
        .await
        .unwrap();
        assert_eq!(log.len(), 4);
        // A result that no handle takes.
        let held = unruly();
        let job = scheduler.after(ms(1)).run_value(|_| async move { held });
        sleep(ms(5)).await;
        assert!(job.is_done());
        let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(job)));
        assert_eq!((dropped.is_err(), log.len()), (panics, 5));
        let held = unruly();
        let kept = scheduler.after(HOUR);
        let kept = kept.run(move |_| async move { drop(held) });
        scheduler.shutdown_now();
        assert_eq!(log.len(), 6);
        assert!(matches!(kept.await, Err(JobError::Shutdown)));
        scheduler.drain().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_may_submit_jobs_without_end() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    fn submit(scheduler: &Scheduler, log: Log<u64>, n: u64) {
        drop(scheduler.after(ms(1)).run(move |context| async move {
            log.add(n);
            if n < 1_000 {
                submit(&context.scheduler(), log, n + 1);
            }
        }));
    }
    submit(&scheduler, log.clone(), 0);
    sleep(secs(10)).await;
    assert_eq!(log.lines(), (0..=1_000).collect::<Vec<_>>());
}

// The waker of an awaited handle calls the scheduler when it is woken.
#[tokio::test(start_paused = true)]
async fn a_waker_of_a_handle_may_call_the_scheduler() {
    struct Calls(Scheduler, Mutex<usize>);
    impl Wake for Calls {
        fn wake(self: Arc<Self>) {
            *self.1.lock().unwrap() += self.0.jobs().len() + 1;
        }
    }
    let scheduler = Scheduler::new();
    let calls = Arc::new(Calls(scheduler.clone(), Mutex::new(0)));
    let waker = Waker::from(Arc::clone(&calls));
    let mut job = scheduler.after(HOUR).run(|_| async {});
    let polled = Pin::new(&mut job).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    job.cancel();
    assert_eq!(*calls.1.lock().unwrap(), 1);
}

/// Panics when it is dropped.
struct Fuse;

impl Drop for Fuse {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("on purpose"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_future_whose_destructor_panics_ends_its_job_as_it_would() {
    /// A future that is ready at once.
    struct Holds {
        _fuse: Fuse,
    }
    impl Future for Holds {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            Poll::Ready(())
        }
    }
    let scheduler = Scheduler::builder().concurrency(1).build();
    let ready = scheduler.after(ms(1)).run(|_| Holds { _fuse: Fuse });
    assert!(matches!(ready.await, Err(JobError::Panicked(_))));
    let aborted = scheduler.after(ms(1)).run(|_| async {
        let _fuse = Fuse;
        sleep(HOUR).await;
    });
    sleep(ms(5)).await;
    assert!(aborted.abort());
    assert!(matches!(aborted.await, Err(JobError::Cancelled)));
    let late = scheduler.after(ms(1)).time_limit(ms(5)).run(|_| async {
        let _fuse = Fuse;
        sleep(HOUR).await;
    });
    assert!(matches!(late.await, Err(JobError::TimedOut)));
    scheduler.after(ms(1)).run(|_| async {}).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waker_that_panics_harms_no_other_job() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }
    let scheduler = Scheduler::new();
    let mut jobs: Vec<_> = (0..4)
        .map(|_| scheduler.after(HOUR).run(|_| async {}))
        .collect();
    let waker = Waker::from(Arc::new(Panics));
    for job in &mut jobs {
        let polled = Pin::new(job).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    assert!(jobs[0].cancel());
    assert_eq!(scheduler.shutdown_now().len(), 3);
    for job in jobs {
        assert!(job.await.unwrap_err().is_cancelled());
    }
}
