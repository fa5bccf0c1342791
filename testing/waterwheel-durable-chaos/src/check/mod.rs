//! Were the promises kept? Decided by the log alone: the requests and answers of callers, and the deliveries that handlers saw.
//!
//! The checker shares no code with the engine. A request without an answer may have been done or not. A delivery was **in flight** at a kill if the log has its
//! begin but no proof that its end is on disk: no end, or no later request that was answered from a commit.

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
    /// The number of the current line.
    line: At,
    round: u64,
    /// The seal of the current round, and those of earlier rounds.
    seal: Seal,
    seals: HashMap<u64, Seal>,
    timers: HashMap<u64, Timer>,
    over: Over,
    service: Service,
    /// The requests of this round that wait for their answers.
    in_flight: HashMap<u64, Sent>,
    /// Inserts that were not answered before a kill.
    unanswered: HashMap<u64, Insert>,
    /// The timer that has each key of a handler.
    keys: HashMap<(String, String), u64>,
    /// The ends of this round, to count what is in flight.
    ends: Vec<(At, usize)>,
    running: usize,
    /// The steps of the commit that the store is busy with.
    commit: Option<usize>,
    /// The moves of the wall clock in the last seconds.
    moves: VecDeque<Move>,
    /// The end of the last move, unless it is still in progress.
    moved_at: Option<u64>,
    dead_letters: HashSet<u64>,
    /// The number of deliveries in flight at the kill of each round, and of those that came again.
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

/// A copy that has begun.
#[derive(Debug, Clone)]
struct Copied {
    /// The certain part of the state.
    past: Checker,
    is_made: bool,
    /// The timers that existed when the copy began.
    known: HashSet<u64>,
    /// For timers that had a delivery meanwhile: the lowest attempt that they may have next, and whether they may have been redriven.
    delivered: HashMap<u64, (u32, bool)>,
}

/// The ids that timers had before a copy was restored.
#[derive(Debug, Clone, Default)]
struct Earlier {
    requests: HashMap<u64, u64>,
    ids: HashMap<u64, u64>,
}

/// A move of the wall clock.
#[derive(Debug, Clone, Copy)]
struct Move {
    at: u64,
    /// The wall clock before the move.
    wall: i64,
    done_at: Option<u64>,
    /// The number of early deliveries since then that were due by the clock before the move.
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

    /// Counts a line that could not be read, or was torn in the middle of a round.
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
