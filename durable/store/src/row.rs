use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Archived, Due, Position};

/// Occurrences of calendars have ids of their own: above those of inserts, whose epochs leave this bit out.
const OCCURRENCE: u64 = 1 << 62;

/// A timer's name for life: the same in each attempt, and never used again in its store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl Id {
    /// No timer's, and before all of them.
    pub const NONE: Id = Id(0);
    /// After all timers' ids.
    pub const MAX: Id = Id(i64::MAX as u64);

    /// The `count`th timer that was inserted since the store was opened for the `epoch`th time. `None` beyond 4 million openings, or 2⁴⁰ timers in one.
    #[must_use]
    pub const fn new(epoch: u64, count: u64) -> Option<Id> {
        if epoch == 0 || epoch >> 22 != 0 || count >> 40 != 0 {
            return None;
        }
        Some(Id(epoch << 40 | count))
    }

    /// The occurrence in this second since 1970 of the calendar with this number: no inserted timer's id. `None` beyond 4 million numbers, before 1970, and after
    /// the year 10 000.
    #[must_use]
    pub const fn of_occurrence(calendar: u32, second: i64) -> Option<Id> {
        if calendar >> 22 != 0 || second < 0 || second >> 38 != 0 {
            return None;
        }
        Some(Id(OCCURRENCE | (calendar as u64) << 40 | second as u64))
    }

    /// Of which calendar it is an occurrence, and in which second, if it is one.
    #[must_use]
    pub const fn occurrence(self) -> Option<(u32, i64)> {
        if self.0 & OCCURRENCE == 0 {
            return None;
        }
        let calendar = (self.0 >> 40 & 0x3f_ffff) as u32;
        Some((calendar, (self.0 & 0xff_ffff_ffff) as i64))
    }

    /// For which time the store was opened when the timer was inserted. `None` if its id is of another kind.
    #[must_use]
    pub const fn epoch(self) -> Option<u64> {
        match self.0 >> 40 {
            0 => None,
            epoch if epoch >> 22 != 0 => None,
            epoch => Some(epoch),
        }
    }

    /// The number that it is stored as; it fits in an `i64`.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// An id that was stored.
    #[must_use]
    pub const fn from_stored(id: u64) -> Id {
        Id(id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// In hexadecimal as well: what is copied from a log is asked for by its id.
impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// As it is shown: in hexadecimal.
impl FromStr for Id {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Id, InvalidId> {
        // Not with a sign, which the parser of numbers takes.
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u64::from_str_radix(text, 16).map_err(|_| InvalidId)?;
        match is_hex && id > Id::NONE.0 && id <= Id::MAX.0 {
            true => Ok(Id(id)),
            false => Err(InvalidId),
        }
    }
}

/// The text is no [`Id`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidId;

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is a number in hexadecimal, as `Id` shows it")
    }
}

impl std::error::Error for InvalidId {}

/// What names a timer to cancel or reschedule it, across restarts. As text, `id@due@handler`, it can be stored anywhere.
///
/// The due time and the handler say where to look. They stay as they were at the insert: a store notes where a timer has moved since.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handle {
    /// Which timer.
    pub id: Id,
    /// When it was due as it was inserted.
    pub due: Due,
    /// To which handler it is delivered.
    pub handler: Arc<str>,
}

impl AsRef<Handle> for Handle {
    fn as_ref(&self) -> &Handle {
        self
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}@{}", self.id, self.due.as_millis(), self.handler)
    }
}

/// The text is no [`Handle`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidHandle;

impl fmt::Display for InvalidHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a handle is its id in hexadecimal, `@`, milliseconds since 1970, `@`, and its handler, as `Handle` shows it")
    }
}

impl std::error::Error for InvalidHandle {}

impl FromStr for Handle {
    type Err = InvalidHandle;

    fn from_str(text: &str) -> Result<Handle, InvalidHandle> {
        let (id, rest) = text.split_once('@').ok_or(InvalidHandle)?;
        let (due, handler) = rest.split_once('@').ok_or(InvalidHandle)?;
        let id = id.parse().map_err(|_| InvalidHandle)?;
        let due = due.parse().map_err(|_| InvalidHandle)?;
        Ok(Handle {
            id,
            due: Due::from_millis(due),
            handler: handler.into(),
        })
    }
}

/// A timer, as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its name for life.
    pub id: Id,
    /// When it is due, or is tried again.
    pub due: Due,
    /// The handler that it is delivered to.
    pub handler: Arc<str>,
    /// How many attempts have failed.
    pub failures: u32,
    /// What is noted of its [starts](crate::Op::Start): how many in the lower 32 bits, and above them in which series of runs. 2⁶³ − 1 at most. A retry and a move forget
    /// them.
    pub starts: u64,
    /// Whether the store notes that it is no longer due as its [`Handle`] says.
    pub has_moved: bool,
    /// The business key, which one timer has at a time.
    pub key: Option<Arc<[u8]>>,
    /// What the handler is handed.
    pub payload: Arc<[u8]>,
}

impl Row {
    /// What names it, unless it [has moved](Row::has_moved) since its insert.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            id: self.id,
            due: self.due,
            handler: Arc::clone(&self.handler),
        }
    }

    /// How many [starts](Row::starts) are noted, in whichever series.
    #[must_use]
    pub fn start_count(&self) -> u32 {
        u32::try_from(self.starts & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    /// How large it is: its key and its payload.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.payload.len() + self.key.as_ref().map_or(0, |key| key.len())
    }

    /// What is kept of it, if it is archived at this time.
    #[must_use]
    pub fn archived(&self, at: Due) -> Archived {
        Archived {
            id: self.id,
            due: self.due,
            at,
            failures: self.failures,
            key: self.key.clone(),
        }
    }

    /// Where it stands once it lies in a bucket of [`Level::Second`](crate::Level::Second).
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            second: self.due.second(),
            id: self.id,
        }
    }
}

/// A timer that was given up: a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// The timer, as it was in its last attempt.
    pub row: Row,
    /// When it was given up.
    pub at: Due,
    /// What the last attempt said.
    pub error: Arc<str>,
}

impl Dead {
    /// How large it is: its key, its payload and its error.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.row.bytes() + self.error.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_read_as_it_is_written() {
        let id = Id::new(7, 123_456).unwrap();
        for due in [i64::MIN, -1, 0, 1_800_000_000_000, i64::MAX] {
            let handle = Handle {
                id,
                due: Due::from_millis(due),
                handler: "a handler @ a place".into(),
            };
            assert_eq!(handle.to_string().parse(), Ok(handle));
        }
        for wrong in [
            "",
            "@",
            "7",
            "7@5",
            "@7@h",
            "0@5@h",
            "ffffffffffffffff@5@h",
            "7@x@h",
            "g@1@h",
        ] {
            assert_eq!(wrong.parse::<Handle>(), Err(InvalidHandle), "{wrong}");
        }
    }

    #[test]
    fn an_id_is_read_as_it_is_shown() {
        for id in [
            Id::new(1, 0).unwrap(),
            Id::new(7, 123_456).unwrap(),
            Id::MAX,
        ] {
            assert_eq!(id.to_string().parse(), Ok(id));
            assert_eq!(format!("{id:?}"), format!("Id({id})"));
        }
        for wrong in [
            "",
            "0",
            "+7",
            "-7",
            "x",
            "8000000000000000",
            "ffffffffffffffffff",
        ] {
            assert_eq!(wrong.parse::<Id>(), Err(InvalidId), "{wrong}");
        }
    }

    #[test]
    fn ids_rise_within_an_epoch_and_from_one_to_the_next() {
        let ids = [
            (1, 0),
            (1, 1),
            (1, (1 << 40) - 1),
            (2, 0),
            ((1 << 22) - 1, (1 << 40) - 1),
        ];
        let ids = ids.map(|(epoch, count)| Id::new(epoch, count).unwrap());
        assert!(ids.is_sorted() && ids[4] < Id::MAX && ids[0] > Id::NONE);
        assert_eq!(Id::new(0, 1), None);
        assert_eq!(Id::new(1 << 22, 1), None);
        assert_eq!(Id::new(1, 1 << 40), None);
    }

    #[test]
    fn an_occurrence_has_an_id_of_its_own_that_says_which() {
        let last_insert = Id::new((1 << 22) - 1, (1 << 40) - 1).unwrap();
        for (calendar, second) in [
            (0, 0),
            (0, 1_774_746_000),
            (1, 0),
            ((1 << 22) - 1, (1 << 38) - 1),
        ] {
            let id = Id::of_occurrence(calendar, second).unwrap();
            assert_eq!(id.occurrence(), Some((calendar, second)));
            assert!(last_insert < id && id < Id::MAX, "{id}");
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(last_insert.occurrence(), None);
        assert_eq!(
            Id::of_occurrence(5, 7).unwrap().get(),
            0x4000_0500_0000_0007
        );
        assert_eq!(Id::of_occurrence(1 << 22, 0), None);
        assert_eq!(Id::of_occurrence(0, -1), None);
        assert_eq!(Id::of_occurrence(0, 1 << 38), None);
    }
}
