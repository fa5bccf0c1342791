//! Which files can be opened; all others stay unchanged.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use waterwheel_durable::store::{MemoryStore, Op, Outcome, Store, StoreError, forward};
use waterwheel_durable::{Durable, Event, OpenError, Sqlite};

use crate::support::*;

const HOLDS: &str = "WATERWHEEL_HOLDS";

#[tokio::test]
async fn another_process_is_named_that_has_the_file_open() {
    if let Some(path) = std::env::var_os(HOLDS) {
        // The other process: it has the file open until its input ends.
        let _timers = Durable::open(path).await.unwrap();
        println!("\nit is open");
        std::io::stdin().lines().for_each(drop);
        return;
    }
    let place = Place::new();
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "opening::another_process_is_named_that_has_the_file_open",
            "--nocapture",
        ])
        .env(HOLDS, place.file())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "it is open"));
    let error = within(Durable::open(place.file())).await.unwrap_err();
    let name = format!("process {} has the file open", other.id());
    assert!(error.to_string().contains(&name), "{error}");
    let cure = format!(
        ": end it first (`kill {}`), or open another file",
        other.id()
    );
    assert!(error.to_string().ends_with(&cure), "{error}");
    let file = place.file().display().to_string();
    assert!(error.to_string().starts_with(&file), "{error}");
    assert!(error.is_held() && error.holder() == Some(other.id()));
    // A `main` that returns it prints the same.
    let boxed: Box<dyn Error> = error.into();
    assert_eq!(format!("{boxed:?}"), boxed.to_string());
    assert!(format!("{boxed:#?}").contains("Held"), "{boxed:#?}");
    other.kill().unwrap();
    other.wait().unwrap();
    shut_down(&place.open().await).await;
}

#[tokio::test]
async fn a_failed_opening_says_its_cause_once() {
    let place = Place::new();
    let no_folder = place.file().join("no folder").join("timers.db");
    fs::write(place.file(), "").unwrap();
    let error = within(Durable::open(no_folder)).await.unwrap_err();
    let cause = error.source().unwrap().to_string();
    let times = |text: String| text.matches(&cause).count();
    assert_eq!(times(format!("{error}")), 1, "{error}");
    assert_eq!(times(format!("{error:?}")), 1, "{error:?}");
    // Also for another kind of store.
    let failed = StoreError::indeterminate("the disk is gone");
    let error = OpenError::from(failed);
    let text = "the store failed while it was opened: the disk is gone: check the log of the system, or of the database server, and open it again";
    assert_eq!(
        (format!("{error}"), format!("{error:?}")),
        (text.into(), text.into())
    );
}

#[tokio::test]
async fn a_file_that_is_refused_is_left_as_it_is() {
    let text = "Dear diary, ".repeat(1_000).into_bytes();
    // SQLite's header: the user version is at offset 60, and the format marks how the file is read.
    for (changed, says, is_newer, is_corrupt) in [
        (
            None,
            "the file is not a SQLite database: correct the path",
            false,
            false,
        ),
        (Some((100, 0xa5)), "the file is damaged: ", false, true),
        (
            Some((63, 9)),
            "the file has tables of version 9, but this program supports versions up to 1: use",
            true,
            false,
        ),
    ] {
        let place = Place::new();
        shut_down(&place.open().await).await;
        let mut bytes = fs::read(place.file()).unwrap();
        assert_eq!(bytes[60..64], [0, 0, 0, 1]);
        match changed {
            None => bytes.clone_from(&text),
            Some((63, version)) => bytes[63] = version,
            Some((from, garbage)) => bytes[from..].fill(garbage),
        }
        fs::write(place.file(), &bytes).unwrap();
        let error = within(Durable::open(place.file())).await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains(says), "{said}");
        let has_cure = said.contains("restore a backup") && error.source().is_some();
        assert!(!is_corrupt || has_cure, "{said}");
        assert_eq!((error.is_newer(), error.is_held()), (is_newer, false));
        assert_eq!(error.is_corrupt(), is_corrupt);
        assert_eq!(fs::read(place.file()).unwrap(), bytes);
    }
    let nowhere = Place::new().file().join("nowhere/timers.db");
    let error = within(Durable::open(nowhere)).await.unwrap_err();
    assert!(error.source().is_some());
    assert!(!error.is_newer() && !error.is_held() && !error.is_corrupt());
}

/// A store whose `begin` fails.
struct Broken {
    panics: bool,
    /// Never called, because the store has not begun.
    unreachable: MemoryStore,
}

impl Store for Broken {
    fn begin(&mut self) -> Result<u64, StoreError> {
        match self.panics {
            true => std::panic::resume_unwind(Box::new("a bug")),
            false => Err(StoreError::indeterminate("the disk is broken")),
        }
    }

    fn commit(&mut self, _: u64, _: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        unreachable!("it has not begun")
    }

    forward!(this => this.unreachable; reads);
}

#[tokio::test]
async fn a_store_that_fails_at_once_or_panics_is_an_error() {
    for panics in [false, true] {
        let store = Broken {
            panics,
            unreachable: MemoryStore::new(),
        };
        let opened = Durable::builder().store(store).open();
        let error = within(opened).await.unwrap_err().to_string();
        let begin = "the store failed while it was opened: ";
        assert!(error.starts_with(begin), "{error}");
    }
}

#[tokio::test]
async fn a_store_is_chosen_at_run_time() {
    let place = Place::new();
    let file = Sqlite::new(place.file()).open().unwrap();
    let stores: [Box<dyn Store>; 2] = [Box::new(file), Box::new(MemoryStore::new())];
    for store in stores {
        let timers = within(Durable::builder().store(store).open());
        let timers = timers.await.unwrap();
        let mut deliveries = Deliveries::of(&timers, "mail");
        let timer = added(timers.at("mail", soon())).await;
        assert_eq!(deliveries.next().await.id, timer.handle().id);
        shut_down(&timers).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_second_name_of_the_file_is_reported_once_each() {
    let place = Place::new();
    let (builder, mut events) = reported(Durable::builder());
    let timers = place.open_by(builder).await;
    // While it is open, the link is looked for once a second.
    fs::hard_link(place.file(), place.file().with_extension("two")).unwrap();
    let file = fs::canonicalize(place.file()).unwrap();
    let mut has_names = async |names: u64| match within(events.recv()).await {
        Some(Event::HardLinked {
            file: named, links, ..
        }) => {
            assert_eq!((&*named, links), (file.to_str().unwrap(), names));
        }
        other => panic!("{other:?}"),
    };
    has_names(2).await;
    shut_down(&timers).await;
    fs::hard_link(place.file(), place.file().with_extension("three")).unwrap();
    let (builder, mut later) = reported(Durable::builder());
    let timers = place.open_by(builder).await;
    let event = within(later.recv()).await;
    assert!(
        matches!(event, Some(Event::HardLinked { links: 3, .. })),
        "{event:?}"
    );
    for _ in 0..3 {
        timers.at("mail", soon()).insert().await.unwrap();
    }
    shut_down(&timers).await;
    drop(timers);
    // Reported once, whatever is committed.
    while let Ok(event) = later.try_recv() {
        assert!(!matches!(event, Event::HardLinked { .. }), "{event:?}");
    }
}

#[tokio::test]
async fn a_loss_that_is_accepted_is_an_event() {
    let place = Place::new();
    let timers = Durable::open(place.file()).await.unwrap();
    timers.at("mail", soon()).insert().await.unwrap();
    // As after a kill, without its WAL.
    let killed = place.file().with_extension("killed");
    let note = |path: &std::path::Path| format!("{}-acknowledged", path.display());
    fs::copy(place.file(), &killed).unwrap();
    fs::copy(note(&place.file()), note(&killed)).unwrap();
    shut_down(&timers).await;
    let refused = Durable::open(&killed).await.unwrap_err();
    assert!(
        refused.is_acknowledged_lost() && !refused.is_corrupt(),
        "{refused}"
    );
    let (builder, mut events) = reported(Durable::builder());
    let file = Sqlite::new(&killed).accept_loss(true);
    let timers = within(builder.store(file).open()).await.unwrap();
    let event = within(events.recv()).await;
    assert!(
        matches!(&event, Some(Event::AcknowledgedLost { loss, .. }) if refused.to_string().contains(&**loss)),
        "{event:?}"
    );
    shut_down(&timers).await;
}
