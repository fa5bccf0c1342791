//! After a shutdown has returned, no job begins that its policies do not keep, not even a due one with permits that waited for its task.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;
use waterwheel_schedule::{Counts, Event, JobControl, JobError, JobHandle, JobStatus, Scheduler};

use super::support::{HOUR, Log, add_up, all_end_well, all_shut_down, ms, with_workers, within};

const HERD: u64 = 1_000;

/// A kind of shutdown that keeps none of the tested jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Now,
    /// `shutdown` without keeping jobs that run once.
    DelayedEnd,
    /// `shutdown` without keeping repeating jobs, as by default.
    PeriodicEnd,
}

const WAYS: [Way; 3] = [Way::Now, Way::DelayedEnd, Way::PeriodicEnd];

impl Way {
    fn submit(
        self,
        scheduler: &Scheduler,
        at: Instant,
        number: u64,
        job: impl Fn() + Clone + Send + 'static,
    ) -> JobHandle<()> {
        let run = move |_| {
            let job = job.clone();
            async move { job() }
        };
        match self {
            Way::PeriodicEnd => {
                let job = scheduler.every(HOUR).first_at(at);
                job.name(number.to_string()).run(run)
            }
            _ => scheduler.at(at).name(number.to_string()).run(run),
        }
    }

    /// Shuts down. Returns the numbers of the jobs that this has ended.
    fn end(self, scheduler: &Scheduler, jobs: &[JobControl]) -> HashSet<u64> {
        if self == Way::Now {
            let listed = scheduler.shutdown_now().into_iter().map(|job| {
                let is_due = [JobStatus::Queued, JobStatus::Waiting].contains(&job.status);
                assert!(is_due && job.runs == 0, "{job:?}");
                job.name.unwrap().parse().unwrap()
            });
            return listed.collect();
        }
        scheduler.shutdown();
        let numbered = (0..).zip(jobs);
        let ended = numbered.filter(|(_, job)| job.is_done() && job.runs() == 0);
        ended.map(|(number, _)| number).collect()
    }
}

/// The state seen when the shutdown had returned.
struct Seen {
    ended: HashSet<u64>,
    counts: Counts,
}

/// The first of a thousand jobs that are due together shuts their scheduler down.
async fn shut_down_in_the_first(way: Way, workers: usize) {
    let (starts, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (started, finished) = (Arc::clone(&starts), Arc::clone(&ends));
    let scheduler = Scheduler::builder()
        .on_event(move |event| match event {
            Event::Started { .. } => drop(started.fetch_add(1, Ordering::SeqCst)),
            Event::Finished { .. } => drop(finished.fetch_add(1, Ordering::SeqCst)),
            _ => {}
        })
        .build();
    scheduler.keep_delayed(way != Way::DelayedEnd);
    let begun: Arc<Mutex<HashSet<u64>>> = Arc::default();
    let (seen, late) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
    let controls: Arc<Mutex<Vec<JobControl>>> = Arc::default();
    let at = Instant::now() + ms(20);
    let jobs: Vec<JobHandle<()>> = (0..HERD)
        .map(|number| {
            let (begun, seen, late) = (Arc::clone(&begun), Arc::clone(&seen), Arc::clone(&late));
            let (scheduler, controls) = (scheduler.clone(), Arc::clone(&controls));
            way.submit(&scheduler.clone(), at, number, move || {
                if seen.lock().unwrap().is_some() {
                    late.lock().unwrap().push(number);
                }
                assert!(begun.lock().unwrap().insert(number), "it runs once");
                if number == 0 {
                    // Other jobs may begin, but none may be submitted after the shutdown.
                    while controls.lock().unwrap().is_empty() {
                        std::thread::yield_now();
                    }
                    let ended = way.end(&scheduler, &controls.lock().unwrap());
                    let counts = scheduler.counts();
                    *seen.lock().unwrap() = Some(Seen { ended, counts });
                }
            })
        })
        .collect();
    *controls.lock().unwrap() = jobs.iter().map(JobHandle::control).collect();
    let mut given = Vec::new();
    for job in jobs {
        given.push(job.await);
    }
    scheduler.drain().await;

    let Seen { ended, counts } = seen.lock().unwrap().take().unwrap();
    let begun = std::mem::take(&mut *begun.lock().unwrap());
    let of = format!("{way:?}, {workers} workers");
    assert_eq!(ended.len() + begun.len(), HERD as usize, "{of}");
    assert!(begun.is_disjoint(&ended), "{of}: listed, and begun");
    // Each of them had begun when the shutdown returned, according to the counts.
    let had_begun = counts.running + counts.finished;
    assert_eq!(begun.len() as u64, had_begun, "{of}: begun after it");
    assert!(add_up(&counts), "{of}: {counts:?}");
    // A thread may be delayed between the count and the closure, which is not an error. Without another thread, this does not happen.
    if workers < 2 {
        assert_eq!(*late.lock().unwrap(), [], "{of}");
    }
    for (number, given) in (0..).zip(given) {
        let was_ended = matches!(given, Err(JobError::Shutdown));
        let is_last = way == Way::PeriodicEnd;
        assert_eq!(
            was_ended,
            is_last || ended.contains(&number),
            "{of}: {number}"
        );
    }
    let counts = scheduler.counts();
    assert!(add_up(&counts), "{of}: {counts:?}");
    let (cancelled, ended) = (ended.len() as u64, begun.len() as u64);
    if way == Way::PeriodicEnd && workers > 1 {
        // On another worker, a job may have finished its first run before the shutdown, and was cancelled while it waited for the second.
        assert_eq!(counts.cancelled + counts.ended, HERD, "{of}");
        assert!(counts.cancelled >= cancelled, "{of}: {counts:?}");
    } else {
        assert_eq!((counts.cancelled, counts.ended), (cancelled, ended), "{of}");
    }
    // The hook may be called for a run shortly after the drain has seen its end.
    let patience = std::time::Instant::now() + Duration::from_secs(20);
    let told = || [&starts, &ends].map(|events| events.load(Ordering::SeqCst));
    while told() != [ended, ended] && std::time::Instant::now() < patience {
        tokio::task::yield_now().await;
    }
    assert_eq!(told(), [ended, ended], "{of}");
}

// There was a case in which 968 jobs were listed, and 31 began.
#[test]
fn after_a_shutdown_in_the_first_of_1000_nothing_begins() {
    for workers in 0..=4 {
        for way in WAYS {
            with_workers(workers).block_on(within(shut_down_in_the_first(way, workers)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_keeps_what_its_policies_keep_of_a_herd() {
    let (scheduler, log) = (Scheduler::new(), Log::new());
    let at = Instant::now() + ms(5);
    let ends = log.clone();
    let first = scheduler.at(at).run(|context| async move {
        context.scheduler().shutdown();
        ends.add("shutdown");
    });
    let (mut kept, mut ended) = (Vec::new(), Vec::new());
    for _ in 0..100 {
        let (once, again) = (log.clone(), log.clone());
        kept.push(scheduler.at(at).run(|_| async move { once.add("once") }));
        let repeats = scheduler.every(HOUR).first_at(at);
        ended.push(repeats.run(move |_| {
            again.add("again");
            async {}
        }));
    }
    first.await.unwrap();
    all_end_well(kept).await;
    all_shut_down(ended).await;
    let lines = log.lines();
    assert_eq!((lines[0], lines.len()), ("shutdown", 101));
    assert!(!lines.contains(&"again"));
}

/// Shuts down from a separate thread at a moment that differs from round to round, while many jobs begin.
fn shut_down_from_a_thread(runtime: &Runtime, way: Way, spins: u32, blocks: bool) -> u64 {
    runtime.block_on(within(async move {
        let scheduler = Scheduler::new();
        scheduler.keep_delayed(way != Way::DelayedEnd);
        let begun = Arc::new(AtomicU64::new(0));
        let at = Instant::now() + ms(1);
        let (first_begins, first_begun) = mpsc::channel();
        let jobs: Vec<JobHandle<()>> = (0..64)
            .map(|number| {
                let (begun, first_begins) = (Arc::clone(&begun), first_begins.clone());
                let job = move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    let _ = first_begins.send(());
                };
                match blocks {
                    true => scheduler.at(at).run_blocking(move |_| job()),
                    false => way.submit(&scheduler, at, number, job),
                }
            })
            .collect();
        let other = scheduler.clone();
        let thread = std::thread::spawn(move || {
            let _ = first_begun.recv();
            for _ in 0..spins {
                std::hint::spin_loop();
            }
            match way {
                Way::Now => drop(other.shutdown_now()),
                _ => other.shutdown(),
            }
            let counts = other.counts();
            assert!(add_up(&counts), "{counts:?}");
            counts.running + counts.finished
        });
        let mut ran = 0;
        for job in jobs {
            ran += u64::from(job.await.is_ok());
        }
        scheduler.drain().await;
        let had_begun = thread.join().unwrap();
        let begun = begun.load(Ordering::SeqCst);
        assert_eq!(begun, had_begun, "{way:?} {spins}: begun after it returned");
        if blocks || way != Way::PeriodicEnd {
            assert_eq!(begun, ran, "{way:?} {spins}");
        }
        begun
    }))
}

#[test]
fn a_shutdown_from_another_thread_and_a_job_have_one_winner() {
    let runtimes = [0, 1, 2, 3].map(with_workers);
    let mut cut = 0;
    for round in 0..300 {
        let runtime = &runtimes[round as usize % 4];
        let way = WAYS[round as usize % 3];
        let blocks = way != Way::PeriodicEnd && round % 5 == 0;
        let begun = shut_down_from_a_thread(runtime, way, round * 40, blocks);
        cut += u32::from(begun < 64);
    }
    assert!(cut > 0, "no shutdown came before the last job");
}

// A blocking closure begins on its thread, and may wait long for one.
#[test]
fn after_shutdown_now_no_job_begins_that_waits_for_a_thread() {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(within(async {
        let (scheduler, log) = (Scheduler::new(), Log::new());
        let (release, released) = mpsc::channel::<()>();
        let (begins, began) = tokio::sync::oneshot::channel();
        let first = scheduler.after(Duration::ZERO).run_blocking(move |_| {
            begins.send(()).unwrap();
            let _ = released.recv();
        });
        began.await.unwrap();
        let jobs: Vec<JobHandle<()>> = (0..20_u32)
            .map(|number| {
                let log = log.clone();
                match number % 2 {
                    0 => {
                        let job = scheduler.after(Duration::ZERO);
                        job.run_blocking(move |_| log.add(number))
                    }
                    _ => {
                        // The time limit passes before the run has a thread.
                        let job = scheduler.every(HOUR).first_after(Duration::ZERO);
                        let job = job.time_limit(ms(1));
                        job.run_blocking(move |_| log.add(number))
                    }
                }
            })
            .collect();
        // When this job runs, the others have their permits, and wait for the thread.
        scheduler.after(ms(20)).run(|_| async {}).await.unwrap();
        let counts = scheduler.counts();
        assert_eq!((counts.running, counts.pending), (1, 20), "{counts:?}");
        assert_eq!(scheduler.shutdown_now().len(), 20);
        release.send(()).unwrap();
        first.await.unwrap();
        all_shut_down(jobs).await;
        // The thread has emptied its queue.
        tokio::task::spawn_blocking(|| {}).await.unwrap();
        assert_eq!(log.len(), 0);
        scheduler.drain().await;
        let counts = scheduler.counts();
        assert_eq!(
            (counts.cancelled, counts.ended, counts.finished),
            (20, 2, 2)
        );
    }));
}
