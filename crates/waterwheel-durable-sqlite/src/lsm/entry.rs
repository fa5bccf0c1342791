//! An entry of the index, and its form in the file.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::error;

/// A key of a handler, in 128 bits: its `SipHash` with the secret of the file. Names are spread evenly, whatever the keys are, and without the secret one
/// cannot choose two keys with the same name. With 10 million keys, the chance that any two share a name is 1 in 10²⁴.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(pub(super) u128);

impl Name {
    /// The chunk that contains the name, in a run with 2 to the power of `bits` chunks.
    pub(super) fn chunk(self, bits: u32) -> u32 {
        match bits {
            0 => 0,
            bits => (self.0 >> (128 - bits)) as u32,
        }
    }

    /// The first name of a chunk, or `None` if the run has fewer chunks.
    pub(super) fn first_of(chunk: u32, bits: u32) -> Option<Name> {
        let is_in = u64::from(chunk) < 1 << bits;
        is_in.then(|| Name(u128::from(chunk).checked_shl(128 - bits).unwrap_or(0)))
    }
}

/// The two random numbers with which the names of a file are hashed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Secret(pub(super) i64, pub(super) i64);

impl Secret {
    /// The name of a key of the handler with this number.
    pub(super) fn name(self, handler: i64, key: &[u8]) -> Name {
        let mut hash = SipHasher24::new_with_keys(self.0.cast_unsigned(), self.1.cast_unsigned());
        hash.write(&handler.to_le_bytes());
        hash.write(key);
        Name(hash.finish128().as_u128())
    }
}

/// The timer that has a key, and its due time at the insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) id: i64,
    pub(crate) due: i64,
}

impl Holder {
    /// No timer: the key is free again.
    pub(super) const NONE: Holder = Holder { id: 0, due: 0 };
}

/// A key, and the timer that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: Name,
    pub(super) holder: Holder,
}

/// The length of an entry in the file, in bytes.
pub(super) const LENGTH: usize = 32;

impl Entry {
    /// Whether the entry says that the key is free.
    pub(super) fn is_free(&self) -> bool {
        self.holder == Holder::NONE
    }

    pub(super) fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.name.0.to_be_bytes());
        to.extend_from_slice(&self.holder.id.to_be_bytes());
        to.extend_from_slice(&self.holder.due.to_be_bytes());
    }

    fn read(from: &[u8]) -> Option<Entry> {
        let (name, rest) = from.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        Some(Entry {
            name: Name(u128::from_be_bytes(*name)),
            holder: Holder {
                id: i64::from_be_bytes(*id),
                due: i64::from_be_bytes(*rest.first_chunk()?),
            },
        })
    }
}

/// The entries of a blob, in order.
pub(super) fn entries(blob: &[u8]) -> rusqlite::Result<impl Iterator<Item = Entry>> {
    match blob.len() % LENGTH {
        0 => Ok(blob.chunks_exact(LENGTH).filter_map(Entry::read)),
        _ => Err(damaged()),
    }
}

/// The entry of a name, in a blob of entries in order of their names.
pub(super) fn find(blob: &[u8], name: Name) -> rusqlite::Result<Option<Holder>> {
    let (mut first, mut end) = (0, blob.len() / LENGTH);
    while first < end {
        let middle = first.midpoint(end);
        let at = middle * LENGTH;
        let entry = blob.get(at..at + LENGTH).and_then(Entry::read);
        let entry = entry.ok_or_else(damaged)?;
        match entry.name.cmp(&name) {
            std::cmp::Ordering::Less => first = middle + 1,
            std::cmp::Ordering::Equal => return Ok(Some(entry.holder)),
            std::cmp::Ordering::Greater => end = middle,
        }
    }
    Ok(None)
}

pub(super) fn damaged() -> rusqlite::Error {
    error::damaged("the index of the keys (tables `key_…`) is invalid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_differs_by_its_handler_its_key_and_the_secret() {
        let names = [
            Secret(1, 2).name(1, b"key"),
            Secret(1, 2).name(2, b"key"),
            Secret(1, 2).name(1, b"kez"),
            Secret(1, 2).name(1, b""),
            Secret(1, 2).name(1, b"\0"),
            Secret(1, 3).name(1, b"key"),
            Secret(2, 2).name(1, b"key"),
        ];
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name));
        }
        // The hash is stored in files, so it must not change: it covers the number followed by the key.
        let both = [1, 0, 0, 0, 0, 0, 0, 0, b'k', b'e', b'y'];
        let hash = SipHasher24::new_with_keys(1, 2).hash(&both);
        assert_eq!(names[0].0, hash.as_u128());
        assert_eq!(
            names[0].0,
            102_446_469_541_307_454_881_529_432_829_697_830_996
        );
    }

    #[test]
    fn a_chunk_begins_where_the_one_before_it_ends() {
        for bits in [0, 1, 7, 31] {
            let last = ((1_u64 << bits) - 1) as u32;
            for chunk in [0, last / 2, last] {
                let first = Name::first_of(chunk, bits).unwrap();
                assert_eq!(first.chunk(bits), chunk);
                if chunk > 0 {
                    assert_eq!(Name(first.0 - 1).chunk(bits), chunk - 1);
                }
            }
            assert_eq!(Name(u128::MAX).chunk(bits), last);
            assert_eq!(Name::first_of(last + 1, bits), None);
        }
    }

    #[test]
    fn each_entry_is_read_and_found_as_it_was_written() {
        for count in [0_u128, 1, 2, 7, 500] {
            let all: Vec<_> = (0..count)
                .map(|at| Entry {
                    name: Name(at * 2 + 1),
                    holder: Holder {
                        id: at as i64,
                        due: -(at as i64),
                    },
                })
                .collect();
            let mut blob = Vec::new();
            all.iter().for_each(|entry| entry.write(&mut blob));
            assert_eq!(entries(&blob).unwrap().collect::<Vec<_>>(), all);
            for entry in &all {
                assert_eq!(find(&blob, entry.name).unwrap(), Some(entry.holder));
            }
            for at in 0..=count {
                assert_eq!(find(&blob, Name(at * 2)).unwrap(), None);
            }
            blob.push(0);
            assert!(entries(&blob).is_err());
        }
    }
}
