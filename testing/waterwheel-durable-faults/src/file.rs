use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Choice;

/// A file, both as it is on the disk and as the system sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    synced: Vec<u8>,
    cached: Vec<u8>,
    /// The changes since the last sync, and when they were made.
    changes: Vec<(u64, Change)>,
    /// The blocks that were overwritten since, on a disk that keeps the old ones until then.
    copied: BTreeSet<usize>,
}

/// The block size of a disk that copies on write.
const BLOCK: usize = 4_096;

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
            copied: BTreeSet::new(),
        }
    }

    /// The size of the kept old blocks in bytes.
    pub(crate) fn copied(&self) -> usize {
        self.copied.len() * BLOCK
    }

    /// The number of bytes of a write that fit into this space, if overwritten blocks are kept.
    pub(crate) fn fits_copied(&self, at: usize, length: usize, mut space: usize) -> usize {
        let mut end = at;
        for block in blocks(at, length) {
            let next = ((block + 1) * BLOCK).min(at + length);
            let grows = next.saturating_sub(self.cached.len().max(end));
            let copies = match block * BLOCK < self.cached.len() && !self.copied.contains(&block) {
                true => BLOCK,
                false => 0,
            };
            if grows + copies > space {
                break;
            }
            space -= grows + copies;
            end = next;
        }
        end - at
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.cached
    }

    pub(crate) fn write(&mut self, at: usize, bytes: &[u8], call: u64, copies: bool) {
        if copies {
            let length = self.cached.len();
            let over = blocks(at, bytes.len()).filter(|block| block * BLOCK < length);
            self.copied.extend(over);
        }
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
        self.copied.clear();
        for (_, change) in self.changes.drain(..) {
            change.apply(&mut self.synced);
        }
    }

    /// Makes the unsynced changes impossible to sync, although the system sees them.
    pub(crate) fn drop_changes(&mut self) {
        self.changes.clear();
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.changes.is_empty()
    }

    /// The contents on the disk after a power cut.
    pub(crate) fn left(&self, number: usize, choice: &mut dyn Choice) -> Vec<u8> {
        let sector = choice.sector();
        let lengths = self.lengths_left(number, choice);
        let length = lengths[lengths.len() - 1].1;
        // The shortest length that was set after this call: earlier bytes beyond it are lost.
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

    /// The lengths that the file has had up to the one that survives, with the calls that set them. Calls are counted from 1.
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

/// The blocks of a write.
fn blocks(at: usize, length: usize) -> Range<usize> {
    at / BLOCK..(at + length).div_ceil(BLOCK)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Each;

    /// All possible remains of a file, in sectors of four bytes.
    fn all_left(file: &File) -> BTreeSet<Vec<u8>> {
        let (mut each, mut left) = (Each::new(4), BTreeSet::new());
        loop {
            left.insert(file.left(0, &mut each));
            if !each.advance() {
                return left;
            }
        }
    }

    fn texts(texts: &[&str]) -> BTreeSet<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_write_is_lost_or_there_or_torn_at_a_sector() {
        let mut file = File::of(b"aaaabbbbcccc".to_vec());
        file.write(2, b"12345678", 1, false);
        assert_eq!(file.bytes(), b"aa12345678cc");
        let expected = [
            "aaaabbbbcccc",
            "aa12bbbbcccc",
            "aaaa3456cccc",
            "aaaabbbb78cc",
            "aa123456cccc",
            "aa12bbbb78cc",
            "aaaa345678cc",
            "aa12345678cc",
        ];
        assert_eq!(all_left(&file), texts(&expected));
        file.sync();
        assert_eq!(all_left(&file), texts(&["aa12345678cc"]));
    }

    #[test]
    fn a_sector_is_as_one_of_the_writes_has_left_it() {
        let mut file = File::of(b"aaaa".to_vec());
        file.write(0, b"1", 1, false);
        file.write(1, b"2", 2, false);
        assert_eq!(all_left(&file), texts(&["aaaa", "1aaa", "12aa"]));
    }

    #[test]
    fn a_file_may_have_grown_without_its_bytes() {
        let mut file = File::of(b"aaaa".to_vec());
        file.write(4, b"12", 1, false);
        assert_eq!(all_left(&file), texts(&["aaaa", "aaaa\0\0", "aaaa12"]));
    }

    #[test]
    fn what_was_cut_off_is_not_seen_again() {
        let mut file = File::of(b"aaaabbbb".to_vec());
        file.set_length(0, 1);
        file.write(4, b"wxyz", 2, false);
        let expected = [
            // Nothing, or only the end, then the writes.
            "aaaabbbb",
            "aaaawxyz",
            "",
            "\0\0\0\0\0\0\0\0",
            "\0\0\0\0wxyz",
        ];
        assert_eq!(all_left(&file), texts(&expected));
        let mut file = File::of(Vec::new());
        file.write(0, b"old!", 1, false);
        file.set_length(0, 2);
        file.write(0, b"new", 3, false);
        let left = all_left(&file);
        assert!(!left.contains(&b"old"[..]) && left.contains(&b"old!"[..]));
    }
}
