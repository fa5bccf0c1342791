use std::time::Duration;

use tokio::time::Instant;
use waterwheel::Sleep;

use super::{Current, Own, Sleeps, Watched};

/// Ours, with a slack of this percentage of the time that a connection may be idle.
#[derive(Clone)]
pub(crate) struct Lenient<S, const PERCENT: u32> {
    sleeps: S,
    slack: Duration,
}

impl<S, const PERCENT: u32> Lenient<S, PERCENT> {
    pub(crate) fn new(sleeps: S, idle: Duration) -> Self {
        Self {
            sleeps,
            slack: idle * PERCENT / 100,
        }
    }
}

impl<const PERCENT: u32> Sleeps for Lenient<Own<Watched>, PERCENT> {
    const NAME: &'static str = match PERCENT {
        5 => "own, 5 % slack",
        25 => "own, 25 % slack",
        _ => panic!("a slack without a name"),
    };
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        let timer = &self.sleeps.timer;
        timer.sleep_within(duration, duration + self.slack)
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.sleeps.sleep_until(deadline).with_slack(self.slack)
    }
}

impl<const PERCENT: u32> Sleeps for Lenient<Current, PERCENT> {
    const NAME: &'static str = match PERCENT {
        5 => "current, 5 % slack",
        25 => "current, 25 % slack",
        _ => panic!("a slack without a name"),
    };
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        self.sleeps.sleep(duration).with_slack(self.slack)
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.sleeps.sleep_until(deadline).with_slack(self.slack)
    }
}
