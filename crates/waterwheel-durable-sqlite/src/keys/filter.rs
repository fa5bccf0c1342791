//! Which keys are certainly not in a run?
//!
//! A new key is in none of the runs, and most lookups are of new keys. So each run has a [Bloom filter](https://doi.org/10.1145/362686.362692) in memory, one to
//! two bytes an entry, by which one lookup in some hundred reads the run. The filter of a chunk lies in eight cache lines, and a name is in one of them. It is also
//! in the file, in `key_filters`, a row a chunk, and all are read as the file is opened: 17 MB for 10 million keys.

use super::entry::damaged;
use super::name::Name;

/// 512 bytes a chunk.
const WORDS: usize = 64;
const LINE_WORDS: usize = 8;
/// Of the 512 in a line.
const BITS: u32 = 6;

/// Of all chunks of a run.
#[derive(Debug)]
pub(super) struct Filter(Vec<u64>);

impl Filter {
    /// Of chunks that have nothing.
    pub(super) fn new(chunks: usize) -> Filter {
        Filter(vec![0; chunks * WORDS])
    }

    /// Whether a chunk may have an entry of this name.
    pub(super) fn may_have(&self, chunk: u32, name: Name) -> bool {
        let line = self.0.get(line(chunk, name)..).unwrap_or_default();
        bits(name).all(|(word, mask)| line.get(word).is_none_or(|word| word & mask != 0))
    }

    /// Makes the filter of a chunk that has these.
    pub(super) fn set(&mut self, chunk: u32, names: impl Iterator<Item = Name>) {
        self.of(chunk).fill(0);
        for name in names {
            let line = self.0.get_mut(line(chunk, name)..).unwrap_or_default();
            for (word, mask) in bits(name) {
                if let Some(word) = line.get_mut(word) {
                    *word |= mask;
                }
            }
        }
    }

    /// The filter of a chunk, as it lies in the file.
    pub(super) fn write(&mut self, chunk: u32) -> Vec<u8> {
        let words = self.of(chunk).iter();
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Takes the filter of a chunk from the file.
    pub(super) fn read(&mut self, chunk: u32, from: &[u8]) -> rusqlite::Result<()> {
        let (words, rest) = from.as_chunks();
        let to = self.of(chunk);
        if to.len() != words.len() || !rest.is_empty() {
            return Err(damaged());
        }
        for (to, word) in to.iter_mut().zip(words) {
            *to = u64::from_le_bytes(*word);
        }
        Ok(())
    }

    fn of(&mut self, chunk: u32) -> &mut [u64] {
        let first = chunk as usize * WORDS;
        self.0.get_mut(first..first + WORDS).unwrap_or_default()
    }
}

/// Where the line of a name begins. The highest bits of names say which chunk they are in, so the lowest are used here.
fn line(chunk: u32, name: Name) -> usize {
    let line = name.0 as usize % (WORDS / LINE_WORDS);
    chunk as usize * WORDS + line * LINE_WORDS
}

/// The bits of a name in its line: words and masks.
fn bits(name: Name) -> impl Iterator<Item = (usize, u64)> {
    let rest = name.0 as u64 >> 3;
    (0..BITS).map(move |at| {
        let bit = rest >> (9 * at) & 511;
        (bit as usize / 64, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_chunk_has_is_never_ruled_out_and_most_else_is() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut names = |count| -> Vec<Name> {
            (0..count)
                .map(|_| Name(random.u128(..) & u128::MAX >> 2 | 1 << 126))
                .collect()
        };
        let mut filter = Filter::new(4);
        let inside = names(512);
        filter.set(1, inside.iter().copied());
        assert!(inside.iter().all(|name| filter.may_have(1, *name)));
        let others = names(100_000);
        let wrong = others.iter().filter(|name| filter.may_have(1, **name));
        let wrong = wrong.count();
        println!("{wrong} of 100 000 are not ruled out");
        assert!(wrong < 5_000, "{wrong} of 100 000");
        for chunk in [0, 2, 3] {
            assert!(!inside.iter().any(|name| filter.may_have(chunk, *name)));
        }
        let blob = filter.write(1);
        let mut other = Filter::new(4);
        other.read(3, &blob).unwrap();
        assert!(inside.iter().all(|name| other.may_have(3, *name)));
        assert_eq!(other.write(3), blob);
        for wrong in [&blob[1..], &blob[8..], &[]] {
            assert!(other.read(3, wrong).is_err());
        }
        assert!(other.read(4, &blob).is_err());
        // What a step had that was taken back does not stay.
        other.set(3, std::iter::empty());
        assert!(!inside.iter().any(|name| other.may_have(3, *name)));
    }
}
