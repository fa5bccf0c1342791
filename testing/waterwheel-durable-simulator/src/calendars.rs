//! The oracle of calendars: checks that their promises are kept.

use std::collections::{HashMap, HashSet};

use waterwheel_durable_core::engine::calendar::Declared;
use waterwheel_durable_core::engine::{Answer, Token};
use waterwheel_durable_core::store::{Dead, Id, Op, Row};

use crate::beat::{Beat, name_of};
use crate::model::Kept;

const DAY: i64 = 86_400_000_000;

/// The observable state of the calendars.
#[derive(Debug, Default)]
pub struct Calendars {
    all: HashMap<usize, Calendar>,
    in_flight: HashMap<Token, InFlight>,
    /// The occurrences that commits should file, by request to the store.
    asked_for: HashMap<u64, Vec<(Id, i64)>>,
    /// The durable timers, and their state.
    timers: HashMap<Id, Timer>,
    /// The filed occurrences.
    filed: HashSet<Occurrence>,
    /// The civil times of the filed occurrences.
    civil: HashSet<(usize, i64)>,
    /// The occurrences that commits were asked to file, durable or not.
    ids: HashMap<Id, Occurrence>,
    tokens: Token,
}

/// The index of a calendar, and a second.
type Occurrence = (usize, i64);

#[derive(Debug)]
enum InFlight {
    /// A declaration, with the earliest time that the clock has shown since.
    Declare(usize, Beat, i64),
    Remove(usize),
}

#[derive(Debug, Default)]
struct Calendar {
    /// The declaration, if there is one.
    beat: Option<Beat>,
    /// The time in microseconds after which all occurrences must come.
    since: i64,
    /// Whether it is unknown which declaration holds, or what became of its last occurrences.
    is_unsure: bool,
    /// Whether the clock was so far behind that an occurrence may come twice.
    doubles: bool,
    /// The latest time that the clock has shown.
    latest: i64,
    /// How far ahead of that other rules of the zone may have put it.
    slack: i64,
}

#[derive(Debug, Default)]
struct Timer {
    is_with_handler: bool,
    has_ended: Option<Process>,
    was_given_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Process {
    This,
    Earlier,
}

/// Tokens of calendars, apart from those of timers.
const TOKENS: Token = 1 << 40;

impl Calendars {
    /// Whether an answer must be checked here.
    #[must_use]
    pub fn is_in_flight(token: Token) -> bool {
        token >= TOKENS
    }

    fn note(&mut self, request: InFlight) -> Token {
        self.tokens += 1;
        let token = TOKENS + self.tokens;
        self.in_flight.insert(token, request);
        token
    }

    /// Notes a declaration, and returns its token.
    pub fn declares(&mut self, name: usize, beat: Beat, wall: i64) -> Token {
        // The new declaration may take effect now.
        let calendar = self.all.entry(name).or_default();
        calendar.latest = calendar.latest.max(wall);
        self.note(InFlight::Declare(name, beat, wall))
    }

    /// Notes a removal, and returns its token.
    pub fn removes(&mut self, name: usize) -> Token {
        self.note(InFlight::Remove(name))
    }

    /// The last declaration, if it is known.
    #[must_use]
    pub fn beat(&self, name: usize) -> Option<Beat> {
        self.all.get(&name)?.beat
    }

    /// Notes the time that the clock on the wall shows.
    pub fn shows(&mut self, wall: i64) {
        for calendar in self.all.values_mut() {
            calendar.doubles |= wall < calendar.latest + calendar.slack - DAY;
            calendar.latest = calendar.latest.max(wall);
        }
        for request in self.in_flight.values_mut() {
            if let InFlight::Declare(_, _, earliest) = request {
                *earliest = wall.min(*earliest);
            }
        }
    }

    /// The latest time that the clock has shown.
    #[must_use]
    pub fn latest(&self) -> i64 {
        let latest = self.all.values().map(|it| it.latest);
        latest.max().unwrap_or(i64::MIN)
    }

    /// Notes that the rules of the zone have changed: occurrences by the old ones no longer count.
    pub fn rules_change(&mut self, by_seconds: i64) {
        for calendar in self.all.values_mut() {
            calendar.is_unsure = true;
            calendar.slack += by_seconds * 1_000_000;
        }
    }

    /// Checks an answer.
    ///
    /// # Errors
    ///
    /// If the answer contradicts what is known.
    pub fn answered(&mut self, token: Token, answer: &Answer, wall: i64) -> Kept {
        let Some(request) = self.in_flight.remove(&token) else {
            return Err(format!("request {token} was answered twice: {answer:?}"));
        };
        let (InFlight::Declare(name, ..) | InFlight::Remove(name)) = &request;
        let name = *name;
        let calendar = self.all.entry(name).or_default();
        let (is_unsure, before) = (calendar.is_unsure, calendar.beat);
        let is_right = match (&request, answer) {
            (_, Answer::Refused(_) | Answer::Failed(_) | Answer::ShuttingDown) => return Ok(()),
            (_, Answer::Unknown(_)) => {
                calendar.is_unsure = true;
                return Ok(());
            }
            (InFlight::Declare(_, beat, earliest), Answer::Declared(declared)) => {
                calendar.beat = Some(*beat);
                let is_known = before == Some(*beat) && !is_unsure;
                if *declared == Declared::Created {
                    calendar.doubles |= *earliest < calendar.latest;
                    self.civil.retain(|(other, _)| *other != name);
                }
                if *declared != Declared::Unchanged || !is_known {
                    calendar.latest = calendar.latest.max(wall);
                    calendar.since = calendar.latest + calendar.slack;
                    calendar.is_unsure = false;
                }
                match declared {
                    Declared::Created => before.is_none(),
                    Declared::Replaced => before.is_some() && before != Some(*beat),
                    Declared::Unchanged => before == Some(*beat),
                }
            }
            (InFlight::Remove(_), Answer::Done) => {
                (calendar.beat, calendar.is_unsure) = (None, false);
                before.is_some()
            }
            (InFlight::Remove(_), Answer::NotFound) => {
                (calendar.beat, calendar.is_unsure) = (None, false);
                before.is_none()
            }
            _ => false,
        };
        match is_right || is_unsure {
            true => Ok(()),
            false => Err(format!(
                "{answer:?} is no answer to {request:?} of {before:?}"
            )),
        }
    }

    /// Checks the occurrences that a commit should file. It may repeat an earlier commit whose reply was lost.
    ///
    /// # Errors
    ///
    /// An occurrence was filed before.
    pub fn commits(&mut self, number: u64, steps: &[Op], is_again: bool, ahead: i64) -> Kept {
        let steps = steps.iter().filter_map(|op| match op {
            Op::All(steps) => Some(steps),
            _ => None,
        });
        let mut occurrences = Vec::new();
        for op in steps.flatten() {
            let Op::Insert(row, _) = op else { continue };
            let occurrence = occurrence(row)?;
            let civil = (occurrence.0, occurrence.1 + ahead);
            let may_double = self.all.get(&occurrence.0).is_none_or(|it| it.doubles);
            let was_filed = self.filed.contains(&occurrence) || self.civil.contains(&civil);
            let was_used = self.timers.contains_key(&row.id);
            if !is_again && (was_used || was_filed && !may_double) {
                return Err(format!("filed twice: {row:?}"));
            }
            self.ids.insert(row.id, occurrence);
            occurrences.push((row.id, civil.1));
        }
        if !occurrences.is_empty() {
            self.asked_for.insert(number, occurrences);
        }
        Ok(())
    }

    /// Begins a process, which numbers its requests anew.
    pub fn begins(&mut self) {
        self.asked_for.clear();
    }

    /// Notes that a request was answered: a commit is durable, or was refused.
    pub fn replied(&mut self, number: u64, is_done: bool) {
        let occurrences = self.asked_for.remove(&number).into_iter().flatten();
        for (id, civil) in occurrences.filter(|_| is_done) {
            let occurrence = self.ids[&id];
            self.civil.insert((occurrence.0, civil));
            self.filed.insert(occurrence);
            self.timers.entry(id).or_default();
        }
    }

    /// Checks a delivery.
    ///
    /// # Errors
    ///
    /// The delivery is early, is one too many, or was never filed.
    pub fn delivered(&mut self, row: &Row, wall: i64) -> Kept {
        let (name, second) = occurrence(row)?;
        self.filed.insert((name, second));
        if !self.ids.contains_key(&row.id) {
            return Err(format!("never filed: {row:?}"));
        }
        if row.due.as_millis() * 1_000 > wall {
            return Err(format!("early, at {wall} us: {row:?}"));
        }
        if row.first_due.second() != second {
            return Err(format!("of another time: {row:?}"));
        }
        // The timer is durable, even if no answer has said so.
        let timer = self.timers.entry(row.id).or_default();
        if timer.is_with_handler || timer.has_ended == Some(Process::This) {
            return Err(format!("delivered twice: {row:?} {timer:?}"));
        }
        timer.is_with_handler = true;
        Ok(())
    }

    /// Notes that the handler of a delivery was not called, since the timer is no longer due.
    pub fn withdrawn(&mut self, id: Id) {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.is_with_handler = false;
        }
    }

    /// Notes that a delivery has ended: successfully, for good, or to be retried.
    pub fn ended(&mut self, row: &Row, is_over: bool, was_given_up: bool) {
        if let Some(timer) = self.timers.get_mut(&row.id) {
            timer.is_with_handler = false;
            timer.was_given_up = was_given_up;
            if is_over {
                timer.has_ended = Some(Process::This);
            }
        }
    }

    /// Ends the process. Unanswered requests may have been done.
    pub fn crashed(&mut self) {
        for request in std::mem::take(&mut self.in_flight).into_values() {
            let (InFlight::Declare(name, ..) | InFlight::Remove(name)) = request;
            self.all.entry(name).or_default().is_unsure = true;
        }
        for timer in self.timers.values_mut() {
            timer.is_with_handler = false;
            timer.has_ended = timer.has_ended.map(|_| Process::Earlier);
        }
    }

    /// Checks that all requests were answered.
    ///
    /// # Errors
    ///
    /// A request was not.
    pub fn is_answered(&self) -> Kept {
        match self.in_flight.iter().next() {
            None => Ok(()),
            Some(request) => Err(format!("not answered: {request:?}")),
        }
    }

    /// Checks that the last occurrences of each calendar were filed, as its policy requires. All that have come by this second were looked at.
    ///
    /// # Errors
    ///
    /// An occurrence is missing.
    pub fn is_complete(&self, second: i64, ahead: i64) -> Kept {
        for (name, calendar) in &self.all {
            let Some(beat) = calendar.beat.filter(|_| !calendar.is_unsure) else {
                continue;
            };
            if calendar.doubles {
                continue;
            }
            let mut last = beat.last(second, ahead);
            let missing = last
                .by_ref()
                .take_while(|it| it * 1_000_000 > calendar.since)
                .find(|it| !self.filed.contains(&(*name, *it)));
            if let Some(missing) = missing {
                return Err(format!("{missing} of {name} is missing: {calendar:?}"));
            }
        }
        Ok(())
    }

    /// Checks that nothing is left to do.
    ///
    /// # Errors
    ///
    /// A timer was lost.
    pub fn is_done(&self, dead: &[Dead]) -> Kept {
        self.is_answered()?;
        let dead: HashSet<Id> = dead.iter().map(|dead| dead.row.id).collect();
        for (id, timer) in &self.timers {
            let of = self.ids.get(id);
            if timer.has_ended.is_none() && !dead.contains(id) {
                return Err(format!("never delivered: {of:?} {timer:?}"));
            }
            if timer.was_given_up && timer.has_ended.is_some() && !dead.contains(id) {
                return Err(format!("given up, and no dead letter: {of:?}"));
            }
        }
        Ok(())
    }
}

fn occurrence(row: &Row) -> Result<Occurrence, String> {
    let second = row.id.occurrence().map(|(_, second)| second);
    let both = name_of(&row.payload).zip(second);
    both.ok_or_else(|| format!("no occurrence: {row:?}"))
}
