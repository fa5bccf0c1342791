//! Directs the clocks through the plan's slices in turn, and measures each slice.

use std::io;
use std::time::{Duration, Instant};

use futures::future;
use tokio::sync::watch;
use tokio::time;
use waterwheel_bench_kit::text::print;

use crate::contestant::Contestant;
use crate::cpu;
use crate::ledger::Tally;
use crate::load::Phase;
use crate::report;
use crate::slices::Slices;
use crate::window::{Course, Window};

/// Goes through all slices, or up to Ctrl-C, and ends the load. A slice that Ctrl-C cuts is not counted. Returns the error of a
/// contestant that fails.
pub(crate) async fn take(
    contestants: &mut [Contestant],
    slices: &Slices,
    interrupted: &watch::Receiver<bool>,
) -> io::Result<Course> {
    let mut course = Course {
        windows: contestants.iter().map(|_| Vec::new()).collect(),
        overlaps: 0,
    };
    let start = time::Instant::now();
    for slice in 0..slices.count {
        let turn = slice as usize % contestants.len();
        for (place, contestant) in contestants.iter().enumerate() {
            let is_next = place == turn;
            contestant.enter(if is_next {
                Phase::Calling
            } else {
                Phase::Resting
            });
        }
        let begin = start + slices.length * slice;
        if !wait(contestants, interrupted, begin + slices.settling).await? {
            break;
        }
        let before = Reading::of(&contestants[turn]);
        let mut others = contestants
            .iter()
            .enumerate()
            .filter(|(place, _)| *place != turn);
        if others.any(|(_, other)| other.ledger.tally().in_flight() > 0) {
            course.overlaps += 1;
        }
        if !wait(contestants, interrupted, begin + slices.length).await? {
            break;
        }
        let window = Reading::of(&contestants[turn]).since(&before);
        print(&report::slice(slice + 1, contestants[turn].name, &window));
        course.windows[turn].push(window);
    }
    for contestant in &*contestants {
        contestant.enter(Phase::Over);
    }
    Ok(course)
}

/// Waits until an instant. False if Ctrl-C came first.
async fn wait(
    contestants: &mut [Contestant],
    interrupted: &watch::Receiver<bool>,
    until: time::Instant,
) -> io::Result<bool> {
    let mut interrupted = interrupted.clone();
    let ends = contestants
        .iter_mut()
        .map(|contestant| &mut contestant.life);
    tokio::select! {
        biased;
        Ok(_) = interrupted.wait_for(|&interrupted| interrupted) => Ok(false),
        (ended, ..) = future::select_all(ends) => match ended? {
            Err(error) => Err(error),
            Ok(_) => Err(io::Error::other("the load of one clock ended early")),
        },
        () = time::sleep_until(until) => Ok(true),
    }
}

struct Reading {
    at: Instant,
    tally: Tally,
    cpu: Option<Duration>,
}

impl Reading {
    fn of(contestant: &Contestant) -> Reading {
        Reading {
            at: Instant::now(),
            tally: contestant.ledger.tally(),
            cpu: cpu::of_threads(contestant.name),
        }
    }

    fn since(&self, earlier: &Reading) -> Window {
        Window {
            length: self.at - earlier.at,
            tally: self.tally.since(&earlier.tally),
            cpu: self
                .cpu
                .zip(earlier.cpu)
                .and_then(|(now, then)| now.checked_sub(then)),
        }
    }
}
