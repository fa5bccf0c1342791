//! Is a file intact, and what is reported if it is not?

use std::collections::VecDeque;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use waterwheel_durable_core::store::{Due, Extras, Level, Op, Store};
use waterwheel_durable_sqlite::SqliteStore;

use crate::support::*;

/// A closed file with a row in each table, except those of the index that require many keys.
fn with_all(file: &Path) {
    filled(file);
    let mut store = reopened(file);
    let near = |number, key: &[u8]| {
        let mut row = row(number, "mail", -1_000);
        row.key = Some(key.into());
        row
    };
    let (mut moved, archived) = (near(200, b"moved"), near(201, b"archived"));
    let dead = near(202, b"dead");
    moved.extras = Extras::new(Some("order 17".into()), Some([7].into()));
    store
        .commit(1, &[insert(&moved), insert(&archived), insert(&dead)])
        .unwrap();
    let due = Due::from_millis(moved.due.as_millis() + 60_000_000);
    let bucket = Level::Day.bucket(due);
    let steps = [
        Op::Retry(moved, due, bucket),
        Op::Archive(archived, now()),
        Op::Bury {
            row: dead,
            at: now(),
            error: "it said no".into(),
        },
    ];
    store.commit(2, &steps).unwrap();
    drop(store);
    let command = "INSERT INTO commands (body, until) VALUES ('pause shop', 9999999999999)";
    damage(file, command);
}

fn damage(file: &Path, sql: &str) {
    let connection = Connection::open(file).unwrap();
    connection.execute_batch(sql).unwrap();
}

/// Fails if a message contains words of SQLite's binding.
#[track_caller]
fn is_in_our_words(said: &Said, of: &str) {
    for foreign in [
        "Invalid column",
        "Conversion error",
        "InvalidColumn",
        "FromSql",
        "Query returned no rows",
        "Integer out of range",
        "Integer -",
        "Invalid UTF",
        "invalid utf",
        "panicked",
    ] {
        assert!(!said.err.contains(foreign), "{of}: {said:?}");
        assert!(!said.out.contains(foreign), "{of}: {said:?}");
    }
}

const OTHERS: [&str; 12] = [
    "stats",
    "list",
    "list --handler mail",
    "show 10000000007",
    "show --handler mail --key key-0",
    "dead",
    "namespaces",
    "backup COPY",
    "cancel --handler mail",
    "redrive --all",
    "discard 10000000064",
    "pause shop",
];

#[test]
fn a_sound_file_passes() {
    let file = TimersFile::new();
    with_all(&file);
    let before = fs::read(&*file).unwrap();
    let said = file.well("check");
    assert!(
        said.contains(": no damage found in all pages and "),
        "{said}"
    );
    let json = file.json("check --json");
    assert_eq!(json["is_sound"], true);
    assert_eq!(json["is_beside"], false);
    assert_eq!(json["all_pages"], true);
    assert_eq!(json["findings"].as_array().unwrap().len(), 0);
    assert!(json["rows"].as_u64().unwrap() > 70, "{json}");
    assert!(fs::read(&*file).unwrap() == before);
}

/// Values that are set in rows of a table, and the words that must be reported for each.
type Changes = &'static [(&'static str, &'static str)];

#[test]
fn each_damage_by_hand_is_found_and_named_in_words() {
    let mail = "handler = (SELECT number FROM handlers WHERE name = 'mail')";
    let of_mail = format!(" WHERE level = 0 AND {mail}");
    let keyed = "id = (SELECT min(id) FROM timers WHERE key IS NOT NULL AND first_due IS NULL)";
    let updates: [(&str, &str, Changes); 10] = [
        (
            "timers",
            &of_mail,
            &[
                ("due = 'soon'", "`due` has text instead of a whole number"),
                ("due = 7.5", "`due` has a number with a fraction"),
                ("failures = -1", "`failures` has -1"),
                ("first_due = 'x'", "`first_due` has text"),
                ("starts = x'00'", "`starts` has bytes"),
                ("payload = 'text'", "`payload` has text instead of bytes"),
                ("tag = x'00'", "`tag` has bytes instead of text"),
                ("retries = 'text'", "`retries` has text instead of bytes"),
                ("bucket = bucket + 1", "by its due time"),
                ("handler = 99", "no number 99"),
                ("far_handler = 1", "`far_handler` has a value"),
            ],
        ),
        (
            "timers",
            " WHERE level = 3",
            &[
                ("far_handler = NULL", "`far_handler` has no value"),
                ("level = 9", "no level 9"),
                ("level = 'x'", "`level` has text"),
            ],
        ),
        ("moved", "", &[("due = 'later'", "`due` has text")]),
        (
            "dead",
            "",
            &[
                ("handler = 99", "no number 99"),
                ("error = x'ff'", "`error` has bytes"),
                ("at = 'never'", "`at` has text"),
                ("failures = 1 << 40", "`failures` has 1099511627776"),
            ],
        ),
        (
            "pending_counts",
            "",
            &[
                ("count = count + 1", "were found"),
                ("bucket = bucket + 1000", "but 0 were found"),
                ("count = -1", "`count` has -1"),
                ("level = 'x'", "`level` has text"),
            ],
        ),
        (
            "dead_counts",
            "",
            &[
                ("count = count + 1", "were found"),
                ("error = CAST(error AS BLOB)", "`error` has bytes"),
            ],
        ),
        ("settings", "", &[("value = 'text'", "`value` has text")]),
        (
            "archive",
            "",
            &[
                ("count = count + 1", "`count` is not"),
                ("count = 'x'", "`count` has text"),
                ("last_id = 1", "do not match its entries"),
                ("day = day + 1", "of another day"),
                ("entries = x'ff'", "`entries` cannot be read"),
                ("entries = 7", "`entries` has a whole number"),
            ],
        ),
        (
            "commands",
            "",
            &[
                ("body = 'dance'", "not a request"),
                ("body = x'ff'", "`body` has bytes"),
                ("until = 'late'", "`until` has text"),
            ],
        ),
        (
            "key_changes",
            "",
            &[
                ("entries = x'00'", "its entries cannot be read"),
                ("entries = 'text'", "`entries` has text"),
            ],
        ),
    ];
    let others = [
        (
            "UPDATE timers SET key = 7 WHERE key IS NOT NULL",
            "timers",
            "`key` has a whole number",
        ),
        (
            &format!("UPDATE timers SET id = id + (77 << 40){of_mail} AND key IS NULL"),
            "timers",
            "opened for the 78th time",
        ),
        (
            &format!("UPDATE timers SET id = -id{of_mail} AND key IS NULL"),
            "timers",
            "`id` has -",
        ),
        (
            &format!("UPDATE timers SET key = x'0102' WHERE {keyed}"),
            "timers",
            "its key is not in the index",
        ),
        (
            &format!("DELETE FROM timers WHERE {keyed}"),
            "key_changes",
            "which does not exist",
        ),
        (
            "UPDATE timers SET first_due = NULL WHERE first_due IS NOT NULL",
            "timers",
            "it has not moved",
        ),
        ("DELETE FROM moved", "timers", "`moved` does not have it"),
        (
            "UPDATE moved SET due = due + 1",
            "timers",
            "another due time",
        ),
        (
            "INSERT INTO moved VALUES (123, 456)",
            "moved",
            "there is no such timer",
        ),
        (
            "UPDATE handlers SET name = x'ff' WHERE name = 'mail'",
            "handlers",
            "`name` has bytes",
        ),
        (
            "UPDATE handlers SET name = CAST(x'6dff' AS TEXT) WHERE name = 'mail'",
            "handlers",
            "not UTF-8",
        ),
        (
            "DELETE FROM handlers WHERE number = 1",
            "handlers",
            "row 1 before it is missing",
        ),
        (
            "UPDATE settings SET name = x'ff' WHERE name = 'paused/shop'",
            "settings",
            "`name` has bytes",
        ),
        ("DELETE FROM archive", "key_changes", "which does not exist"),
        (
            "DELETE FROM pending_counts",
            "pending_counts",
            "the count is missing",
        ),
        (
            "DELETE FROM dead_counts",
            "dead_counts",
            "the count is missing",
        ),
        (
            "DELETE FROM key_changes",
            "timers",
            "its key is not in the index",
        ),
        (
            "INSERT INTO key_filters VALUES (99 << 32, x'00')",
            "key_filters",
            "a chunk that does not exist",
        ),
        (
            "INSERT INTO key_runs VALUES (7, 7, 99, 0, 0, NULL, 0)",
            "key_runs",
            "`bits` has 99",
        ),
        (
            "INSERT INTO key_runs VALUES (7, 7, 'x', 0, 0, NULL, 0)",
            "key_runs",
            "`bits` has text",
        ),
        (
            "INSERT INTO key_runs VALUES (7, 7, 0, 0, 0, 9, 1)",
            "key_runs",
            "merged into 9",
        ),
        (
            "UPDATE meta SET value = 'x' WHERE key = 'epoch'",
            "meta",
            "`epoch`",
        ),
        (
            "DELETE FROM meta WHERE key = 'key secret 1'",
            "meta",
            "`key secret 1` is missing",
        ),
        ("DROP TABLE moved", "moved", "no such table"),
        (
            "ALTER TABLE dead DROP COLUMN error",
            "dead",
            "no such column",
        ),
    ];
    let whole = TimersFile::new();
    with_all(&whole);
    for (table, condition, cases) in updates {
        for (value, words) in cases {
            let sql = format!("UPDATE {table} SET {value}{condition}");
            is_found(&whole, &sql, table, words);
        }
    }
    for (sql, table, words) in others {
        is_found(&whole, sql, table, words);
    }
}

/// Damages a copy of a file. The check must report these words for the table, and no command may use those of SQLite's binding.
fn is_found(whole: &Path, sql: &str, table: &str, words: &str) {
    let file = TimersFile::new();
    fs::copy(whole, &*file).unwrap();
    damage(&file, sql);
    let said = file.cli("check");
    assert_eq!((said.code, &*said.err), (1, ""), "{sql}: {said:?}");
    is_in_our_words(&said, sql);
    let place = format!("table `{table}`");
    let is_named = |line: &str| line.starts_with(&place) && line.contains(words);
    assert!(said.out.lines().any(is_named), "{sql}: {said:?}");
    let json = file.cli("check --json");
    assert_eq!(json.code, 1, "{sql}");
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["is_sound"], false);
    let lines = said.out.lines().count() as u64 - 1;
    assert_eq!(json["finding_count"], lines, "{sql}: {said:?}");
    let copy = file.sibling("copy.db");
    for line in OTHERS {
        let line = line.replace("COPY", copy.to_str().unwrap());
        is_in_our_words(&file.cli(&line), &format!("{sql}: {line}"));
    }
    if let Err(error) = SqliteStore::open(&*file) {
        let said = Said {
            code: 1,
            out: String::new(),
            err: error.to_string(),
        };
        is_in_our_words(&said, sql);
    }
}

#[test]
fn a_damaged_page_is_found_wherever_it_lies() {
    let file = TimersFile::new();
    with_all(&file);
    let bytes = fs::read(&*file).unwrap();
    // The first page identifies the file. Each other page becomes garbage, zeros, or another page.
    for at in 1..bytes.len() / 4_096 {
        for kind in 0..3 {
            let mut damaged = bytes.clone();
            let page = &mut damaged[at * 4_096..][..4_096];
            match kind {
                0 => page.fill(0xa5),
                1 => page.fill(0),
                _ => page.copy_from_slice(&bytes[(at % 3 + 2) * 4_096..][..4_096]),
            }
            if damaged == bytes {
                continue;
            }
            for beside in ["-wal", "-shm"] {
                let _: Result<(), _> = fs::remove_file(file.sibling(&format!("timers.db{beside}")));
            }
            fs::write(&*file, &damaged).unwrap();
            let said = file.cli("check");
            let of = format!("page {}, {kind}", at + 1);
            assert_eq!((said.code, &*said.err), (1, ""), "{of}: {said:?}");
            is_in_our_words(&said, &of);
        }
    }
}

#[test]
fn what_is_found_often_is_counted_and_not_all_shown() {
    let file = TimersFile::with(&inserts(&rows(300, "mail", -1)));
    damage(&file, "UPDATE timers SET failures = 'x'");
    let said = file.cli("check");
    assert_eq!((said.code, said.out.lines().count()), (1, 102), "{said:?}");
    assert!(said.out.contains("200 more in `timers`"), "{said:?}");
    assert!(said.out.contains("300 findings"), "{said:?}");
}

/// The timers per commit, and the commits before and at most during the check: three gigabytes.
const PART: usize = 500;
const BEFORE: usize = 100;
const MAX: u64 = 3_000;

#[test]
fn beside_commits_it_ends_and_the_wal_stays_short() {
    let file = TimersFile::new();
    let mut store = SqliteStore::open(&*file).unwrap();
    assert_eq!(store.begin().unwrap(), 1);
    let mut number = 0;
    let mut waiting = VecDeque::new();
    // Inserts this many timers and settles as many older ones, so the file stays small, however slow the machine is.
    let mut commit = |store: &mut SqliteStore| {
        let mut steps = Vec::new();
        for _ in 0..PART {
            number += 1;
            let mut row = row(number, "mail", 1_000 * (number as i64 % 500));
            row.key = (number % 2 == 0).then(|| number.to_le_bytes().as_slice().into());
            row.payload = vec![7; 1_000].into();
            steps.push(Op::Insert(row.clone(), Level::Second.bucket(row.due)));
            waiting.push_back(row);
        }
        if waiting.len() > BEFORE * PART {
            steps.extend(waiting.drain(..PART).map(Op::Settle));
        }
        store.commit(number, &steps).unwrap();
        store.maintain().unwrap();
    };
    for _ in 0..BEFORE {
        commit(&mut store);
    }
    let has_ended = AtomicBool::new(false);
    let wal = file.with_file_name("timers.db-wal");
    // SQLite draws a new number when it restarts the WAL.
    let number_of_wal = || {
        let mut header = [0; 24];
        fs::File::open(&wal)
            .unwrap()
            .read_exact(&mut header)
            .unwrap();
        header
    };
    let (mut last, mut begun_again, mut commits) = (number_of_wal(), 0, 0);
    std::thread::scope(|scope| {
        let checks = scope.spawn(|| {
            let said = file.json("check --json");
            has_ended.store(true, Ordering::Release);
            said
        });
        // The check ends at the latest when nothing is committed any more.
        while !has_ended.load(Ordering::Acquire) && commits < MAX {
            commit(&mut store);
            commits += 1;
            let now = number_of_wal();
            begun_again += u64::from(now != last);
            last = now;
        }
        let json = checks.join().unwrap();
        assert_eq!(json["is_sound"], true, "{json}");
        assert_eq!(json["is_beside"], true);
        assert!(
            json["rows"].as_u64().unwrap() >= (BEFORE * PART) as u64,
            "{json}"
        );
    });
    println!("{commits} commits, the WAL was begun again {begun_again} times");
    assert!(
        0 < commits && commits < MAX,
        "{commits} commits, and it had not ended"
    );
    // During a single transaction, it is not restarted: at most twice, before and after it.
    assert!(begun_again > 2, "{begun_again} times in {commits} commits");
}
