//! Which timers may be what ends the process, again and again?
//!
//! A run that ends in order notes its epoch in a setting, so the next run knows how many runs in a row before it have not. After two such ends, a run notes each
//! start of a timer that was overdue as the run began, before the handler is called. A timer that was started too often, and never ended, is given up before it
//! is started once more. So nothing is written for a timer in a service that ends in order, or once without order.

use std::sync::Arc;

use waterwheel_store::{Due, Op, Row};

use super::{Engine, Output};

/// The setting: the epoch of the last run that ended in order, in decimal.
const CLEAN: &str = "clean";

/// From so many unclean ends in a row on, starts are noted.
const NOTED_FROM: u64 = 2;

#[derive(Debug, Default)]
pub(super) struct Poison {
    /// The last run that ended in order.
    clean: u64,
    /// What was due by then may have been started by them.
    suspects_until: Option<Due>,
    /// The end of this run was noted as clean.
    is_clean: bool,
}

impl Engine {
    /// A setting that was found at the opening.
    pub(super) fn note_clean_end(&mut self, name: &str, value: &[u8]) {
        if name == CLEAN {
            let epoch = std::str::from_utf8(value).ok();
            self.poison.clean = epoch.and_then(|it| it.parse().ok()).unwrap_or(0);
        }
    }

    /// All settings are known.
    pub(super) fn look_for_suspects(&mut self) {
        let unclean = self
            .epoch
            .saturating_sub(self.poison.clean)
            .saturating_sub(1);
        if unclean >= NOTED_FROM {
            self.poison.suspects_until = Some(self.now.due());
        }
    }

    /// Nothing goes on any more, or it was given up in order: the last step.
    pub(super) fn mark_as_clean(&mut self) {
        let goes_on = self.near.running() > 0 && !self.is_abandoned;
        if self.is_stopping && !goes_on && !self.poison.is_clean && self.commits.is_empty() {
            self.poison.is_clean = true;
            let epoch = self.epoch.to_string().into_bytes();
            self.commits.push(Op::Set(CLEAN.into(), Some(epoch.into())));
        }
    }

    /// Whether its start is to be noted.
    pub(super) fn is_suspect(&self, row: &Row) -> bool {
        let is_overdue = self
            .poison
            .suspects_until
            .is_some_and(|until| row.due <= until);
        is_overdue && row.id.epoch() != Some(self.epoch)
    }

    /// The start of a timer was noted: it goes to its handler.
    pub(super) fn started(&mut self, row: &Row) {
        if self.is_stopping {
            // Not any more. The note is one too many, which a clean end makes good.
            return self.give_back(row);
        }
        let row = Row {
            starts: row.starts.saturating_add(1),
            ..row.clone()
        };
        self.hand_out(row);
    }

    /// A timer that ends the process is given up.
    pub(super) fn give_up(&mut self, row: &Row) {
        let starts = row.starts.saturating_add(2);
        let error = format!(
            "the process has ended {starts} times while it was with its handler, or was to be"
        );
        if let Some((row, lane)) = self.near.end(row.id) {
            self.place_is_free(lane);
            let op = self.burial(row, Arc::from(error));
            self.commits.push(op);
        }
    }

    /// A timer whose delivery was to begin stays in the store.
    fn give_back(&mut self, row: &Row) {
        if let Some((row, lane)) = self.near.end(row.id) {
            self.place_is_free(lane);
            self.restore(row.id);
        }
    }

    /// A timer goes to its handler.
    pub(super) fn hand_out(&mut self, row: Row) {
        let lane = self.lane(&row.handler);
        let namespace = &mut self.namespaces[self.lanes[lane].namespace];
        namespace.counts.delivered += 1;
        let due = row.due.as_millis().saturating_mul(1_000);
        let late = self.now.wall_micros.saturating_sub(due).max(0);
        namespace.lateness.count(late.unsigned_abs());
        self.output
            .push_back(Output::Deliver(super::Delivery { row }));
    }
}
