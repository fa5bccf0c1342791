//! Jobs that are due together: they share tasks, and do not notice.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};
use waterwheel_schedule::{Event, JobControl, JobError, JobHandle, Scheduler};

use super::support::{Log, add_up, all_end_well, all_shut_down, ms, multi_thread, paused, within};

const HERD: usize = 500;
/// Few enough jobs to share one task, if none blocks.
const FEW: usize = 20;

/// Yields to the end of the run queue. tokio's `yield_now` waits until the runtime has polled for events.
async fn be_polled_again() {
    let mut polled = false;
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        match std::mem::replace(&mut polled, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

// None of them finishes at its first poll, or before the last one has begun.
#[test]
fn jobs_due_together_may_wait_for_one_another() {
    for runtime in [paused(), multi_thread()] {
        runtime.block_on(within(async {
            let scheduler = Scheduler::new();
            let (at, barrier) = (Instant::now() + ms(5), Arc::new(Barrier::new(HERD)));
            let jobs: Vec<JobHandle<()>> = (0..HERD)
                .map(|_| {
                    let barrier = Arc::clone(&barrier);
                    scheduler.at(at).run(|_| async move {
                        barrier.wait().await;
                    })
                })
                .collect();
            all_end_well(jobs).await;
            assert_eq!(scheduler.counts().finished, HERD as u64);
        }));
    }
}

// The first of them blocks its thread until the last one has run on the other thread.
#[test]
fn a_job_that_blocks_its_thread_delays_no_other() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        let at = Instant::now() + ms(5);
        let (last, all_ran) = mpsc::channel();
        let all_ran = Mutex::new(all_ran);
        let blocks = scheduler.at(at).run(|_| async move {
            let waited = all_ran
                .lock()
                .unwrap()
                .recv_timeout(Duration::from_secs(50));
            waited.map_err(|_| "the others did not run")
        });
        let left = Arc::new(AtomicUsize::new(FEW));
        for _ in 0..FEW {
            let (left, last) = (Arc::clone(&left), last.clone());
            drop(scheduler.at(at).run(|_| async move {
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    last.send(()).unwrap();
                }
            }));
        }
        blocks.await.unwrap();
    }));
}

// More of them than there are workers, and each announces that it blocks.
#[test]
fn jobs_that_block_in_place_delay_no_other() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::new();
        let at = Instant::now() + ms(5);
        let (last, all_ran) = mpsc::channel::<()>();
        let all_ran = Arc::new(Mutex::new(all_ran));
        let blocking: Vec<JobHandle<()>> = (0..5)
            .map(|_| {
                let all_ran = Arc::clone(&all_ran);
                scheduler.at(at).run(|_| async move {
                    block_in_place(|| {
                        let closed = all_ran.lock().unwrap().recv();
                        assert!(closed.is_err());
                    });
                })
            })
            .collect();
        let left = Arc::new(AtomicUsize::new(FEW));
        let last = Arc::new(Mutex::new(Some(last)));
        for _ in 0..FEW {
            let (left, last) = (Arc::clone(&left), Arc::clone(&last));
            drop(scheduler.at(at).run(|_| async move {
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    // The channel closes, and the blocked jobs continue.
                    last.lock().unwrap().take();
                }
            }));
        }
        all_end_well(blocking).await;
    }));
}

#[tokio::test(start_paused = true)]
async fn a_herd_lets_other_tasks_run_in_between() {
    let scheduler = Scheduler::new();
    let (at, log) = (Instant::now() + ms(5), Log::new());
    let other = log.clone();
    drop(scheduler.at(at).run(|_| async move {
        tokio::spawn(async move {
            for _ in 0..10_000 {
                other.add("other");
                be_polled_again().await;
            }
        });
    }));
    for _ in 0..HERD {
        let log = log.clone();
        drop(scheduler.at(at).run(|_| async move { log.add("job") }));
    }
    sleep(ms(10)).await;
    let lines = log.lines();
    let longest = lines.chunk_by(|a, b| a == b).filter(|run| run[0] == "job");
    let longest = longest.map(<[_]>::len).max().unwrap();
    assert!(longest <= 100, "{longest} jobs in a row");
    assert_eq!(lines.iter().filter(|line| **line == "job").count(), HERD);
}

// Each run is dropped with the runtime, including those that no task has begun.
#[test]
fn a_runtime_that_ends_ends_the_jobs_of_a_herd() {
    let runtime = paused();
    let held = Arc::new(());
    let by_scheduler = Arc::clone(&held);
    let begun = Arc::new(AtomicUsize::new(0));
    let (mut jobs, scheduler) = runtime.block_on(async {
        let hook = move |_: &Event| assert!(Arc::strong_count(&by_scheduler) > 1);
        let scheduler = Scheduler::builder().on_event(hook).build();
        let at = Instant::now() + ms(5);
        let (job_began, began) = tokio::sync::mpsc::unbounded_channel();
        let jobs: Vec<JobHandle<()>> = (0..HERD)
            .map(|_| {
                let (begun, job_began) = (Arc::clone(&begun), job_began.clone());
                scheduler.at(at).run(move |_| async move {
                    begun.fetch_add(1, Ordering::Relaxed);
                    let _ = job_began.send(());
                    std::future::pending::<()>().await;
                })
            })
            .collect();
        let mut began = began;
        began.recv().await;
        (jobs, scheduler)
    });
    let begun = begun.load(Ordering::Relaxed);
    assert!(0 < begun && begun < HERD, "{begun}");
    drop(runtime);
    paused().block_on(within(async {
        for job in &mut jobs {
            assert!(matches!(job.await, Err(JobError::Shutdown)));
        }
    }));
    let counts = scheduler.counts();
    assert!(add_up(&counts), "{counts:?}");
    let (ended, never) = (begun as u64, (HERD - begun) as u64);
    assert_eq!((counts.ended, counts.cancelled), (ended, never));
    assert_eq!((counts.finished, counts.running), (ended, 0));
    drop((jobs, scheduler));
    assert_eq!(Arc::strong_count(&held), 1, "the scheduler was not dropped");
}

#[test]
fn a_job_that_is_cancelled_while_it_waits_for_its_task_never_runs() {
    for others in [1, 50] {
        paused().block_on(async {
            let events = Log::new();
            let hook = events.clone();
            let scheduler = Scheduler::builder()
                .on_event(move |event| hook.add(format!("{event:?}")))
                .build();
            let at = Instant::now() + ms(5);
            let ran = Arc::new(AtomicUsize::new(0));
            let controls: Arc<Mutex<Vec<JobControl>>> = Arc::default();
            let cancelling = Arc::clone(&controls);
            let first = scheduler.at(at).run(|_| async move {
                for job in &*cancelling.lock().unwrap() {
                    assert!(job.cancel() && job.is_done() && !job.cancel());
                }
            });
            let jobs: Vec<JobHandle<()>> = (0..others)
                .map(|_| {
                    let ran = Arc::clone(&ran);
                    scheduler.at(at).run(move |_| {
                        ran.fetch_add(1, Ordering::Relaxed);
                        async {}
                    })
                })
                .collect();
            *controls.lock().unwrap() = jobs.iter().map(JobHandle::control).collect();
            first.await.unwrap();
            for job in jobs {
                assert!(job.await.unwrap_err().is_cancelled());
            }
            assert_eq!(ran.load(Ordering::Relaxed), 0);
            let counts = scheduler.counts();
            assert_eq!((counts.finished, counts.failed, counts.running), (1, 0, 0));
            assert_eq!((counts.cancelled, counts.ended), (others, 1));
            assert_eq!(events.len(), 2, "{:?}", events.lines());
        });
    }
}

// There are 8 receives in each: 16 of them use up the budget of a task in one poll.
#[tokio::test(start_paused = true)]
async fn no_job_of_a_herd_finds_its_budget_used_up() {
    let scheduler = Scheduler::new();
    let at = Instant::now() + ms(5);
    let jobs: Vec<JobHandle<()>> = (0..100)
        .map(|_| {
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            (0..8).for_each(|n| sender.send(n).unwrap());
            scheduler.at(at).run(|_| async move {
                for _ in 0..8 {
                    let ready = poll_fn(|cx| Poll::Ready(receiver.poll_recv(cx).is_ready()));
                    assert!(ready.await, "it was pending with a message there");
                }
            })
        })
        .collect();
    all_end_well(jobs).await;
}

// Each free permit let the next run begin, which the runtime dropped, which freed its permit, and so on recursively.
#[test]
fn a_runtime_that_ends_drops_any_number_of_queued_jobs() {
    for _ in 0..10 {
        let runtime = multi_thread();
        let (first, jobs) = runtime.block_on(within(async {
            let scheduler = Scheduler::builder().concurrency(1).build();
            let (begins, began) = tokio::sync::oneshot::channel();
            let first = scheduler.after(Duration::ZERO).run(|_| async move {
                begins.send(()).unwrap();
                std::future::pending::<()>().await;
            });
            began.await.unwrap();
            let jobs: Vec<JobHandle<()>> = (0..20_000)
                .map(|_| scheduler.after(Duration::ZERO).run(|_| async {}))
                .collect();
            sleep(ms(20)).await;
            (first, jobs)
        }));
        drop(runtime);
        paused().block_on(within(async {
            assert!(matches!(first.await, Err(JobError::Shutdown)));
            all_shut_down(jobs).await;
        }));
    }
}
