//! When is a connection cut in time? Real time on a busy machine: held against plain threads, in several rounds.

use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use waterwheel::{Duration, Instant};

/// A round on a busy machine may go wrong; so many in a row do not.
const MOST: usize = 20;
/// A round may go well by chance; so many in a row do not.
const LEAST: usize = 3;
/// How long to wait for a cut that is late.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Round {
    late: Duration,
    /// How late plain threads are for the same deadline.
    machine: Duration,
    /// Whether all that must be served was.
    served: bool,
}

/// Rounds until one shows that what must be cut is cut no later than so long after its limit, beyond what the machine takes, and
/// that what must be served is served.
#[track_caller]
pub(crate) fn is_cut_within(most: Duration, mut round: impl FnMut() -> Round) {
    let mut rounds = Vec::new();
    let mut is_shown = false;
    while rounds.len() < LEAST || !is_shown && rounds.len() < MOST {
        let round = round();
        is_shown |= round.late < round.machine + most && round.served;
        rounds.push(round);
    }
    assert!(is_shown, "{rounds:?}");
}

/// A deadline in one round, by which the server must not cut and after which it must.
pub(crate) struct Limit {
    deadline: Instant,
    machine: JoinHandle<Duration>,
}

impl Limit {
    /// Beside it, one plain thread sleeps until then and wakes another one, as a driver wakes a worker.
    pub(crate) fn at(deadline: Instant) -> Limit {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            thread::sleep(deadline.saturating_duration_since(Instant::now()));
            let _ = sender.send(());
        });
        let machine = thread::spawn(move || {
            let _ = receiver.recv();
            deadline.elapsed()
        });
        Limit { deadline, machine }
    }

    /// Until when to wait for the cut.
    pub(crate) fn patience(&self) -> Instant {
        self.deadline + PATIENCE
    }

    /// When a connection was cut, if it was cut at all, and not early.
    #[track_caller]
    pub(crate) fn was_kept(&self, cut: Option<Instant>) -> Instant {
        let cut = cut.expect("it is cut");
        assert!(cut >= self.deadline, "{:?} early", self.deadline - cut);
        cut
    }

    /// The round, whose last connection was cut then.
    pub(crate) fn round(self, last_cut: Instant, served: bool) -> Round {
        Round {
            late: last_cut - self.deadline,
            machine: self.machine.join().expect("it does not panic"),
            served,
        }
    }
}
