//! Moves the wall clock while the service runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use waterwheel_durable::{Durable, Shift};

use super::calls::Calls;
use crate::protocol::{Line, NewTimer};

const SECOND: i64 = 1_000_000;
pub(super) const HOUR: i64 = 3_600 * SECOND;

pub(super) struct Mover {
    pub(super) timers: Durable,
    pub(super) calls: Arc<Calls>,
    pub(super) shift: Arc<Shift>,
    /// The parent's request to stop.
    pub(super) stop: watch::Receiver<bool>,
}

impl Mover {
    fn moves(&self, how: impl FnOnce(&Shift)) {
        let log = &self.calls.log;
        log.say(&Line::ClockMoves {
            at: log.at(),
            wall: log.wall(),
        });
        how(&self.shift);
        log.say(&Line::ClockMoved { at: log.at() });
    }

    fn slew(&self, micros: i64) {
        self.moves(|shift| shift.set_wall(shift.wall() + micros));
    }

    /// Moves the clock by a second or more, and waits until the service notices.
    pub(super) async fn by(&self, micros: i64) {
        let before = self.timers.metrics().clock_jumps;
        self.slew(micros);
        // The service notices within moments, or later on a busy machine.
        for _ in 0..3_000 {
            if self.timers.metrics().clock_jumps > before {
                return;
            }
            pause(10).await;
        }
        let text = format!("no jump was counted when the clock went {micros} us");
        self.calls.log.wrong(text);
    }

    /// Advances both clocks: a suspension is not a jump.
    pub(super) fn suspend(&self, micros: u64) {
        self.moves(|shift| shift.suspend(micros));
    }

    /// Sets the clock back by an hour at the moment when a timer is due.
    async fn back_at_a_due_time(&self, rng: &mut fastrand::Rng) {
        let log = &self.calls.log;
        let due = (log.wall() + 120_000) / 1_000 * 1_000;
        let new = NewTimer {
            handler: "plain".into(),
            due,
            key: None,
        };
        let all = vec![new; 20];
        self.calls.insert_many(&self.timers, all).await;
        let left = due - log.wall() - 2_000;
        if left > 0 {
            tokio::time::sleep(Duration::from_micros(left.unsigned_abs())).await;
        }
        let until = due + rng.i64(-300..1_500);
        while log.wall() < until {
            std::hint::spin_loop();
        }
        self.by(-HOUR).await;
        pause(50).await;
        self.by(HOUR).await;
    }
}

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Plays all moves, and then waits until it is stopped.
pub(super) async fn play(mover: Mover, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    pause(300).await;
    for step in 0.. {
        if *mover.stop.borrow() {
            break;
        }
        match step {
            0 | 4 => mover.by(HOUR).await,
            1 | 3 => mover.by(-HOUR).await,
            2 => {
                for _ in 0..5 {
                    mover.back_at_a_due_time(&mut rng).await;
                }
            }
            5 | 6 => {
                for _ in 0..60 {
                    mover.slew(if step == 5 { 700 } else { -700 });
                    pause(5).await;
                }
            }
            7 => mover.suspend(rng.u64(1..20) * HOUR.unsigned_abs()),
            8 => mover.by(365 * 24 * HOUR).await,
            9 => mover.by(-365 * 24 * HOUR).await,
            10 => mover.calls.log.say(&Line::ClockDone),
            _ => {}
        }
        pause(300).await;
    }
}
