use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use super::Due;
use crate::policy::Retries;

/// The bit of the ids of calendar occurrences, which are above those of inserts: epochs leave it out.
const OCCURRENCE: u64 = 1 << 62;

/// 2501-01-01, in seconds since 1970: the occurrences of calendars are before it.
const LAST_SECOND: i64 = 16_756_761_600;

/// The id of a timer. It is the same in each attempt, and is never used again in the same store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl Id {
    /// The id of no timer, smaller than all ids of timers.
    pub const NONE: Id = Id(0);
    /// An id larger than the ids of all timers.
    pub const MAX: Id = Id(i64::MAX as u64);

    /// The number of ids in an epoch of a partition: 2³⁴.
    pub const IN_EPOCH: u64 = 1 << 34;

    /// Returns the id of the `count`th timer inserted in an [epoch](crate::store::Store::begin), in partition 0: see
    /// [`in_partition`](Id::in_partition).
    #[must_use]
    pub const fn new(epoch: u64, count: u64) -> Option<Id> {
        Id::in_partition(epoch, 0, count)
    }

    /// Returns the id of the `count`th timer that a [partition](crate::store::Store::partition) has inserted in an
    /// [epoch](crate::store::Store::begin), or `None` beyond 4 million epochs, 64 partitions or
    /// [`IN_EPOCH`](Id::IN_EPOCH) timers.
    #[must_use]
    pub const fn in_partition(epoch: u64, partition: u8, count: u64) -> Option<Id> {
        if epoch == 0 || epoch >> 22 != 0 || partition >> 6 != 0 || count >= Id::IN_EPOCH {
            return None;
        }
        Some(Id(epoch << 40 | (partition as u64) << 34 | count))
    }

    /// Returns the partition that has assigned the id.
    #[must_use]
    pub const fn partition(self) -> u8 {
        (self.0 >> 34 & 0x3f) as u8
    }

    /// Returns the id of the occurrence of a calendar, given by its partition and its number, at this second since 1970.
    /// It is different from the ids of all inserted timers. `None` beyond 64 partitions or 4 million numbers, before 1970,
    /// and after the year 2500.
    #[must_use]
    pub const fn of_occurrence(partition: u8, calendar: u32, second: i64) -> Option<Id> {
        if partition >> 6 != 0 || calendar >> 22 != 0 || second < 0 || second >= LAST_SECOND {
            return None;
        }
        let bits = (calendar as u64) << 40 | (partition as u64) << 34 | second as u64;
        Some(Id(OCCURRENCE | bits))
    }

    /// Returns the number of the calendar and the second of the occurrence, or `None` if this is not the id of an
    /// occurrence.
    #[must_use]
    pub const fn occurrence(self) -> Option<(u32, i64)> {
        if self.0 & OCCURRENCE == 0 {
            return None;
        }
        let calendar = (self.0 >> 40 & 0x3f_ffff) as u32;
        Some((calendar, (self.0 & 0x3_ffff_ffff) as i64))
    }

    /// Returns the time of the occurrence, or `None` if this is not the id of an occurrence.
    #[must_use]
    pub fn occurrence_time(self) -> Option<SystemTime> {
        let (_, second) = self.occurrence()?;
        Due::from_second(second).time()
    }

    /// Returns the epoch in which the timer was inserted, or `None` for other kinds of ids.
    #[must_use]
    pub const fn epoch(self) -> Option<u64> {
        match self.0 >> 40 {
            0 => None,
            epoch if epoch >> 22 != 0 => None,
            epoch => Some(epoch),
        }
    }

    /// Returns the number as which the id is stored; it fits in an `i64`.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Creates an id from its stored number.
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

/// Hexadecimal, so that an id copied from a log can be used for a lookup.
impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// Parses the hexadecimal form that is displayed.
impl FromStr for Id {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Id, InvalidId> {
        // The number parser would accept a sign.
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u64::from_str_radix(text, 16).map_err(|_| InvalidId)?;
        match is_hex && id > Id::NONE.0 && id <= Id::MAX.0 {
            true => Ok(Id(id)),
            false => Err(InvalidId),
        }
    }
}

/// The text is not a valid [`Id`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidId;

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid id: expected a hexadecimal number, such as `10000000007`")
    }
}

impl std::error::Error for InvalidId {}

/// Identifies a timer to cancel or reschedule it, also after restarts. Its text form, `id@due@handler`, can be stored
/// anywhere.
///
/// The due time and the handler say where to look. They remain those of the insert: the store records where a timer has
/// moved since.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Handle {
    /// The id of the timer.
    pub id: Id,
    /// When the timer was due at its insert.
    pub due: Due,
    /// The full name of the handler of the timer.
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

/// The text is not a valid [`Handle`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidHandle;

impl fmt::Display for InvalidHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "invalid handle: expected `ID@DUE@HANDLER`, such as `10000000007@1800000000000@close`",
        )
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

/// A timer as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The id, which never changes.
    pub id: Id,
    /// When the timer is due, or is to be retried.
    pub due: Due,
    /// When the timer was due at its insert, as its [`Handle`] says. A retry, a reschedule and a redrive leave it.
    pub first_due: Due,
    /// The full name of its handler.
    pub handler: Arc<str>,
    /// The number of failed attempts.
    pub failures: u32,
    /// The recorded [starts](crate::store::Op::Start): their number in the lower 32 bits, and above them the series of runs to
    /// which they belong. At most 2⁶³ − 1. A retry and a reschedule reset it.
    pub starts: u64,
    /// The business key, which only one timer has at a time.
    pub key: Option<Arc<[u8]>>,
    /// The payload for the handler.
    pub payload: Arc<[u8]>,
    /// The tag and the retries of the timer, if it has any of its own.
    pub extras: Option<Arc<Extras>>,
}

/// Optional values of a timer. Most timers have none, and need no memory for them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extras {
    /// A name that any number of timers of a namespace may share, to cancel them together.
    pub tag: Option<Box<str>>,
    /// The [stored form](Retries::to_stored) of the timer's own retries.
    pub retries: Option<Box<[u8]>>,
}

impl Extras {
    /// Returns `None` if nothing is set.
    #[must_use]
    pub fn new(tag: Option<Box<str>>, retries: Option<Box<[u8]>>) -> Option<Arc<Extras>> {
        let is_any = tag.is_some() || retries.is_some();
        is_any.then(|| Arc::new(Extras { tag, retries }))
    }

    /// Returns the timer's own retries. The inner `None` means that they cannot be read: a newer version has written them.
    #[must_use]
    pub fn retries(&self) -> Option<Option<Retries>> {
        self.retries.as_deref().map(Retries::from_stored)
    }

    fn bytes(&self) -> usize {
        let tag = self.tag.as_ref().map_or(0, |tag| tag.len());
        tag + self.retries.as_ref().map_or(0, |retries| retries.len())
    }
}

impl Row {
    /// Creates the row of a timer without a key, as it is inserted.
    #[must_use]
    pub fn new(
        id: Id,
        due: Due,
        handler: impl Into<Arc<str>>,
        payload: impl Into<Arc<[u8]>>,
    ) -> Row {
        Row {
            id,
            due,
            first_due: due,
            handler: handler.into(),
            failures: 0,
            starts: 0,
            key: None,
            payload: payload.into(),
            extras: None,
        }
    }

    /// Returns the tag of the timer, if it has one.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.extras.as_ref()?.tag.as_deref()
    }

    /// Returns the handle of the timer.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle {
            id: self.id,
            due: self.first_due,
            handler: Arc::clone(&self.handler),
        }
    }

    /// Returns whether the timer is due at another time than its [`Handle`] says, so that the store records where it is.
    #[must_use]
    pub fn has_moved(&self) -> bool {
        self.due != self.first_due
    }

    /// Returns the number of recorded [starts](Row::starts), in whichever series.
    #[must_use]
    pub fn start_count(&self) -> u32 {
        u32::try_from(self.starts & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    /// Returns the size in bytes of the key, the payload and the extras.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let key = self.key.as_ref().map_or(0, |key| key.len());
        let extras = self.extras.as_ref().map_or(0, |it| it.bytes());
        self.payload.len() + key + extras
    }

    /// Returns the record of the timer if it is archived at this time.
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

    /// Returns the cursor of the row once it is in a bucket of [`Level::Second`](crate::store::Level::Second).
    #[must_use]
    pub fn cursor(&self) -> RowCursor {
        RowCursor {
            second: self.due.second(),
            id: self.id,
        }
    }
}

/// A dead letter: a timer that is no longer retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dead {
    /// The timer as it was in its last attempt.
    pub row: Row,
    /// When it became a dead letter.
    pub at: Due,
    /// The error of the last attempt.
    pub error: Arc<str>,
}

impl Dead {
    /// Returns the size in bytes of the key, the payload and the error.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.row.bytes() + self.error.len()
    }
}

/// A position among the rows of a handler in the buckets of [`Level::Second`](crate::store::Level::Second).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowCursor {
    /// The number of the bucket.
    pub second: i64,
    /// The id of the row.
    pub id: Id,
}

impl RowCursor {
    /// The position before all rows.
    pub const START: RowCursor = RowCursor::before(i64::MIN);

    /// Returns the position before all rows of this bucket.
    #[must_use]
    pub const fn before(second: i64) -> RowCursor {
        RowCursor {
            second,
            id: Id::NONE,
        }
    }
}

/// The record of a delivered timer that was [archived](crate::store::Op::Archive).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archived {
    /// The id of the timer.
    pub id: Id,
    /// When the timer was due; after a failure, when its last attempt was due.
    pub due: Due,
    /// When the timer was settled.
    pub at: Due,
    /// The number of failed attempts before the last one.
    pub failures: u32,
    /// The business key of the timer, which stays taken as long as this record exists.
    pub key: Option<Arc<[u8]>>,
}

/// A position in the archive of a handler: by day, and within a day in the order of the commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveCursor {
    /// The day on which the timer was settled: days since the start of 1970 (UTC).
    pub day: i64,
    /// The number of the commit, counted from 0 on each day.
    pub block: u32,
    /// The position within the commit.
    pub index: u32,
}

impl ArchiveCursor {
    /// The position before all records.
    pub const START: ArchiveCursor = ArchiveCursor::before(i64::MIN);

    /// Returns the position before all records of this day.
    #[must_use]
    pub const fn before(day: i64) -> ArchiveCursor {
        ArchiveCursor {
            day,
            block: 0,
            index: 0,
        }
    }

    /// Returns the next position within the same commit, whether or not there is a record.
    #[must_use]
    pub const fn next(self) -> ArchiveCursor {
        ArchiveCursor {
            index: self.index.saturating_add(1),
            ..self
        }
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
            (1, Id::IN_EPOCH - 1),
            (2, 0),
            ((1 << 22) - 1, Id::IN_EPOCH - 1),
        ];
        let ids = ids.map(|(epoch, count)| Id::new(epoch, count).unwrap());
        assert!(ids.is_sorted() && ids[4] < Id::MAX && ids[0] > Id::NONE);
        assert_eq!(Id::new(0, 1), None);
        assert_eq!(Id::new(1 << 22, 1), None);
        assert_eq!(Id::new(1, Id::IN_EPOCH), None);
    }

    #[test]
    fn an_id_tells_its_epoch_and_its_partition() {
        for (epoch, partition, count) in [(1, 0, 7), (5, 63, 0), (9, 17, Id::IN_EPOCH - 1)] {
            let id = Id::in_partition(epoch, partition, count).unwrap();
            assert_eq!((id.epoch(), id.partition()), (Some(epoch), partition));
        }
        assert_eq!(Id::new(5, 7), Id::in_partition(5, 0, 7));
        assert_eq!(Id::in_partition(1, 64, 7), None);
        let occurrence = Id::of_occurrence(17, 9, 1_774_746_000).unwrap();
        assert_eq!((occurrence.epoch(), occurrence.partition()), (None, 17));
    }

    #[test]
    fn an_occurrence_has_an_id_of_its_own_that_says_which() {
        let last_insert = Id::in_partition((1 << 22) - 1, 63, Id::IN_EPOCH - 1).unwrap();
        for (calendar, second) in [
            (0, 0),
            (0, 1_774_746_000),
            (1, 0),
            ((1 << 22) - 1, LAST_SECOND - 1),
        ] {
            let id = Id::of_occurrence(0, calendar, second).unwrap();
            assert_eq!(id.occurrence(), Some((calendar, second)));
            assert!(last_insert < id && id < Id::MAX, "{id}");
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        assert_eq!(last_insert.occurrence(), None);
        assert_eq!(
            Id::of_occurrence(0, 5, 7).unwrap().get(),
            0x4000_0500_0000_0007
        );
        assert_eq!(Id::of_occurrence(0, 1 << 22, 0), None);
        assert_eq!(Id::of_occurrence(64, 0, 0), None);
        assert_eq!(Id::of_occurrence(0, 0, -1), None);
        assert_eq!(Id::of_occurrence(0, 0, LAST_SECOND), None);
    }
}
