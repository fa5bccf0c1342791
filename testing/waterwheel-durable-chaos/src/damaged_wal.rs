//! `damaged-wal`: children that are killed under load, after which the WAL of their file is deleted, cut or damaged.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use fastrand::Rng;
use rusqlite::Connection;
use waterwheel_durable::{Drain, Durable, Event};
use waterwheel_durable_chaos::arguments::Arguments;
use waterwheel_durable_sqlite::{OpenError, SqliteStore};

use crate::child::ChildOptions;
use crate::file;
use crate::kill::{DAY, LONGEST_OFF, deliver_all, lifetime};
use crate::parent::{Parent, Until};
use crate::report;

/// The fault that the note of what was acknowledged is deleted with the WAL.
const WITHOUT_NOTE: &str = "without-note";

/// How many ids are given by the service that goes on without what is gone.
const NEW: usize = 50;

#[derive(Debug, Clone, Copy)]
enum Way {
    Deleted,
    Cut,
    FirstPage,
    MiddlePage,
}

impl Way {
    const ALL: [Way; 4] = [Way::Deleted, Way::Cut, Way::FirstPage, Way::MiddlePage];

    fn damage(self, wal: &Path, rng: &mut Rng) -> std::io::Result<()> {
        const HEADER: usize = 32;
        const FRAME: usize = 24 + 4_096;

        // A child that was killed early, or after a WAL was copied and cut off, has none.
        let Ok(mut bytes) = fs::read(wal) else {
            return Ok(());
        };
        let frames = bytes.len().saturating_sub(HEADER) / FRAME;
        let at = match self {
            Way::Deleted => return fs::remove_file(wal),
            Way::Cut => return fs::write(wal, &bytes[..bytes.len() / 2]),
            Way::FirstPage => HEADER,
            Way::MiddlePage => HEADER + frames / 2 * FRAME,
        };
        if let Some(page) = bytes.get_mut(at..at + FRAME) {
            page.fill_with(|| rng.u8(..));
        }
        fs::write(wal, bytes)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Way::Deleted => "deleted",
            Way::Cut => "cut in half",
            Way::FirstPage => "first page",
            Way::MiddlePage => "middle page",
        })
    }
}

/// The outcome of an opening after the damage.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    opened: u32,
    refused: u32,
    /// How many of these were refused even with the loss accepted: the file was damaged.
    damaged: u32,
    /// How many of these had lost nothing.
    needless: u32,
    broken: u32,
}

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, String> {
    let rounds: u64 = arguments.take("rounds", 20)?;
    let seed = arguments.take("seed", Rng::new().u64(..))?;
    let callers = arguments.take("callers", 96)?;
    let fault: String = arguments.take("break", String::new())?;
    arguments.end()?;
    let has_note = match fault.as_str() {
        "" => true,
        WITHOUT_NOTE => false,
        other => return Err(format!("there is no fault {other:?}")),
    };
    let folder = report::folder()?;
    let mut rng = Rng::with_seed(seed);
    println!("damaged-wal: {rounds} rounds of each, {callers} callers, seed {seed}");
    let mut all = Vec::new();
    for way in Way::ALL {
        let mut counts = Counts::default();
        for round in 1..=rounds {
            let place = folder
                .path()
                .join(format!("{way}-{round}").replace(' ', "-"));
            fs::create_dir(&place).map_err(in_words)?;
            let options = ChildOptions::new(&place, rng.u64(..), callers, String::new());
            let what = play(options, way, has_note, &mut rng, &mut counts)?;
            println!("{way:11}  {round:3}  {what}");
            if what.starts_with(BROKEN) {
                counts.broken += 1;
            } else {
                fs::remove_dir_all(&place).map_err(in_words)?;
            }
        }
        all.push((way, counts));
    }
    println!("the WAL       opened   refused   of these: damaged   lost nothing   broken");
    for (way, it) in &all {
        println!(
            "{way:11}  {:7}   {:7}   {:17}   {:12}   {:6}",
            it.opened, it.refused, it.damaged, it.needless, it.broken
        );
    }
    let is_kept = all.iter().all(|(_, it)| it.broken == 0);
    Ok(report::end(is_kept, seed, folder))
}

/// Before what is said of a broken promise.
const BROKEN: &str = "BROKEN: ";

/// Lives that end by a kill, the damage, and what comes of it.
fn play(
    mut options: ChildOptions,
    way: Way,
    has_note: bool,
    rng: &mut Rng,
    counts: &mut Counts,
) -> Result<String, String> {
    let place = options.file.with_file_name("");
    let mut parent = Parent::new(&report::log_of(&place))?;
    for _ in 0..rng.u32(1..=2) {
        options.round += 1;
        options.seed = rng.u64(..);
        options.single = rng.bool();
        options.shift += rng.i64(0..LONGEST_OFF);
        let until = Until::Killed {
            after: lifetime(rng),
            in_commit: rng.bool(),
        };
        parent.play(&options, until)?;
    }
    let before = Rows::of_copy(&options.file)?;
    way.damage(&beside(&options.file, "-wal"), rng)
        .map_err(in_words)?;
    let after = Rows::of_copy(&options.file);
    if !has_note {
        let _: std::io::Result<()> = fs::remove_file(beside(&options.file, "-acknowledged"));
    }
    match SqliteStore::open(&options.file) {
        Ok(store) => {
            counts.opened += 1;
            drop(store);
            // A commit that was under way at the kill was not acknowledged.
            let same = match Rows::of_copy(&options.file)? == before {
                true => "all is there",
                false => "a commit that was not acknowledged is gone",
            };
            options.callers = 0;
            options.shift += 60 * DAY;
            // Now the promises are looked at as after any kill.
            let is_empty = deliver_all(&mut parent, &mut options)?;
            parent.checker.finish();
            Ok(match parent.checker.broken().first() {
                None if is_empty => format!("opened: {same}"),
                None => format!("{BROKEN}opened, and rows are left"),
                Some((rule, text)) => format!("{BROKEN}opened: {rule}: {text}"),
            })
        }
        Err(OpenError::AcknowledgedLost(loss)) => {
            counts.refused += 1;
            if after.is_ok_and(|after| after == before) {
                counts.needless += 1;
            }
            let given = parent.checker.last_id();
            match goes_on(&options.file, given) {
                Ok(GoesOn::Well) => Ok(format!("refused: {loss}")),
                Ok(GoesOn::IsDamaged(what)) => {
                    counts.damaged += 1;
                    Ok(format!("refused: {loss}; {what}"))
                }
                Err(what) => Ok(format!("{BROKEN}refused: {loss}; then {what}")),
            }
        }
        Err(error) => Ok(format!("{BROKEN}refused for another reason: {error}")),
    }
}

enum GoesOn {
    Well,
    IsDamaged(String),
}

/// A service that accepts the loss.
fn goes_on(file: &Path, given: Option<u64>) -> Result<GoesOn, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(in_words)?;
    runtime.block_on(async {
        let is_told = Arc::new(AtomicBool::new(false));
        let tells = Arc::clone(&is_told);
        let builder = Durable::builder().accept_loss(true).on_event(move |event| {
            if matches!(event, Event::AcknowledgedLost { .. }) {
                tells.store(true, Ordering::SeqCst);
            }
        });
        let timers = match builder.open(file).await {
            Ok(timers) => timers,
            Err(error) if error.is_corrupt() => return Ok(GoesOn::IsDamaged(error.to_string())),
            Err(error) => return Err(error.to_string()),
        };
        for _ in 0..NEW {
            let due = SystemTime::now() + Duration::from_secs(3_600);
            let inserted = timers.at("plain", due).insert().await;
            let handle = inserted.map_err(in_words)?;
            let id = handle.handle().id.get();
            if given.is_some_and(|given| id <= given) {
                return Err(format!("the id {id:x} is given though {given:x?} was"));
            }
        }
        let drain = Drain::within(Duration::from_secs(30));
        timers.shutdown(drain).await.map_err(in_words)?;
        if !is_told.load(Ordering::SeqCst) {
            return Err("no event says so".to_owned());
        }
        file::inspect(file)?;
        // What was accepted is not said again.
        SqliteStore::open(file).map_err(in_words)?;
        Ok(GoesOn::Well)
    })
}

/// All timers and dead letters, read without the store's code.
#[derive(Debug, PartialEq, Eq)]
struct Rows(Vec<String>);

impl Rows {
    /// Of a copy of the file and its WAL: to read the file itself would change what is left of it. `None` if it has no tables yet.
    fn of_copy(file: &Path) -> Result<Option<Rows>, String> {
        let folder = report::folder()?;
        let copy = folder.path().join("copy.db");
        for ending in ["", "-wal"] {
            let from = beside(file, ending);
            if from.exists() {
                fs::copy(from, beside(&copy, ending)).map_err(in_words)?;
            }
        }
        let connection = Connection::open(&copy).map_err(in_words)?;
        let sql = "SELECT 1 FROM sqlite_schema WHERE name = 'timers'";
        let exists = connection.prepare(sql).and_then(|mut it| it.exists([]));
        if !exists.map_err(in_words)? {
            return Ok(None);
        }
        Rows::read(&connection).map(Some).map_err(in_words)
    }

    fn read(connection: &Connection) -> rusqlite::Result<Rows> {
        let mut all = Vec::new();
        for sql in [
            "SELECT id, due, failures, payload FROM timers",
            "SELECT id, due, failures, payload FROM dead",
        ] {
            let mut rows = connection.prepare(sql)?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                let (id, due, failures): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let payload: Vec<u8> = row.get(3)?;
                all.push(format!("{sql} {id:x} {due} {failures} {payload:x?}"));
            }
        }
        all.sort_unstable();
        Ok(Rows(all))
    }
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn in_words(error: impl std::error::Error) -> String {
    error.to_string()
}
