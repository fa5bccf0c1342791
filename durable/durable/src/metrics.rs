use std::sync::Arc;

use crate::shell::state::Look;

/// What goes on: see [`Durable::metrics`](crate::Durable::metrics).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// How many timers are in memory: those of the next seconds, and those that are with a handler or being written.
    pub in_memory: usize,
    /// How many deliveries are with their handlers.
    pub running: usize,
    /// How many commits the store has made since it was opened.
    pub commits: u64,
    /// How many attempts have failed since then, those of timers that were given up among them.
    pub failed_attempts: u64,
    /// How often the wall clock was set, by a second or more.
    pub clock_jumps: u64,
    /// How often the store has refused a commit or a read: a full disk, for example. What the service itself wants written is tried again.
    pub refusals: u64,
    /// How many inserts have found the store [full](crate::Error::Full).
    pub full: u64,
    /// Whether the store was full at the last insert that was new to it.
    pub is_full: bool,
    /// The names that have timers which have been due for a second, and no handler.
    pub unhandled: Vec<Arc<str>>,
    /// Whether the store has failed.
    pub has_failed: bool,
}

impl Metrics {
    pub(crate) fn new(look: &Look<'_>) -> Metrics {
        let engine = look.engine();
        Metrics {
            in_memory: engine.in_memory(),
            running: engine.running(),
            commits: look.commits(),
            failed_attempts: look.failed_attempts(),
            clock_jumps: look.jumps(),
            refusals: look.refusals(),
            full: look.full(),
            is_full: look.is_full(),
            unhandled: look.unhandled(),
            has_failed: look.failure().is_some(),
        }
    }
}
