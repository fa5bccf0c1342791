//! Waiting for the end of a job via a control.

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tokio::time::{Instant, advance, sleep, timeout};
use waterwheel::Timer;
use waterwheel_schedule::{Backoff, JobControl, JobError, JobHandle, OnError, Scheduler};

use super::support::{HOUR, ms, multi_thread, paused, secs, within};

/// Whether a future is ready at its first poll.
fn is_ready(future: impl Future) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(future).poll(&mut context).is_ready()
}

/// The time until the job ends, in milliseconds. Checks that it has then ended.
async fn end_of<T>(job: &JobHandle<T>) -> u128 {
    let start = Instant::now();
    let control = job.control();
    control.ended().await;
    assert!(control.is_done() && !control.is_running());
    start.elapsed().as_millis()
}

#[tokio::test(start_paused = true)]
async fn a_control_waits_for_the_end_of_its_job_however_it_ends() {
    let scheduler = Scheduler::new();
    let well = scheduler.after(ms(10)).run(|_| sleep(ms(5)));
    assert_eq!(end_of(&well).await, 15);
    let badly = scheduler
        .after(ms(10))
        .run(|_| async { Err::<(), _>("no") });
    assert_eq!(end_of(&badly).await, 10);
    let panics = scheduler.after(ms(10)).run(|context| async move {
        if context.run() == 1 {
            // Prints nothing, unlike `panic!`.
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    });
    assert_eq!(end_of(&panics).await, 10);
    let late = scheduler.after(ms(10)).time_limit(ms(5));
    assert_eq!(end_of(&late.run(|_| sleep(HOUR))).await, 15);
    // It does not end between two runs, or between two attempts.
    let repeats = scheduler.every(ms(10)).max_runs(3).run(|_| sleep(ms(5)));
    assert_eq!(end_of(&repeats).await, 35);
    let backoff = Backoff::new(ms(10), ms(10)).max_attempts(3);
    let retried = scheduler.after(ms(10)).retry(backoff);
    let retried = retried.run(|_| async { Err::<(), _>("no") });
    assert_eq!(end_of(&retried).await, 30);
    // It ends when it is submitted.
    let never = scheduler.every(HOUR).until(Instant::now());
    assert_eq!(end_of(&never.run(|_| async {})).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_control_waits_for_a_cancel_an_abort_and_a_shutdown() {
    let scheduler = Scheduler::new();
    let submit = || {
        let job = scheduler.every(ms(10));
        job.on_error(OnError::Continue).run(|_| sleep(ms(50)))
    };
    // At 5 ms the job is waiting, at 15 ms it is running.
    for (after, act, ended) in [
        (5, JobControl::cancel as fn(&JobControl) -> bool, 5),
        (15, JobControl::cancel, 60),
        (5, JobControl::abort, 5),
        (15, JobControl::abort, 15),
    ] {
        let job = submit();
        let (control, start) = (job.control(), Instant::now());
        let waits = tokio::spawn(control.ended());
        sleep(ms(after)).await;
        assert!(!waits.is_finished() && act(&control));
        waits.await.unwrap();
        assert_eq!(start.elapsed(), ms(ended));
        assert!(matches!(job.await, Err(JobError::Cancelled)));
    }
    let waiting = scheduler.after(HOUR).run(|_| async {});
    let running = submit();
    sleep(ms(15)).await;
    let start = Instant::now();
    assert_eq!(scheduler.shutdown_now().len(), 1);
    assert_eq!(end_of(&waiting).await, 0);
    assert_eq!(end_of(&running).await, 45);
    assert_eq!(start.elapsed(), ms(45));
}

#[test]
fn a_control_waits_for_the_end_of_the_timer_and_the_runtime() {
    let runtime = paused();
    let (waits, runs) = runtime.block_on(async {
        let timer = Timer::builder().start().unwrap();
        let scheduler = Scheduler::builder().timer(&timer).build();
        let job = scheduler.after(HOUR).run(|_| async {});
        let ended = tokio::spawn(job.control().ended());
        sleep(ms(1)).await;
        timer.shutdown();
        ended.await.unwrap();
        let scheduler = Scheduler::new();
        let waits = scheduler.after(HOUR).run(|_| async {}).control();
        let runs = scheduler.after(ms(1)).run(|_| pending::<()>()).control();
        sleep(ms(5)).await;
        (waits, runs)
    });
    // Awaited in a runtime that outlives the runtime of the jobs.
    let other = multi_thread();
    let tasks = [&waits, &runs].map(|control| other.spawn(control.ended()));
    drop(runtime);
    other.block_on(within(async {
        for task in tasks {
            task.await.unwrap();
        }
        waits.ended().await;
    }));
    assert!(waits.is_done() && runs.is_done());
}

#[tokio::test(start_paused = true)]
async fn any_number_of_tasks_wait_and_some_give_up() {
    let scheduler = Scheduler::new();
    let job = scheduler.after(secs(1)).run(|_| async {});
    let control = job.control();
    let waiters: Vec<_> = (0..100)
        .map(|n| {
            let control = control.clone();
            tokio::spawn(async move {
                let mut given_up = 0;
                // Creates a new future each time, which is dropped after it was polled.
                while timeout(ms(n), control.ended()).await.is_err() && n % 2 == 0 {
                    given_up += 1;
                    sleep(ms(1)).await;
                }
                (n, given_up, control.is_done())
            })
        })
        .collect();
    for waiter in waiters {
        let (n, given_up, is_done) = waiter.await.unwrap();
        assert_eq!(is_done, n % 2 == 0, "{n}");
        assert!(n % 2 == 1 || given_up > 5, "{n} gave up {given_up} times");
    }
    job.await.unwrap();
    assert!(is_ready(control.ended()));
}

/// A waker that checks whether the handle is complete, and counts references to a value. With a lock held, it would hang.
struct Looks {
    handle: Mutex<Option<JobHandle<()>>>,
    control: JobControl,
    held: Weak<()>,
    seen: Mutex<Vec<(bool, bool, usize)>>,
}

impl Looks {
    /// Waits for the end of the job.
    fn at(handle: JobHandle<()>, held: &Arc<()>) -> (Arc<Looks>, impl Future) {
        let control = handle.control();
        let mut ended = Box::pin(control.ended());
        let looks = Arc::new(Looks {
            handle: Mutex::new(Some(handle)),
            control,
            held: Arc::downgrade(held),
            seen: Mutex::default(),
        });
        let waker = Waker::from(Arc::clone(&looks));
        let polled = ended.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        (looks, ended)
    }
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        let is_complete = self.handle.lock().unwrap().take().is_some_and(is_ready);
        let is_done = self.control.is_done() && !self.control.is_running();
        let held = self.held.strong_count();
        self.seen.lock().unwrap().push((is_complete, is_done, held));
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_end_the_result_is_there_and_the_closure_is_gone() {
    let (scheduler, held) = (Scheduler::new(), Arc::new(()));
    let payload = Arc::clone(&held);
    let cancelled = scheduler.after(HOUR);
    let cancelled = cancelled.run(move |_| async move { drop(payload) });
    let (looks, _ended) = Looks::at(cancelled, &held);
    assert!(looks.control.cancel());
    assert_eq!(*looks.seen.lock().unwrap(), [(true, true, 1)]);
    // The job has a closure for another run until it ends.
    let payload = Arc::clone(&held);
    let repeats = scheduler.every(ms(10)).max_runs(2).run(move |_| {
        assert!(Arc::strong_count(&payload) > 1);
        async {}
    });
    let (looks, _ended) = Looks::at(repeats, &held);
    sleep(ms(15)).await;
    assert_eq!(*looks.seen.lock().unwrap(), []);
    sleep(ms(15)).await;
    assert_eq!(*looks.seen.lock().unwrap(), [(true, true, 1)]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_end_keeps_nothing_of_the_job() {
    // The scheduler is gone when its hook is.
    let hook = Arc::new(());
    let by_scheduler = Arc::clone(&hook);
    let scheduler = Scheduler::builder()
        .on_event(move |_| assert!(Arc::strong_count(&by_scheduler) > 1))
        .build();
    let value = Arc::new(());
    let given = Arc::clone(&value);
    let job = scheduler.after(ms(10)).run_value(|_| async move { given });
    let control = job.control();
    let mut ended = Box::pin(control.ended());
    assert!(timeout(ms(1), &mut ended).await.is_err());
    // The job is detached: it runs, and its value is dropped as soon as there is one.
    drop((job, control));
    assert_eq!(Arc::strong_count(&value), 2);
    sleep(ms(20)).await;
    assert_eq!(Arc::strong_count(&value), 1);
    scheduler.drain().await;
    drop(scheduler);
    sleep(ms(1)).await;
    assert_eq!(Arc::strong_count(&hook), 1, "the scheduler is kept");
    assert!(is_ready(ended));
}

#[tokio::test(start_paused = true)]
async fn the_end_is_one_branch_of_a_select() {
    let scheduler = Scheduler::new();
    let job = scheduler.after(ms(95)).run_value(|_| async { 7 });
    let control = job.control();
    let mut ticks = 0;
    let mut each = tokio::time::interval(ms(10));
    loop {
        tokio::select! {
            () = control.ended() => break,
            _ = each.tick() => ticks += 1,
        }
    }
    assert_eq!((ticks, job.await.unwrap()), (10, 7));
}

// Each wait meets the end of its job at a different point.
#[test]
fn no_wait_beside_the_end_of_a_job_is_lost() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        for round in 0..1_000_u32 {
            let job = scheduler.after(Duration::ZERO);
            let job = job.run(move |_| async move {
                for _ in 0..round % 7 {
                    tokio::task::yield_now().await;
                }
            });
            let waits = [job.control(), job.control()].map(|control| {
                tokio::spawn(async move {
                    for _ in 0..round % 5 {
                        tokio::task::yield_now().await;
                    }
                    control.ended().await;
                    assert!(control.is_done());
                })
            });
            if round % 3 == 0 {
                job.cancel();
            }
            for wait in waits {
                wait.await.unwrap();
            }
        }
    }));
}

#[tokio::test(start_paused = true)]
async fn a_blocking_run_that_was_cancelled_is_waited_for() {
    // The clock does not jump while a thread blocks.
    let scheduler = Scheduler::new();
    let (begins, began) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let job = scheduler.after(Duration::ZERO).run_blocking(move |_| {
        begins.send(()).unwrap();
        let _ = released.recv();
    });
    began.await.unwrap();
    let control = job.control();
    assert!(control.abort());
    let ended = tokio::spawn(control.ended());
    advance(secs(1)).await;
    assert!(!ended.is_finished() && !control.is_done());
    drop(release);
    ended.await.unwrap();
    assert!(control.is_done());
}
