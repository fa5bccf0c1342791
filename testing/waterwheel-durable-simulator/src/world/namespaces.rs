//! Changes policies, and pauses namespaces.

use std::sync::Arc;

use waterwheel_durable_core::store::{ArchiveCursor, Store};

use super::{HANDLERS, World};
use crate::namespaces::{NAMES, Terms, of};

impl World {
    /// Lets an operator change a namespace.
    pub(super) fn change_namespace(&mut self) {
        let at = self.rng.usize(0..NAMES.len());
        match self.rng.u32(0..8) {
            0..4 => {
                let terms = Terms::by_chance(&mut self.rng, self.is_crowded);
                self.give(at, terms);
            }
            // Most of the time the namespace is running.
            4 => self.pause(at, true),
            5 => {
                self.engine.handle_drain(NAMES[at], true);
                self.namespaces.drains(at, true);
            }
            _ => self.pause(at, false),
        }
        self.shares.clear();
    }

    fn give(&mut self, at: usize, terms: Terms) {
        let policy = terms.policy();
        // An existing namespace keeps its stored policy.
        if self.rng.u32(0..16) == 0
            && let Some(terms) = self.namespaces.terms(at).cloned()
        {
            let token = self.namespaces.asks_for(at, terms);
            return self
                .engine
                .handle_policy(token, &Arc::from(NAMES[at]), &policy, true);
        }
        let token = self.namespaces.asks_for(at, terms);
        self.engine
            .handle_policy(token, &Arc::from(NAMES[at]), &policy, false);
    }

    fn pause(&mut self, at: usize, is_paused: bool) {
        let token = self.namespaces.pauses(at, is_paused);
        self.engine
            .handle_pause(token, &Arc::from(NAMES[at]), is_paused);
    }

    /// Resumes everything, so that the life ends. Calendars are checked where no due timer waits.
    pub(super) fn open_all(&mut self) {
        for (at, name) in NAMES.into_iter().enumerate() {
            if self.has_calendars && self.namespaces.terms(at) != Some(&Terms::default()) {
                let token = self.namespaces.asks_for(at, Terms::default());
                let policy = Terms::default().policy();
                let name = Arc::from(name);
                self.engine.handle_policy(token, &name, &policy, false);
            }
            if self.namespaces.is_open(at) != Some(true) {
                self.pause(at, false);
            }
        }
    }

    /// Notes that a delivery has begun.
    pub(super) fn begins(
        &mut self,
        row: &waterwheel_durable_core::store::Row,
    ) -> Result<(), String> {
        let at = of(&row.handler);
        let with_handlers = self.with_handlers.iter();
        let running = with_handlers.filter(|it| of(&it.handler) == at).count();
        let boot = self.now.boot_micros;
        let was_noted = self.starting.remove(&row.id);
        self.namespaces.delivered(row, was_noted, running, boot)?;
        let all = self.with_handlers.len();
        if self.config.concurrency.is_some_and(|limit| all > limit) {
            return Err(format!("{all} go on: {row:?}"));
        }
        match was_noted {
            false => self.shares.begins(at),
            // A delivery whose start was noted has begun before.
            true => self.shares.clear(),
        }
        Ok(())
    }

    /// Checks that each namespace has its share of the places.
    pub(super) fn has_shares(&mut self) -> Result<(), String> {
        if self.config.concurrency.is_none() {
            return Ok(());
        }
        let terms: [_; NAMES.len()] = std::array::from_fn(|at| self.namespaces.terms(at));
        let priorities = terms.map(|it| it.map_or(0, |it| u64::from(it.priority.unwrap_or(1))));
        let waits = std::array::from_fn(|at| {
            let is_free = terms[at].is_some_and(|it| it.rate.is_none() && it.concurrency.is_none());
            let is_open = self.namespaces.is_open(at) == Some(true);
            is_free && is_open && self.engine.waits_for_place(NAMES[at])
        });
        self.shares.look(waits, priorities)
    }

    /// Checks that archived timers expire when their time has come.
    pub(super) fn has_expired(&mut self) -> Result<(), String> {
        if !self.has_policies || self.may_have_to_do() {
            return Ok(());
        }
        let (boot, wall) = (self.now.boot_micros, self.now.wall_micros);
        for handler in HANDLERS {
            if let Ok(Some(first)) = self.disk.store().first_archived(handler) {
                self.namespaces.has_expired(handler, first, boot, wall)?;
            }
        }
        Ok(())
    }

    /// Checks that delivered timers are archived for as long as they should be.
    pub(super) fn is_archived(&mut self) -> Result<(), String> {
        let is_at_rest = !self.disk.is_in_flight() && !self.disk.has_replied();
        if !self.archives || !is_at_rest || self.engine.unsettled() > 0 {
            return Ok(());
        }
        self.archives = false;
        for handler in HANDLERS {
            let store = self.disk.store();
            let archive = store.archived(handler, ArchiveCursor::START, i64::MAX, usize::MAX);
            let archive = archive.unwrap_or_default().into_iter();
            let archive = archive.map(|(_, archived)| archived);
            let archive: Vec<_> = archive.filter(|it| it.id.occurrence().is_none()).collect();
            let is_kept = |at| self.namespaces.is_kept(handler, at);
            self.model.is_archived(handler, &archive, is_kept)?;
        }
        Ok(())
    }
}
