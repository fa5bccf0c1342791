//! What becomes of a timer that is due?

use std::sync::Arc;

use waterwheel_store::{Bucket, Id, Op, Row};

use super::planted::{self, Planted};
use super::{Delivery, Ended, Engine, Output};

impl Engine {
    /// Takes from the wheel what is due.
    pub(super) fn expire(&mut self) {
        let lanes = &mut self.lanes;
        self.near
            .expire(self.now, |lane, up| lanes[lane].ready.push_back(up));
    }

    /// Hands what is ready to handlers that have a place.
    pub(super) fn deliver(&mut self) {
        for lane in 0..self.lanes.len() {
            self.deliver_to(lane);
        }
    }

    fn deliver_to(&mut self, lane: usize) {
        if self.is_stopping {
            return;
        }
        let lane = &mut self.lanes[lane];
        while lane.running < lane.concurrency {
            let Some(up) = lane.ready.pop_front() else {
                return;
            };
            if let Some(row) = self.near.run(&up, self.now) {
                lane.running += 1;
                self.output.push_back(Output::Deliver(Delivery { row }));
            }
        }
        // What was cancelled would stay there for as long as the handler hangs.
        if lane.ready.len() > 2 * lane.held {
            lane.ready.retain(|up| self.near.is_up(up));
        }
    }

    /// A delivery has ended.
    pub fn ended(&mut self, id: Id, ended: Ended) {
        if self.has_failed {
            return;
        }
        let Some((row, lane)) = self.near.end(id) else {
            return;
        };
        self.lanes[lane].running -= 1;
        if planted::is(Planted::NeverSettled) && ended == Ended::Well && id.get().is_multiple_of(16)
        {
            self.retire(id);
            return self.deliver_to(lane);
        }
        let op = match ended {
            Ended::Well => Op::Settle(row),
            Ended::Dead(error) => self.burial(row, error),
            Ended::Failed(error) => match self.config.ladder.get(row.failures as usize) {
                Some(delay) => {
                    let due = self.present().after(*delay);
                    Op::Retry(row, due, Bucket::of(due, self.present()))
                }
                None => self.burial(row, error),
            },
        };
        let comes_back = match planted::is(Planted::GivenUpComesBack) {
            true => !matches!(op, Op::Settle(_)),
            false => matches!(op, Op::Retry(..)),
        };
        if comes_back {
            self.near.comes_back(id);
        }
        if planted::is(Planted::ForgottenBeforeSettled) && matches!(op, Op::Settle(_)) {
            self.retire(id);
        }
        self.commits.push(op);
        self.deliver_to(lane);
        self.commit();
    }

    fn burial(&self, row: Row, error: Arc<str>) -> Op {
        let at = self.present();
        Op::Bury { row, at, error }
    }
}
