//! Damages the WAL of a file, and checks how the store reacts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use fastrand::Rng;
use waterwheel_durable::{Drain, Durable, Event, Sqlite};
use waterwheel_durable_sqlite::{OpenError, SqliteStore};

use crate::look::{Look, look_at};
use crate::report::{in_words, temporary_folder};

/// The fault of deleting the note of acknowledged commits with the WAL.
pub(crate) const WITHOUT_NOTE: &str = "without-note";

/// The number of ids that are assigned by the service that goes on without the lost work.
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

        // There is no WAL if the child was killed early, or after a WAL was copied and cut off.
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
    Opened,
    /// Acknowledged work is gone, or perhaps nothing is.
    Refused {
        is_needless: bool,
    },
    Failed,
}

/// Damages the WAL, and opens the file with the store.
pub(crate) fn strike(
    file: &Path,
    damage: Damage,
    has_note: bool,
    rng: &mut Rng,
) -> Result<(Fate, String), String> {
    let before = copied(file)?;
    let damaged = damage.strike(&beside(file, "-wal"), rng);
    damaged.map_err(in_words)?;
    let after = copied(file);
    if !has_note {
        let _: std::io::Result<()> = fs::remove_file(beside(file, "-acknowledged"));
    }
    Ok(match SqliteStore::open(file) {
        Ok(store) => {
            drop(store);
            let text = match copied(file) {
                Ok(now) if now == before => "opened: all is there".to_owned(),
                Ok(_) => "opened: a commit that was not acknowledged is gone".to_owned(),
                Err(why) => format!("opened: it cannot be read: {why}"),
            };
            (Fate::Opened, text)
        }
        Err(OpenError::AcknowledgedLost(loss)) => {
            let is_needless = after.is_ok_and(|after| after == before);
            (Fate::Refused { is_needless }, format!("refused: {loss}"))
        }
        Err(error) => (Fate::Failed, format!("refused for another reason: {error}")),
    })
}

/// Accepts the loss: the service goes on, and assigns no id twice. Returns the damage, if the file is damaged.
pub(crate) fn accept_loss(file: &Path, given: Option<u64>) -> Result<Option<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(in_words)?;
    runtime.block_on(async {
        let is_told = Arc::new(AtomicBool::new(false));
        let tells = Arc::clone(&is_told);
        let builder = Durable::builder().on_event(move |event| {
            if matches!(event, Event::AcknowledgedLost { .. }) {
                tells.store(true, Ordering::SeqCst);
            }
        });
        let accepting = Sqlite::new(file).accept_loss(true);
        let timers = match builder.store(accepting).open().await {
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
        // A loss that was accepted is not reported again.
        SqliteStore::open(file).map_err(in_words)?;
        Ok(None)
    })
}

/// Reads a copy of the file and its WAL, since reading the file itself would change it. `None` if it has no tables yet.
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
