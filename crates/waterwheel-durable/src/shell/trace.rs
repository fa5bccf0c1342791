//! The spans of deliveries, for the crate `tracing`.
//!
//! There is a span `delivery` for each attempt, and an event for each [`Event`]. Without the feature, nothing is recorded.

use crate::event::Event;

/// The target, by which filters can select these.
#[cfg(feature = "tracing")]
const TARGET: &str = "waterwheel_durable";

#[cfg(feature = "tracing")]
pub(super) fn span(row: &waterwheel_durable_core::store::Row) -> tracing::Span {
    tracing::info_span!(
        target: TARGET,
        "delivery",
        id = %row.id,
        handler = &*row.handler,
        attempt = row.failures.saturating_add(1),
    )
}

#[cfg(feature = "tracing")]
pub(super) fn event(event: &Event) {
    use tracing::{error, info, warn};
    match event {
        Event::AttemptFailed {
            id,
            handler,
            attempt,
            error,
        } => {
            warn!(target: TARGET, %id, handler = &**handler, attempt, error = &**error, "an attempt failed");
        }
        Event::Dead { id, handler, error } => {
            error!(target: TARGET, %id, handler = &**handler, error = &**error, "a timer became a dead letter");
        }
        Event::Unhandled { handler } => {
            warn!(target: TARGET, handler = &**handler, "timers are due, but no handler of this name is registered: they wait in the store until one is");
        }
        Event::Refused { error } => {
            warn!(target: TARGET, error = &**error, "the store refused a request");
        }
        Event::Failed { error } => {
            error!(target: TARGET, error = &**error, "the store failed: nothing is delivered or accepted until it is opened again");
        }
        Event::UnreadableCalendar { calendar, error } => {
            error!(target: TARGET, calendar = &**calendar, error = &**error, "a calendar cannot be read, so it creates no timers: declare it again, or open the file with the version that wrote it");
        }
        Event::UnreadablePolicy { namespace } => {
            error!(target: TARGET, namespace = &**namespace, "a policy cannot be read, so its namespace is paused: set a complete policy, or open the file with the version that wrote it");
        }
        Event::ClockJumped => info!(target: TARGET, "the wall clock was set"),
        Event::Full => {
            error!(target: TARGET, "the store is full, so inserts are refused: free space on its disk, or raise its `limit`");
        }
        Event::LeaseLost => {
            error!(target: TARGET, "the lease of the store is not held, so no deliveries begin: check the database and the network, and whether it was restored");
        }
        Event::Restored { store, accept } => {
            error!(target: TARGET, store = &**store, accept = &**accept, "the store was restored from a backup or moved to another server, so no deliveries begin until that is accepted");
        }
        Event::LeaseHeld => info!(target: TARGET, "the lease of the store is held again"),
        Event::HasSpace => info!(target: TARGET, "the store is no longer full"),
        Event::HardLinked { file, links } => {
            warn!(target: TARGET, file = &**file, links, "the file has another name, a hard link: delete that name");
        }
        Event::AcknowledgedLost { file, loss } => {
            error!(target: TARGET, file = &**file, loss = &**loss, "the file was opened although acknowledged work is gone");
        }
        Event::NoteFailed { note, error } => {
            error!(target: TARGET, note = &**note, error = &**error, "the record of acknowledged commits cannot be written: commits are safe, but the loss of the WAL after a crash would go unnoticed; free space on the disk, or let the process write this file");
        }
        Event::RuntimeEnded => {
            error!(target: TARGET, "the runtime ended without a shutdown, so nothing is delivered any more and the store is closed: await `shutdown` before the runtime ends");
        }
    }
}

#[cfg(not(feature = "tracing"))]
pub(super) fn event(_: &Event) {}
