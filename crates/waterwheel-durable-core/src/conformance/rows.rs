//! Timers for the cases.

use std::sync::Arc;

use crate::store::{Bucket, Due, Handle, Id, Level, Op, Row};

/// The handler in most cases.
pub(crate) const MAIL: &str = "mail";

/// The present in most cases: in 2027, in the middle of an hour.
pub(crate) const NOW: i64 = 1_800_001_234_567;

/// Times after `NOW` that lie in buckets of all levels: seconds, minutes, hours, days, and ten years.
pub(crate) const DISTANCES: [i64; 5] = [
    2_345,
    600_000,
    4 * 3_600_000,
    3 * 86_400_000,
    3_650 * 86_400_000,
];

pub(crate) fn id(count: u64) -> Id {
    Id::from_stored(1 << 40 | count)
}

pub(crate) fn due(millis: i64) -> Due {
    Due::from_millis(millis)
}

pub(crate) fn row(count: u64, at: i64) -> Row {
    Row::new(
        id(count),
        due(at),
        MAIL,
        format!("payload {count}").into_bytes(),
    )
}

pub(crate) fn of(handler: &str, row: Row) -> Row {
    Row {
        handler: handler.into(),
        ..row
    }
}

pub(crate) fn keyed(key: &[u8], row: Row) -> Row {
    Row {
        key: Some(Arc::from(key)),
        ..row
    }
}

/// The row after it was moved.
pub(crate) fn moved(row: &Row, at: i64) -> Row {
    Row {
        due: due(at),
        ..row.clone()
    }
}

pub(crate) fn handle(row: &Row) -> Handle {
    Handle {
        id: row.id,
        due: row.due,
        handler: Arc::clone(&row.handler),
    }
}

/// The bucket of a timer that is due at this time and written at `NOW`.
pub(crate) fn bucket(at: i64) -> Bucket {
    Bucket::of(due(at), due(NOW))
}

pub(crate) fn second(at: i64) -> Bucket {
    Level::Second.bucket(due(at))
}

/// An insert at `NOW`.
pub(crate) fn insert(row: &Row) -> Op {
    Op::Insert(row.clone(), bucket(row.due.as_millis()))
}

/// An insert into the finest level.
pub(crate) fn insert_second(row: &Row) -> Op {
    Op::Insert(row.clone(), second(row.due.as_millis()))
}

pub(crate) fn reschedule(row: &Row, at: i64) -> Op {
    Op::Reschedule(handle(row), due(at), bucket(at))
}
