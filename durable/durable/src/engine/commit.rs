//! What is written next, and what follows from it?

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;

use waterwheel_store::{Bucket, Level, Op, Outcome, Row, StoreError};

use super::asked::What;
use super::planted::{self, Planted};
use super::{Answer, Call, Engine, Output, Token};

/// For each step, the request that waits for its outcome.
type Tokens = Vec<Option<Token>>;

#[derive(Debug, Default)]
pub(super) struct Commits {
    steps: VecDeque<Op>,
    tokens: VecDeque<Option<Token>>,
    waiting: Option<(Arc<Vec<Op>>, Tokens)>,
    count: u64,
    tries_again_at: Option<u64>,
}

impl Commits {
    pub(super) fn push(&mut self, op: Op, token: Option<Token>) {
        self.steps.push_back(op);
        self.tokens.push_back(token);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.waiting.is_none()
    }

    /// How many deliveries have ended whose end is not written.
    pub(super) fn unsettled(&self) -> usize {
        let waiting = self.waiting.iter().flat_map(|(steps, _)| steps.iter());
        let ends = |op: &&Op| matches!(op, Op::Settle(_) | Op::Retry(..) | Op::Bury { .. });
        waiting.chain(&self.steps).filter(ends).count()
    }

    /// When what was refused is tried again.
    pub(super) fn tries_again_at(&self) -> Option<u64> {
        let waits = self.waiting.is_none() && !self.steps.is_empty();
        self.tries_again_at.filter(|_| waits)
    }
}

impl Engine {
    /// Writes what has come up since the last commit.
    pub(super) fn commit(&mut self) {
        let now = self.now.boot_micros;
        let commits = &mut self.commits;
        if commits.waiting.is_some()
            || commits.steps.is_empty()
            || commits.tries_again_at.is_some_and(|at| now < at)
        {
            return;
        }
        commits.tries_again_at = None;
        let steps = Arc::new(first(&mut commits.steps, self.config.most_in_commit));
        let tokens = first(&mut commits.tokens, self.config.most_in_commit);
        commits.count += 1;
        commits.waiting = Some((Arc::clone(&steps), tokens));
        let call = Call::Commit(commits.count, steps);
        self.ask(call, What::Commit);
    }

    /// The commit is durable.
    pub(super) fn committed(&mut self, outcomes: Vec<Outcome>) {
        let Some((steps, tokens)) = self.commits.waiting.take() else {
            return;
        };
        if outcomes.len() != steps.len() {
            let (found, asked) = (outcomes.len(), steps.len());
            let error = format!("the store has replied {found} outcomes to {asked} steps");
            self.commits.waiting = Some((steps, tokens));
            return self.fail(&StoreError::indeterminate(error));
        }
        for ((op, token), outcome) in steps.iter().zip(tokens).zip(outcomes) {
            self.follow(op, token, outcome);
        }
    }

    /// What follows from a step.
    fn follow(&mut self, op: &Op, token: Option<Token>, outcome: Outcome) {
        match (op, token, outcome) {
            (Op::Insert(row, bucket), Some(token), Outcome::Inserted) => {
                if !planted::is(Planted::AnswerBeforeCommit) {
                    self.answer(token, Answer::Created(row.handle()));
                }
                self.place(row, *bucket);
            }
            (Op::Insert(..), Some(token), Outcome::Exists(handle)) => {
                self.answer(token, Answer::Existing(handle));
            }
            (Op::Settle(row), ..) => self.retire(row.id),
            (Op::Bury { row, error, .. }, ..) => {
                self.retire(row.id);
                let dead = Output::Dead(row.clone(), Arc::clone(error));
                self.output.push_back(dead);
            }
            (Op::Retry(row, due, bucket), ..) => {
                self.retire(row.id);
                let later = Row {
                    due: *due,
                    failures: row.failures.saturating_add(1),
                    has_moved: true,
                    ..row.clone()
                };
                self.place(&later, *bucket);
                self.take_up(row.id);
            }
            (Op::Cancel(handle), Some(token), Outcome::Cancelled(true)) => {
                self.retire(handle.id);
                self.left(&handle.handler);
                self.answer(token, Answer::Done);
                self.take_up(handle.id);
            }
            (Op::Reschedule(handle, _, bucket), Some(token), Outcome::Rescheduled(Some(row))) => {
                self.retire(handle.id);
                self.left(&handle.handler);
                self.answer(token, Answer::Done);
                self.place(&row, *bucket);
                self.take_up(handle.id);
            }
            // A handle that is wrong may have the id of a timer that is there.
            (
                Op::Cancel(handle) | Op::Reschedule(handle, ..),
                Some(token),
                Outcome::Cancelled(false) | Outcome::Rescheduled(None),
            ) => {
                self.restore(handle.id);
                self.answer(token, Answer::NotFound);
                self.take_up(handle.id);
            }
            (Op::Redrive(..), Some(token), Outcome::Redriven(None)) => {
                self.answer(token, Answer::NotFound);
            }
            (Op::Redrive(_, _, bucket), Some(token), Outcome::Redriven(Some(row))) => {
                self.answer(token, Answer::Done);
                self.place(&row, *bucket);
            }
            (
                Op::Cascade { bucket, .. },
                _,
                Outcome::Cascaded {
                    is_empty,
                    far,
                    seconds,
                },
            ) => self.cascaded(*bucket, is_empty, far, seconds),
            (op, token, outcome) => {
                let error = format!("the store has replied {outcome:?} to {op:?}");
                if let Some(token) = token {
                    self.answer(token, Answer::Unknown(error.as_str().into()));
                }
                self.fail(&StoreError::indeterminate(error));
            }
        }
    }

    /// The store has refused a commit, and nothing of it was done. A caller gets that as its answer; the rest is tried again.
    pub(super) fn refused(&mut self, error: &StoreError) {
        let Some((steps, tokens)) = self.commits.waiting.take() else {
            return;
        };
        let why: Arc<str> = in_words(error).into();
        let later = self
            .now
            .boot_micros
            .saturating_add(self.config.refused_micros);
        self.commits.tries_again_at = Some(later);
        let mut again = VecDeque::new();
        for (op, token) in steps.iter().zip(tokens) {
            let Some(token) = token else {
                again.push_back(op.clone());
                continue;
            };
            self.answer(token, Answer::Refused(Arc::clone(&why)));
            if let Op::Cancel(handle) | Op::Reschedule(handle, ..) = op {
                self.restore(handle.id);
                self.take_up(handle.id);
            }
        }
        let commits = &mut self.commits;
        let mut tokens = VecDeque::from(vec![None; again.len()]);
        again.append(&mut commits.steps);
        tokens.append(&mut commits.tokens);
        (commits.steps, commits.tokens) = (again, tokens);
        self.refuse_deferred(&why);
    }

    /// What waits for a timer that is to be tried again would wait for as long as the store refuses.
    fn refuse_deferred(&mut self, why: &Arc<str>) {
        if self.deferred.is_empty() {
            return;
        }
        let moving = self.commits.steps.iter().filter_map(|op| match op {
            Op::Retry(row, ..) => self.deferred.remove(&row.id),
            _ => None,
        });
        let refused: Vec<_> = moving.flatten().collect();
        for request in refused {
            self.answer(request.token(), Answer::Refused(Arc::clone(why)));
        }
    }

    /// The store has failed. Nothing is asked of it any more.
    pub(crate) fn fail(&mut self, error: &StoreError) {
        self.has_failed = true;
        let why: Arc<str> = in_words(error).into();
        let waiting = self.commits.waiting.take();
        let waiting = waiting.into_iter().flat_map(|(_, tokens)| tokens);
        for token in waiting.flatten() {
            self.answer(token, Answer::Unknown(Arc::clone(&why)));
        }
        self.commits.steps.clear();
        let pending = std::mem::take(&mut self.commits.tokens);
        for token in pending.into_iter().flatten() {
            self.answer(token, Answer::Failed(Arc::clone(&why)));
        }
        for deferred in std::mem::take(&mut self.deferred).into_values().flatten() {
            self.answer(deferred.token(), Answer::Failed(Arc::clone(&why)));
        }
        self.output.push_back(Output::Failed(why));
    }

    /// A row lies in this bucket from now on.
    fn place(&mut self, row: &Row, bucket: Bucket) {
        match bucket.level {
            Level::Second => {
                let lane = self.lane(&row.handler);
                self.admit(row, lane);
            }
            _ => self.far.written(bucket),
        }
    }

    pub(super) fn answer(&mut self, token: Token, answer: Answer) {
        self.output.push_back(Output::Answer(token, answer));
    }
}

/// Takes the first ones out of a queue. If that is all, nothing is copied.
fn first<T>(queue: &mut VecDeque<T>, most: usize) -> Vec<T> {
    match queue.len() <= most {
        true => std::mem::take(queue).into(),
        false => queue.drain(..most).collect(),
    }
}

fn in_words(error: &StoreError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
