//! Files that are missing, damaged, newer, or not ours, and users without permissions.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use waterwheel_durable_core::store::Store;
use waterwheel_durable_sqlite::SqliteStore;

use crate::support::*;

const ALL: [&str; 12] = [
    "stats",
    "list --json",
    "show 7",
    "dead",
    "namespaces",
    "backup COPY",
    "cancel 7@7@mail",
    "cancel --handler mail",
    "redrive 7",
    "discard 7",
    "pause shop",
    "resume shop --wait 0.1",
];

/// Expects that each command refuses the file with these words, and leaves it unchanged.
fn is_refused(file: &Path, why: &str) {
    let before = fs::read(file).ok();
    let copy = file.with_file_name("copy.db");
    for line in ALL {
        let line = line.replace("COPY", copy.to_str().unwrap());
        let said = cli(file, &line);
        assert_eq!(said.out, "", "{line}");
        let said = said.failure();
        let name = format!("waterwheel: {}: ", file.display());
        assert!(said.starts_with(&name), "{line}: {said}");
        assert!(said.contains(why), "{line}: {said}");
        assert!(!copy.exists(), "{line}");
    }
    assert_eq!(fs::read(file).ok(), before);
}

#[test]
fn a_file_that_is_none_of_ours_is_refused_by_each_command() {
    let file = TimersFile::new();
    is_refused(&file, "No such file");
    assert!(!file.exists());
    is_refused(&file.sibling("missing/timers.db"), "No such file");
    is_refused(&file.sibling("."), "directory");
    fs::write(&*file, []).unwrap();
    is_refused(&file, "the file is empty");
    fs::write(&*file, "Dear diary, ".repeat(1_000)).unwrap();
    is_refused(&file, "not a SQLite database");
    for (sql, why) in [
        ("CREATE TABLE mine (id)", "another application"),
        ("PRAGMA user_version = 99", "version 99"),
        ("PRAGMA user_version = 0", "tables of version 0"),
    ] {
        let file = TimersFile::new();
        if sql.starts_with("PRAGMA") {
            drop(SqliteStore::open(&*file).unwrap());
        }
        let connection = Connection::open(&*file).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        is_refused(&file, why);
    }
}

#[test]
fn a_damaged_file_is_refused_by_each_command() {
    let file = TimersFile::filled();
    let mut bytes = fs::read(&*file).unwrap();
    // Everything but the header and the schema table.
    bytes[4_096..].fill(0xa5);
    fs::write(&*file, &bytes).unwrap();
    is_refused(&file, "damaged");
}

#[cfg(unix)]
mod rights {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    /// An ordinary user.
    const OTHER: u32 = 65_534;

    /// Runs the command as a user with no special permissions. If this is root, it uses another user.
    struct Other {
        file: TimersFile,
        is_root: bool,
    }

    impl Other {
        fn new() -> Other {
            let file = TimersFile::filled();
            let is_root = fs::metadata(file.sibling(".")).unwrap().uid() == 0;
            // The command's directory may not be accessible to the other user.
            let copy = file.sibling("command");
            fs::copy(env!("CARGO_BIN_EXE_waterwheel"), &copy).unwrap();
            set_mode(&copy, 0o755);
            set_mode(&file.sibling("."), 0o755);
            Other { file, is_root }
        }

        /// Gives each file this mode.
        fn set_mode(&self, mode: u32) {
            for name in ["timers.db", "timers.db-wal", "timers.db-shm"] {
                set_mode(&self.file.sibling(name), mode);
            }
        }

        fn cli(&self, line: &str) -> Said {
            let mut command = Command::new(self.file.sibling("command"));
            command.arg(&*self.file).args(words(line));
            if self.is_root {
                command.uid(OTHER).gid(OTHER);
            }
            run(command)
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_without_a_right_to_read_is_refused() {
        let other = Other::new();
        other.set_mode(0o000);
        for line in ["stats", "list", "cancel 7@7@mail", "pause shop"] {
            let said = other.cli(line).failure();
            assert!(said.contains("Permission denied"), "{line}: {said}");
        }
    }

    #[test]
    fn a_right_to_read_is_enough_to_read_and_not_to_send_commands() {
        let other = Other::new();
        if !other.is_root {
            // The owner has more permissions than that.
            return;
        }
        other.set_mode(0o644);
        let before = fs::read(&*other.file).unwrap();
        for is_held in [false, true] {
            let store = is_held.then(|| SqliteStore::open(&*other.file).unwrap());
            let text = other.cli("stats").well();
            assert!(text.contains("60 pending"), "{text}");
            // Only its owner may read the lock file.
            assert!(text.contains("its lock file cannot be read"), "{text}");
            other.cli("list").well();
            for line in ["pause shop", "redrive 10000000064", "cancel 7@7@mail"] {
                let said = other.cli(line).failure();
                let why = "the request cannot be written";
                assert!(said.contains(why), "{line}: {said}");
            }
            drop(store);
        }
        assert!(fs::read(&*other.file).unwrap() == before);
    }
}

#[test]
fn acknowledged_work_that_is_gone_is_refused_until_that_is_accepted() {
    let file = TimersFile::new();
    let killed = file.sibling("killed.db");
    drop(SqliteStore::open(&*file).unwrap());
    let store = reopened(&file);
    // As a kill leaves the file, without its WAL.
    for ending in ["", "-acknowledged"] {
        let from = file.sibling(&format!("timers.db{ending}"));
        fs::copy(from, file.sibling(&format!("killed.db{ending}"))).unwrap();
    }
    // Reading is allowed.
    let gone = "acknowledged work is gone";
    let said = cli(&killed, "namespaces");
    assert!(said.code == 0 && said.err.contains(gone), "{said:?}");
    let said = cli(&killed, "check");
    let in_check = said.out.contains(&format!("the file: {gone}"));
    assert!(said.code == 1 && in_check, "{said:?}");
    let said = cli(&killed, "pause default").failure();
    assert!(
        said.contains(gone) && said.contains("--accept-loss"),
        "{said}"
    );
    let said = cli(&killed, "pause default --accept-loss");
    assert_eq!(said.code, 0, "{said:?}");
    let goes_on = format!("continuing without the lost commits: {gone}");
    assert!(said.err.contains(&goes_on), "{said:?}");
    cli(&killed, "resume default").well();
    // The lost opening was the first one.
    assert_eq!(SqliteStore::open(&killed).unwrap().begin().unwrap(), 2);
    drop(store);
}
