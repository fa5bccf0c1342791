//! What must be true of the rows of the index?

use super::Keys;
use super::entry::{Holder, entries};
use super::filter::Filter;
use super::name::Name;

/// The entries of a row. The timer is `None` where a key is free.
pub(crate) fn read_entries(blob: &[u8]) -> rusqlite::Result<Vec<(Name, Option<Holder>)>> {
    let all = entries(blob)?;
    let all = all.map(|entry| (entry.name, Some(entry.holder).filter(|_| !entry.is_free())));
    Ok(all.collect())
}

/// Whether a row can be a filter: it is as long as one.
pub(crate) fn is_filter(row: &[u8]) -> bool {
    Filter::new(1).read(0, row).is_ok()
}

impl Keys {
    /// Whether the entries of a chunk lie where they are looked for. What is wrong if they do not.
    pub(crate) fn fits(
        &self,
        number: i64,
        entries: &[(Name, Option<Holder>)],
    ) -> Result<(), &'static str> {
        let Some(run) = self.runs.iter().find(|run| run.number == number >> 32) else {
            return Err("it is a chunk of a run that the table `key_runs` does not have");
        };
        let chunk = number as u32;
        if chunk >= run.done {
            return Err("it is a chunk that its run has not written");
        }
        if !entries.is_sorted_by(|one, other| one.0 < other.0) {
            return Err("its entries are not in order");
        }
        if entries
            .iter()
            .any(|(name, _)| name.chunk(run.bits) != chunk)
        {
            return Err("it has an entry of another chunk");
        }
        match entries
            .iter()
            .all(|(name, _)| run.filter.may_have(chunk, *name))
        {
            true => Ok(()),
            false => {
                Err("its row in the table `key_filters` rules out a key that it has, or is missing")
            }
        }
    }
}
