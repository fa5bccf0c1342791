//! The process that is killed: a service with handlers and many callers, which says in lines what it does.

mod callers;
mod calls;
mod handlers;
mod memory;
mod moves;
mod soak;
mod watched;

use std::io::{BufRead, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;
use waterwheel_durable::{Drain, Durable, Event, Handle, Id, Shift};
use waterwheel_durable_chaos::arguments::Arguments;
use waterwheel_durable_sqlite::{OpenOptions, Options, SqliteStore};

use crate::check::RETRY_DELAYS_MILLIS;
use crate::log::Line;
use calls::Calls;
use memory::Memory;
pub(crate) use soak::GONE_BY;
use watched::Watched;

/// No request waits for so long, even on a busy machine.
const LONGEST_ANSWER: Duration = Duration::from_secs(30);

/// Options of a child process.
#[derive(Debug, Clone)]
pub(crate) struct ChildOptions {
    pub(crate) file: PathBuf,
    pub(crate) round: u64,
    pub(crate) seed: u64,
    /// A runtime with one thread.
    pub(crate) single: bool,
    /// By how many microseconds its wall clock is ahead of the machine's.
    pub(crate) shift: i64,
    /// None: only what is there is delivered.
    pub(crate) callers: usize,
    /// The clock is moved while it runs.
    pub(crate) moves: bool,
    /// How many bytes payloads have at most, but for a few.
    pub(crate) largest: usize,
    /// How many bytes the file may have. No limit, if it is 0.
    pub(crate) limit: u64,
    /// How many bytes the disk in memory has. If it is 0, the file is a real one.
    pub(crate) memory: usize,
    /// A service with namespaces and a calendar, in whose life of so many milliseconds this and that goes wrong. Not so, if it is 0.
    pub(crate) soak: u64,
    /// How many requests all callers make in a second. As many as they can, if it is 0.
    pub(crate) rate: u32,
    /// None if empty.
    pub(crate) fault: String,
}

/// How many threads the runtime of a child has, unless it has one.
pub(crate) const WORKERS: usize = 4;

/// The fault that the store has no reserve. It is planted by opening the store without one.
pub(crate) const WITHOUT_RESERVE: &str = "without-reserve";

impl ChildOptions {
    /// Of the first child: the clock is the machine's, and stays so.
    pub(crate) fn new(folder: &Path, seed: u64, callers: usize, fault: String) -> ChildOptions {
        ChildOptions {
            file: folder.join("timers.db"),
            round: 0,
            seed,
            single: false,
            shift: 0,
            callers,
            moves: false,
            largest: 80,
            limit: 0,
            memory: 0,
            soak: 0,
            rate: 0,
            fault,
        }
    }

    pub(crate) fn arguments(&self) -> Vec<String> {
        [
            ("--file", self.file.display().to_string()),
            ("--round", self.round.to_string()),
            ("--seed", self.seed.to_string()),
            ("--single", self.single.to_string()),
            ("--shift", self.shift.to_string()),
            ("--callers", self.callers.to_string()),
            ("--moves", self.moves.to_string()),
            ("--largest", self.largest.to_string()),
            ("--limit", self.limit.to_string()),
            ("--memory", self.memory.to_string()),
            ("--soak", self.soak.to_string()),
            ("--rate", self.rate.to_string()),
            ("--break", self.fault.clone()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect()
    }

    fn read(mut arguments: Arguments) -> Result<ChildOptions, String> {
        let options = ChildOptions {
            file: arguments.take("file", PathBuf::new())?,
            round: arguments.take("round", 1)?,
            seed: arguments.take("seed", 0)?,
            single: arguments.take("single", false)?,
            shift: arguments.take("shift", 0)?,
            callers: arguments.take("callers", 0)?,
            moves: arguments.take("moves", false)?,
            largest: arguments.take("largest", 80)?,
            limit: arguments.take("limit", 0)?,
            memory: arguments.take("memory", 0)?,
            soak: arguments.take("soak", 0)?,
            rate: arguments.take("rate", 0)?,
            fault: arguments.take("break", String::new())?,
        };
        arguments.end()?;
        Ok(options)
    }
}

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD: usize = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// Where lines go, and the clocks that they are dated by.
#[derive(Debug)]
pub(crate) struct Log {
    start: Instant,
    shift: Arc<Shift>,
    /// One line is written at a time.
    out: Mutex<()>,
}

impl Log {
    pub(crate) fn say(&self, line: &Line) {
        let text = format!("{line}\n");
        let _one = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // The parent may be gone. Then this one ends as well, when it is asked to stop.
        let _ = stdout().lock().write_all(text.as_bytes());
    }

    pub(crate) fn wrong(&self, text: impl Into<String>) {
        self.say(&Line::Wrong(text.into()));
    }

    /// The number of this thread.
    pub(crate) fn thread(&self) -> usize {
        THREAD.with(|number| *number)
    }

    /// Microseconds since the child's start.
    pub(crate) fn at(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// What the wall clock shows, in microseconds.
    pub(crate) fn wall(&self) -> i64 {
        // The shift last: it may be moved meanwhile, after the line that says so.
        let machine = SystemTime::now().duration_since(UNIX_EPOCH);
        let machine = machine.map_or(0, |since| since.as_micros());
        i64::try_from(machine).unwrap_or(i64::MAX) + self.shift.wall()
    }
}

/// What the parent says before the child begins.
#[derive(Debug, Default)]
struct Before {
    alive: Vec<Handle>,
    dead: Vec<Id>,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, String> {
    let options = ChildOptions::read(arguments)?;
    if options.fault != WITHOUT_RESERVE {
        crate::fault::plant(&options.fault)?;
    }
    let mut builder = match options.single {
        true => tokio::runtime::Builder::new_current_thread(),
        false => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.enable_time().worker_threads(WORKERS).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(live(options))?;
    Ok(ExitCode::SUCCESS)
}

async fn live(options: ChildOptions) -> Result<(), String> {
    let shift = Arc::new(Shift::default());
    shift.set_wall(options.shift);
    let log = Arc::new(Log {
        start: Instant::now(),
        shift: Arc::clone(&shift),
        out: Mutex::new(()),
    });
    let before = before();
    let stop = Arc::new(Stop::default());
    let waits = Arc::clone(&stop);
    let disk = (options.memory > 0)
        .then(|| Memory::of(&options))
        .transpose()?;
    let fills = disk.clone();
    let confirms = Arc::clone(&log);
    // The end of the input is the parent's command to stop.
    std::thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            // A copy was made: what is said from now on is not in it.
            if let Ok(line @ Line::Copied { .. }) = line.parse() {
                confirms.say(&line);
            } else if let Some(disk) = &fills {
                disk.obey(&line);
            }
        }
        waits.set();
    });

    let mut rng = fastrand::Rng::with_seed(options.seed);
    let timers = open(&options, &log, disk.as_ref(), &mut rng).await?;
    log.say(&Line::Opened);
    let calls = Arc::new(Calls::new(Arc::clone(&log), &options));
    handlers::add(&timers, &calls, &options, &mut rng);
    let faults = match options.soak {
        0 => None,
        _ => Some(soak::set_up(&timers, &calls, &options, &shift, &stop).await?),
    };
    let callers = callers::start(&timers, &calls, &options, &stop, before.alive, before.dead);
    let mover = options.moves.then(|| {
        let seed = options.seed;
        tokio::spawn(moves::play(
            timers.clone(),
            Arc::clone(&calls),
            shift,
            Arc::clone(&stop),
            seed,
        ))
    });
    stop.wait().await;
    for task in callers.into_iter().chain(mover).chain(faults) {
        match tokio::time::timeout(LONGEST_ANSWER, task).await {
            Ok(ended) => ended.map_err(|error| error.to_string())?,
            Err(_) => log.wrong("a request is not answered"),
        }
    }
    let stopped = timers.shutdown(Drain::within(Duration::from_secs(30)));
    match stopped.await {
        Ok(stopped) if stopped.abandoned == 0 => {}
        other => log.wrong(format!("the shutdown: {other:?}")),
    }
    if let Some(disk) = &disk {
        disk.write_to(&options.file)?;
    }
    dead_letters(&options, &log).await
}

/// Lines `alive HANDLE` and `dead ID`, and an empty one.
fn before() -> Before {
    let mut before = Before::default();
    for line in stdin().lock().lines().map_while(Result::ok) {
        match line.split_once(' ') {
            Some(("alive", handle)) => before.alive.extend(handle.parse::<Handle>()),
            Some(("dead", id)) => {
                let id = u64::from_str_radix(id, 16).map(Id::from_stored);
                before.dead.extend(id);
            }
            _ => break,
        }
    }
    before
}

async fn open(
    options: &ChildOptions,
    log: &Arc<Log>,
    disk: Option<&Memory>,
    rng: &mut fastrand::Rng,
) -> Result<Durable, String> {
    let events = Arc::clone(log);
    // In the end, all is due at once: it must not fit.
    let limit = match rng.u8(..3) {
        _ if options.callers == 0 => 200,
        // Of its own accord.
        _ if options.rate > 0 => 65_536,
        0 => 100,
        1 => 1_000,
        _ => 32_768,
    };
    let builder = Durable::builder()
        .retry_delays(
            RETRY_DELAYS_MILLIS.map(|millis| Duration::from_millis(millis.unsigned_abs())),
        )
        .window(Duration::from_secs(rng.u64(1..=3)))
        .max_in_memory(limit)
        .shifted_clocks(Arc::clone(&log.shift))
        .on_event(move |event| {
            if let Event::Failed { error, .. } = event {
                events.wrong(format!("the store has failed: {error}"));
            }
        });
    // The plain call as well: the marks of commits are of use only where a kill comes.
    if options.callers == 0 {
        return builder.open(&options.file).await.map_err(in_words);
    }
    let store = match disk {
        Some(disk) => disk.open(options),
        None if options.fault == WITHOUT_RESERVE => {
            let without = OpenOptions {
                reserve: (0, 0),
                ..OpenOptions::DEFAULT
            };
            SqliteStore::open_with_options(&options.file, &without)
        }
        None if options.limit > 0 => {
            SqliteStore::open_with(&options.file, &Options::default().limit(options.limit))
        }
        None => SqliteStore::open(&options.file),
    };
    let store = store.map_err(in_words)?;
    let store = Watched::new(store, Arc::clone(log));
    builder.open_store(store).await.map_err(in_words)
}

/// Which dead letters are there, after a shutdown and another opening?
async fn dead_letters(options: &ChildOptions, log: &Log) -> Result<(), String> {
    let timers = Durable::open(&options.file).await.map_err(in_words)?;
    let mut after = None;
    loop {
        let page = timers.dead_letters(after, 100).await.map_err(in_words)?;
        for dead_letter in &page {
            log.say(&Line::DeadLetter {
                id: dead_letter.id().get(),
                attempts: dead_letter.attempts(),
            });
        }
        match page.last() {
            Some(last) => after = Some(last.id()),
            None => break,
        }
    }
    let drain = Drain::within(Duration::from_secs(5));
    timers.shutdown(drain).await.map_err(in_words)?;
    Ok(())
}

fn in_words(error: impl std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The parent's command to stop.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    is_set: AtomicBool,
    changed: Notify,
}

impl Stop {
    fn set(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }

    async fn wait(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.is_set() {
                return;
            }
            changed.await;
        }
    }
}
