//! The process that is killed: a service with handlers and many callers, which logs what it does line by line.

mod callers;
mod calls;
mod handlers;
mod log;
mod moves;
mod soak;
mod watched;

use std::fs;
use std::io::{BufRead, stdin};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use waterwheel_durable::{Drain, Durable, Event, Shift};
use waterwheel_durable_faults::{Content, Disk};
use waterwheel_durable_sqlite::{OpenOptions, Sqlite, SqliteStore};

use crate::planted::plant;
use crate::power_cut::{FILE, IN_MEMORY, WAL};
use crate::protocol::{ChildOptions, Known, Line, WITHOUT_RESERVE, WORKERS, retry_delays};
use crate::report::in_words;
use calls::Calls;
use log::Log;
use moves::Mover;
use watched::Watched;

/// Longer than any request waits, even on a busy machine.
const LONGEST_ANSWER: Duration = Duration::from_secs(30);
/// The files of a disk in memory, without the reserve: at the end there is space.
const FILES: [&str; 2] = [FILE, WAL];

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
    runtime.map_err(in_words)?.block_on(live(options))?;
    Ok(ExitCode::SUCCESS)
}

async fn live(options: ChildOptions) -> Result<(), String> {
    let shift = Arc::new(Shift::default());
    shift.set_wall(options.shift);
    let log = Arc::new(Log::new(Arc::clone(&shift)));
    let mut known = String::new();
    stdin().lock().read_line(&mut known).map_err(in_words)?;
    let known: Known = serde_json::from_str(&known).map_err(in_words)?;
    let disk = (options.memory > 0).then(|| in_memory(&options));
    let disk = disk.transpose()?;
    let (stops, stop) = watch::channel(false);
    let (fills, confirms) = (disk.clone(), Arc::clone(&log));
    // The end of the input is the parent's request to stop.
    std::thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            match (line.parse(), &fills) {
                // A copy was made: it contains nothing that is logged from now on.
                (Ok(line @ Line::Copied { .. }), _) => confirms.say(&line),
                (Ok(Line::Disk { is_full: true }), Some(disk)) => drop(disk.fill()),
                (Ok(Line::Disk { is_full: false }), Some(disk)) => disk.set_foreign(0),
                _ => {}
            }
        }
        stops.send_replace(true);
    });

    let mut rng = fastrand::Rng::with_seed(options.seed);
    let timers = open(&options, &log, disk.as_ref(), &mut rng).await?;
    let is_set = timers
        .create_namespace("default", handlers::patient())
        .await;
    is_set.map_err(in_words)?;
    log.say(&Line::Opened);
    let calls = Arc::new(Calls::new(Arc::clone(&log), &options));
    handlers::add(&timers, &calls, &options, &mut rng);
    let mover = || Mover {
        timers: timers.clone(),
        calls: Arc::clone(&calls),
        shift: Arc::clone(&shift),
        stop: stop.clone(),
    };
    let faults = match options.soak {
        0 => None,
        _ => soak::set_up(mover(), &options).await?,
    };
    let mut tasks = callers::start(&timers, &calls, &options, &stop, known);
    tasks.extend(faults);
    if options.moves {
        tasks.push(tokio::spawn(moves::play(mover(), options.seed)));
    }
    // Wait for the thread that reads the input.
    let _ = stop.clone().wait_for(|is_set| *is_set).await;
    for task in tasks {
        match tokio::time::timeout(LONGEST_ANSWER, task).await {
            Ok(ended) => ended.map_err(in_words)?,
            Err(_) => log.wrong("a request is not answered"),
        }
    }
    calls.shutdown_begins();
    let stopped = timers.shutdown(Drain::within(Duration::from_secs(30)));
    match stopped.await {
        Ok(stopped) if stopped.abandoned == 0 => {}
        other => log.wrong(format!("the shutdown: {other:?}")),
    }
    // Copy the files to a real folder, now that the store is closed.
    for name in FILES {
        if let Some(disk) = &disk {
            let bytes = disk.read(name).unwrap_or_default();
            fs::write(options.file.with_file_name(name), bytes).map_err(in_words)?;
        }
    }
    dead_letters(&options, &log).await
}

/// A disk in memory with a capacity, for machines on which no small file system can be mounted. It starts with the current file and WAL.
fn in_memory(options: &ChildOptions) -> Result<Disk, String> {
    let disk = Disk::new()?;
    let read = |name| Some((name, fs::read(options.file.with_file_name(name)).ok()?));
    disk.put(Content::of(FILES.into_iter().filter_map(read)));
    disk.set_capacity(options.memory, 0);
    Ok(disk)
}

async fn open(
    options: &ChildOptions,
    log: &Arc<Log>,
    disk: Option<&Disk>,
    rng: &mut fastrand::Rng,
) -> Result<Durable, String> {
    let events = Arc::clone(log);
    // In the end, everything is due at once, and must not fit into memory.
    let in_memory = match rng.u8(..3) {
        _ if options.callers == 0 => 200,
        // The default.
        _ if options.rate > 0 => 65_536,
        0 => 100,
        1 => 1_000,
        _ => 32_768,
    };
    let builder = Durable::builder()
        .retry_delays(retry_delays())
        .window(Duration::from_secs(rng.u64(1..=3)))
        .max_in_memory(in_memory)
        .shifted_clocks(log.clocks())
        .on_event(move |event| {
            if let Event::Failed { error, .. } = event {
                events.wrong(format!("the store has failed: {error}"));
            }
        });
    // Use the plain call as well: the marks of commits only matter where a kill comes.
    if options.callers == 0 {
        return builder
            .store(Sqlite::new(&options.file))
            .open()
            .await
            .map_err(in_words);
    }
    let limit = (options.limit > 0).then_some(options.limit);
    let mut open = OpenOptions {
        limit,
        ..OpenOptions::DEFAULT
    };
    if options.fault == WITHOUT_RESERVE {
        open.reserve = (0, 0);
    }
    let store = match disk {
        Some(disk) => {
            (open.vfs, open.files) = (Some(disk.vfs()), IN_MEMORY);
            SqliteStore::open_with_options(&disk.path(FILE), &open)
        }
        None if options.fault == WITHOUT_RESERVE => {
            SqliteStore::open_with_options(&options.file, &open)
        }
        None => {
            let file = Sqlite::new(&options.file);
            limit.map_or(file.clone(), |limit| file.limit(limit)).open()
        }
    };
    let store = Watched::new(store.map_err(in_words)?, Arc::clone(log));
    builder.store(store).open().await.map_err(in_words)
}

/// Opens the file again after a shutdown, and logs its dead letters.
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
