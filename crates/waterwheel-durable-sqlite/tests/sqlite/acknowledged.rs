//! Is lost acknowledged work noticed? The files of a store are copied while it is open, as a kill leaves them, and their WAL is damaged.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use waterwheel_durable_core::store::{
    Due, Id, Level, Notice, Op, Outcome, PageLimit, Row, RowCursor, Store,
};
use waterwheel_durable_faults::{Call, Content, Disk, Fault, Kind, Moment};
use waterwheel_durable_sqlite::{
    Loss, OpenError, OpenOptions, Reader, Sqlite, SqliteStore, backup,
};

use crate::faulty_disk;
use crate::folder::{Folder, load};

const LONG_WAL: i64 = 20;
const PAGE: usize = 4_096 + 24;

/// Opens a file without a lock: another store of this process has it open.
fn open(path: &Path, accept_loss: bool) -> Result<SqliteStore, OpenError> {
    let options = OpenOptions {
        long_wal: LONG_WAL,
        reserve: (0, 0),
        accept_loss,
        ..OpenOptions::DEFAULT
    };
    SqliteStore::open_with_options(path, &options)
}

fn insert(epoch: u64, number: u64) -> Op {
    let row = Row::new(
        Id::new(epoch, number).unwrap(),
        Due::from_millis(number.cast_signed() * 700),
        "mail",
        vec![number as u8; 500],
    );
    let bucket = Level::Second.bucket(row.due);
    Op::Insert(row, bucket)
}

fn ids(store: &mut SqliteStore) -> Vec<Id> {
    let mut ids: Vec<_> = load(store, "mail").iter().map(|row| row.id).collect();
    ids.sort_unstable();
    ids
}

/// Opens the store of a file. Returns it and its epoch.
fn begun(path: &Path) -> (SqliteStore, u64) {
    let mut store = open(path, false).unwrap();
    let epoch = store.begin().unwrap();
    (store, epoch)
}

/// The timers in a file after a kill.
fn left_in(path: &Path) -> Vec<Id> {
    ids(&mut open(path, false).unwrap())
}

/// The loss for which a file is refused.
#[track_caller]
fn lost(path: &Path) -> Loss {
    match open(path, false) {
        Err(OpenError::AcknowledgedLost(loss)) => loss,
        other => panic!("{other:?}"),
    }
}

/// Commits a timer for each of these numbers.
fn commit_each(store: &mut SqliteStore, epoch: u64, numbers: RangeInclusive<u64>) {
    for number in numbers {
        store.commit(number, &[insert(epoch, number)]).unwrap();
    }
}

/// The path of a file, and the path for its state after a kill.
fn paths() -> (Folder, PathBuf, PathBuf) {
    let folder = Folder::new();
    let (path, killed) = (folder.file("timers.db"), folder.file("killed.db"));
    (folder, path, killed)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Copies the files in the state in which a kill would leave them now.
fn killed(path: &Path, to: &Path) {
    for ending in ["", "-wal", "-acknowledged", "-shm"] {
        let to = beside(to, ending);
        let _: std::io::Result<()> = fs::remove_file(&to);
        if beside(path, ending).exists() && ending != "-shm" {
            fs::copy(beside(path, ending), to).unwrap();
        }
    }
}

fn killed_without_wal(path: &Path, to: &Path) {
    killed(path, to);
    fs::remove_file(beside(to, "-wal")).unwrap();
}

const WAYS: [&str; 5] = ["deleted", "cut", "header", "first page", "a page"];

fn damage(path: &Path, way: &str, rng: &mut Rng) {
    let wal = beside(path, "-wal");
    match damaged(fs::read(&wal).unwrap_or_default(), way, rng) {
        Some(bytes) => fs::write(wal, bytes).unwrap(),
        None => fs::remove_file(wal).unwrap_or_default(),
    }
}

/// Damages a WAL in this way. Returns `None` if it is deleted.
fn damaged(mut bytes: Vec<u8>, way: &str, rng: &mut Rng) -> Option<Vec<u8>> {
    let pages = bytes.len().saturating_sub(32) / PAGE;
    let garbage = match way {
        "deleted" => return None,
        "cut" => return Some(bytes[..bytes.len() / 2].to_vec()),
        "header" => 0..32,
        "first page" => 32..32 + PAGE,
        _ => {
            let at = 32 + pages / 2 * PAGE;
            at..at + PAGE
        }
    };
    if let Some(part) = bytes.get_mut(garbage) {
        part.fill_with(|| rng.u8(..));
    }
    Some(bytes)
}

/// A store with this many commits of one timer each, which it has not copied.
fn filled(path: &Path, commits: u64) -> SqliteStore {
    let mut store = open(path, false).unwrap();
    let epoch = store.begin().unwrap();
    commit_each(&mut store, epoch, 1..=commits);
    store
}

// A reader has an index of the WAL as it was. If that WAL were removed, its index would be applied to the next WAL, which would appear full of holes.
#[test]
fn a_wal_is_not_removed_while_it_is_read() {
    let (_folder, path, copy) = paths();
    let (mut store, epoch) = begun(&path);
    let mut removed = 0;
    for number in 1..=60 {
        store.commit(number, &[insert(epoch, number)]).unwrap();
        store.maintain().unwrap();
        killed(&path, &copy);
        damage(&copy, "cut", &mut Rng::with_seed(1));
        // The content that it reads may be invalid.
        let Ok(reader) = Reader::open(&copy) else {
            continue;
        };
        match open(&copy, false) {
            Err(OpenError::Busy { .. }) => removed += 1,
            Err(OpenError::AcknowledgedLost(_)) => continue,
            opened => assert_eq!(ids(&mut opened.unwrap()).len() as u64, number),
        }
        drop(reader);
        let mut opened = open(&copy, false).unwrap();
        assert_eq!(ids(&mut opened).len() as u64, number);
        opened.commit(number, &[insert(epoch + 9, number)]).unwrap();
        assert_eq!(ids(&mut opened).len() as u64, number + 1);
    }
    assert!(removed > 0);
}

#[test]
fn commits_that_are_gone_are_named_and_accepted() {
    let (_folder, path, copy) = paths();
    let mut store = filled(&path, 5);
    drop(store);
    store = open(&path, false).unwrap();
    assert_eq!(store.begin().unwrap(), 2);
    let mut cut = 0;
    for number in 1..=10 {
        store.commit(number, &[insert(2, number)]).unwrap();
        if number == 4 {
            // A part of the fifth is left.
            cut = fs::metadata(beside(&path, "-wal")).unwrap().len() + 100;
        }
    }
    for (name, left, first) in [("cut", Some(cut), 12), ("deleted", None, 7)] {
        killed(&path, &copy);
        match left {
            Some(cut) => {
                let mut wal = fs::read(beside(&copy, "-wal")).unwrap();
                wal.truncate(usize::try_from(cut).unwrap());
                fs::write(beside(&copy, "-wal"), wal).unwrap();
            }
            None => fs::remove_file(beside(&copy, "-wal")).unwrap(),
        }
        let loss = lost(&copy);
        let is_it = matches!(
            loss,
            Loss::Commits { opening: 2, first: from, last: 17, is_torn: false, .. } if from == first
        );
        assert!(is_it, "{name}: {loss:?}");
        let mut store = Sqlite::new(&copy).brief().accept_loss(true).open().unwrap();
        let told = store.notices();
        assert!(
            matches!(&told[..], [Notice::AcknowledgedLost { loss, .. }] if loss.contains("to 17")),
            "{told:?}"
        );
        assert_eq!(store.notices(), []);
        let left: Vec<_> = ids(&mut store);
        let of_second = if first == 12 { 4 } else { 0 };
        let expected = (1..=5).map(|it| Id::new(1, it).unwrap());
        let expected = expected.chain((1..=of_second).map(|it| Id::new(2, it).unwrap()));
        assert_eq!(left, expected.collect::<Vec<_>>(), "{name}");
        // This also holds if the opening itself was in the WAL.
        assert_eq!(store.begin().unwrap(), 3, "{name}");
        drop(store);
        let mut again = open(&copy, false).unwrap();
        assert_eq!((again.notices(), again.begin().unwrap()), (vec![], 4));
    }
}

#[test]
fn whatever_is_damaged_at_any_time_is_noticed_if_it_was_needed() {
    let folder = Folder::new();
    let copy = folder.file("killed.db");
    let mut rng = Rng::with_seed(11);
    let (mut refused, mut opened) = (0, 0);
    for life in 0..12 {
        let path = folder.file(&format!("timers-{life}.db"));
        let mut number = 0;
        let mut seen = Vec::new();
        for _ in 0..3 {
            let mut store = open(&path, false).unwrap();
            let epoch = store.begin().unwrap();
            assert!(!seen.contains(&epoch));
            seen.push(epoch);
            for _ in 0..rng.u64(0..40) {
                number += 1;
                store.commit(number, &[insert(epoch, number)]).unwrap();
                if rng.u8(..4) > 0 {
                    store.maintain().unwrap();
                }
                if rng.u8(..4) > 0 {
                    continue;
                }
                let all = ids(&mut store);
                killed(&path, &copy);
                assert_eq!(left_in(&copy), all, "undamaged");
                for way in WAYS {
                    killed(&path, &copy);
                    damage(&copy, way, &mut rng);
                    match open(&copy, false) {
                        Ok(mut open) => {
                            opened += 1;
                            assert_eq!(ids(&mut open), all, "{way}");
                        }
                        Err(OpenError::AcknowledgedLost(loss)) => {
                            refused += 1;
                            let mut open = open(&copy, true).unwrap();
                            assert!(ids(&mut open).len() < all.len(), "{way}: {loss}");
                            assert!(open.begin().unwrap() > epoch, "{way}: {loss}");
                        }
                        Err(error) => panic!("{way}: {error}"),
                    }
                }
            }
            // The shutdown is clean or not.
            if rng.bool() {
                std::mem::forget(store);
                let next = folder.file("next.db");
                killed(&path, &next);
                killed(&next, &path);
            } else {
                // Then the WAL is empty, and an opening that commits nothing changes nothing.
                drop(store);
                drop(open(&path, false).unwrap());
            }
        }
    }
    println!("{refused} refused, {opened} opened");
    assert!(
        refused > 50 && opened > 20,
        "{refused} refused, {opened} opened"
    );
}

/// Opens the file like `sqlite3`, which copies the WAL into it and deletes it.
fn look_with_sqlite(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let sql = "SELECT count(*) FROM timers";
    let _: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    connection.close().unwrap();
    assert!(!beside(path, "-wal").exists());
}

#[test]
fn a_wal_that_another_program_has_copied_is_not_missed() {
    let folder = Folder::new();
    let (path, copy) = (folder.file("timers.db"), folder.file("killed.db"));
    let before = folder.file("before.db");
    let (mut store, epoch) = begun(&path);
    let (mut opened, mut torn) = (0, 0);
    for number in 1..=60 {
        store.commit(number, &[insert(epoch, number)]).unwrap();
        let all = ids(&mut store);
        killed(&path, &copy);
        look_with_sqlite(&copy);
        match open(&copy, false) {
            Ok(mut store) => {
                opened += 1;
                assert_eq!(ids(&mut store), all);
                // The note applies to this file again.
                let next = store.begin().unwrap();
                store.commit(1, &[insert(next, 1)]).unwrap();
                killed(&copy, &before);
                fs::remove_file(beside(&before, "-wal")).unwrap();
                lost(&before);
            }
            Err(OpenError::AcknowledgedLost(Loss::Commits { is_torn: true, .. })) => torn += 1,
            Err(error) => panic!("{error}"),
        }
        store.maintain().unwrap();
    }
    assert!(opened > 50, "{opened} opened, {torn} may be torn");
}

#[test]
fn a_loss_is_seen_without_opening_the_file() {
    let (_folder, path, copy) = paths();
    let mut store = filled(&path, 3);
    killed(&path, &copy);
    assert_eq!(SqliteStore::lost(&copy).unwrap(), None);
    fs::remove_file(beside(&copy, "-wal")).unwrap();
    let lost = SqliteStore::lost(&copy).unwrap();
    assert!(
        matches!(lost, Some(Loss::Commits { last: 4, .. })),
        "{lost:?}"
    );
    // A WAL that is older than the file must not be read through.
    let mut stale = 0;
    for number in 4..=60 {
        store.commit(number, &[insert(1, number)]).unwrap();
        store.maintain().unwrap();
        killed(&path, &copy);
        damage(&copy, "cut", &mut Rng::with_seed(1));
        if let Err(error) = SqliteStore::lost(&copy) {
            assert!(matches!(error, OpenError::StaleWal(_)), "{error}");
            stale += 1;
            let left = left_in(&copy);
            assert_eq!(left.len() as u64, number);
        }
    }
    assert!(stale > 0);
}

#[test]
fn a_note_that_cannot_be_written_is_told_once() {
    let disk = faulty_disk::disk();
    let mut store = faulty_disk::open_bare(&disk, 8).unwrap();
    let epoch = store.begin().unwrap();
    assert_eq!(store.notices(), []);
    for first in [1, 6] {
        disk.fail(Moment::next(Call::Write, Kind::Note), Fault::Error);
        commit_each(&mut store, epoch, first..=first + 2);
        let told = store.notices();
        assert!(
            matches!(&told[..], [Notice::NoteFailed { note, .. }] if note.ends_with("timers.db-acknowledged")),
            "{told:?}"
        );
        commit_each(&mut store, epoch, first + 3..=first + 3);
        assert_eq!(store.notices(), []);
        disk.mend();
        commit_each(&mut store, epoch, first + 4..=first + 4);
        assert_eq!(store.notices(), []);
    }
}

fn open_small(disk: &Disk) -> Result<SqliteStore, OpenError> {
    faulty_disk::open_as(disk, |options| {
        options.long_wal = 8;
        options.reserve = (0, 0);
        options.vacuum.min = 1;
        options.vacuum.step = 4;
    })
}

/// The files that a kill leaves, with the WAL damaged.
fn left(disk: &Disk, way: &str, rng: &mut Rng) -> Disk {
    let left = [
        faulty_disk::FILE,
        faulty_disk::WAL,
        "timers.db-acknowledged",
    ];
    let left = left.into_iter().filter_map(|name| {
        let bytes = disk.read(name)?;
        let bytes = match way != "nothing" && name == faulty_disk::WAL {
            true => damaged(bytes, way, rng)?,
            false => bytes,
        };
        Some((name, bytes))
    });
    faulty_disk::disk_of(Content::of(left))
}

/// Inserts and settles timers, copies the WAL and gives pages back, until the process is killed. Returns the acknowledged timers that are not settled,
/// including the given ones.
fn live(disk: &Disk, mut acknowledged: Vec<Id>) -> Vec<Id> {
    for life in 0..3 {
        let Ok(mut store) = open_small(disk) else {
            return acknowledged;
        };
        let Ok(epoch) = store.begin() else {
            return acknowledged;
        };
        for number in 1..=6 {
            let numbers = (0..4).map(|it| life * 24 + number * 4 + it);
            let mut steps: Vec<_> = numbers.clone().map(|it| insert(epoch, it)).collect();
            let mut left = acknowledged.clone();
            // In the second life, most timers are settled, and the file shrinks.
            if life == 1 {
                let rows = store.load("mail", RowCursor::START, i64::MAX, PageLimit::rows(100));
                let Ok(rows) = rows else { return acknowledged };
                left.retain(|id| !rows.iter().take(10).any(|row| row.id == *id));
                steps = rows.into_iter().take(10).map(Op::Settle).collect();
            } else {
                left.extend(numbers.map(|it| Id::new(epoch, it).unwrap()));
            }
            // A process that is killed while it writes the note has not answered.
            if store.commit(number, &steps).is_err() || disk.cut().is_some() {
                return acknowledged;
            }
            acknowledged = left;
            // The second call runs idle.
            if store.maintain().is_err() || store.maintain().is_err() {
                return acknowledged;
            }
        }
    }
    acknowledged
}

fn is_sound(disk: &Disk) -> bool {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
    let path = disk.path(faulty_disk::FILE);
    let file = rusqlite::Connection::open_with_flags_and_vfs(path, flags, disk.vfs()).unwrap();
    let said = file.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    said == Ok("ok".to_owned())
}

#[test]
fn a_wal_that_is_damaged_after_a_kill_at_any_moment_is_noticed() {
    let whole = faulty_disk::disk();
    let all = live(&whole, Vec::new());
    assert!(all.len() >= 24, "{} are left", all.len());
    let mut rng = Rng::with_seed(5);
    let (mut refused, mut torn, mut opened) = (0, 0, 0);
    let cut = |disk: &Disk, after, rng: &mut Rng| {
        disk.cut_at(faulty_disk::any_call(after), rng.bool());
    };
    for after in 0..whole.calls() {
        let mut disk = faulty_disk::disk();
        cut(&disk, after, &mut rng);
        let mut acknowledged = live(&disk, Vec::new());
        if rng.bool() {
            // The process is killed twice.
            let found = ids(&mut open_small(&left(&disk, "nothing", &mut rng)).unwrap());
            disk = left(&disk, "nothing", &mut rng);
            cut(&disk, rng.u64(0..60), &mut rng);
            acknowledged = live(&disk, found);
        }
        let at = disk.cut();
        for way in ["nothing"].into_iter().chain(WAYS) {
            // All ways are tried only at some of the moments.
            if way != "nothing" && rng.u8(..3) > 0 {
                continue;
            }
            let disk = left(&disk, way, &mut rng);
            match open_small(&disk) {
                Ok(mut store) => {
                    opened += 1;
                    let ids = ids(&mut store);
                    let is_there = |id: &Id| ids.binary_search(id).is_ok();
                    // An unanswered commit may have settled some more.
                    let gone = acknowledged.iter().filter(|id| !is_there(id)).count();
                    assert!(
                        gone <= 10 && (gone == 0 || at.is_some()),
                        "{way}, {after}, at {at:?}: {gone} are gone"
                    );
                    drop(store);
                    assert!(is_sound(&disk), "{way}, {after}, at {at:?}");
                }
                Err(OpenError::AcknowledgedLost(loss)) => {
                    refused += 1;
                    torn += u64::from(matches!(loss, Loss::Commits { is_torn: true, .. }));
                    assert_ne!(way, "nothing", "at {at:?}: {loss}");
                }
                Err(error) => panic!("{way}, {after}, at {at:?}: {error}"),
            }
        }
    }
    println!("{refused} refused, of which {torn} may be torn, {opened} opened");
    assert!(torn > 10 && refused > torn + 10 && opened > refused);
}

#[test]
fn a_checkpoint_that_a_reader_has_limited_is_not_completed() {
    let (_folder, path, copy) = paths();
    let mut store = filled(&path, 4);
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader
        .execute_batch("BEGIN; SELECT * FROM timers LIMIT 1")
        .unwrap();
    let epoch = 1;
    for number in 5..=40 {
        store.commit(number, &[insert(epoch, number)]).unwrap();
        store.maintain().unwrap();
    }
    killed_without_wal(&path, &copy);
    let loss = lost(&copy);
    assert!(
        matches!(loss, Loss::Commits { is_torn: true, .. }),
        "{loss:?}"
    );
    // The next checkpoint completes without the reader.
    drop(reader);
    store.commit(41, &[insert(epoch, 41)]).unwrap();
    store.maintain().unwrap();
    killed_without_wal(&path, &copy);
    assert_eq!(left_in(&copy).len(), 41);
}

#[test]
fn a_wal_that_is_lost_after_a_backup_was_restored_is_noticed() {
    let folder = Folder::new();
    let (path, copy) = (folder.file("timers.db"), folder.file("killed.db"));
    let restored = folder.file("restored.db");
    drop(filled(&path, 3));
    backup(&path, &restored).unwrap();
    let (mut store, epoch) = begun(&restored);
    commit_each(&mut store, epoch, 10..=12);
    killed(&restored, &copy);
    assert_eq!(left_in(&copy).len(), 6);
    killed_without_wal(&restored, &copy);
    lost(&copy);
}

#[test]
fn a_wal_that_is_put_back_after_its_loss_was_accepted_is_not_read() {
    let (_folder, path, copy) = paths();
    // The first time, the tables are in the WAL, and the second time in the file.
    for _ in 0..2 {
        let store = filled(&path, 10);
        killed(&path, &copy);
        drop(store);
        let wal = fs::read(beside(&copy, "-wal")).unwrap();
        fs::remove_file(beside(&copy, "-wal")).unwrap();
        let mut store = open(&copy, true).unwrap();
        let epoch = store.begin().unwrap();
        commit_each(&mut store, epoch, 1..=2);
        let left = ids(&mut store);
        drop(store);
        fs::write(beside(&copy, "-wal"), wal).unwrap();
        assert_eq!(left_in(&copy), left);
    }
}

/// A disk with this file and the note of another disk.
fn without_wal(disk: &Disk, file: Vec<u8>) -> Disk {
    let note = disk.read("timers.db-acknowledged").unwrap();
    let files = [(faulty_disk::FILE, file), ("timers.db-acknowledged", note)];
    faulty_disk::disk_of(Content::of(files))
}

#[test]
fn no_id_comes_twice_though_no_note_could_be_written() {
    let disk = faulty_disk::disk();
    faulty_disk::open_bare(&disk, 8).unwrap().begin().unwrap();
    for _ in 0..2 {
        disk.fail(Moment::next(Call::Write, Kind::Note), Fault::Error);
        let mut store = faulty_disk::open_bare(&disk, 1_000).unwrap();
        let epoch = store.begin().unwrap();
        store.commit(1, &[insert(epoch, 1)]).unwrap();
        // The process is killed, and its WAL is lost.
        let after = without_wal(&disk, disk.read(faulty_disk::FILE).unwrap());
        let again = faulty_disk::open_as(&after, |options| options.accept_loss = true);
        assert!(again.unwrap().begin().unwrap() > epoch);
        disk.mend();
    }
}

#[test]
fn no_id_of_an_epoch_begun_by_a_commit_comes_twice() {
    for fails in [false, true] {
        let disk = faulty_disk::disk();
        let mut store = faulty_disk::open_bare(&disk, 1_000).unwrap();
        store.begin().unwrap();
        if fails {
            disk.fail(Moment::next(Call::Write, Kind::Note), Fault::Error);
        }
        let begun = store.commit(1, &[Op::NextEpoch(0)]).unwrap();
        let [Outcome::Epoch(epoch)] = begun[..] else {
            panic!("{begun:?}");
        };
        store.commit(2, &[insert(epoch, 1)]).unwrap();
        // The process is killed, and its WAL is lost.
        let after = without_wal(&disk, disk.read(faulty_disk::FILE).unwrap());
        let again = faulty_disk::open_as(&after, |options| options.accept_loss = true);
        assert!(again.unwrap().begin().unwrap() > epoch, "{fails}");
    }
}

#[test]
fn a_commit_that_changes_nothing_hides_no_loss() {
    let (_folder, path, copy) = paths();
    let mut store = filled(&path, 3);
    store.commit(4, &[Op::Discard(Id::NONE)]).unwrap();
    killed_without_wal(&path, &copy);
    let loss = lost(&copy);
    assert!(matches!(loss, Loss::Commits { last: 4, .. }), "{loss:?}");
}

#[test]
fn an_older_file_is_refused_and_a_backup_or_a_new_file_is_not() {
    let folder = Folder::new();
    let (path, old) = (folder.file("timers.db"), folder.file("old.db"));
    let copy = folder.file("copy.db");
    drop(filled(&path, 3));
    fs::copy(&path, &old).unwrap();
    drop(filled(&path, 0));
    backup(&path, &copy).unwrap();
    fs::copy(&old, &path).unwrap();
    let loss = lost(&path);
    assert!(
        matches!(
            loss,
            Loss::OlderFile {
                opening: 1,
                acknowledged: 2,
                ..
            }
        ),
        "{loss:?}"
    );
    assert_eq!(open(&path, true).unwrap().begin().unwrap(), 3);
    // As the guide says, with the leftover note of an opening that was killed.
    let killed_note = folder.file("killed.db");
    let store = filled(&path, 3);
    killed(&path, &killed_note);
    drop(store);
    fs::remove_file(beside(&path, "-wal")).unwrap_or_default();
    fs::copy(
        beside(&killed_note, "-acknowledged"),
        beside(&path, "-acknowledged"),
    )
    .unwrap();
    fs::rename(&copy, &path).unwrap();
    assert!(open(&path, false).unwrap().begin().unwrap() > 4_096);
    fs::remove_file(&path).unwrap();
    let mut new = open(&path, false).unwrap();
    assert!(ids(&mut new).is_empty());
    assert!(new.begin().unwrap() > 4_097);
}

#[test]
fn a_note_that_is_missing_blank_partial_or_damaged() {
    let (_folder, path, copy) = paths();
    let store = filled(&path, 3);
    let note = beside(&copy, "-acknowledged");
    for way in ["missing", "blank", "partial", "damaged"] {
        killed(&path, &copy);
        fs::remove_file(beside(&copy, "-wal")).unwrap();
        match way {
            "missing" => fs::remove_file(&note).unwrap(),
            "blank" => fs::write(&note, [0; 72]).unwrap(),
            "partial" => fs::write(&note, &fs::read(&note).unwrap()[..53]).unwrap(),
            _ => {
                let mut bytes = fs::read(&note).unwrap();
                bytes[20] ^= 1;
                fs::write(&note, bytes).unwrap();
            }
        }
        match open(&copy, false) {
            // As in the time before notes.
            Ok(mut open) => {
                assert_ne!(way, "damaged");
                assert_eq!(open.begin().unwrap(), 1);
            }
            Err(OpenError::AcknowledgedLost(Loss::Unknown { .. })) => {
                assert_eq!(way, "damaged");
                assert!(open(&copy, true).unwrap().begin().unwrap() > 4_096);
            }
            Err(error) => panic!("{way}: {error}"),
        }
    }
    drop(store);
}

#[test]
fn a_copy_that_was_broken_off_is_told() {
    let disk = faulty_disk::disk();
    let mut store = faulty_disk::open_bare(&disk, 8).unwrap();
    let epoch = store.begin().unwrap();
    disk.fail(Moment::next(Call::Sync, Kind::Main), Fault::Error);
    let has_failed = (1..100).any(|number| {
        faulty_disk::is_done(store.commit(number, &[insert(epoch, number)]));
        store.maintain().is_err()
    });
    assert!(has_failed);
    drop(store);
    let disk = without_wal(&disk, disk.read(faulty_disk::FILE).unwrap());
    match faulty_disk::open_bare(&disk, 8) {
        Err(OpenError::AcknowledgedLost(Loss::Commits { is_torn: true, .. })) => {}
        other => panic!("{other:?}"),
    }
    // A damaged page is not a loss that can be accepted.
    let mut damaged = disk.read(faulty_disk::FILE).unwrap();
    let half = damaged.len() / 2;
    damaged[half..].fill(7);
    let disk = without_wal(&disk, damaged);
    let accepted = faulty_disk::open_as(&disk, |options| options.accept_loss = true);
    let refused = accepted.unwrap_err();
    assert!(matches!(refused, OpenError::Corrupt(_)), "{refused:?}");
}

#[test]
fn a_note_that_a_power_cut_has_left_behind_refuses_nothing() {
    let (_folder, path, copy) = paths();
    let (mut store, epoch) = begun(&path);
    let mut notes = Vec::new();
    for number in 1..=60 {
        store.commit(number, &[insert(epoch, number)]).unwrap();
        notes.push(fs::read(beside(&path, "-acknowledged")).unwrap());
        // The WAL is restarted every few commits.
        store.maintain().unwrap();
    }
    let all = ids(&mut store);
    for note in notes {
        killed(&path, &copy);
        fs::write(beside(&copy, "-acknowledged"), note).unwrap();
        assert_eq!(left_in(&copy), all);
    }
}
