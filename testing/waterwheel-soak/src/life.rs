//! One life: starts a runtime with its timers, puts them under load, and ends them.

use std::future::Future;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task;
use waterwheel::Timer;
use waterwheel_bench_kit::random;

use crate::books::{Books, Kind};
use crate::flags::Flags;
use crate::load::{self, Desk};
use crate::timers::Timers;
use crate::watch::{PATIENCE, Watch};

/// The name of the threads outside the runtime.
pub(crate) const OUTSIDE: &str = "outside";

/// How a life ends. The lives go through the three in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The tasks end, and then the timers are drained.
    InOrder,
    /// The two separate timers are shut down while tasks wait for them.
    Shutdown,
    /// The runtime is dropped while tasks wait.
    Dropped,
}

/// Starts a life, lets it run for `length`, and ends it. Failures go to the books.
pub(crate) fn live(
    number: u64,
    length: Duration,
    workers: usize,
    flags: &Flags,
    books: &Arc<Books>,
    watch: &Arc<Watch>,
) -> io::Result<()> {
    let ending = match number % 3 {
        0 => Ending::InOrder,
        1 => Ending::Shutdown,
        _ => Ending::Dropped,
    };
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_time()
        .build()?;
    let own = [("a timer of 1 ms", 1_000), ("a timer of 100 µs", 100)].map(|(name, micros)| {
        Timer::builder()
            .name(name)
            .resolution(Duration::from_micros(micros))
            .start_on(runtime.handle())
            .expect("both resolutions divide a second")
    });
    let current = {
        let _entered = runtime.enter();
        Timer::current()
    };

    let mut crew = Crew {
        runtime,
        books,
        watch,
        stopping: Arc::default(),
        seed: flags.seed.wrapping_add(number),
        hired: 0,
        tasks: Vec::new(),
        threads: Vec::new(),
    };
    crew.hire_all(&own, flags)?;
    thread::sleep(length);
    match ending {
        Ending::InOrder => {}
        Ending::Shutdown => {
            for timer in &own {
                timer.shutdown();
            }
        }
        // The runtime drops its tasks while they wait.
        Ending::Dropped => crew.tasks.clear(),
    }
    if ending != Ending::Dropped {
        crew.stopping.store(true, Relaxed);
        crew.join_tasks();
    }
    if ending == Ending::InOrder {
        crew.drain(&own, &current);
    }
    crew.end();

    for timer in &own {
        books.close(timer.name().unwrap_or_default(), &timer.metrics());
    }
    books.close("the runtime's timer", &current.metrics());
    Ok(())
}

/// A runtime with its tasks, and the threads outside it.
struct Crew<'a> {
    runtime: Runtime,
    books: &'a Arc<Books>,
    watch: &'a Watch,
    stopping: Arc<AtomicBool>,
    seed: u64,
    hired: u64,
    tasks: Vec<task::JoinHandle<Option<()>>>,
    threads: Vec<JoinHandle<Option<()>>>,
}

impl Crew<'_> {
    fn hire_all(&mut self, own: &[Timer; 2], flags: &Flags) -> io::Result<()> {
        let own = own.each_ref().map(|timer| Timers::Own(timer.clone()));
        for timers in own.iter().chain([&Timers::Current]) {
            for _ in 0..flags.tasks {
                self.hire(timers, |desk| load::sleeps(desk, Kind::Sleep));
                self.hire(timers, load::timeouts);
                self.hire(timers, load::resets);
                self.hire(timers, load::ticks);
            }
            for _ in 0..flags.tasks.div_ceil(20) {
                self.hire(timers, load::cancels);
            }
            let size = flags.tasks * 20;
            self.hire(timers, |desk| load::herds(desk, size));
            self.hire(timers, load::blocks);
        }
        // A separate `Timer` can be polled by a thread outside the runtime.
        for timers in own {
            let desk = self.desk(&timers);
            let outside = thread::Builder::new().name(OUTSIDE.into());
            let slot = Arc::clone(&desk.slot);
            let work = move || {
                // Its sleep panics once the runtime has ended. The hook lets that pass.
                let sleeps = || futures::executor::block_on(load::sleeps(desk, Kind::Outside));
                let ended = panic::catch_unwind(AssertUnwindSafe(sleeps));
                slot.all_done();
                ended.unwrap_or(None)
            };
            self.threads.push(outside.spawn(work)?);
        }
        Ok(())
    }

    fn hire<F>(&mut self, timers: &Timers, load: impl FnOnce(Desk) -> F)
    where
        F: Future<Output = Option<()>> + Send + 'static,
    {
        let desk = self.desk(timers);
        self.tasks.push(self.runtime.spawn(load(desk)));
    }

    fn desk(&mut self, timers: &Timers) -> Desk {
        self.hired += 1;
        Desk {
            timers: timers.clone(),
            books: Arc::clone(self.books),
            slot: self.watch.slot(),
            stopping: Arc::clone(&self.stopping),
            random: random::generator(self.seed, self.hired),
        }
    }

    /// Waits until every task has ended. Each one still completes its current wait.
    fn join_tasks(&mut self) {
        let tasks = std::mem::take(&mut self.tasks);
        let all = async {
            for task in tasks {
                // The panic hook has counted a task that panicked.
                let _ended = task.await;
            }
        };
        let joined = self
            .runtime
            .block_on(async { tokio::time::timeout(PATIENCE * 2, all).await });
        if joined.is_err() {
            self.books.wrong("not all tasks ended in time".into());
        }
    }

    /// Drains the timers. All tasks have ended, so no timer may be pending, and none may have been stopped.
    fn drain(&self, own: &[Timer; 2], current: &Timer) {
        for timer in own {
            let drained = self
                .runtime
                .block_on(async { tokio::time::timeout(PATIENCE * 2, timer.drain()).await });
            if drained.is_err() {
                self.books
                    .wrong(format!("{timer:?} was not drained in time"));
            }
        }
        for timer in own.iter().chain([current]) {
            let metrics = timer.metrics();
            if metrics.stopped() + metrics.pending() > 0 {
                self.books.wrong(format!(
                    "after an orderly end, timers were still pending or had been stopped: {metrics}"
                ));
            }
        }
    }

    /// Drops the runtime, and waits for the threads outside it. Their sleeps panic once the runtime has ended.
    fn end(self) {
        let (books, threads) = (self.books, self.threads);
        drop(self.runtime);
        self.stopping.store(true, Relaxed);
        let since = Instant::now();
        for thread in threads {
            while !thread.is_finished() && since.elapsed() < PATIENCE * 2 {
                thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() {
                // The panic hook has counted a thread that panicked.
                let _ended = thread.join();
            } else {
                books.wrong("a thread outside the runtime was not woken".into());
            }
        }
    }
}
