//! The heap memory of jobs while they wait and after they have ended, measured by a counting allocator.

use std::alloc::System;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use cap::Cap;
use fastrand::Rng;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;
use waterwheel_schedule::{JobHandle, OnError, Scheduler};

/// There is no limit: only the count is needed.
#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// The number of bytes that the harness may allocate meanwhile.
const SLACK: usize = 1_024;

/// The count includes all threads, so the tests run one at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn paused() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap()
}

/// Submits jobs that are due in an hour.
fn submit(scheduler: &Scheduler, jobs: usize, held: &Arc<()>) -> Vec<JobHandle<()>> {
    let submit = |_| {
        let held = Arc::clone(held);
        scheduler.after(HOUR).run(|_| async move { drop(held) })
    };
    (0..jobs).map(submit).collect()
}

// A slab grows by an eighth. Just after it has grown, a job takes some eight bytes more than just before.
#[test]
fn a_job_that_waits_takes_200_bytes_and_no_task() {
    let (_turn, runtime, held) = (turn(), paused(), Arc::new(()));
    let (mut most, mut sum, mut number) = (0, 0, 0);
    runtime.block_on(async {
        let mut jobs = 4_000;
        while jobs < 50_000 {
            let scheduler = Scheduler::new();
            sleep(MS).await;
            let (tasks, before) = (runtime.metrics().num_alive_tasks(), HEAP.allocated());
            let handles = submit(&scheduler, jobs, &held);
            let taken = (HEAP.allocated() - before) / jobs;
            // The vector of handles belongs to the test.
            let beside = taken - size_of::<JobHandle<()>>() - size_of_val(&held);
            (most, sum, number) = (most.max(beside), sum + beside, number + 1);
            sleep(MS).await;
            assert_eq!(runtime.metrics().num_alive_tasks(), tasks);
            drop(handles);
            assert_eq!(scheduler.shutdown_now().len(), jobs);
            jobs += jobs / 5;
        }
    });
    let usually = sum / number;
    assert!(usually <= 200 && most <= 205, "{usually}, at most {most}");
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn a_cancelled_job_takes_no_more_than_its_handle_holds() {
    let (_turn, runtime, held) = (turn(), paused(), Arc::new(()));
    runtime.block_on(async {
        let (scheduler, jobs) = (Scheduler::new(), 10_000);
        sleep(MS).await;
        assert!(
            submit(&scheduler, jobs, &held)
                .iter()
                .all(JobHandle::cancel)
        );
        let before = HEAP.allocated();
        let handles = submit(&scheduler, jobs, &held);
        assert!(handles.iter().all(JobHandle::cancel));
        let left = (HEAP.allocated() - before) / jobs - size_of::<JobHandle<()>>();
        assert!(left <= 120 + size_of_val(&held), "{left}");
        drop(handles);
        assert!(HEAP.allocated() <= before + SLACK);
    });
}

/// Repeats the round, and fails if that leaves anything on the heap.
fn leaves_nothing(mut round: impl FnMut(u64)) {
    const ROUNDS: u64 = 30;
    (0..5).for_each(&mut round);
    // The queues and the list of wall-clock times keep some room. A leak grows in each pass.
    let passes = [(); 3].map(|()| {
        let warm = HEAP.allocated();
        (0..ROUNDS).for_each(&mut round);
        HEAP.allocated().saturating_sub(warm)
    });
    // Less than a job every other round.
    let left = passes.into_iter().min();
    assert!(left <= Some(SLACK), "{passes:?} bytes of {ROUNDS} rounds");
}

#[test]
fn jobs_that_run_or_are_cancelled_leave_nothing() {
    let (_turn, runtime) = (turn(), paused());
    let scheduler = runtime.block_on(async { Scheduler::builder().concurrency(7).build() });
    let group = scheduler.group("two", 2);
    leaves_nothing(|seed| {
        runtime.block_on(async {
            let mut rng = Rng::with_seed(seed);
            let mut handles = Vec::new();
            for number in 0..60_usize {
                let (delay, held) = (MS * rng.u32(..100_000), vec![number; 16]);
                handles.push(match number % 4 {
                    0 => scheduler.after(delay).run(|_| async move { drop(held) }),
                    1 => {
                        let job = scheduler.every(delay + MS).group(&group).max_runs(3);
                        let job = job.name("again").on_error(OnError::Continue);
                        job.run(move |_| {
                            let held = held.clone();
                            async move {
                                sleep(MS).await;
                                if held[0] % 8 == 1 {
                                    Err("an error")
                                } else {
                                    Ok(())
                                }
                            }
                        })
                    }
                    2 => {
                        let time = SystemTime::now() + HOUR + delay;
                        scheduler.at_wall(time).run(|_| async move { drop(held) })
                    }
                    _ => scheduler
                        .after(delay)
                        .time_limit(MS)
                        .run(|context| async move {
                            context.token().cancelled().await;
                            drop(held);
                        }),
                });
                if number % 4 == 2 || rng.u8(..4) == 0 {
                    let last = handles.swap_remove(handles.len() - 1);
                    assert!(last.cancel());
                } else if rng.u8(..4) == 0 {
                    drop(handles.swap_remove(rng.usize(..handles.len())));
                }
            }
            sleep(HOUR).await;
            assert!(handles.iter().all(JobHandle::is_done));
            assert_eq!(scheduler.counts().pending, 0);
        });
    });
}

#[test]
fn jobs_leave_nothing_however_their_scheduler_ends() {
    let _turn = turn();
    leaves_nothing(|number| {
        let runtime = paused();
        let kept: Vec<_> = runtime.block_on(async {
            let scheduler = Scheduler::new();
            let submit = |delay| {
                let held = vec![number; 16];
                let job = scheduler.every(HOUR).first_after(delay);
                job.run(move |_| {
                    let held = held.clone();
                    async move {
                        sleep(10 * MS).await;
                        drop(held);
                    }
                })
            };
            let kept = (0..20).map(|n| submit(if n % 2 == 0 { MS } else { HOUR }));
            let kept = kept.collect();
            for _ in 0..20 {
                drop(submit(MS));
            }
            // Some jobs run while the scheduler ends.
            sleep(2 * MS).await;
            match number % 4 {
                0 => drop(scheduler.shutdown_now()),
                1 => scheduler.drain().await,
                2 => scheduler.shutdown(),
                // The scheduler ends with its runtime, without a handle.
                _ => {}
            }
            kept
        });
        drop(runtime);
        assert!(kept.iter().all(JobHandle::is_done));
    });
}

// Cancelled jobs stay in the list of wall-clock times until there are too many of them.
#[test]
fn many_cancelled_times_by_the_wall_clock_take_little_room() {
    let (_turn, runtime) = (turn(), paused());
    runtime.block_on(async {
        let scheduler = Scheduler::new();
        let start = SystemTime::now() + HOUR;
        sleep(MS).await;
        let before = HEAP.allocated();
        for n in 0..10_000 {
            let job = scheduler.at_wall(start + n * MS).run(|_| async {});
            assert!(job.cancel());
        }
        let taken = HEAP.allocated() - before;
        assert!(taken < 10 * SLACK, "{taken}");
    });
}
