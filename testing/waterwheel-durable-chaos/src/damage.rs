//! How is the WAL of a file damaged, and what does the store make of it?

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use fastrand::Rng;
use waterwheel_durable::{Drain, Durable, Event};
use waterwheel_durable_sqlite::{Loss, OpenError, SqliteStore};

use crate::look::{Look, look_at};
use crate::report::{in_words, temporary_folder};

/// The fault that the note of what was acknowledged is deleted with the WAL.
pub(crate) const WITHOUT_NOTE: &str = "without-note";

/// How many ids are given by the service that goes on without what is gone.
const NEW: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Damage {
    Deleted,
    Cut,
    FirstPage,
    MiddlePage,
}

impl Damage {
    pub(crate) const ALL: [Damage; 4] = [
        Damage::Deleted,
        Damage::Cut,
        Damage::FirstPage,
        Damage::MiddlePage,
    ];

    fn strike(self, wal: &Path, rng: &mut Rng) -> std::io::Result<()> {
        const HEADER: usize = 32;
        const FRAME: usize = 24 + 4_096;

        // A child that was killed early, or after a WAL was copied and cut off, has none.
        let Ok(mut bytes) = fs::read(wal) else {
            return Ok(());
        };
        let frames = bytes.len().saturating_sub(HEADER) / FRAME;
        let at = match self {
            Damage::Deleted => return fs::remove_file(wal),
            Damage::Cut => return fs::write(wal, &bytes[..bytes.len() / 2]),
            Damage::FirstPage => HEADER,
            Damage::MiddlePage => HEADER + frames / 2 * FRAME,
        };
        if let Some(page) = bytes.get_mut(at..at + FRAME) {
            page.fill_with(|| rng.u8(..));
        }
        fs::write(wal, bytes)
    }
}

/// The outcome of an opening after the damage.
pub(crate) enum Fate {
    Opened {
        all_is_there: bool,
    },
    /// Acknowledged work is gone, or perhaps nothing is.
    Refused {
        loss: Loss,
        is_needless: bool,
    },
    Failed(OpenError),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Opened { all_is_there: true } => f.write_str("opened: all is there"),
            Fate::Opened { .. } => {
                f.write_str("opened: a commit that was not acknowledged is gone")
            }
            Fate::Refused { loss, .. } => write!(f, "refused: {loss}"),
            Fate::Failed(error) => write!(f, "refused for another reason: {error}"),
        }
    }
}

/// The fates after each damage.
#[derive(Debug, Default)]
pub(crate) struct Counts(BTreeMap<Damage, Count>);

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    opened: u32,
    refused: u32,
    /// How many of these were refused even with the loss accepted: the file was damaged.
    damaged: u32,
    /// How many of these had lost nothing.
    needless: u32,
    broken: u32,
}

impl Counts {
    pub(crate) fn note(&mut self, damage: Damage, fate: &Fate, is_damaged: bool, is_broken: bool) {
        let count = self.0.entry(damage).or_default();
        count.broken += u32::from(is_broken);
        count.damaged += u32::from(is_damaged);
        match fate {
            Fate::Opened { .. } => count.opened += 1,
            Fate::Refused { is_needless, .. } => {
                count.refused += 1;
                count.needless += u32::from(*is_needless);
            }
            Fate::Failed(_) => {}
        }
    }

    /// Prints them. Returns whether nothing was broken.
    pub(crate) fn is_kept(&self) -> bool {
        for (damage, count) in &self.0 {
            println!("{damage:?}: {count:?}");
        }
        self.0.values().all(|it| it.broken == 0)
    }
}

/// Damages the WAL, and opens the file by the store.
pub(crate) fn strike(
    file: &Path,
    damage: Damage,
    has_note: bool,
    rng: &mut Rng,
) -> Result<Fate, String> {
    let before = copied(file)?;
    damage
        .strike(&beside(file, "-wal"), rng)
        .map_err(in_words)?;
    let after = copied(file);
    if !has_note {
        let _: std::io::Result<()> = fs::remove_file(beside(file, "-acknowledged"));
    }
    Ok(match SqliteStore::open(file) {
        Ok(store) => {
            drop(store);
            // A commit that was under way at the kill was not acknowledged.
            let all_is_there = copied(file)? == before;
            Fate::Opened { all_is_there }
        }
        Err(OpenError::AcknowledgedLost(loss)) => Fate::Refused {
            loss,
            is_needless: after.is_ok_and(|after| after == before),
        },
        Err(error) => Fate::Failed(error),
    })
}

/// A service that accepts the loss goes on, and gives no id that was given. Returns what is damaged, if the file is.
pub(crate) fn accept_loss(file: &Path, given: Option<u64>) -> Result<Option<String>, String> {
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
            Err(error) if error.is_corrupt() => return Ok(Some(error.to_string())),
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
        look_at(file)?;
        // What was accepted is not said again.
        SqliteStore::open(file).map_err(in_words)?;
        Ok(None)
    })
}

/// What is in a copy of the file and its WAL: to read the file itself would change what is left of it. `None` if it has no tables yet.
fn copied(file: &Path) -> Result<Option<Look>, String> {
    let place = temporary_folder()?;
    let copy = place.path().join("copy.db");
    for ending in ["", "-wal"] {
        let from = beside(file, ending);
        if from.exists() {
            fs::copy(from, beside(&copy, ending)).map_err(in_words)?;
        }
    }
    look_at(&copy)
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
