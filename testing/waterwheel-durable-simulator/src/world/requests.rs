//! The requests of callers and of other processes.

use std::sync::Arc;

use waterwheel_durable_core::engine::{Answer, Token, new_row};
use waterwheel_durable_core::store::{Command, Due, Handle, Id, PageLimit, Scope, Store};

use super::{DAY, HANDLERS, SECOND, World};

impl World {
    pub(super) fn insert(&mut self) {
        let key = (self.rng.u32(0..5) == 0).then(|| Arc::from([self.rng.u8(0..3)]));
        let mut timer = new_row(
            Arc::from(HANDLERS[self.rng.usize(0..HANDLERS.len())]),
            self.some_due(),
            key,
            vec![7; self.rng.usize(0..self.largest)].into(),
        );
        let token = self.model.inserts(&mut timer);
        self.tell(|| {
            let (handler, due, key) = (&timer.handler, timer.due, &timer.key);
            format!("insert {token} of {handler}, due {due:?}, key {key:?}")
        });
        self.inserts = Some((token, Arc::clone(&timer.handler)));
        self.engine.handle_insert(token, timer);
    }

    pub(super) fn cancel(&mut self) {
        if let Some(mut handle) = self.any() {
            let token = self.model.cancels(handle.id);
            self.forge(token, &mut handle);
            self.tell(|| format!("cancel {handle:?}"));
            self.engine.handle_cancel(token, handle);
        }
    }

    pub(super) fn reschedule(&mut self) {
        if let Some(mut handle) = self.any() {
            let due = self.some_due();
            let token = self.model.reschedules(handle.id, due);
            self.forge(token, &mut handle);
            self.tell(|| format!("reschedule {handle:?} to {due:?}"));
            self.engine.handle_reschedule(token, handle, due);
        }
    }

    pub(super) fn any(&mut self) -> Option<Handle> {
        match self.asks_for_near && self.rng.bool() {
            true => self.model.any_near(&mut self.rng),
            false => self.model.any(&mut self.rng),
        }
    }

    /// Possibly forges the handle of a request: it is mangled, or made up.
    pub(super) fn forge(&mut self, token: Token, handle: &mut Handle) {
        if self.forges && self.rng.u32(0..4) == 0 {
            match self.rng.u32(0..3) {
                0 => handle.handler = Arc::from("nowhere"),
                1 => handle.handler = Arc::from(HANDLERS[self.rng.usize(0..HANDLERS.len())]),
                _ => handle.due = self.some_due(),
            }
            self.model.forges(token);
        }
    }

    pub(super) fn redrive(&mut self) {
        if self.disk.is_unsynced() {
            // The store's one thread does not list a dead letter before it is durable.
            return;
        }
        let dead = self
            .disk
            .store()
            .dead(Scope::All, Id::NONE, PageLimit::rows(1));
        let dead = dead.map_or(Vec::new(), |page| page.dead);
        let dead = dead.first().filter(|it| it.row.id.occurrence().is_none());
        if let Some(dead) = dead.filter(|it| !self.model.is_redriven(it.row.id)) {
            let (token, id) = (self.model.redrives(dead.row.id), dead.row.id);
            self.tell(|| format!("redrive {id}"));
            self.engine.handle_redrive(token, id);
        }
    }

    /// Commands a cancel from another process. Timers with keys are left out, since their keys are free before the answer is written.
    pub(super) fn command(&mut self) {
        let handle = self.any().filter(|it| !self.model.has_key(it.id));
        let Some(handle) = handle else {
            return;
        };
        let token = self.model.cancels(handle.id);
        self.tell(|| format!("command a cancel of {handle:?}"));
        self.commands.add(Command::Cancel(handle), token);
        self.commands.read(&mut self.engine);
    }

    /// Notes that a commit is done, including the answers in it.
    pub(super) fn are_answered(&mut self, request: u64) -> Result<(), String> {
        for (token, answer) in self.commands.written(request) {
            if let Some(id) = self.model.moves(token).filter(|_| answer == Answer::Done) {
                self.has_left(id);
            }
            self.model.answered(token, answer)?;
        }
        Ok(())
    }

    pub(super) fn some_due(&mut self) -> Due {
        let rng = &mut self.rng;
        let kinds = if self.is_near { 4 } else { 8 };
        let later = match rng.u32(0..kinds) {
            0 => rng.i64(-DAY..1),
            1 => rng.i64(0..3_000),
            2..4 => rng.i64(0..5 * SECOND),
            4 => rng.i64(0..100 * SECOND),
            5 => rng.i64(0..7_200 * SECOND),
            6 => rng.i64(0..3 * DAY),
            _ => rng.i64(0..4_000 * DAY),
        };
        let due = self.now.wall_micros + later;
        Due::from_millis(due.div_euclid(1_000) + 1)
    }
}
