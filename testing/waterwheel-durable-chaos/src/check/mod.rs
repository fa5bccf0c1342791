//! Were the promises kept? By the log alone: what callers asked and were answered, and what handlers saw.
//!
//! The checker shares no code with the engine. A request without an answer may have been done or not. A delivery was **in flight** at a kill if the log has its
//! begin and nothing that proves that its end is on disk: no end, or no later request that was answered from a commit.

mod answer;
mod copy;
mod delivery;
mod end;
mod over;
mod rule;
mod service;
mod timer;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crate::protocol::{Line, NewTimer, Request};
use over::Over;
pub(crate) use rule::{Flight, Rule, Summary, Undone};
use service::Service;
use timer::{At, Seal, Timer, Wanted};

#[derive(Debug, Clone, Default)]
pub(crate) struct Checker {
    /// The number of the present line.
    line: At,
    round: u64,
    /// The seal of the present round, and the seals of those before.
    seal: Seal,
    seals: HashMap<u64, Seal>,
    timers: HashMap<u64, Timer>,
    over: Over,
    service: Service,
    /// The requests of this round that wait for their answers.
    in_flight: HashMap<u64, Sent>,
    /// Inserts that were not answered before a kill.
    unanswered: HashMap<u64, Insert>,
    /// Which timer has a key of a handler.
    keys: HashMap<(String, String), u64>,
    /// The ends of this round, to count what is in flight.
    ends: Vec<(At, usize)>,
    running: usize,
    /// The steps of the commit that the store is busy with.
    commit: Option<usize>,
    /// The moves of the wall clock in the last seconds.
    moves: VecDeque<Move>,
    /// The end of the last one, unless it goes on.
    moved_at: Option<u64>,
    dead_letters: HashSet<u64>,
    /// The deliveries in flight at the kill of a round, and those that came again.
    kills: HashMap<u64, (usize, usize)>,
    /// Copies of the file, by their numbers.
    copies: BTreeMap<u64, Copied>,
    /// The state before a copy was restored.
    earlier: Earlier,
    summary: Summary,
    broken: Vec<(Rule, String)>,
}

/// A request that waits for its answer.
#[derive(Debug, Clone)]
struct Sent {
    line: At,
    thread: usize,
    what: Request,
}

#[derive(Debug, Clone)]
struct Insert {
    request: u64,
    sent: At,
    new: NewTimer,
}

/// A copy that was begun.
#[derive(Debug, Clone)]
struct Copied {
    /// The certain part of the state.
    past: Checker,
    is_made: bool,
    /// The timers that were there when it was begun.
    known: HashSet<u64>,
    /// The lowest attempt that timers may have next which had a delivery meanwhile, and whether they may have been redriven meanwhile.
    delivered: HashMap<u64, (u32, bool)>,
}

/// Which timers had which ids before a copy was restored.
#[derive(Debug, Clone, Default)]
struct Earlier {
    requests: HashMap<u64, u64>,
    ids: HashMap<u64, u64>,
}

/// The wall clock was moved.
#[derive(Debug, Clone, Copy)]
struct Move {
    at: u64,
    /// The wall clock before the move.
    wall: i64,
    done_at: Option<u64>,
    /// How many deliveries were early since, and due by the clock as it was.
    excused: usize,
}

impl Checker {
    /// Reads one line of the log.
    pub(crate) fn feed(&mut self, line: Line) {
        self.line += 1;
        self.note_for_copies(&line);
        match line {
            Line::Round { number } => {
                self.round = number;
                self.summary.rounds += 1;
                self.seal = Seal::default();
                self.moves.clear();
                self.moved_at = Some(0);
                self.commit = None;
                self.service.begins_again();
            }
            Line::Over { is_clean } => self.ends_round(is_clean),
            Line::Asked {
                request,
                thread,
                what,
            } => self.asked(request, thread, what),
            Line::Answered { request, answer } => self.answered(request, answer),
            Line::Begin(begin) => self.begins(&begin),
            Line::End {
                thread,
                id,
                attempt,
                how,
                wall,
            } => self.ended(thread, id, attempt, how, wall),
            Line::CommitBegins { steps } => self.commit = Some(steps),
            Line::CommitReturned { .. } => self.commit = None,
            Line::ClockMoves { at, wall } => {
                self.moved_at = None;
                self.service.is_moved();
                self.summary.clock_moves += 1;
                self.moves.push_back(Move {
                    at,
                    wall,
                    done_at: None,
                    excused: 0,
                });
            }
            Line::ClockMoved { at } => {
                self.moved_at = Some(at);
                if let Some(last) = self.moves.back_mut() {
                    last.done_at = Some(at);
                }
            }
            Line::DeadLetter { id, attempts } => self.dead_letter(id, attempts),
            Line::Paused { at, namespace } => self.service.paused(namespace, at),
            Line::Resumes { namespace } => self.service.resumes(&namespace),
            Line::Occurred { at, wall, time } => self.occurred(at, wall, time),
            Line::Copies { number } => self.copies(number),
            Line::Copied { number } => self.copied(number),
            Line::Restored { number } => self.restored(number),
            Line::Opened | Line::ClockDone | Line::Disk { .. } | Line::Fault { .. } => {}
            Line::Wrong { text } => self.breaks(Rule::Other, text),
        }
    }

    /// A line that could not be read, or was torn in the middle of a round.
    pub(crate) fn unreadable(&mut self, text: &str) {
        self.breaks(Rule::Other, format!("this is no line of the log: {text}"));
    }

    fn breaks(&mut self, rule: Rule, text: String) {
        let text = format!("line {}, round {}: {text}", self.line, self.round);
        self.broken.push((rule, text));
    }

    fn asked(&mut self, request: u64, thread: usize, what: Request) {
        self.summary.requests += 1;
        let line = self.line;
        let timer = match &what {
            Request::Insert(_) => None,
            Request::Cancel { id } | Request::Reschedule { id, .. } | Request::Redrive { id } => {
                self.timers.get_mut(id)
            }
        };
        match (timer, &what) {
            (Some(timer), Request::Cancel { .. }) => timer.cancels += 1,
            (Some(timer), Request::Reschedule { due, .. }) => timer.wanted.push(Wanted {
                request,
                due: *due,
                sent: line,
                done_by: None,
                is_done: false,
            }),
            (Some(timer), Request::Redrive { .. }) => {
                timer.may_be_redriven = true;
                timer.was_dead = true;
                timer.not_found = None;
                timer.redriven = line;
            }
            _ => {}
        }
        self.in_flight.insert(request, Sent { line, thread, what });
    }
}

impl Sent {
    fn insert(self, request: u64) -> Option<Insert> {
        match self.what {
            Request::Insert(new) => Some(Insert {
                request,
                sent: self.line,
                new,
            }),
            _ => None,
        }
    }
}
