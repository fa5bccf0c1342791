//! The wall clock is moved while the service runs.

use std::sync::Arc;
use std::time::Duration;

use waterwheel_durable::{Durable, Shift};

use super::calls::{Calls, Wish};
use super::log::Stop;
use crate::protocol::Line;

const SECOND: i64 = 1_000_000;
pub(super) const HOUR: i64 = 3_600 * SECOND;

pub(super) struct Mover {
    pub(super) timers: Durable,
    pub(super) calls: Arc<Calls>,
    pub(super) shift: Arc<Shift>,
}

impl Mover {
    fn to(&self, wall: i64) {
        let log = &self.calls.log;
        log.say(&Line::ClockMoves {
            at: log.at(),
            wall: log.wall(),
        });
        self.shift.set_wall(wall);
        log.say(&Line::ClockMoved { at: log.at() });
    }

    /// Moves the clock by a second or more: the service notices it.
    pub(super) async fn by(&self, micros: i64) {
        let before = self.timers.metrics().clock_jumps;
        self.to(self.shift.wall() + micros);
        // It is noticed within moments. On a machine that is busy, that can be long.
        for _ in 0..3_000 {
            if self.timers.metrics().clock_jumps > before {
                return;
            }
            pause(10).await;
        }
        let log = &self.calls.log;
        log.wrong(format!(
            "no jump was counted when the clock went {micros} us"
        ));
    }

    /// Not a jump: both clocks go on.
    pub(super) fn suspend(&self, micros: u64) {
        let log = &self.calls.log;
        log.say(&Line::ClockMoves {
            at: log.at(),
            wall: log.wall(),
        });
        self.shift.suspend(micros);
        log.say(&Line::ClockMoved { at: log.at() });
    }

    /// Sets the clock back by an hour in the moment at which a timer is due.
    async fn back_at_a_due_time(&self, rng: &mut fastrand::Rng) {
        let log = &self.calls.log;
        let due = (log.wall() + 120_000) / 1_000 * 1_000;
        let wish = Wish {
            handler: "plain",
            due,
            key: None,
        };
        let wishes = vec![wish; 20];
        self.calls.insert_many(&self.timers, &wishes).await;
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

    async fn slew(&self, step: i64) {
        for _ in 0..60 {
            self.to(self.shift.wall() + step);
            pause(5).await;
        }
    }
}

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Plays all moves, and then waits for the end.
pub(super) async fn play(
    timers: Durable,
    calls: Arc<Calls>,
    shift: Arc<Shift>,
    stop: Arc<Stop>,
    seed: u64,
) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mover = Mover {
        timers,
        calls,
        shift,
    };
    pause(300).await;
    for step in 0.. {
        if stop.is_set() {
            break;
        }
        match step {
            0 => mover.by(HOUR).await,
            1 | 3 => mover.by(-HOUR).await,
            2 => {
                for _ in 0..5 {
                    mover.back_at_a_due_time(&mut rng).await;
                }
            }
            4 => mover.by(HOUR).await,
            5 => mover.slew(700).await,
            6 => mover.slew(-700).await,
            7 => mover.suspend(rng.u64(1..20) * HOUR.unsigned_abs()),
            8 => mover.by(365 * 24 * HOUR).await,
            9 => mover.by(-365 * 24 * HOUR).await,
            10 => mover.calls.log.say(&Line::ClockDone),
            _ => {}
        }
        pause(300).await;
    }
}
