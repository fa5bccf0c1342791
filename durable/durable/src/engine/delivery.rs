//! What becomes of a timer that is due?

use std::sync::Arc;

use waterwheel_store::{Due, Id, Op, Row};

use super::planted::{self, Planted};
use super::{Ended, Engine};

impl Engine {
    /// Takes from the wheel what is due.
    pub(super) fn expire(&mut self) {
        let lanes = &mut self.lanes;
        self.near
            .expire(self.now, |lane, up| lanes[lane].ready.push_back(up));
    }

    /// Begins the next delivery of a lane, if it has a place and something is ready.
    pub(super) fn begin_one(&mut self, index: usize) -> bool {
        let lane = &mut self.lanes[index];
        if lane.running >= lane.concurrency {
            return false;
        }
        while let Some(up) = lane.ready.pop_front() {
            let Some(row) = self.near.run(&up, self.now) else {
                continue;
            };
            let namespace = lane.namespace;
            lane.running += 1;
            self.namespaces[namespace].begins(self.now.boot_micros);
            match self.is_suspect(&row) {
                false => self.hand_out(row),
                true if self.is_poison(&row, namespace) => self.give_up(&row),
                true => self.commits.push(Op::Start(row)),
            }
            return true;
        }
        false
    }

    /// Whether a lane would begin a delivery.
    pub(super) fn is_ready(&self, lane: usize) -> bool {
        let lane = &self.lanes[lane];
        lane.running < lane.concurrency && lane.ready.iter().any(|up| self.near.is_up(up))
    }

    /// What was cancelled would stay in the queues for as long as a handler hangs, or its namespace is paused.
    pub(super) fn tidy(&mut self) {
        for lane in &mut self.lanes {
            if lane.ready.len() > 2 * lane.held {
                lane.ready.retain(|up| self.near.is_up(up));
            }
        }
    }

    /// A delivery does not go on.
    pub(super) fn place_is_free(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        lane.running -= 1;
        self.namespaces[lane.namespace].running -= 1;
    }

    /// When the first timer of a lane was due that is overdue and waits: of a timer that is not in memory, only the second is known.
    pub(super) fn oldest_of(&self, lane: usize) -> Option<Due> {
        let lane = &self.lanes[lane];
        let ready = lane.ready.iter().find_map(|up| self.near.due_of(up));
        let stored = lane
            .next_second()
            .map(|second| Due::from_millis(second.saturating_mul(1_000)));
        let stored = stored.filter(|due| *due <= self.present());
        ready.into_iter().chain(stored).min()
    }

    /// A delivery has ended.
    pub fn ended(&mut self, id: Id, ended: Ended) {
        if self.has_failed {
            return;
        }
        let Some((row, lane)) = self.near.end(id) else {
            return;
        };
        self.place_is_free(lane);
        let namespace = self.lanes[lane].namespace;
        if planted::is(Planted::NeverSettled) && ended == Ended::Well && id.get().is_multiple_of(16)
        {
            self.retire(id);
            return self.deliver_after(lane);
        }
        let op = match ended {
            Ended::Well => self.settling(row, namespace),
            Ended::Dead(error) => self.burial(row, error),
            Ended::Failed(error) => self.retrial(row, error, namespace),
        };
        let comes_back = match planted::is(Planted::GivenUpComesBack) {
            true => !matches!(op, Op::Settle(_) | Op::Archive(..)),
            false => matches!(op, Op::Retry(..)),
        };
        if comes_back {
            self.near.comes_back(id);
        }
        if planted::is(Planted::ForgottenBeforeSettled) && matches!(op, Op::Settle(_)) {
            self.retire(id);
        }
        self.commits.push(op);
        self.deliver_after(lane);
        self.commit();
    }

    pub(super) fn burial(&self, row: Row, error: Arc<str>) -> Op {
        let at = self.present();
        Op::Bury { row, at, error }
    }
}
