//! How much does a copy of a million timers slow down a service that continues to commit?
//!
//! One thread inserts a timer and settles the previous one, each pair in a synced commit, and maintains the store as a service does. Another one makes a copy,
//! counts all timers, lists the first ones, sends commands, and reads until the WAL is long, through commits of a hundred timers of 1 KB. For each of these:
//! its duration, the duration of the commits meanwhile, and how far the WAL has grown.
//!
//! `cargo bench -p waterwheel-durable-sqlite --bench backup`, optionally with `-- 10000000` timers, or with `-- 1000000 2000000000` and a WAL of that many
//! bytes. The file is in the target directory.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use waterwheel_durable_core::store::{Bucket, Command, Due, Id, Op, PageLimit, Row, Scope, Store};
use waterwheel_durable_sqlite::{Reader, SqliteStore, backup, send_commands};

const NOW: Due = Due::from_millis(1_800_000_000_000);
const MONTH: i64 = 30 * 86_400_000;
/// The length that the WAL reaches while a reader is open, by default.
const WAL: u64 = 200_000_000;
const END: Due = Due::from_millis(i64::MAX);

fn main() {
    let mut results = std::env::args().skip(1).filter(|it| !it.starts_with('-'));
    let mut results = || results.next().map(|it| it.parse::<u64>().unwrap());
    let count = results().unwrap_or(1_000_000);
    let long_wal = results().unwrap_or(WAL);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-backup");
    let _: std::io::Result<()> = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("timers.db");
    let mut store = SqliteStore::open(&path).unwrap();
    store.begin().unwrap();
    let mut commit = fill(&mut store, count);
    let (is_over, calls) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let (refused, is_filling) = (AtomicU64::new(0), AtomicBool::new(false));
    println!("{count} timers, {}", size(length(&path)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                commit += 1;
                let mut steps = vec![insert(count + commit, 0, 64)];
                let Op::Insert(old, _) = insert(count + commit - 1, 0, 64) else {
                    return;
                };
                steps.push(Op::Settle(old));
                if is_filling.load(Ordering::Relaxed) {
                    let many = (0..100).map(|it| (1 << 30) + commit * 100 + it);
                    steps.extend(many.map(|it| insert(it, MONTH, 1_000)));
                }
                let begun = Instant::now();
                // Another connection may write for too long.
                while store.commit(commit, &steps).is_err() {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                store.maintain().unwrap();
                calls.lock().unwrap().push(begun.elapsed());
            }
        });
        let wal = folder.join("timers.db-wal");
        let measure = |name: &str, work: &dyn Fn()| {
            let (before, begun) = (length(&wal), Instant::now());
            work();
            let took = begun.elapsed();
            let grown = length(&wal).saturating_sub(before);
            // A running commit is waited for.
            let mut taken = Vec::new();
            while taken.is_empty() {
                taken = std::mem::take(&mut *calls.lock().unwrap());
            }
            let mut calls = taken;
            calls.sort_unstable();
            let last = calls.len().saturating_sub(1);
            let at = |part: f64| calls.get((last as f64 * part) as usize).copied();
            let at = |part: f64| at(part).unwrap_or_default();
            println!(
                "{name}: {took:.2?}; {} commits: p50 {:.2?}, p99 {:.2?}, longest {:.2?}, {} refused; WAL + {}",
                calls.len(),
                at(0.5),
                at(0.99),
                at(1.0),
                refused.swap(0, Ordering::Relaxed),
                size(grown),
            );
        };
        for round in 0..3 {
            measure("nothing", &|| std::thread::sleep(Duration::from_secs(3)));
            let copy = folder.join(format!("copy-{round}.db"));
            measure("backup", &|| drop(backup(&path, &copy).unwrap()));
            println!("  the copy has {}", size(length(&copy)));
            fs::remove_file(&copy).unwrap();
            // The WAL, which has grown, is copied by a thread of the store, restarted and truncated.
            measure("after it", &|| std::thread::sleep(Duration::from_secs(1)));
            let reader = Reader::open(&path).unwrap();
            measure("count", &|| drop(reader.count(NOW).unwrap()));
            measure("the first 100", &|| {
                let limit = PageLimit::rows(100);
                drop(
                    reader
                        .pending(&Scope::All, Reader::START, END, limit)
                        .unwrap(),
                );
            });
            measure("one by its id", &|| {
                drop(reader.search(Id::MAX).unwrap());
            });
            measure("100 commands that are withdrawn", &|| {
                for _ in 0..100 {
                    let command = Command::Pause("none".into());
                    drop(send_commands(&path, &[command], Duration::from_millis(20)));
                }
            });
            measure("nothing", &|| std::thread::sleep(Duration::from_secs(1)));
            println!("  the WAL has {}", size(length(&wal)));
        }
        // Commits of other pages, each of which is copied.
        let reading = "a reader, until the WAL is long";
        measure(reading, &|| {
            let reader = Connection::open(&path).unwrap();
            reader
                .execute_batch("BEGIN; SELECT count(*) FROM meta")
                .unwrap();
            is_filling.store(true, Ordering::Relaxed);
            while length(&wal) < long_wal {
                std::thread::sleep(Duration::from_millis(10));
            }
            is_filling.store(false, Ordering::Relaxed);
            reader.execute_batch("COMMIT").unwrap();
        });
        measure("after it, until the WAL is short", &|| {
            while length(&wal) >= long_wal / 10 {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        is_over.store(true, Ordering::Relaxed);
    });
    fs::remove_dir_all(&folder).unwrap();
}

/// Inserts a timer that is due within 30 days.
fn insert(number: u64, spread: i64, payload: usize) -> Op {
    let spread = (number.cast_signed() * 7_919_123) % spread.max(1);
    let row = Row::new(
        Id::new(1, number).unwrap(),
        Due::from_millis(NOW.as_millis() + spread),
        ["mail", "close", "notify"][number as usize % 3],
        vec![b'x'; payload],
    );
    let bucket = Bucket::of(row.due, NOW);
    Op::Insert(row, bucket)
}

fn fill(store: &mut SqliteStore, count: u64) -> u64 {
    let mut commit = 0;
    for first in (0..count).step_by(10_000) {
        commit += 1;
        let numbers = first..count.min(first + 10_000);
        let steps: Vec<_> = numbers.map(|it| insert(it, MONTH, 64)).collect();
        store.commit(commit, &steps).unwrap();
        store.maintain().unwrap();
    }
    commit
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

fn size(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
