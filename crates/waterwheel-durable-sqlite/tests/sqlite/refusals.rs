//! Each way in which a file is refused, and whether its error says the cause and what to do. An error is often logged by its text alone, without its sources.

use std::fs::{self, Permissions};
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;
use waterwheel_durable_sqlite::{OpenError, Reader, SqliteStore};

use crate::folder::*;

/// A refused path: how it comes about, and what the error must say about the cause and the remedy.
struct Case {
    name: &'static str,
    make: fn(&Folder) -> PathBuf,
    cause: &'static str,
    cure: &'static str,
}

fn closed(folder: &Folder) -> PathBuf {
    let path = folder.file("timers.db");
    drop(SqliteStore::open(&path).unwrap());
    path
}

fn written(folder: &Folder, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.file("timers.db");
    fs::write(&path, bytes).unwrap();
    path
}

/// A closed store in which a statement has changed something.
fn changed(folder: &Folder, sql: &str) -> PathBuf {
    let path = closed(folder);
    execute(&path, sql);
    path
}

/// A closed store with these bytes at this offset.
fn patched(folder: &Folder, at: usize, with: &[u8]) -> PathBuf {
    let path = closed(folder);
    let mut bytes = fs::read(&path).unwrap();
    bytes[at..at + with.len()].copy_from_slice(with);
    fs::write(&path, bytes).unwrap();
    path
}

const RESTORE: &str = "restore a backup";

/// A statement that changes a closed store, and what the error must say: the cause, and what to do.
const CHANGED: [(&str, &str, &str); 9] = [
    (
        "PRAGMA user_version = 99",
        "version 99, but this program supports versions up to 1",
        "use a program that is at least as new",
    ),
    (
        "PRAGMA user_version = 0",
        "there is no version 0 of the tables",
        RESTORE,
    ),
    (
        "PRAGMA application_id = 0x5757746d; PRAGMA user_version = 2",
        "written by a development version from before the first release",
        "start with a new file",
    ),
    (
        "DROP TABLE moved",
        "the file is damaged: no such table: moved",
        RESTORE,
    ),
    (
        "DELETE FROM meta",
        "the file is damaged: table `meta`: the row `epoch` is missing",
        RESTORE,
    ),
    (
        "UPDATE meta SET value = 'x' WHERE key = 'epoch'",
        "the file is damaged: table `meta`, row `epoch`: the column `value` has text",
        RESTORE,
    ),
    (
        "INSERT INTO handlers VALUES (1, x'ff')",
        "the file is damaged: table `handlers`, row 1: the column `name` has bytes",
        RESTORE,
    ),
    (
        "INSERT INTO handlers VALUES (7, 'mail')",
        "the file is damaged: table `handlers`: the row 1 is missing",
        RESTORE,
    ),
    (
        "INSERT INTO key_changes VALUES (1, x'00')",
        "the file is damaged: the index of the keys",
        RESTORE,
    ),
];

const CASES: &[Case] = &[
    Case {
        name: "the folder is missing",
        make: |folder| folder.file("missing/timers.db"),
        cause: "No such file or directory",
        cure: "correct the path, or create its directory",
    },
    Case {
        name: "a file is taken for the folder",
        make: |folder| written(folder, "").join("timers.db"),
        cause: "Not a directory",
        cure: "correct the path, or create its directory",
    },
    Case {
        name: "it is a folder",
        make: |folder| folder.file("."),
        cause: "is a directory",
        cure: "give the path of a file in it",
    },
    Case {
        name: "no database",
        make: |folder| written(folder, "Dear diary, ".repeat(1_000)),
        cause: "not a SQLite database",
        cure: RESTORE,
    },
    Case {
        name: "another application's",
        make: |folder| {
            let path = folder.file("timers.db");
            execute(&path, "CREATE TABLE mine (id)");
            path
        },
        cause: "of another application",
        cure: "use a separate file for the timers",
    },
    Case {
        name: "a page size that there is not",
        make: |folder| patched(folder, 16, &[0x12, 0x34]),
        cause: "not a SQLite database",
        cure: RESTORE,
    },
    Case {
        name: "damaged",
        make: |folder| patched(folder, 100, &[0xa5; 3_000]),
        cause: "the file is damaged: database disk image is malformed",
        cure: RESTORE,
    },
    Case {
        name: "acknowledged work is gone",
        make: |folder| {
            let path = folder.file("timers.db");
            let _store = begun(&path);
            // As a kill leaves the file, without its WAL.
            let killed = folder.file("killed.db");
            fs::copy(&path, &killed).unwrap();
            let note = folder.file("timers.db-acknowledged");
            fs::copy(note, folder.file("killed.db-acknowledged")).unwrap();
            killed
        },
        cause: "the `-wal` is missing, truncated or damaged, and commits",
        cure: "to continue without what is gone, open the file with `accept_loss(true)`",
    },
    Case {
        name: "an older file",
        make: |folder| {
            let path = closed(folder);
            let old = fs::read(&path).unwrap();
            drop(begun(&path));
            fs::write(&path, old).unwrap();
            path
        },
        cause: "it has been opened 0 times, but commits were acknowledged after it was opened for the 1st time",
        cure: "put the newer file back, together with its `-wal`; to continue",
    },
    Case {
        name: "a damaged note",
        make: |folder| {
            let path = closed(folder);
            fs::write(folder.file("timers.db-acknowledged"), "Dear diary, ").unwrap();
            path
        },
        cause: "it is not known whether acknowledged work is gone",
        cure: "put the original `-acknowledged` of the file back if you have it",
    },
    Case {
        name: "its WAL alone",
        make: |folder| {
            fs::write(folder.file("timers.db-wal"), [1; 100]).unwrap();
            folder.file("timers.db")
        },
        cause: "the file is damaged: it is empty or missing, but its `-wal` is not",
        cure: RESTORE,
    },
];

/// Returns the text of an error: a single line with these words, and without those of SQLite's binding.
#[track_caller]
fn says(name: &str, error: &OpenError, words: &[&str]) {
    let text = error.to_string();
    println!("{name}: {text}");
    for word in words {
        assert!(text.contains(word), "{name}: no {word:?} in {text:?}");
    }
    for foreign in [
        "Conversion error",
        "Invalid column",
        "index:",
        "Query returned",
        "out of range at",
    ] {
        assert!(!text.contains(foreign), "{name}: {text}");
    }
    assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
}

#[test]
fn each_refusal_says_its_cause_and_its_cure_and_changes_nothing() {
    for case in CASES {
        let folder = Folder::new();
        is_refused(case.name, &(case.make)(&folder), &[case.cause, case.cure]);
    }
    for (sql, cause, cure) in CHANGED {
        let folder = Folder::new();
        is_refused(sql, &changed(&folder, sql), &[cause, cure]);
    }
}

fn is_refused(name: &str, path: &Path, words: &[&str]) {
    let before = fs::read(path).ok();
    says(name, &SqliteStore::open(path).unwrap_err(), words);
    assert!(fs::read(path).ok() == before, "{name}");
}

#[test]
fn a_file_that_is_held_or_locked_says_so() {
    let folder = Folder::new();
    let path = closed(&folder);
    let store = SqliteStore::open(&path).unwrap();
    let process = format!("process {} has the file open", std::process::id());
    let refused = || SqliteStore::open(&path).unwrap_err();
    let close = "close the other store of this process first";
    let words = [&process, "timers.db-lock", close, "or open another file"];
    says("held", &refused(), &words);
    let holder = std::process::id();
    assert!(matches!(refused(), OpenError::Held { process: Some(it), .. } if it == holder));
    drop(store);
    let other = Connection::open(&path).unwrap();
    let exclusive =
        "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE meta SET value = value";
    other.execute_batch(exclusive).unwrap();
    let words = ["kept the file locked", "locked", "try again"];
    says("busy", &refused(), &words);
    drop(other);
    fs::remove_file(folder.file("timers.db-lock")).unwrap();
    fs::create_dir(folder.file("timers.db-lock")).unwrap();
    let words = ["timers.db-lock", "delete it while no process"];
    says("a folder for a lock", &refused(), &words);
}

#[test]
fn a_reader_says_why_it_reads_nothing() {
    let (folder, other) = (Folder::new(), Folder::new());
    for (name, path, words) in [
        (
            "older",
            changed(&other, "PRAGMA user_version = 0"),
            ["tables of version 0", "start a service of the same release"],
        ),
        (
            "missing",
            folder.file("missing.db"),
            ["No such file or directory", "correct the path"],
        ),
        (
            "empty",
            written(&folder, ""),
            ["the file is empty", "start a service on it first"],
        ),
    ] {
        says(name, &Reader::open(path).unwrap_err(), &words);
    }
}

/// Cases that depend on the user and the file system run in another process.
#[cfg(target_os = "linux")]
mod elsewhere {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    use super::*;

    const PATH: &str = "WATERWHEEL_PATH";
    const OTHER: u32 = 65_534;

    /// The path that this process must open, if it is the other one.
    fn given() -> Option<PathBuf> {
        std::env::var_os(PATH).map(PathBuf::from)
    }

    /// A directory that another user can access, deleted when the test ends.
    struct Shared(PathBuf);

    impl Shared {
        fn new() -> Shared {
            let name = format!("waterwheel-refusals-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir(&folder).unwrap();
            mode(&folder, 0o755);
            Shared(folder)
        }
    }

    impl Drop for Shared {
        fn drop(&mut self) {
            let _: std::io::Result<()> = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_user_without_rights_is_told_of_them() {
        let test = "refusals::elsewhere::a_user_without_rights_is_told_of_them";
        if let Some(path) = given() {
            let refused = SqliteStore::open(&path).unwrap_err();
            let words = [
                "Permission denied",
                "give the user of this process access to",
            ];
            says("rights", &refused, &words);
            return;
        }
        let shared = Shared::new();
        let folder = &shared.0;
        if folder.metadata().unwrap().uid() != 0 {
            println!("not tried: another user is needed");
            return;
        }
        let program = folder.join("test");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let path = folder.join("timers.db");
        let run = || {
            let mut other = Command::new(&program);
            other
                .args(["--exact", "--nocapture", test])
                .env(PATH, &path);
            assert!(other.uid(OTHER).gid(OTHER).status().unwrap().success());
        };
        // Nothing may be created in the directory.
        run();
        // The file may not be read, or may be read but not written to.
        drop(SqliteStore::open(&path).unwrap());
        let lock = folder.join("timers.db-lock");
        for rights in [0o000, 0o444] {
            mode(&path, rights);
            chown(&lock, Some(OTHER), Some(OTHER)).unwrap();
            run();
        }
        // The directory may be written to, but not the file.
        mode(folder, 0o777);
        run();
        mode(&lock, 0o000);
        chown(&lock, Some(0), Some(0)).unwrap();
        run();
    }

    #[test]
    fn a_read_only_or_full_file_system_is_named() {
        let test = "refusals::elsewhere::a_read_only_or_full_file_system_is_named";
        if let Some(path) = given() {
            let refused = SqliteStore::open(&path).unwrap_err();
            let words = match path.to_string_lossy().contains("full") {
                true => ["no storage space", "free some space on its disk"],
                false => ["Read-only file system", "mount its file system"],
            };
            says("elsewhere", &refused, &words);
            return;
        }
        for (name, after) in [
            ("read-only", "mount -o remount,ro \"$0\""),
            (
                "full",
                "rm \"$0\"/timers.db-shm \"$0\"/timers.db-reserve; cat /dev/zero > \"$0\"/rest 2> /dev/null; true",
            ),
        ] {
            let folder = Folder::new();
            let from = closed(&folder);
            let point = folder.file(name);
            fs::create_dir(&point).unwrap();
            fs::write(folder.file("timers.db-shm"), "").unwrap();
            let shell = |script: &str| {
                let mut command = Command::new("unshare");
                command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
                command.arg(&point);
                command
            };
            let mount = "mount -t tmpfs -o size=8m tmpfs \"$0\"";
            let probe = shell(mount).stderr(std::process::Stdio::null()).status();
            if !probe.is_ok_and(|status| status.success()) {
                println!("not tried: no file system can be mounted here");
                return;
            }
            let mut again = shell(&format!(
                "{mount} && cp \"$1\"* \"$0\" && {after} && shift && exec \"$@\""
            ));
            again.arg(from).arg(std::env::current_exe().unwrap());
            again.args(["--exact", "--nocapture", test]);
            again.env(PATH, point.join("timers.db"));
            assert!(again.status().unwrap().success(), "{name}");
        }
    }
}
