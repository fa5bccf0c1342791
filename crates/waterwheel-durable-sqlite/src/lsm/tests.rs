//! Does the index answer like a map, whatever happens meanwhile?

use fastrand::Rng;

use super::*;
use crate::schema::TABLES;

const SMALL: Sizes = Sizes { fresh: 24, step: 9 };

fn file() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(TABLES).unwrap();
    // Keys have the same names in each run of the test.
    let secret = "UPDATE meta SET value = 7 WHERE key LIKE 'key secret %'";
    connection.execute_batch(secret).unwrap();
    connection
}

/// An index, and a map with the same content.
struct Pair {
    connection: Connection,
    keys: KeyIndex,
    map: HashMap<u64, Holder>,
    ids: i64,
    /// Whether nothing has changed since the last maintenance.
    is_idle: bool,
}

impl Pair {
    fn new() -> Pair {
        let connection = file();
        let keys = KeyIndex::read(&connection, SMALL).unwrap();
        let map = HashMap::new();
        Pair {
            connection,
            keys,
            map,
            ids: 0,
            is_idle: false,
        }
    }

    fn name(&self, key: u64) -> Name {
        self.keys.name(1, &key.to_le_bytes())
    }

    fn find(&self, key: u64) -> Option<Holder> {
        let name = self.name(key);
        self.keys.find(&self.connection, name).unwrap()
    }

    /// Takes free keys and frees taken ones, in a transaction.
    fn change(&mut self, keys: impl IntoIterator<Item = u64>, commits: bool) {
        let before = self.map.clone();
        self.is_idle = false;
        self.connection.execute_batch("BEGIN").unwrap();
        for key in keys {
            let name = self.name(key);
            let found = self.find(key);
            assert_eq!(found, self.map.get(&key).copied(), "key {key}");
            if found.is_some() {
                self.keys.free(name);
                self.map.remove(&key);
            } else {
                self.ids += 1;
                let holder = Holder {
                    id: self.ids,
                    due: -self.ids,
                };
                self.keys.take(name, holder);
                self.map.insert(key, holder);
            }
        }
        self.keys.write(&self.connection, 1).unwrap();
        self.end(commits);
        if !commits {
            self.map = before;
        }
    }

    fn end(&mut self, commits: bool) {
        let end = if commits { "COMMIT" } else { "ROLLBACK" };
        self.connection.execute_batch(end).unwrap();
        match commits {
            true => self.keys.commit(),
            false => self.keys.rollback(),
        }
    }

    /// Runs maintenance. Returns whether there was something to do.
    fn maintain(&mut self, commits: bool) -> bool {
        let is_much = self.keys.is_much_fresh();
        if is_much {
            self.connection.execute_batch("BEGIN").unwrap();
            self.keys.write_fresh(&self.connection).unwrap();
            self.end(commits);
        }
        let is_to_merge = self.keys.is_to_merge(self.is_idle);
        self.is_idle = true;
        if is_to_merge {
            self.connection.execute_batch("BEGIN").unwrap();
            self.keys.merge(&self.connection).unwrap();
            self.end(commits);
        }
        is_much || is_to_merge
    }

    fn reopen(&mut self) {
        self.keys = KeyIndex::read(&self.connection, SMALL).unwrap();
    }

    fn expect_all(&self, below: u64) {
        for key in 0..below {
            assert_eq!(self.find(key), self.map.get(&key).copied(), "key {key}");
        }
    }

    /// The number of entries in the file.
    fn entries(&self) -> i64 {
        let sql = "SELECT coalesce(sum(length(entries)), 0) / 32 FROM
            (SELECT entries FROM key_chunks UNION ALL SELECT entries FROM key_changes)";
        self.connection
            .query_row(sql, [], |row| row.get(0))
            .unwrap()
    }
}

#[test]
fn the_index_says_what_a_map_says() {
    let (mut merges, mut halves, mut full) = (0, 0, 0);
    for seed in 0..60 {
        let mut rng = Rng::with_seed(seed);
        let mut pair = Pair::new();
        // Either few keys, which are taken again and again, or many.
        let below = [40, 4_000][seed as usize % 2];
        for _ in 0..600 {
            let count = rng.usize(0..20);
            let keys: Vec<u64> = (0..count).map(|_| rng.u64(0..below)).collect();
            pair.change(keys, rng.u32(0..6) > 0);
            let runs = pair.keys.runs.len();
            pair.maintain(rng.u32(0..6) > 0);
            merges += usize::from(pair.keys.runs.len() < runs);
            if rng.u32(0..20) == 0 {
                let is_half = pair.keys.runs.iter().any(|run| run.from > Name(0));
                full += usize::from(pair.keys.runs.len() > 3);
                pair.reopen();
                if is_half {
                    halves += 1;
                    pair.expect_all(below);
                }
            }
        }
        pair.expect_all(below);
    }
    println!("{merges} merges; the file was opened in {halves}, and {full} times with many runs");
    assert!(merges > 100 && halves > 20 && full > 20);
}

#[test]
fn what_is_free_is_dropped_in_the_end() {
    for below in [1, 100, 5_000] {
        let mut pair = Pair::new();
        for _ in 0..2 {
            for part in (0..below).collect::<Vec<_>>().chunks(50) {
                pair.change(part.iter().copied(), true);
                pair.maintain(true);
            }
        }
        assert!(pair.map.is_empty());
        // From here on, nothing is changed.
        let mut steps = 0;
        while pair.maintain(true) {
            steps += 1;
        }
        println!(
            "{below} keys: {} entries after {steps} steps",
            pair.entries()
        );
        assert!(pair.entries() < 100, "{} entries", pair.entries());
        // An empty run must not exist: its filter would take memory.
        assert!(pair.keys.runs.iter().all(|run| run.entries > 0));
        let empty = "SELECT count(*) FROM key_runs WHERE entries = 0";
        let empty: i64 = pair
            .connection
            .query_row(empty, [], |row| row.get(0))
            .unwrap();
        assert_eq!(empty, 0);
        pair.expect_all(below);
    }
}

#[test]
fn a_merge_ends_beside_commits_that_change_no_keys() {
    let mut pair = Pair::new();
    let mut begun = 0;
    for _ in 0..4 {
        for part in (0..5_000).collect::<Vec<_>>().chunks(50) {
            pair.change(part.iter().copied(), true);
            pair.maintain(true);
            if part[0] % 500 > 0 || !pair.keys.may_merge() {
                continue;
            }
            begun += 1;
            // The index is never idle here.
            for _ in 0..10_000 {
                pair.change([], true);
                pair.maintain(true);
            }
            assert!(!pair.keys.may_merge(), "from key {}", part[0]);
        }
    }
    pair.expect_all(5_000);
    assert!(begun > 5, "{begun} merges were under way");
}

#[test]
fn a_new_key_reads_little_of_the_file() {
    let mut pair = Pair::new();
    for part in (0..40_000).collect::<Vec<_>>().chunks(20) {
        pair.change(part.iter().copied(), true);
        pair.maintain(true);
    }
    let runs = pair.keys.runs.len();
    let may_have = (40_000..50_000)
        .map(|key| pair.name(key))
        .filter(|name| pair.keys.runs.iter().any(|run| run.may_have(*name)));
    let may_have = may_have.count();
    println!("{runs} runs, {may_have} of 10 000 new keys are looked for in the file");
    assert!(runs < 40 && may_have < 2_000);
}

#[test]
fn work_keeps_up_with_commits_of_any_size() {
    for size in [1, 7, 60, 400] {
        let mut pair = Pair::new();
        let mut limit = 0;
        for part in (0..30_000).collect::<Vec<_>>().chunks(size) {
            pair.change(part.iter().copied(), true);
            pair.maintain(true);
            limit = limit.max(pair.keys.runs.len());
        }
        println!("{limit} runs by commits of {size}");
        assert!(limit < 30, "{limit} runs by commits of {size}");
    }
}

#[test]
fn a_key_of_a_short_timer_leaves_nothing_but_its_changes() {
    let mut pair = Pair::new();
    pair.change(100_000..100_030, true);
    pair.maintain(true);
    let mut runs = 0;
    for key in 0..10_000 {
        pair.change([key], true);
        pair.change([key], true);
        pair.maintain(true);
        assert!(pair.keys.fresh.len() < SMALL.fresh);
        runs = runs.max(pair.keys.runs[0].number);
    }
    // Changes were written as a run 800 times, and only those for which the filter was wrong have left one.
    println!("{runs} runs, {} entries", pair.entries());
    assert!(runs < 80 && pair.entries() < 30 + 3 * SMALL.fresh as i64);
}

#[test]
fn a_damaged_index_is_an_error() {
    let damages = [
        "UPDATE key_chunks SET entries = substr(entries, 2)",
        "UPDATE key_changes SET entries = substr(entries, 2)",
        "UPDATE key_runs SET merged_into = 77",
        "UPDATE key_filters SET filter = substr(filter, 9)",
        "DELETE FROM key_chunks",
        "UPDATE key_chunks SET entries = substr(entries, 33) || substr(entries, 1, 32)",
    ];
    for damage in damages {
        let mut pair = Pair::new();
        for part in (0..90).collect::<Vec<_>>().chunks(13) {
            pair.change(part.iter().copied(), true);
            pair.maintain(true);
        }
        pair.connection.execute_batch(damage).unwrap();
        let is_found = KeyIndex::read(&pair.connection, SMALL).and_then(|keys| {
            for key in 0..90_u64 {
                let name = keys.name(1, &key.to_le_bytes());
                if keys.find(&pair.connection, name)?.is_none() {
                    return Err(rusqlite::Error::QueryReturnedNoRows);
                }
            }
            Ok(())
        });
        assert!(is_found.is_err(), "{damage}");
    }
}
