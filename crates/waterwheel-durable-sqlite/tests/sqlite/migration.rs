//! Is a file of an older version upgraded, whatever happens meanwhile?

use fastrand::Rng;
use waterwheel_durable_core::store::{Level, Op, PageLimit, RowCursor, Store};
use waterwheel_durable_faults::{Chance, Content, Disk, Fault};
use waterwheel_durable_sqlite::{OpenError, OpenOptions, SqliteStore, Step, VERSION};

use crate::faulty_disk::*;

/// Tables as an older version may have had them: a table of timers with row numbers and without failures, and no dead letters.
const OLDEST: &str = "
    CREATE TABLE timer (id INTEGER PRIMARY KEY, handler TEXT NOT NULL, due INTEGER NOT NULL, payload BLOB NOT NULL);
    CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO meta VALUES ('epoch', 7);
    PRAGMA application_id = 0x57576474;
    PRAGMA user_version = -2;";

/// Steps to handlers with numbers, to timers in buckets, and to the current tables.
const STEPS: [Step; 3] = [
    Step {
        from: -2,
        sql: "CREATE TABLE handlers (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);",
        then: Some(|transaction| {
            let mut handlers =
                transaction.prepare("SELECT DISTINCT handler FROM timer ORDER BY handler")?;
            let mut rows = handlers.query([])?;
            while let Some(row) = rows.next()? {
                let name: String = row.get(0)?;
                transaction.execute("INSERT INTO handlers (name) VALUES (?1)", [name])?;
            }
            Ok(())
        }),
    },
    Step {
        from: -1,
        sql: "
            CREATE TABLE timers (level INTEGER NOT NULL, handler INTEGER NOT NULL, bucket INTEGER NOT NULL, id INTEGER NOT NULL,
                due INTEGER NOT NULL, failures INTEGER NOT NULL, first_due INTEGER, far_handler INTEGER, key BLOB,
                tag TEXT, retries BLOB, payload BLOB NOT NULL, PRIMARY KEY (level, handler, bucket, id)) WITHOUT ROWID;
            INSERT INTO timers SELECT 0, number, due / 1000, id, due, 0, NULL, NULL, NULL, NULL, NULL, payload
                FROM timer JOIN handlers ON name = timer.handler;
            DROP TABLE timer;
            CREATE TABLE moved (id INTEGER PRIMARY KEY, due INTEGER NOT NULL);
            CREATE TABLE dead (id INTEGER PRIMARY KEY, handler INTEGER NOT NULL, due INTEGER NOT NULL, failures INTEGER NOT NULL,
                first_due INTEGER, key BLOB, tag TEXT, retries BLOB, payload BLOB NOT NULL, at INTEGER NOT NULL, error TEXT NOT NULL);",
        then: None,
    },
    Step {
        from: 0,
        sql: "
            ALTER TABLE timers ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;
            ALTER TABLE dead ADD COLUMN starts INTEGER NOT NULL DEFAULT 0;
            CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
            CREATE TABLE archive (handler INTEGER NOT NULL, day INTEGER NOT NULL, block INTEGER NOT NULL, count INTEGER NOT NULL,
                first_id INTEGER NOT NULL, last_id INTEGER NOT NULL, entries BLOB NOT NULL,
                PRIMARY KEY (handler, day, block)) WITHOUT ROWID;
            CREATE TABLE commands (number INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL, until INTEGER NOT NULL,
                is_taken INTEGER NOT NULL DEFAULT 0, answer TEXT);
            CREATE TABLE tags (tag TEXT NOT NULL, id INTEGER NOT NULL, handler INTEGER NOT NULL, due INTEGER NOT NULL,
                PRIMARY KEY (tag, id)) WITHOUT ROWID;
            CREATE TABLE pending_counts (level INTEGER NOT NULL, bucket INTEGER NOT NULL, handler INTEGER NOT NULL,
                count INTEGER NOT NULL, PRIMARY KEY (level, bucket, handler)) WITHOUT ROWID;
            CREATE TABLE dead_counts (handler INTEGER NOT NULL, error TEXT NOT NULL, count INTEGER NOT NULL,
                PRIMARY KEY (handler, error)) WITHOUT ROWID;
            INSERT INTO pending_counts SELECT 1, bucket / 60, handler, count(*) FROM timers GROUP BY 1, 2, 3;
            CREATE TABLE key_changes (number INTEGER PRIMARY KEY, entries BLOB NOT NULL);
            CREATE TABLE key_runs (number INTEGER PRIMARY KEY, age INTEGER NOT NULL, bits INTEGER NOT NULL,
                entries INTEGER NOT NULL, freed INTEGER NOT NULL, merged_into INTEGER, done INTEGER NOT NULL);
            CREATE TABLE key_chunks (number INTEGER PRIMARY KEY, entries BLOB NOT NULL);
            CREATE TABLE key_filters (number INTEGER PRIMARY KEY, filter BLOB NOT NULL);
            INSERT INTO meta VALUES ('key secret 1', random()), ('key secret 2', random());",
        then: None,
    },
];

const COUNT: i64 = 60;

/// A disk with a file of the oldest version. The WAL has a part of it, as after a crash.
fn oldest() -> Content {
    let disk = disk();
    let file = connect(&disk);
    file.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
        .unwrap();
    file.execute_batch(OLDEST).unwrap();
    for number in 1..=COUNT {
        let sql = "INSERT INTO timer VALUES (?1, ?2, ?3, ?4)";
        let handler = if number % 2 == 0 { "mail" } else { "close" };
        file.execute(sql, (number, handler, number * 1_000, vec![7_u8; 200]))
            .unwrap();
    }
    let content = disk.content();
    drop(file);
    content
}

fn migrate(disk: &Disk) -> Result<SqliteStore, OpenError> {
    let options = OpenOptions {
        vfs: Some(disk.vfs()),
        files: FILES,
        steps: &STEPS,
        ..OpenOptions::DEFAULT
    };
    SqliteStore::open_with_options(&disk.path(FILE), &options)
}

/// Returns the version of a file, and expects that its tables are of this version and have all timers.
fn version(disk: &Disk) -> i64 {
    let content = disk.content();
    let file = connect(disk);
    let query = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let check: String = file
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    let version = query("PRAGMA user_version");
    let (tables, timers) = match version {
        -2 => (2, "timer"),
        -1 => (3, "timer"),
        0 => (5, "timers"),
        _ => (15, "timers"),
    };
    // These are in addition to SQLite's own.
    let all = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
    let all = query(all);
    assert_eq!(all, tables, "tables of version {version}");
    let timers = query(&format!("SELECT count(*) FROM {timers}"));
    assert_eq!(timers, COUNT);
    drop(file);
    disk.put(content);
    version
}

/// Expects that all timers are there, and that the store works.
fn expect_all(disk: &Disk) {
    let mut store = migrate(disk).unwrap();
    assert_eq!(store.begin().unwrap(), 8);
    let even: Vec<u64> = (1..=COUNT.unsigned_abs())
        .filter(|number| number % 2 == 0)
        .collect();
    assert_eq!(numbers(&mut store), even);
    let first = store
        .load("close", RowCursor::START, 4, PageLimit::rows(10))
        .unwrap();
    assert_eq!(first.len(), 2);
    assert_eq!(&*first[0].payload, [7; 200]);
    is_done(store.commit(1, &[insert(100, 64), Op::Settle(first[0].clone())]));
    assert_eq!(store.first_second("close", 0).unwrap(), Some(3));
    assert_eq!(store.first_bucket(Level::Day).unwrap(), None);
}

#[test]
fn an_older_file_is_brought_up_to_date() {
    let disk = disk_of(oldest());
    assert_eq!(version(&disk), -2);
    drop(migrate(&disk).unwrap());
    assert_eq!(version(&disk), VERSION);
    expect_all(&disk);
    // From then on no step is needed.
    assert_eq!(
        numbers(&mut open(&disk).unwrap()).len(),
        COUNT as usize / 2 + 1
    );
}

#[test]
fn a_power_cut_leaves_one_version_or_the_other() {
    let before = oldest();
    let disk = disk_of(before.clone());
    let mut rng = Rng::with_seed(7);
    let mut versions = [0; 4];
    for after in 0.. {
        let mut is_over = false;
        for after_it in [false, true] {
            disk.put(before.clone());
            disk.cut_at(any_call(after), after_it);
            let migrated = migrate(&disk);
            is_over = disk.cut().is_none();
            disk.cut_now();
            let is_acknowledged = migrated.is_ok();
            drop(migrated);
            let cut = disk.content();
            for _ in 0..4 {
                disk.put(cut.clone());
                disk.restart(&mut Chance::new(&mut rng, disk.calls()));
                let version = version(&disk);
                assert!(!is_acknowledged || version == VERSION);
                versions[usize::try_from(version + 2).unwrap()] += 1;
                expect_all(&disk);
            }
        }
        if is_over {
            break;
        }
    }
    println!("so often each version was left: {versions:?}");
    assert!(versions.iter().all(|count| *count > 0), "{versions:?}");
}

#[test]
fn a_step_that_fails_leaves_the_version_before_it() {
    let before = oldest();
    let disk = disk();
    let mut versions = [0; 4];
    for after in 0.. {
        disk.put(before.clone());
        disk.fail(any_call(after), Fault::NoSpace(300));
        let migrated = migrate(&disk);
        let is_over = migrated.is_ok();
        drop(migrated);
        disk.mend();
        versions[usize::try_from(version(&disk) + 2).unwrap()] += 1;
        expect_all(&disk);
        if is_over {
            break;
        }
    }
    assert!(versions.iter().all(|count| *count > 0), "{versions:?}");
}

#[test]
fn a_version_that_no_step_begins_with_is_left_as_it_is() {
    let disk = disk_of(oldest());
    let before = (disk.read(FILE), disk.read(WAL));
    let refused = open(&disk);
    assert!(matches!(refused, Err(OpenError::Corrupt(_))), "{refused:?}");
    assert_eq!((disk.read(FILE), disk.read(WAL)), before);
}
