//! What does the index say of a key, and how does it lie in the file?

use super::name::Name;
use crate::words;

/// The timer that has a key, and its due time as it was inserted.
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

/// In bytes, in the file.
pub(super) const LENGTH: usize = 32;

impl Entry {
    /// Whether it says that the key is free.
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
    words::damaged("the index of the keys (tables `key_…`) is invalid")
}

#[cfg(test)]
mod tests {
    use super::*;

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
