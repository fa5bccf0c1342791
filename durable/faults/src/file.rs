use std::collections::BTreeMap;
use std::ops::Range;

use super::Choice;

/// A file, as the disk has it and as the system does.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    synced: Vec<u8>,
    cached: Vec<u8>,
    /// What was done since the last sync, and when.
    changes: Vec<(u64, Change)>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl File {
    pub(crate) fn of(bytes: Vec<u8>) -> File {
        File {
            synced: bytes.clone(),
            cached: bytes,
            changes: Vec::new(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.cached
    }

    pub(crate) fn write(&mut self, at: usize, bytes: &[u8], call: u64) {
        let change = Change::Write(at, bytes.to_vec());
        change.apply(&mut self.cached);
        self.changes.push((call, change));
    }

    pub(crate) fn set_length(&mut self, length: usize, call: u64) {
        let change = Change::Length(length);
        change.apply(&mut self.cached);
        self.changes.push((call, change));
    }

    pub(crate) fn sync(&mut self) {
        for (_, change) in self.changes.drain(..) {
            change.apply(&mut self.synced);
        }
    }

    /// What is not synced never will be, although the system has it.
    pub(crate) fn drop_changes(&mut self) {
        self.changes.clear();
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.changes.is_empty()
    }

    /// What the disk has after a power cut.
    pub(crate) fn left(&self, number: usize, choice: &mut dyn Choice) -> Vec<u8> {
        let sector = choice.sector();
        let lengths = self.lengths_left(number, choice);
        let length = lengths[lengths.len() - 1].1;
        // What a change has left of an earlier one that was made in this call.
        let end = |call: u64| {
            let later = lengths.iter().filter(|(at, _)| *at > call);
            later.map(|(_, length)| *length).min().unwrap_or(usize::MAX)
        };
        let mut left = self.synced.clone();
        left.truncate(end(0));
        left.resize(length, 0);
        for (at, changes) in self.by_sector(sector) {
            let range = at * sector..length.min((at + 1) * sector);
            if range.is_empty() {
                continue;
            }
            let calls: Vec<u64> = changes.iter().map(|(call, _)| *call).collect();
            let kept = choice.keep(number, &calls);
            for (call, change) in &changes[..kept] {
                let range = range.start..range.end.min(end(*call));
                change.apply_within(&mut left, range);
            }
        }
        left
    }

    /// The lengths that the file has had, with the calls in which it got them, up to the one that is left. Calls are counted from 1.
    fn lengths_left(&self, number: usize, choice: &mut dyn Choice) -> Vec<(u64, usize)> {
        let mut lengths = vec![(0, self.synced.len())];
        for (call, change) in &self.changes {
            let before = lengths[lengths.len() - 1].1;
            let after = change.length_after(before);
            if after != before {
                lengths.push((*call, after));
            }
        }
        let calls: Vec<u64> = lengths[1..].iter().map(|(call, _)| *call).collect();
        let kept = if calls.is_empty() {
            0
        } else {
            choice.keep(number, &calls)
        };
        lengths.truncate(kept + 1);
        lengths
    }

    /// The writes to each sector, in order.
    fn by_sector(&self, sector: usize) -> BTreeMap<usize, Vec<&(u64, Change)>> {
        let mut sectors: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for entry in &self.changes {
            if let Change::Write(at, bytes) = &entry.1
                && !bytes.is_empty()
            {
                for sector in at / sector..=(at + bytes.len() - 1) / sector {
                    sectors.entry(sector).or_default().push(entry);
                }
            }
        }
        sectors
    }
}

impl Change {
    fn length_after(&self, before: usize) -> usize {
        match self {
            Change::Write(at, bytes) => before.max(at + bytes.len()),
            Change::Length(length) => *length,
        }
    }

    fn apply(&self, to: &mut Vec<u8>) {
        to.resize(self.length_after(to.len()), 0);
        self.apply_within(to, 0..usize::MAX);
    }

    fn apply_within(&self, to: &mut [u8], range: Range<usize>) {
        if let Change::Write(at, bytes) = self {
            let start = range.start.max(*at);
            let end = range.end.min(at + bytes.len()).min(to.len());
            if start < end {
                to[start..end].copy_from_slice(&bytes[start - at..end - at]);
            }
        }
    }
}
