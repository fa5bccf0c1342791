//! Is a copy that is made during commits whole, and the state at one point in time?

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use waterwheel_durable_core::store::{
    DeadLetters, Due, Id, Op, PageLimit, RowCursor, Scope, Store,
};
use waterwheel_durable_sqlite::{
    BackupError, EPOCHS_AHEAD, OpenError, OpenOptions, Reader, SqliteStore, backup,
};

use crate::folder::*;
use crate::rows::*;

/// The names in a folder.
fn names(folder: &Folder) -> Vec<String> {
    let files = fs::read_dir(folder.file(".")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

#[test]
fn a_copy_made_under_load_is_a_state_that_there_was() {
    const WINDOW: u64 = 10;
    let (folder, path, mut store) = new_store();
    // These make the copy take its time.
    let many = (0..20_000).map(|number| insert_second(row(1 << 30 | number, "other", 7_000_000)));
    store.commit(1, &many.collect::<Vec<_>>()).unwrap();
    let (is_over, committed) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // After each commit, the last ten timers are there.
            for number in 2.. {
                let mut steps = vec![insert_second(row(number, "mail", number as i64))];
                if let Some(old) = number.checked_sub(WINDOW).filter(|old| *old >= 2) {
                    steps.push(Op::Settle(row(old, "mail", old as i64)));
                }
                store.commit(number, &steps).unwrap();
                committed.store(number, Ordering::SeqCst);
                store.maintain().unwrap();
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        // Also sets this if an assertion fails: otherwise the scope waits for the thread.
        let ends = Ends(&is_over);
        let (mut copies, mut beside) = (0, 0);
        while copies < 5 || beside < 20 {
            let target = folder.file(&format!("copy-{copies}.db"));
            let before = committed.load(Ordering::SeqCst);
            let made = backup(&path, &target).unwrap();
            let after = committed.load(Ordering::SeqCst);
            assert_eq!(made.path, fs::canonicalize(&target).unwrap());
            assert_eq!(made.bytes, fs::metadata(&target).unwrap().len());
            let mut copy = SqliteStore::open(&target).unwrap();
            assert!(copy.begin().unwrap() > made.epoch);
            let rows = copy.load("mail", RowCursor::START, i64::MAX, PageLimit::rows(100));
            let ids: Vec<_> = rows
                .unwrap()
                .iter()
                .map(|row| row.id.get() & 0xffff_ffff)
                .collect();
            if before > 2 + WINDOW {
                assert_eq!(ids.len() as u64, WINDOW);
                let last = ids[ids.len() - 1];
                assert!(ids.windows(2).all(|two| two[1] == two[0] + 1), "{ids:?}");
                // One commit may be done and not yet noted.
                assert!(
                    before <= last && last <= after + 1,
                    "{before} {last} {after}"
                );
                beside += after - before;
            }
            let other = copy.load("other", RowCursor::START, i64::MAX, PageLimit::rows(30_000));
            assert_eq!(other.unwrap().len(), 20_000);
            copies += 1;
        }
        drop(ends);
    });
}

/// Ends a thread when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_copy_has_all_that_its_file_has() {
    let (folder, path, mut store, _) = filled(1_000);
    let end = Due::from_millis(i64::MAX);
    let read = |path: &Path| {
        let reader = Reader::open(path).unwrap();
        (
            reader
                .pending(&Scope::All, Reader::START, end, PageLimit::rows(9_999))
                .unwrap(),
            reader
                .dead(&Scope::All, Id::NONE, PageLimit::rows(9_999))
                .unwrap(),
            reader.count(NOW).unwrap(),
        )
    };
    let before = read(&path);
    // Space that was used and is free: the copy omits it.
    let large = (0..500).map(|number| {
        let mut row = row(5_000 + number, "mail", 5);
        row.payload = vec![7; 4_000].into();
        row
    });
    let large: Vec<_> = large.collect();
    let steps: Vec<_> = large.iter().cloned().map(insert_second).collect();
    store.commit(4, &steps).unwrap();
    let steps: Vec<_> = large.into_iter().map(Op::Settle).collect();
    store.commit(5, &steps).unwrap();
    let is_copied_to = |name| {
        let target = folder.file(name);
        let made = backup(&path, &target).unwrap();
        assert_eq!(made.epoch, 1 + EPOCHS_AHEAD);
        assert!(read(&target) == before, "{name}");
        let extent = Reader::open(&path).unwrap().extent().unwrap();
        assert!(extent.free_bytes > 1_000_000);
        assert!(made.bytes + 1_000_000 < extent.used_bytes, "{name}");
    };
    // All commits are first in the WAL, and then in the file.
    is_copied_to("held.db");
    drop(store);
    is_copied_to("free.db");
}

#[test]
fn a_restored_copy_gives_no_id_again() {
    let (folder, path, mut store, _) = filled(1_000);
    let copy = folder.file("copy.db");
    backup(&path, &copy).unwrap();
    drop(store);
    // The service continues through some restarts.
    let mut later = 0;
    for _ in 0..3 {
        store = SqliteStore::open(&path).unwrap();
        later = store.begin().unwrap();
        let id = Id::new(later, 1).unwrap();
        let row = waterwheel_durable_core::store::Row {
            id,
            ..row(1, "mail", 5)
        };
        store.commit(1, &[insert_second(row)]).unwrap();
        drop(store);
    }
    for gone in ["timers.db", "timers.db-wal", "timers.db-shm"] {
        fs::remove_file(folder.file(gone)).unwrap();
    }
    fs::rename(&copy, &path).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    assert!(store.begin().unwrap() > later);
    let dead = DeadLetters::all(&mut store, Scope::All).unwrap();
    assert!(!dead.is_empty());
}

/// Opens a file as a store, `TENS` times ten minutes after the start of 2027.
fn opened<const TENS: u64>(path: &Path) -> SqliteStore {
    let options = OpenOptions {
        now: || UNIX_EPOCH + Duration::from_secs(1_798_761_600 + TENS * 600),
        ..OpenOptions::DEFAULT
    };
    SqliteStore::open_with_options(path, &options).unwrap()
}

#[test]
fn a_copy_that_is_restored_twice_gives_no_id_again() {
    let (folder, path, mut store, _) = filled(1_000);
    let copy = folder.file("copy.db");
    let clean = |epoch: u64| Some(epoch.to_string().into_bytes().into());
    store
        .commit(99, &[Op::Set("clean".into(), clean(1))])
        .unwrap();
    let made = backup(&path, &copy).unwrap();
    drop(store);
    let restored = |name: &str| {
        let path = folder.file(name);
        fs::copy(&copy, &path).unwrap();
        path
    };
    let first = restored("first.db");
    let mut store = opened::<0>(&first);
    let epoch = store.begin().unwrap();
    assert!(epoch > made.epoch, "{epoch}");
    // The distance to the last clean shutdown is unchanged.
    let settings = store.settings().unwrap();
    let ended = settings.iter().find(|it| &*it.name == "clean").unwrap();
    assert_eq!(Some(&ended.value), clean(epoch - 1).as_ref());
    drop(store);
    // From then on the epoch is counted, whatever the time is.
    assert_eq!(opened::<1_000>(&first).begin().unwrap(), epoch + 1);
    assert_eq!(opened::<0>(&first).begin().unwrap(), epoch + 2);
    let second = opened::<3>(&restored("second.db")).begin().unwrap();
    assert_eq!(second, epoch + 3);
    // A copy of a restored file is ahead of it, whatever the time is.
    let again = folder.file("again.db");
    backup(&first, &again).unwrap();
    let third = opened::<0>(&again).begin().unwrap();
    assert_eq!(third, epoch + 2 + EPOCHS_AHEAD + 1);
    // A clock that is far off is not trusted.
    let wrong = opened::<4_000_000>(&restored("wrong.db")).begin();
    assert_eq!(wrong.unwrap(), made.epoch + 1);
}

#[test]
fn a_copy_is_as_far_from_the_last_clean_end_as_its_file() {
    let (folder, path, mut store) = new_store();
    let epoch = 1;
    // The values that the engine stores at a clean shutdown, and for epochs that begin after it.
    for (commit, drawn) in [(1, ""), (2, " 12")] {
        let clean = |epoch: u64| Some(format!("{epoch}{drawn}").into_bytes().into());
        let others = Op::Set("cleaner".into(), Some([7].into()));
        let steps = [Op::Set("clean".into(), clean(epoch)), others];
        store.commit(commit, &steps).unwrap();
        let copy = folder.file(&format!("copy {commit}.db"));
        let made = backup(&path, &copy).unwrap();
        let settings = Reader::open(&copy).unwrap().settings().unwrap();
        assert_eq!(Some(&settings[0].value), clean(made.epoch).as_ref());
        assert_eq!(&*settings[1].value, [7]);
    }
}

#[test]
fn a_copy_takes_no_name_that_is_taken() {
    let (folder, path, store, _) = filled(1_000);
    let target = folder.file("copy.db");
    for taken in ["copy.db", "copy.db-wal", "copy.db-journal"] {
        fs::write(folder.file(taken), "mine").unwrap();
        match backup(&path, &target) {
            Err(BackupError::Exists(what)) => assert!(what.ends_with(taken), "{what:?}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read_to_string(folder.file(taken)).unwrap(), "mine");
        fs::remove_file(folder.file(taken)).unwrap();
    }
    let partial = folder.file("copy.db-partial");
    fs::write(&partial, "mine").unwrap();
    match backup(&path, &target) {
        Err(BackupError::Partial(what)) => assert!(what.ends_with("copy.db-partial")),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(&partial).unwrap(), "mine");
    fs::remove_file(&partial).unwrap();
    // The file's own name is taken, too.
    assert!(matches!(backup(&path, &path), Err(BackupError::Exists(_))));
    backup(&path, &target).unwrap();
    drop(store);
}

#[test]
fn a_name_that_is_taken_meanwhile_is_left_to_its_file() {
    let (folder, path, store, _) = filled(1_000);
    for (round, is_taken) in (0..1_000).zip([false, true].into_iter().cycle()) {
        let target = folder.file(&format!("{round}.db"));
        let partial = folder.file(&format!("{round}.db-partial"));
        let made = std::thread::scope(|scope| {
            let copy = scope.spawn(|| backup(&path, &target));
            while is_taken && !copy.is_finished() && !fs::exists(&partial).unwrap() {}
            let mine = fs::File::create_new(&target);
            let made = copy.join().unwrap();
            assert_eq!(made.is_ok(), mine.is_err());
            made
        });
        if let Err(error) = made {
            assert!(matches!(error, BackupError::Exists(_)), "{error:?}");
            assert!(fs::read(&target).unwrap().is_empty());
            assert!(!fs::exists(&partial).unwrap());
            if is_taken {
                break;
            }
        }
        assert!(round < 999, "it was never taken in between");
    }
    drop(store);
}

#[test]
fn of_two_copies_at_once_to_one_name_one_is_made() {
    let (folder, path, store, _) = filled(1_000);
    for round in 0..20 {
        let target = folder.file(&format!("{round}.db"));
        let made = std::thread::scope(|scope| {
            let copies = [(); 3].map(|()| scope.spawn(|| backup(&path, &target)));
            copies.map(|copy| copy.join().unwrap())
        });
        let made: Vec<_> = made.into_iter().filter_map(Result::ok).collect();
        assert_eq!(made.len(), 1);
        assert_eq!(made[0].epoch, 1 + EPOCHS_AHEAD);
        Reader::open(&target).unwrap();
    }
    drop(store);
}

#[test]
fn a_copy_that_fails_leaves_nothing() {
    let (folder, path, store, _) = filled(1_000);
    drop(store);
    // The last leaf of a table without a row number begins with this byte. No opening reads it.
    let mut bytes = fs::read(&path).unwrap();
    let leaf = bytes.chunks_mut(4_096).rev().find(|page| page[0] == 10);
    leaf.unwrap().fill(0xa5);
    fs::write(&path, &bytes).unwrap();
    let mut before = names(&folder);
    let target = folder.file("copy.db");
    let failed = backup(&path, &target).unwrap_err();
    assert!(matches!(failed, BackupError::Sqlite(_)), "{failed:?}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let refused = backup(folder.file("missing.db"), &target).unwrap_err();
    assert!(matches!(refused, BackupError::Open(OpenError::Io { .. })));
    let refused = backup(&path, folder.file("missing/copy.db")).unwrap_err();
    assert!(matches!(refused, BackupError::Io { .. }), "{refused:?}");
    let mut after = names(&folder);
    after.retain(|name| !name.ends_with("-wal") && !name.ends_with("-shm"));
    before.retain(|name| !name.ends_with("-wal") && !name.ends_with("-shm"));
    assert_eq!(after, before);
}

#[cfg(unix)]
#[test]
fn a_copy_has_the_rights_of_its_file() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path, store, _) = filled(1_000);
    drop(store);
    for mode in [0o600, 0o640] {
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let copy = folder.file(&format!("{mode}.db"));
        backup(&path, &copy).unwrap();
        let rights = fs::metadata(&copy).unwrap().permissions();
        assert_eq!(rights.mode() & 0o777, mode);
    }
}
