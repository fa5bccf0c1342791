//! Files that are missing, damaged, newer, or none of ours, and users without rights.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use waterwheel_durable_core::store::Store;
use waterwheel_durable_sqlite::SqliteStore;

use crate::support::{Folder, cli, filled, words};

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

/// Each command refuses the file by these words, and leaves it as it is.
fn is_refused(folder: &Folder, file: &Path, why: &str) {
    let before = fs::read(file).ok();
    for line in ALL {
        let copy = folder.file("copy.db");
        let line = line.replace("COPY", copy.to_str().unwrap());
        let said = cli(file, words(&line));
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
    let folder = Folder::new();
    is_refused(&folder, &folder.file("missing.db"), "No such file");
    assert!(!folder.file("missing.db").exists());
    is_refused(&folder, &folder.file("missing/timers.db"), "No such file");
    is_refused(&folder, &folder.file("."), "directory");

    let (empty, text) = (folder.file("empty"), folder.file("text"));
    fs::write(&empty, []).unwrap();
    is_refused(&folder, &empty, "the file is empty");
    fs::write(&text, "Dear diary, ".repeat(1_000)).unwrap();
    is_refused(&folder, &text, "not a SQLite database");

    let other = folder.file("other.db");
    let connection = Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE mine (id)").unwrap();
    drop(connection);
    is_refused(&folder, &other, "another application");

    let newer = folder.file("newer.db");
    drop(SqliteStore::open(&newer).unwrap());
    let connection = Connection::open(&newer).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    is_refused(&folder, &newer, "version 99");
    let connection = Connection::open(&newer).unwrap();
    connection.pragma_update(None, "user_version", 0).unwrap();
    drop(connection);
    is_refused(&folder, &newer, "tables of version 0");
}

#[test]
fn a_damaged_file_is_refused_by_each_command() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    filled(&file);
    let mut bytes = fs::read(&file).unwrap();
    // All but the header and the table of tables.
    bytes[4_096..].fill(0xa5);
    fs::write(&file, &bytes).unwrap();
    is_refused(&folder, &file, "damaged");
}

#[cfg(unix)]
mod rights {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;
    use crate::support::{Said, run};

    /// An ordinary user.
    const OTHER: u32 = 65_534;

    /// Runs the command as a user who has no rights but those that all have. As root, that is another one.
    struct Other {
        folder: Folder,
        is_root: bool,
    }

    impl Other {
        fn new() -> Other {
            let folder = Folder::new();
            let is_root = fs::metadata(folder.file(".")).unwrap().uid() == 0;
            // The command lies in a folder that the other user may not have a right to.
            let copy = folder.file("command");
            fs::copy(env!("CARGO_BIN_EXE_waterwheel"), &copy).unwrap();
            set_mode(&copy, 0o755);
            set_mode(&folder.file("."), 0o755);
            Other { folder, is_root }
        }

        fn cli(&self, file: &Path, line: &str) -> Said {
            let mut command = Command::new(self.folder.file("command"));
            command.arg(file).args(words(line));
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
        let file = other.folder.file("timers.db");
        filled(&file);
        for name in ["timers.db", "timers.db-wal", "timers.db-shm"] {
            set_mode(&other.folder.file(name), 0o000);
        }
        for line in ["stats", "list", "cancel 7@7@mail", "pause shop"] {
            let said = other.cli(&file, line).failure();
            assert!(said.contains("Permission denied"), "{line}: {said}");
        }
    }

    #[test]
    fn a_right_to_read_is_enough_to_read_and_not_to_send_commands() {
        let other = Other::new();
        if !other.is_root {
            // Its owner has more rights than that.
            return;
        }
        let file = other.folder.file("timers.db");
        filled(&file);
        for name in ["timers.db", "timers.db-wal", "timers.db-shm"] {
            set_mode(&other.folder.file(name), 0o644);
        }
        let before = fs::read(&file).unwrap();
        for is_held in [false, true] {
            let store = is_held.then(|| SqliteStore::open(&file).unwrap());
            let text = other.cli(&file, "stats").well();
            assert!(text.contains("60 pending"), "{text}");
            // Its lock file is its user's alone.
            assert!(text.contains("its lock file cannot be read"), "{text}");
            other.cli(&file, "list").well();
            for line in ["pause shop", "redrive 10000000064", "cancel 7@7@mail"] {
                let said = other.cli(&file, line).failure();
                assert!(
                    said.contains("the request cannot be written"),
                    "{line}: {said}"
                );
            }
            drop(store);
        }
        assert!(fs::read(&file).unwrap() == before);
    }
}

#[test]
fn acknowledged_work_that_is_gone_is_refused_until_that_is_accepted() {
    let folder = Folder::new();
    let (path, killed) = (folder.file("timers.db"), folder.file("killed.db"));
    drop(SqliteStore::open(&path).unwrap());
    let mut store = SqliteStore::open(&path).unwrap();
    store.begin().unwrap();
    // As a kill leaves it, without its WAL.
    fs::copy(&path, &killed).unwrap();
    fs::copy(
        folder.file("timers.db-acknowledged"),
        folder.file("killed.db-acknowledged"),
    )
    .unwrap();
    // To look is allowed.
    let looked = cli(&killed, words("namespaces"));
    assert!(
        looked.code == 0 && looked.err.contains("acknowledged work is gone"),
        "{looked:?}"
    );
    let checked = cli(&killed, words("check"));
    assert!(
        checked.code == 1 && checked.out.contains("the file: acknowledged work is gone"),
        "{checked:?}"
    );
    let refused = cli(&killed, words("pause default")).failure();
    assert!(
        refused.contains("acknowledged work is gone") && refused.contains("--accept-loss"),
        "{refused}"
    );
    let said = cli(&killed, words("pause default --accept-loss"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.err
            .contains("continuing without the lost commits: acknowledged work is gone")
    );
    cli(&killed, words("resume default")).well();
    // The opening that is gone was the first one.
    assert_eq!(SqliteStore::open(&killed).unwrap().begin().unwrap(), 2);
}
