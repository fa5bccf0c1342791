use std::sync::Arc;

use super::{Bucket, Level};

/// How many pending timers and dead letters a store has, in no particular order. A store keeps these counts up to date
/// with each commit, so that reading them takes no longer when there are more timers. There is a count for each kind of
/// error, however many these are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// The pending timers.
    pub pending: Vec<PendingCount>,
    /// The dead letters.
    pub dead: Vec<DeadCount>,
}

/// The number of pending timers of a handler that are due in a bucket, at least 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCount {
    /// The full name of the handler.
    pub handler: Arc<str>,
    /// The bucket: that of the timers, or their minute if they are in the buckets of [`Level::Second`].
    pub bucket: Bucket,
    /// The number of timers.
    pub count: u64,
}

impl PendingCount {
    /// Returns the bucket under which timers in this one are counted. There may be a timer in each second, so counts by
    /// the second would cost about as much as the timers.
    #[must_use]
    pub const fn bucket_of(stored: Bucket) -> Bucket {
        match stored.level {
            Level::Second => Level::Minute.bucket(stored.start()),
            _ => stored,
        }
    }
}

/// The number of dead letters of a handler with the same [kind](DeadCount::kind) of error, at least 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadCount {
    /// The full name of the handler.
    pub handler: Arc<str>,
    /// The kind of error.
    pub error: Arc<str>,
    /// The number of dead letters.
    pub count: u64,
}

impl DeadCount {
    /// The maximum length of a [kind](DeadCount::kind) in bytes.
    pub const KIND_LIMIT: usize = 120;

    /// Returns the kind of an error: its first line, without what is beyond [`KIND_LIMIT`](DeadCount::KIND_LIMIT).
    /// Errors that differ in the first line, for example by the number of an order, are different kinds.
    #[must_use]
    pub fn kind(error: &str) -> &str {
        let line = error.lines().next().unwrap_or_default();
        let mut ends = (0..=line.len().min(DeadCount::KIND_LIMIT)).rev();
        let end = ends.find(|end| line.is_char_boundary(*end));
        &line[..end.unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_error_is_the_first_line_cut_between_characters() {
        assert_eq!(DeadCount::kind(""), "");
        assert_eq!(DeadCount::kind("HTTP 503\r\nretry later"), "HTTP 503");
        let long = "ü".repeat(100);
        assert_eq!(DeadCount::kind(&long), "ü".repeat(60));
        let odd = format!("x{long}");
        assert_eq!(DeadCount::kind(&odd).len(), 119);
    }
}
