//! The results of a round, and of all of them.

use super::timer::{Last, State};
use super::{Checker, Flight, Rule, Summary};
use crate::protocol::{Known, Named, Request};

impl Checker {
    /// The work that is in progress now.
    pub(crate) fn flight(&self) -> Flight {
        let mut flight = Flight {
            running: self.running,
            commit: self.commit,
            ..Flight::default()
        };
        let is_settled = |(line, thread): &&(u64, usize)| self.seal.covers_end(*line, *thread);
        flight.unsettled = self.ends.iter().filter(|end| !is_settled(end)).count();
        for sent in self.in_flight.values() {
            let kind = match sent.what {
                Request::Insert(_) => 0,
                Request::Cancel { .. } => 1,
                Request::Reschedule { .. } => 2,
                Request::Redrive { .. } => 3,
            };
            flight.unanswered[kind] += 1;
        }
        flight
    }

    /// Whether the store is busy with a commit while a request waits for its answer.
    pub(crate) fn is_in_commit(&self) -> bool {
        self.commit.is_some() && !self.in_flight.is_empty()
    }

    /// Whether it is certain that the end of this delivery is on disk.
    pub(super) fn is_settled(&self, last: &Last) -> bool {
        let seal = match last.round == self.round {
            true => Some(&self.seal),
            false => self.seals.get(&last.round),
        };
        seal.is_some_and(|seal| seal.covers(last))
    }

    pub(super) fn ends_round(&mut self, is_clean: bool) {
        let flight = self.flight();
        let line = self.line;
        for (request, sent) in std::mem::take(&mut self.in_flight) {
            match sent.what {
                Request::Insert(_) => self
                    .unanswered
                    .extend(sent.insert(request).map(|it| (request, it))),
                Request::Cancel { id } => {
                    if let Some(timer) = self.timers.get_mut(&id) {
                        // A checker that was restored with a copy may have seen the timer only after the request.
                        timer.cancels = timer.cancels.saturating_sub(1);
                        timer.may_be_cancelled = true;
                    }
                }
                Request::Reschedule { id, .. } => {
                    let timer = self.timers.get_mut(&id);
                    let mut wanted = timer.into_iter().flat_map(|it| &mut it.wanted);
                    if let Some(it) = wanted.find(|it| it.request == request) {
                        it.done_by = Some(line);
                    }
                }
                // Already noted as possible when it was requested.
                Request::Redrive { .. } => {}
            }
        }
        if is_clean {
            self.seal.is_all = true;
            if flight.unanswered != [0; 4] {
                let text = format!("a shutdown left requests unanswered: {flight:?}");
                self.breaks(Rule::Answer, text);
            }
        } else {
            let in_flight = flight.running + flight.unsettled;
            self.summary.in_flight += in_flight;
            self.kills.entry(self.round).or_default().0 = in_flight;
        }
        let seal = std::mem::take(&mut self.seal);
        self.seals.insert(self.round, seal);
        self.ends.clear();
        self.running = 0;
    }

    pub(super) fn dead_letter(&mut self, id: u64, attempts: u32) {
        let timer = self.timers.get(&id);
        let last = timer.and_then(|timer| timer.last);
        let is_last = last.is_some_and(|it| it.state == State::Dead && it.attempt == attempts);
        // Otherwise it was redriven while the copy was made, and the copy lacks the redrive.
        if !is_last && timer.is_none_or(|it| it.copied.is_none()) {
            let text = format!("{id:x} is a dead letter of {attempts} attempts: {last:?}");
            self.breaks(Rule::Other, text);
        }
        self.dead_letters.insert(id);
    }

    /// The number of timers that certainly have to be delivered.
    pub(crate) fn owed(&self) -> usize {
        self.timers.values().filter(|it| it.is_owed()).count()
    }

    /// Timers that exist as far as is known, and whether they are dead letters: the next child cancels, moves and redrives them.
    pub(crate) fn known(&self, limit: usize) -> Known {
        let mut known = Known::default();
        for (&id, timer) in &self.timers {
            if timer.may_be_cancelled() || timer.not_found.is_some() {
                continue;
            }
            let is_dead = timer.last.is_some_and(|it| it.state == State::Dead);
            if is_dead && known.dead.len() < limit {
                known.dead.push(id);
            } else if !timer.has_ended() && known.alive.len() < limit {
                known.alive.push(Named {
                    id,
                    due: timer.handle_due,
                    handler: timer.handler.clone(),
                });
            }
        }
        known
    }

    /// Checks that each timer was delivered or given up, and no occurrence is missing, at the end. Returns the broken promises.
    pub(crate) fn finish(&mut self) -> &[(Rule, String)] {
        let mut lost = Vec::new();
        for (id, timer) in &self.timers {
            let is_kept = match timer.last.map(|last| last.state) {
                _ if timer.may_be_cancelled() => true,
                Some(State::Well) => true,
                Some(State::Dead) => self.dead_letters.contains(id),
                Some(State::Begun | State::Failed) | None => false,
            };
            if !is_kept {
                lost.push(format!("{id:x}: {timer:?}"));
            }
        }
        let missing = self.service.missing();
        lost.extend(
            missing
                .iter()
                .map(|time| format!("the occurrence of {time}")),
        );
        for lost in lost {
            self.breaks(Rule::Lost, lost);
        }
        for (round, (in_flight, again)) in self.kills.clone() {
            if again > in_flight {
                let text = format!(
                    "after the kill of round {round}, {again} were delivered again, and {in_flight} had been in flight"
                );
                self.breaks(Rule::Twice, text);
            }
        }
        &self.broken
    }

    /// The highest id that was assigned. Ids rise from one opening to the next.
    pub(crate) fn last_id(&self) -> Option<u64> {
        self.timers.keys().max().copied()
    }

    pub(crate) fn broken(&self) -> &[(Rule, String)] {
        &self.broken
    }

    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }
}
