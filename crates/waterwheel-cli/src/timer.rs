//! A timer for programs. README.md documents the names of the fields.

use serde::Serialize;
use waterwheel_durable_core::store::{Due, Level, Row, Scope};

use crate::text::{self, Encoding};
use crate::time;

#[derive(Debug, Serialize)]
pub(crate) struct Timer {
    id: String,
    handle: String,
    handler: String,
    namespace: String,
    due: String,
    due_ms: i64,
    first_due: String,
    first_due_ms: i64,
    is_overdue: bool,
    failures: u32,
    starts: u32,
    key: Option<String>,
    key_encoding: Option<Encoding>,
    tag: Option<String>,
    payload: String,
    payload_encoding: Encoding,
    payload_bytes: usize,
}

impl Timer {
    pub(crate) fn new(row: &Row, now: Due) -> Timer {
        let (payload, payload_encoding) = text::of_bytes(&row.payload);
        let key = row.key.as_ref().map(|key| text::of_bytes(key));
        Timer {
            id: row.id.to_string(),
            handle: row.handle().to_string(),
            handler: row.handler.to_string(),
            namespace: Scope::namespace_of(&row.handler).to_owned(),
            due: time::iso(row.due),
            due_ms: row.due.as_millis(),
            first_due: time::iso(row.first_due),
            first_due_ms: row.first_due.as_millis(),
            is_overdue: row.due <= now,
            failures: row.failures,
            starts: row.start_count(),
            key_encoding: key.as_ref().map(|(_, encoding)| *encoding),
            key: key.map(|(key, _)| key),
            tag: row.tag().map(str::to_owned),
            payload,
            payload_encoding,
            payload_bytes: row.payload.len(),
        }
    }
}

/// The name of a level, for programs.
pub(crate) fn level(level: Level) -> &'static str {
    match level {
        Level::Second => "second",
        Level::Minute => "minute",
        Level::Hour => "hour",
        Level::Day => "day",
        Level::Month => "month",
    }
}
