//! What is written next, and what follows from it?

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;

use waterwheel_store::{Bucket, Id, Level, Op, Outcome, Row, StoreError};

use super::asked::What;
use super::planted::{self, Planted};
use super::{Answer, Call, Engine, Output, Token};

/// What follows a step of a commit.
#[derive(Debug, Clone)]
pub(super) enum Then {
    Inserted(Token, Row, Bucket),
    /// The timer in memory is gone: settled, or given up.
    Gone(Id, usize),
    /// It was given up.
    Buried(Row, usize, Arc<str>),
    /// A failed timer has another due time. It comes back.
    Retried(Row, Bucket, usize),
    Cancelled(Token, Id, Freed),
    Rescheduled(Token, Id, Bucket, Freed),
    Redriven(Token, Bucket),
    Cascaded(Bucket),
}

/// Where a timer was that was taken out of memory, or only noted as leaving.
#[derive(Debug, Clone, Copy)]
pub(super) struct Freed {
    pub(super) lane: usize,
    /// In which second it lies. `None` if it was not in memory.
    pub(super) second: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Commits {
    pending: VecDeque<(Op, Then)>,
    waiting: Option<(Arc<Vec<Op>>, Vec<Then>)>,
    count: u64,
    tries_again_at: Option<u64>,
}

impl Commits {
    pub(super) fn push(&mut self, op: Op, then: Then) {
        self.pending.push_back((op, then));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.waiting.is_none()
    }

    pub(super) fn tries_again_at(&self) -> Option<u64> {
        let waits = self.waiting.is_none() && !self.pending.is_empty();
        self.tries_again_at.filter(|_| waits)
    }
}

impl Engine {
    /// Writes what has come up since the last commit.
    pub(super) fn commit(&mut self) {
        let now = self.now.boot_micros;
        let commits = &mut self.commits;
        if commits.waiting.is_some()
            || commits.pending.is_empty()
            || commits.tries_again_at.is_some_and(|at| now < at)
        {
            return;
        }
        commits.tries_again_at = None;
        let most = commits.pending.len().min(self.config.most_in_commit);
        let (steps, then): (Vec<_>, Vec<_>) = commits.pending.drain(..most).unzip();
        let steps = Arc::new(steps);
        commits.count += 1;
        commits.waiting = Some((Arc::clone(&steps), then));
        let call = Call::Commit(commits.count, steps);
        self.asked
            .ask(call, What::Commit, self.now, &self.config, &mut self.output);
    }

    /// The commit is durable.
    pub(super) fn committed(&mut self, outcomes: Vec<Outcome>) {
        let Some((_, then)) = self.commits.waiting.take() else {
            return;
        };
        if then.len() != outcomes.len() {
            let (found, asked) = (outcomes.len(), then.len());
            let error = format!("the store has replied {found} outcomes to {asked} steps");
            self.commits.waiting = Some((Arc::default(), then));
            return self.fail(&StoreError::indeterminate(error));
        }
        for (then, outcome) in then.into_iter().zip(outcomes) {
            self.follow(then, outcome);
        }
    }

    fn follow(&mut self, then: Then, outcome: Outcome) {
        match (then, outcome) {
            (Then::Inserted(token, row, bucket), Outcome::Inserted) => {
                if !planted::is(Planted::AnswerBeforeCommit) {
                    self.answer(token, Answer::Created(row.handle()));
                }
                let lane = self.lane(&row.handler);
                self.place(row, bucket, lane);
            }
            (Then::Inserted(token, ..), Outcome::Exists(handle)) => {
                self.answer(token, Answer::Existing(handle));
            }
            (Then::Gone(id, lane), _) => self.retire(id, lane),
            (Then::Buried(row, lane, error), _) => {
                self.retire(row.id, lane);
                self.output.push_back(Output::Dead(row, error));
            }
            (Then::Retried(row, bucket, lane), _) => {
                self.retire(row.id, lane);
                let id = row.id;
                self.place(row, bucket, lane);
                self.take_up(id);
            }
            (Then::Cancelled(token, id, freed), Outcome::Cancelled(was_there)) => {
                self.let_go(id, freed);
                self.answer(
                    token,
                    match was_there {
                        true => Answer::Done,
                        false => Answer::NotFound,
                    },
                );
                self.take_up(id);
            }
            (Then::Rescheduled(token, id, bucket, freed), Outcome::Rescheduled(row)) => {
                self.let_go(id, freed);
                self.moved(token, row, bucket);
                self.take_up(id);
            }
            (Then::Redriven(token, bucket), Outcome::Redriven(row)) => {
                self.moved(token, row, bucket);
            }
            (
                Then::Cascaded(bucket),
                Outcome::Cascaded {
                    is_empty,
                    far,
                    seconds,
                },
            ) => self.cascaded(bucket, is_empty, far, seconds),
            (then, outcome) => {
                let error = format!("the store has replied {outcome:?} to {then:?}");
                self.fail(&StoreError::indeterminate(error));
            }
        }
    }

    /// The store has refused a commit, and nothing of it was done. A caller gets that as its answer; the rest is tried again.
    pub(super) fn refused(&mut self, error: &StoreError) {
        let Some((steps, then)) = self.commits.waiting.take() else {
            return;
        };
        let why: Arc<str> = in_words(error).into();
        let mut again = VecDeque::new();
        for (op, then) in steps.iter().zip(then) {
            let refused = Answer::Refused(Arc::clone(&why));
            match then {
                Then::Inserted(token, ..) | Then::Redriven(token, _) => self.answer(token, refused),
                Then::Cancelled(token, id, freed) | Then::Rescheduled(token, id, _, freed) => {
                    self.let_go(id, freed);
                    // The row is where it was, and a load may have passed over it.
                    let is_undone = !planted::is(Planted::PassedOverWhenRefused);
                    if is_undone || freed.second.is_some() {
                        self.written(freed.lane, freed.second.unwrap_or(i64::MIN));
                    }
                    self.answer(token, refused);
                    self.take_up(id);
                }
                then => again.push_back((op.clone(), then)),
            }
        }
        again.append(&mut self.commits.pending);
        self.commits.pending = again;
        let later = self
            .now
            .boot_micros
            .saturating_add(self.config.refused_micros);
        self.commits.tries_again_at = Some(later);
    }

    /// The store has failed. Nothing is asked of it any more.
    pub(crate) fn fail(&mut self, error: &StoreError) {
        self.has_failed = true;
        let why: Arc<str> = in_words(error).into();
        let waiting = self.commits.waiting.take();
        let waiting = waiting.into_iter().flat_map(|(_, then)| then);
        let pending = std::mem::take(&mut self.commits.pending);
        let all: Vec<Then> = waiting
            .chain(pending.into_iter().map(|(_, then)| then))
            .collect();
        for then in all {
            if let Then::Inserted(token, ..)
            | Then::Redriven(token, _)
            | Then::Cancelled(token, ..)
            | Then::Rescheduled(token, ..) = then
            {
                self.answer(token, Answer::Unknown(Arc::clone(&why)));
            }
        }
        for deferred in std::mem::take(&mut self.deferred).into_values().flatten() {
            self.answer(deferred.token(), Answer::Failed(Arc::clone(&why)));
        }
        self.output.push_back(Output::Failed(why));
    }

    fn moved(&mut self, token: Token, row: Option<Row>, bucket: Bucket) {
        let Some(row) = row else {
            return self.answer(token, Answer::NotFound);
        };
        self.answer(token, Answer::Done);
        let lane = self.lane(&row.handler);
        self.place(row, bucket, lane);
    }

    /// A row lies in this bucket from now on.
    fn place(&mut self, row: Row, bucket: Bucket, lane: usize) {
        match bucket.level {
            Level::Second => self.admit(row, lane),
            _ => self.far.written(bucket),
        }
    }

    /// A timer that was in memory is not any more.
    pub(super) fn retire(&mut self, id: Id, lane: usize) {
        if self.near.forget(id, self.asked.loading()) {
            self.lanes[lane].held -= 1;
        }
    }

    /// The same, of a timer that was perhaps only noted, so that no load takes it.
    fn let_go(&mut self, id: Id, freed: Freed) {
        match freed.second {
            Some(_) => self.retire(id, freed.lane),
            None => {
                self.near.forget(id, self.asked.loading());
            }
        }
    }

    pub(super) fn answer(&mut self, token: Token, answer: Answer) {
        self.output.push_back(Output::Answer(token, answer));
    }
}

fn in_words(error: &StoreError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
