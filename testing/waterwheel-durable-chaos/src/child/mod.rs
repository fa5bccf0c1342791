//! The process that is killed: a service with handlers and many callers, which says in lines what it does.

mod callers;
mod calls;
mod handlers;
mod log;
mod memory;
mod moves;
mod soak;
mod watched;

use std::io::{BufRead, stdin};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use waterwheel_durable::{Drain, Durable, Event, Handle, Id, Shift};
use waterwheel_durable_sqlite::{OpenOptions, Options, SqliteStore};

use crate::planted::plant;
use crate::protocol::{ChildOptions, Line, RETRY_DELAYS_MILLIS, WITHOUT_RESERVE, WORKERS};
use calls::Calls;
use log::{Log, Stop, in_words};
use memory::Memory;
use watched::Watched;

/// No request waits for so long, even on a busy machine.
const LONGEST_ANSWER: Duration = Duration::from_secs(30);

/// What the parent says before the child begins.
#[derive(Debug, Default)]
struct Before {
    alive: Vec<Handle>,
    dead: Vec<Id>,
}

pub(crate) fn run(options: &str) -> Result<ExitCode, String> {
    let options: ChildOptions = serde_json::from_str(options).map_err(in_words)?;
    if options.fault != WITHOUT_RESERVE {
        plant(&options.fault)?;
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
    let log = Arc::new(Log::new(Arc::clone(&shift)));
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
        .shifted_clocks(log.clocks())
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
