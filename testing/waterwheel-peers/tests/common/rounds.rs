//! Checks that connections are cut in time: in real time on a busy machine, compared to plain threads, in several rounds.

use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

use waterwheel::{Duration, Instant};

/// The maximum number of rounds. One may fail on a busy machine; this many in a row do not.
const MOST: usize = 20;
/// The minimum number of rounds. One may succeed by chance; this many in a row do not.
const LEAST: usize = 3;
/// How long to wait for a late cut.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Round {
    late: Duration,
    /// How late plain threads are for the same deadline.
    machine: Duration,
    /// Whether everything that must be served was served.
    served: bool,
}

/// Plays rounds until one shows that connections are cut at most `most` after the limit, in addition to the machine's own delay,
/// and that everything that must be served is served.
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

/// A deadline in one round. The server must not cut before it, and must cut after it.
pub(crate) struct Limit {
    deadline: Instant,
    machine: JoinHandle<Duration>,
}

impl Limit {
    /// Starts a plain thread that sleeps until the deadline and wakes another one, as a driver wakes a worker.
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

    /// The end of the wait for the cut.
    pub(crate) fn patience(&self) -> Instant {
        self.deadline + PATIENCE
    }

    /// Checks that a connection was cut, and not early. Returns when.
    #[track_caller]
    pub(crate) fn was_kept(&self, cut: Option<Instant>) -> Instant {
        let cut = cut.expect("it is cut");
        assert!(cut >= self.deadline, "{:?} early", self.deadline - cut);
        cut
    }

    /// Ends the round, whose last connection was cut at `last_cut`.
    pub(crate) fn round(self, last_cut: Instant, served: bool) -> Round {
        Round {
            late: last_cut - self.deadline,
            machine: self.machine.join().expect("it does not panic"),
            served,
        }
    }
}
