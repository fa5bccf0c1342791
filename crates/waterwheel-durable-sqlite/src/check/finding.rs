use std::fmt;

use waterwheel_durable_core::store::Id;

use crate::Loss;

/// Content of a file that no store has written. The message says where and what it is, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the table, or `None` if it is unknown or the finding is not about a table.
    pub table: Option<String>,
    /// The row as an SQL condition, or `None` if the finding is not about a single row.
    pub row: Option<String>,
    /// The timer in the row, if its id is valid.
    pub timer: Option<Id>,
    /// A description of the problem.
    pub what: String,
    /// The advice to the operator.
    pub cure: &'static str,
}

/// For a damaged page.
const PAGES: &str = "restore a backup; to read what is left, run `sqlite3 COPY .recover` on a copy of the file and its `-wal`";

/// For a row that is read as damage.
pub(super) const ROW: &str = "restore a backup; or stop the service, copy the file, and correct or delete the row with `sqlite3`";

/// For a timer whose key is missing from the index.
pub(super) const KEY_IS_FREE: &str = "another timer with this key can be inserted: cancel this one and insert it again, or restore a backup";

/// For a key in the index that belongs to no timer.
pub(super) const KEY_IS_TAKEN: &str =
    "an insert with this key behaves as if the timer existed: use another key, or restore a backup";

/// For a timer that has moved and has no row in `moved`.
pub(super) const NOT_FOUND: &str =
    "it is delivered, but not found by its original handle: cancel it by its id, or leave it";

/// For a timer whose tag is missing from the table of tags.
pub(super) const NOT_TAGGED: &str =
    "it is delivered, but not cancelled by its tag: cancel it by its id, or leave it";

/// For a row in `moved` or `tags` whose timer is gone.
pub(super) const USELESS: &str =
    "it is harmless: leave it, or delete the row with `sqlite3` while no process uses the file";

/// For a count that differs from the number of rows.
pub(super) const MISCOUNTED: &str = "only the reported counts are affected: leave it, or delete all rows of the table with `sqlite3` while no process uses the file, and they are counted again";

/// For a request that this version does not know.
pub(super) const STRAY: &str =
    "it is harmless: the service answers that it does not know it; leave it";

/// For lost commits.
const LOST: &str = "put the original `-wal` of the file back, or restore a backup; opening the file with `accept_loss(true)` continues without what is gone";

/// For a file that was replaced by an older one.
const OLDER: &str = "put the newer file back, together with its `-wal`; opening the file with `accept_loss(true)` continues without what is gone";

/// For a damaged record of acknowledged commits.
const UNKNOWN: &str = "put the original `-acknowledged` of the file back if you have it, or restore a backup; opening the file with `accept_loss(true)` continues without what is gone";

impl Finding {
    pub(super) fn of_loss(loss: &Loss) -> Finding {
        Finding {
            table: None,
            row: None,
            timer: None,
            what: loss.to_string(),
            cure: match loss {
                Loss::Commits { .. } => LOST,
                Loss::OlderFile { .. } => OLDER,
                Loss::Unknown { .. } => UNKNOWN,
            },
        }
    }

    pub(super) fn of_pages(table: Option<String>, what: String) -> Finding {
        Finding {
            table,
            row: None,
            timer: None,
            what,
            cure: PAGES,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            Some(table) => write!(f, "table `{table}`")?,
            None => f.write_str("the file")?,
        }
        if let Some(row) = &self.row {
            write!(f, ", row {row}")?;
        }
        if let Some(timer) = self.timer {
            write!(f, " (timer {timer})")?;
        }
        write!(f, ": {}: {}", self.what, self.cure)
    }
}
