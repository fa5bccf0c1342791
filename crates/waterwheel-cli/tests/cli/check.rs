//! Is a file whole, and what is said of one that is not?

use std::collections::VecDeque;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use waterwheel_durable_core::store::{Due, Level, Op, Store};
use waterwheel_durable_sqlite::SqliteStore;

use crate::support::{Folder, Said, cli, filled, insert, now, row, words};

/// A file with a row in each table but those of the index that need many keys. It is closed.
fn with_all(file: &Path) {
    filled(file);
    let mut store = SqliteStore::open(file).unwrap();
    store.begin().unwrap();
    let near = |number, key: &[u8]| {
        let mut row = row(number, "mail", -1_000);
        row.key = Some(key.into());
        row
    };
    let (moved, archived) = (near(200, b"moved"), near(201, b"archived"));
    store
        .commit(1, &[insert(&moved), insert(&archived)])
        .unwrap();
    let due = Due::from_millis(moved.due.as_millis() + 60_000_000);
    let bucket = Level::Day.bucket(due);
    let steps = [Op::Retry(moved, due, bucket), Op::Archive(archived, now())];
    store.commit(2, &steps).unwrap();
    drop(store);
    let command = "INSERT INTO commands (body, until) VALUES ('pause shop', 9999999999999)";
    damage(file, command);
}

fn damage(file: &Path, sql: &str) {
    let connection = Connection::open(file).unwrap();
    connection.execute_batch(sql).unwrap();
}

/// None of what is said is of SQLite's binding.
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
    let folder = Folder::new();
    let file = folder.file("timers.db");
    with_all(&file);
    let before = fs::read(&file).unwrap();
    let said = cli(&file, ["check"]).well();
    assert!(
        said.contains(": no damage found in all pages and "),
        "{said}"
    );
    let json = cli(&file, words("check --json")).json();
    assert_eq!(json["is_sound"], true);
    assert_eq!(json["is_beside"], false);
    assert_eq!(json["all_pages"], true);
    assert_eq!(json["findings"].as_array().unwrap().len(), 0);
    assert!(json["rows"].as_u64().unwrap() > 70, "{json}");
    assert!(fs::read(&file).unwrap() == before);
}

#[test]
fn each_damage_by_hand_is_found_and_named_in_words() {
    let mail = "handler = (SELECT number FROM handlers WHERE name = 'mail')";
    let of_mail = format!("level = 0 AND {mail}");
    let keyed = "id = (SELECT min(id) FROM timers WHERE key IS NOT NULL AND has_moved = 0)";
    let cases = [
        (
            format!("UPDATE timers SET due = 'soon' WHERE {of_mail}"),
            "timers",
            "`due` has text instead of a whole number",
        ),
        (
            format!("UPDATE timers SET due = 7.5 WHERE {of_mail}"),
            "timers",
            "`due` has a number with a fraction",
        ),
        (
            format!("UPDATE timers SET failures = -1 WHERE {of_mail}"),
            "timers",
            "`failures` has -1",
        ),
        (
            format!("UPDATE timers SET has_moved = 'x' WHERE {of_mail}"),
            "timers",
            "`has_moved` has text",
        ),
        (
            format!("UPDATE timers SET starts = x'00' WHERE {of_mail}"),
            "timers",
            "`starts` has bytes",
        ),
        (
            format!("UPDATE timers SET payload = 'text' WHERE {of_mail}"),
            "timers",
            "`payload` has text instead of bytes",
        ),
        (
            "UPDATE timers SET key = 7 WHERE key IS NOT NULL".to_owned(),
            "timers",
            "`key` has a whole number",
        ),
        (
            format!("UPDATE timers SET bucket = bucket + 1 WHERE {of_mail}"),
            "timers",
            "by its due time",
        ),
        (
            format!("UPDATE timers SET handler = 99 WHERE {of_mail}"),
            "timers",
            "no number 99",
        ),
        (
            format!("UPDATE timers SET far_handler = 1 WHERE {of_mail}"),
            "timers",
            "`far_handler` has a value",
        ),
        (
            "UPDATE timers SET far_handler = NULL WHERE level = 3".to_owned(),
            "timers",
            "`far_handler` has no value",
        ),
        (
            "UPDATE timers SET level = 9 WHERE level = 3".to_owned(),
            "timers",
            "no level 9",
        ),
        (
            "UPDATE timers SET level = 'x' WHERE level = 3".to_owned(),
            "timers",
            "`level` has text",
        ),
        (
            format!("UPDATE timers SET id = id + (77 << 40) WHERE {of_mail} AND key IS NULL"),
            "timers",
            "opened for the 78th time",
        ),
        (
            format!("UPDATE timers SET id = -id WHERE {of_mail} AND key IS NULL"),
            "timers",
            "`id` has -",
        ),
        (
            format!("UPDATE timers SET key = x'0102' WHERE {keyed}"),
            "timers",
            "its key is not in the index",
        ),
        (
            format!("DELETE FROM timers WHERE {keyed}"),
            "key_changes",
            "which does not exist",
        ),
        (
            "UPDATE timers SET has_moved = 0 WHERE has_moved = 1".to_owned(),
            "timers",
            "it has not moved",
        ),
        (
            "DELETE FROM moved".to_owned(),
            "timers",
            "`moved` does not have it",
        ),
        (
            "UPDATE moved SET due = due + 1".to_owned(),
            "timers",
            "another due time",
        ),
        (
            "UPDATE moved SET due = 'later'".to_owned(),
            "moved",
            "`due` has text",
        ),
        (
            "INSERT INTO moved VALUES (123, 456)".to_owned(),
            "moved",
            "there is no such timer",
        ),
        (
            "UPDATE handlers SET name = x'ff' WHERE name = 'mail'".to_owned(),
            "handlers",
            "`name` has bytes",
        ),
        (
            "UPDATE handlers SET name = CAST(x'6dff' AS TEXT) WHERE name = 'mail'".to_owned(),
            "handlers",
            "not UTF-8",
        ),
        (
            "DELETE FROM handlers WHERE number = 1".to_owned(),
            "handlers",
            "row 1 before it is missing",
        ),
        (
            "UPDATE dead SET handler = 99".to_owned(),
            "dead",
            "no number 99",
        ),
        (
            "UPDATE dead SET error = x'ff'".to_owned(),
            "dead",
            "`error` has bytes",
        ),
        (
            "UPDATE dead SET at = 'never'".to_owned(),
            "dead",
            "`at` has text",
        ),
        (
            "UPDATE dead SET failures = 1 << 40".to_owned(),
            "dead",
            "`failures` has 1099511627776",
        ),
        (
            "UPDATE settings SET value = 'text'".to_owned(),
            "settings",
            "`value` has text",
        ),
        (
            "UPDATE settings SET name = x'ff' WHERE name = 'paused/shop'".to_owned(),
            "settings",
            "`name` has bytes",
        ),
        (
            "UPDATE archive SET count = count + 1".to_owned(),
            "archive",
            "`count` is not",
        ),
        (
            "UPDATE archive SET count = 'x'".to_owned(),
            "archive",
            "`count` has text",
        ),
        (
            "UPDATE archive SET last_id = 1".to_owned(),
            "archive",
            "do not match its entries",
        ),
        (
            "UPDATE archive SET day = day + 1".to_owned(),
            "archive",
            "of another day",
        ),
        (
            "UPDATE archive SET entries = x'ff'".to_owned(),
            "archive",
            "`entries` cannot be read",
        ),
        (
            "UPDATE archive SET entries = 7".to_owned(),
            "archive",
            "`entries` has a whole number",
        ),
        (
            "DELETE FROM archive".to_owned(),
            "key_changes",
            "which does not exist",
        ),
        (
            "UPDATE commands SET body = 'dance'".to_owned(),
            "commands",
            "not a request",
        ),
        (
            "UPDATE commands SET body = x'ff'".to_owned(),
            "commands",
            "`body` has bytes",
        ),
        (
            "UPDATE commands SET until = 'late'".to_owned(),
            "commands",
            "`until` has text",
        ),
        (
            "UPDATE key_changes SET entries = x'00'".to_owned(),
            "key_changes",
            "its entries cannot be read",
        ),
        (
            "UPDATE key_changes SET entries = 'text'".to_owned(),
            "key_changes",
            "`entries` has text",
        ),
        (
            "DELETE FROM key_changes".to_owned(),
            "timers",
            "its key is not in the index",
        ),
        (
            "INSERT INTO key_filters VALUES (99 << 32, x'00')".to_owned(),
            "key_filters",
            "a chunk that does not exist",
        ),
        (
            "INSERT INTO key_runs VALUES (7, 7, 99, 0, 0, NULL, 0)".to_owned(),
            "key_runs",
            "`bits` has 99",
        ),
        (
            "INSERT INTO key_runs VALUES (7, 7, 'x', 0, 0, NULL, 0)".to_owned(),
            "key_runs",
            "`bits` has text",
        ),
        (
            "INSERT INTO key_runs VALUES (7, 7, 0, 0, 0, 9, 1)".to_owned(),
            "key_runs",
            "merged into 9",
        ),
        (
            "UPDATE meta SET value = 'x' WHERE key = 'epoch'".to_owned(),
            "meta",
            "`epoch`",
        ),
        (
            "DELETE FROM meta WHERE key = 'key secret 1'".to_owned(),
            "meta",
            "`key secret 1` is missing",
        ),
        ("DROP TABLE moved".to_owned(), "moved", "no such table"),
        (
            "ALTER TABLE dead DROP COLUMN error".to_owned(),
            "dead",
            "no such column",
        ),
    ];
    let folder = Folder::new();
    let (whole, file) = (folder.file("whole.db"), folder.file("timers.db"));
    with_all(&whole);
    for (at, (sql, table, words_of_it)) in cases.iter().enumerate() {
        for beside in ["-wal", "-shm", "-lock", "-reserve"] {
            let _: Result<(), _> = fs::remove_file(folder.file(&format!("timers.db{beside}")));
        }
        fs::copy(&whole, &file).unwrap();
        damage(&file, sql);
        let said = cli(&file, ["check"]);
        assert_eq!((said.code, &*said.err), (1, ""), "{sql}: {said:?}");
        is_in_our_words(&said, sql);
        let place = format!("table `{table}`");
        let is_named = |line: &str| line.starts_with(&place) && line.contains(words_of_it);
        assert!(said.out.lines().any(is_named), "{sql}: {said:?}");
        let json = cli(&file, words("check --json"));
        assert_eq!(json.code, 1, "{sql}");
        let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(json["is_sound"], false);
        let lines = said.out.lines().count() as u64 - 1;
        assert_eq!(
            json["finding_count"].as_u64(),
            Some(lines),
            "{sql}: {said:?}"
        );
        for line in OTHERS {
            let copy = folder.file(&format!("copy-{at}.db"));
            let line = line.replace("COPY", copy.to_str().unwrap());
            is_in_our_words(&cli(&file, words(&line)), &format!("{sql}: {line}"));
        }
        if let Err(error) = SqliteStore::open(&file) {
            let said = Said {
                code: 1,
                out: String::new(),
                err: format!("{error} {error:?}"),
            };
            let display = error.to_string();
            is_in_our_words(
                &Said {
                    err: display,
                    ..said
                },
                sql,
            );
        }
    }
}

#[test]
fn a_damaged_page_is_found_wherever_it_lies() {
    let folder = Folder::new();
    let (whole, file) = (folder.file("whole.db"), folder.file("timers.db"));
    with_all(&whole);
    let bytes = fs::read(&whole).unwrap();
    // The first page says that it is a file of ours. Each other one is garbage, zeros, or another page.
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
                let _: Result<(), _> = fs::remove_file(folder.file(&format!("timers.db{beside}")));
            }
            fs::write(&file, &damaged).unwrap();
            let said = cli(&file, ["check"]);
            let of = format!("page {}, {kind}", at + 1);
            assert_eq!((said.code, &*said.err), (1, ""), "{of}: {said:?}");
            is_in_our_words(&said, &of);
        }
    }
}

#[test]
fn what_is_found_often_is_counted_and_not_all_shown() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    let rows: Vec<_> = (1..=300).map(|it| insert(&row(it, "mail", -1))).collect();
    drop(crate::support::store(&file, &rows));
    damage(&file, "UPDATE timers SET failures = 'x'");
    let said = cli(&file, ["check"]);
    assert_eq!((said.code, said.out.lines().count()), (1, 102), "{said:?}");
    assert!(said.out.contains("200 more in `timers`"), "{said:?}");
    assert!(said.out.contains("300 findings"), "{said:?}");
}

/// Timers a commit, commits before the check begins, and at most beside it: three gigabytes.
const PART: usize = 500;
const BEFORE: usize = 100;
const MAX: u64 = 3_000;

#[test]
fn beside_commits_it_ends_and_the_wal_stays_short() {
    let folder = Folder::new();
    let file = folder.file("timers.db");
    let mut store = SqliteStore::open(&file).unwrap();
    assert_eq!(store.begin().unwrap(), 1);
    let mut number = 0;
    let mut waiting = VecDeque::new();
    // So many are inserted, and as many settled that were inserted before, so the file stays short, however slow the machine is.
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
    // SQLite draws a new number as it begins the WAL again.
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
            let said = cli(&file, words("check --json")).json();
            has_ended.store(true, Ordering::Release);
            said
        });
        // It ends once nothing is committed, at the latest.
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
    // Within one transaction it is not begun again, so it has all commits: twice at most, before it and after it.
    assert!(begun_again > 2, "{begun_again} times in {commits} commits");
}
