//! What does a delivery look like to the crate `tracing`?
//!
//! A span `delivery` for each attempt, and an event for each [`Event`]. Without the feature, nothing.

use crate::event::Event;

/// What filters know it by.
#[cfg(feature = "tracing")]
const TARGET: &str = "waterwheel_durable";

#[cfg(feature = "tracing")]
pub(super) fn span(row: &waterwheel_store::Row) -> tracing::Span {
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
            warn!(target: TARGET, handler = &**handler, "timers are due but have no handler");
        }
        Event::Refused { error } => {
            warn!(target: TARGET, error = &**error, "the store refused a request");
        }
        Event::Failed { error } => error!(target: TARGET, error = &**error, "the store failed"),
        Event::UnreadableCalendar { calendar, error } => {
            error!(target: TARGET, calendar = &**calendar, error = &**error, "a calendar cannot be read");
        }
        Event::UnreadablePolicy { namespace } => {
            error!(target: TARGET, namespace = &**namespace, "a policy cannot be read: the namespace is paused");
        }
        Event::ClockJumped => info!(target: TARGET, "the wall clock was set"),
        Event::Full => error!(target: TARGET, "the store is full: inserts are refused"),
        Event::HasSpace => info!(target: TARGET, "the store is no longer full"),
        Event::HardLinked { file, links } => {
            warn!(target: TARGET, file = &**file, links, "the file has another name, a hard link: delete that name");
        }
        Event::AcknowledgedLost { file, loss } => {
            error!(target: TARGET, file = &**file, loss = &**loss, "the file was opened although acknowledged work is gone");
        }
        Event::NoteFailed { note, error } => {
            error!(target: TARGET, note = &**note, error = &**error, "the record of acknowledged commits cannot be written");
        }
        Event::RuntimeEnded => error!(target: TARGET, "the runtime ended without a shutdown"),
    }
}

#[cfg(not(feature = "tracing"))]
pub(super) fn event(_: &Event) {}
