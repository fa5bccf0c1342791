//! Read-only accessors of the engine.

use super::calendar;
use super::{Engine, Namespace, Namespaces, Now, Stats};
use crate::store::Due;

impl Engine {
    /// The time that the engine was last told.
    #[must_use]
    pub fn now(&self) -> Now {
        self.link.now
    }

    /// The engine's counts and gauges.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            in_memory: self.memory.loaded.len(),
            in_wheel: self.memory.loaded.filed(),
            held: self.memory.held(),
            held_bytes: self.memory.held_bytes(),
            running: self.memory.loaded.running() - self.hand_over.deferred(),
            jumps: self.clocks.jumps,
            refusals: self.link.refusals.count,
            full: self.link.refusals.full,
            is_full: self.link.refusals.is_full,
        }
    }

    /// Whether no delivery is running and nothing has to be written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.stats().running == 0 && self.link.is_clear()
    }

    /// Whether handlers are running in processes that have handed the store over: the [ends](Engine::handle_ends) of these deliveries have to be read.
    #[must_use]
    pub fn waits_for_ends(&self) -> bool {
        self.hand_over.has_remote() && self.link.is_open()
    }

    /// Whether nothing has to be written, apart from what the store has refused and is asked again later.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.link.is_written()
    }

    /// The number of ended deliveries whose outcome is not written yet, or 0 if the store has failed. Their timers are delivered again after a restart.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        self.link.unsettled() + self.hand_over.deferred()
    }

    /// Whether the store has failed, so nothing more is done.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.link.has_failed()
    }

    /// Whether the lease of the store is held, so that deliveries may begin.
    #[must_use]
    pub fn is_lease_held(&self) -> bool {
        self.link.is_lease_held
    }

    /// Whether a handler of this name was added.
    #[must_use]
    pub fn has_handler(&self, name: &str) -> bool {
        self.memory.has_handler(name)
    }

    /// Whether a namespace has a delivery that would begin if it had a free place.
    #[must_use]
    pub fn waits_for_place(&self, namespace: &str) -> bool {
        let queues = self.namespaces.get(namespace).into_iter();
        let mut queues = queues.flat_map(|it| it.queues());
        queues.any(|queue| self.memory.has_ready(*queue))
    }

    pub fn namespaces(&self) -> &Namespaces {
        &self.namespaces
    }

    /// When a namespace's oldest waiting overdue timer was due, as far as the engine knows: exactly for timers in memory, and to the second for the
    /// others. The caller passes the present wall-clock time, because an idle engine, as with a paused namespace, may not have been told the time for a while.
    pub fn oldest_overdue(&self, namespace: &Namespace, present: Due) -> Option<Due> {
        let queues = namespace.queues().iter();
        queues
            .filter_map(|queue| self.memory.oldest_overdue(*queue, present))
            .min()
    }

    /// All calendars, in order of their names.
    pub fn calendars(&self) -> impl Iterator<Item = calendar::Info> {
        self.calendars.infos()
    }

    /// The number of times a handler queue was checked since the last call: for timers to load or to begin, or for records to expire.
    #[cfg(test)]
    pub(super) fn take_checks(&mut self) -> usize {
        std::mem::take(&mut self.memory.checks) + std::mem::take(&mut self.retention.checks)
    }
}
