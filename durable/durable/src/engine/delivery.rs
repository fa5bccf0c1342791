//! What becomes of a timer that is due?

use std::sync::Arc;

use waterwheel_store::{Bucket, Id, Op, Row};

use super::commit::Then;
use super::near::{Known, Leaves};
use super::planted::{self, Planted};
use super::{Delivery, Ended, Engine, Output};

impl Engine {
    /// Takes from the wheel what is due.
    pub(super) fn expire(&mut self) {
        for held in self.near.expire(self.now) {
            self.lanes[held.lane].ready.push_back(held);
        }
    }

    /// Hands what is ready to handlers that have a place.
    pub(super) fn deliver(&mut self) {
        if self.is_stopping {
            return;
        }
        for lane in &mut self.lanes {
            while lane.running < lane.concurrency {
                let Some(held) = lane.ready.pop_front() else {
                    break;
                };
                if !self.now.is_past(held.row.due) {
                    // The wall clock was set back since it came up.
                    self.near.wait_again(held, self.now);
                } else if self.near.run(&held) {
                    lane.running += 1;
                    self.output
                        .push_back(Output::Deliver(Delivery { row: held.row }));
                }
            }
        }
    }

    /// A delivery has ended.
    pub fn ended(&mut self, id: Id, ended: Ended) {
        if self.has_failed || !matches!(self.near.get(id), Some(Known::Running(_))) {
            return;
        }
        let why = match &ended {
            Ended::Failed(_) => Leaves::Moved,
            _ => Leaves::Delivered,
        };
        let Some(held) = self.near.leave(id, why) else {
            return;
        };
        let (row, lane) = (held.row, held.lane);
        self.lanes[lane].running -= 1;
        match ended {
            Ended::Well => {
                if planted::is(Planted::ForgottenBeforeSettled) {
                    self.retire(id, lane);
                }
                match planted::is(Planted::NeverSettled) && id.get() % 16 == 0 {
                    true => self.retire(id, lane),
                    false => self.commits.push(Op::Settle(row), Then::Gone(id, lane)),
                }
            }
            Ended::Dead(error) => self.bury(row, lane, error),
            Ended::Failed(error) => match self.config.ladder.get(row.failures as usize) {
                Some(delay) => {
                    let due = self.present().after(*delay);
                    let bucket = Bucket::of(due, self.present());
                    let later = Row {
                        due,
                        failures: row.failures + 1,
                        has_moved: true,
                        ..row.clone()
                    };
                    self.commits.push(
                        Op::Retry(row, due, bucket),
                        Then::Retried(later, bucket, lane),
                    );
                }
                None => self.bury(row, lane, error),
            },
        }
        self.go_on();
    }

    fn bury(&mut self, row: Row, lane: usize, error: Arc<str>) {
        let op = Op::Bury {
            row: row.clone(),
            at: self.present(),
            error: Arc::clone(&error),
        };
        self.commits.push(op, Then::Buried(row, lane, error));
    }
}
