//! What is written next, and what follows from it?

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;

use crate::store::{Bucket, Level, Op, Outcome, PageLimit, Row, StoreError};

use super::in_flight::Purpose;
use super::planted::{self, Planted};
use super::requests::Callers;
use super::{Answer, Call, Counts, Engine, Output, Token};

/// For each step, the callers that wait for its outcome.
type Waiting = Vec<Option<Callers>>;

#[derive(Debug, Default)]
pub(super) struct Commits {
    /// The engine's own: cascades, and what follows from deliveries. Each is of another timer or of another level, so their command does not matter.
    steps: VecDeque<Op>,
    /// Those of callers, in their command.
    requests: VecDeque<(Op, Callers)>,
    waiting: Option<(Arc<Vec<Op>>, Waiting)>,
    count: u64,
    tries_again_at: Option<u64>,
    /// How many steps the next commit has at most, after one that was refused: a disk that is nearly full may have space for a smaller one.
    limit: Option<usize>,
}

impl Commits {
    /// The engine's own step.
    pub(super) fn push(&mut self, op: Op) {
        self.steps.push_back(op);
    }

    /// A caller's step.
    pub(super) fn request(&mut self, op: Op, callers: Callers) {
        self.requests.push_back((op, callers));
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_steps() && self.waiting.is_none()
    }

    /// How many deliveries have ended whose end is not written.
    pub(super) fn unsettled(&self) -> usize {
        let waiting = self.waiting.iter().flat_map(|(steps, _)| steps.iter());
        let ends = |op: &&Op| {
            matches!(
                op,
                Op::Settle(_) | Op::Archive(..) | Op::Retry(..) | Op::Bury { .. }
            )
        };
        waiting.chain(&self.steps).filter(ends).count()
    }

    /// Takes out the notes of starts that the next commit would have.
    pub(super) fn take_starts(&mut self) -> Vec<Row> {
        let (starts, others) = std::mem::take(&mut self.steps)
            .into_iter()
            .partition(|op| matches!(op, Op::Start(_)));
        self.steps = others;
        let starts: VecDeque<Op> = starts;
        let rows = starts.into_iter().filter_map(|op| match op {
            Op::Start(row) => Some(row),
            _ => None,
        });
        rows.collect()
    }

    /// When what was refused is tried again.
    pub(super) fn tries_again_at(&self) -> Option<u64> {
        let waits = self.waiting.is_none() && self.has_steps();
        self.tries_again_at.filter(|_| waits)
    }

    /// Until when nothing is written, since the store has refused.
    pub(super) fn is_put_off(&self, now: u64) -> Option<u64> {
        self.tries_again_at.filter(|at| now < *at)
    }

    fn has_steps(&self) -> bool {
        !self.steps.is_empty() || !self.requests.is_empty()
    }

    /// Takes the steps of the next commit. The engine's own come first: a million inserts at once delay no delivery. A half is left to the callers.
    fn next(&mut self, limit: usize, max_bytes: usize) -> (Vec<Op>, Waiting) {
        let limit = self.limit.map_or(limit, |fewer| fewer.min(limit)).max(1);
        let own = match limit {
            _ if self.requests.is_empty() => limit,
            // By turns: one that is refused each time delays no other.
            1 => usize::from(self.count.is_multiple_of(2)),
            _ => limit - self.requests.len().min(limit / 2),
        };
        let half = match self.requests.is_empty() {
            true => max_bytes,
            false => max_bytes / 2,
        };
        let (own, bytes) = within(self.steps.iter(), own, half);
        let requests = self.requests.iter().map(|(op, _)| op);
        let (taken, _) = within(requests, limit - own, max_bytes.saturating_sub(bytes));
        let mut steps = Vec::with_capacity(own + taken);
        let mut callers = Vec::with_capacity(own + taken);
        steps.extend(self.steps.drain(..own));
        callers.resize_with(own, || None);
        for (op, of) in self.requests.drain(..taken) {
            steps.push(op);
            callers.push(Some(of));
        }
        (steps, callers)
    }
}

/// How many of the first steps a commit takes, and how many bytes they insert: as many as this, and those after so many bytes are left for the next one.
fn within<'a>(
    steps: impl Iterator<Item = &'a Op>,
    limit: usize,
    max_bytes: usize,
) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    for op in steps.take(limit) {
        if bytes >= max_bytes.max(1) {
            break;
        }
        count += 1;
        bytes += inserted(op);
    }
    (count, bytes)
}

/// How many bytes a step inserts.
fn inserted(op: &Op) -> usize {
    match op {
        Op::Insert(row, _) => row.bytes(),
        // A calendar's occurrences.
        Op::All(steps) => steps.iter().map(inserted).sum(),
        _ => 0,
    }
}

impl Engine {
    /// Writes what has come up since the last commit.
    pub(super) fn commit(&mut self) {
        let now = self.now.boot_micros;
        let commits = &mut self.commits;
        if commits.waiting.is_some()
            || !commits.has_steps()
            || commits.tries_again_at.is_some_and(|at| now < at)
        {
            return;
        }
        commits.tries_again_at = None;
        let (steps, callers) =
            commits.next(self.config.max_in_commit, self.config.max_bytes_in_commit);
        let steps = Arc::new(steps);
        commits.count += 1;
        commits.waiting = Some((Arc::clone(&steps), callers));
        let call = Call::Commit(commits.count, steps);
        self.send(call, Purpose::Commit);
    }

    /// The commit is durable.
    pub(super) fn committed(&mut self, outcomes: Vec<Outcome>) {
        let Some((steps, callers)) = self.commits.waiting.take() else {
            return;
        };
        if outcomes.len() != steps.len() {
            let (found, expected) = (outcomes.len(), steps.len());
            let error = format!("the store returned {found} outcomes for {expected} steps");
            self.commits.waiting = Some((steps, callers));
            return self.fail(&StoreError::indeterminate(error));
        }
        // As many fit as before, so perhaps twice as many do.
        let limit = self.commits.limit.map(|limit| limit.max(1) * 2);
        self.commits.limit = limit.filter(|limit| *limit < self.config.max_in_commit);
        for ((op, callers), outcome) in steps.iter().zip(callers).zip(outcomes) {
            self.follow(op, callers, outcome);
        }
    }

    /// What follows from a step.
    fn follow(&mut self, op: &Op, callers: Option<Callers>, outcome: Outcome) {
        match (op, callers, outcome) {
            (Op::Insert(row, bucket), Some(callers), Outcome::Inserted) => {
                if !planted::is(Planted::AnswerBeforeCommit) {
                    self.answer(callers.token, Answer::Created(row.handle()));
                }
                self.count(&row.handler, |counts| counts.inserted += 1);
                self.place(row, *bucket);
            }
            (Op::Insert(row, _), Some(callers), Outcome::Exists(handle)) => {
                self.count(&row.handler, |counts| counts.duplicates += 1);
                self.answer(callers.token, Answer::Existing(handle));
            }
            (Op::Insert(..), Some(callers), Outcome::Full) => {
                self.answer(callers.token, Answer::Full);
            }
            (Op::Settle(row), ..) => {
                self.retire(row.id);
                self.count(&row.handler, |counts| counts.settled += 1);
            }
            (Op::Archive(row, at), ..) => {
                self.retire(row.id);
                self.archived(&row.handler, *at);
                self.count(&row.handler, |counts| counts.settled += 1);
            }
            (Op::Expire { handler, .. }, _, Outcome::Expired { is_empty }) => {
                self.expired(handler, is_empty);
            }
            (Op::Start(row), ..) => self.started(row),
            (Op::Reply(number, _), ..) => self.replied_to(*number),
            (Op::Set(name, value), callers, _) => {
                self.was_set(name, value.as_deref());
                if let Some(callers) = callers {
                    self.answer_all(callers, &Answer::Done);
                }
            }
            (Op::Bury { row, error, .. }, ..) => {
                self.retire(row.id);
                self.count(&row.handler, |counts| counts.dead += 1);
                let dead = Output::Dead(row.clone(), Arc::clone(error));
                self.output.push_back(dead);
            }
            (Op::Retry(row, due, bucket), ..) => {
                self.retire(row.id);
                self.count(&row.handler, |counts| counts.retried += 1);
                let later = Row {
                    due: *due,
                    failures: row.failures.saturating_add(1),
                    starts: 0,
                    has_moved: true,
                    ..row.clone()
                };
                self.place(&later, *bucket);
                self.take_up(row.id);
            }
            (Op::Cancel(handle), Some(callers), Outcome::Cancelled(true)) => {
                self.retire(handle.id);
                self.left(&handle.handler);
                self.count(&handle.handler, |counts| counts.cancelled += 1);
                self.answer(callers.token, Answer::Done);
                self.cancelled(handle.id, callers.others);
            }
            (Op::Reschedule(handle, _, bucket), Some(callers), Outcome::Rescheduled(Some(row))) => {
                self.retire(handle.id);
                self.left(&handle.handler);
                self.answer_all(callers, &Answer::Done);
                self.place(&row, *bucket);
                self.take_up(handle.id);
            }
            // A handle that is wrong may have the id of a timer that is there.
            (
                Op::Cancel(handle) | Op::Reschedule(handle, ..),
                Some(callers),
                Outcome::Cancelled(false) | Outcome::Rescheduled(None),
            ) => {
                self.restore(handle.id);
                self.answer_all(callers, &Answer::NotFound);
                self.take_up(handle.id);
            }
            (Op::Discard(_), Some(callers), Outcome::Cancelled(true)) => {
                self.answer_all(callers, &Answer::Done);
            }
            (Op::Discard(_), Some(callers), Outcome::Cancelled(false))
            | (Op::Redrive(..), Some(callers), Outcome::Redriven(None)) => {
                self.answer_all(callers, &Answer::NotFound);
            }
            (Op::Redrive(_, _, bucket), Some(callers), Outcome::Redriven(Some(row))) => {
                self.answer_all(callers, &Answer::Done);
                self.count(&row.handler, |counts| counts.redriven += 1);
                self.place(&row, *bucket);
            }
            (
                Op::Cascade { bucket, .. },
                _,
                Outcome::Cascaded {
                    is_empty,
                    buckets,
                    seconds,
                },
            ) => self.cascaded(*bucket, is_empty, buckets, seconds),
            (Op::All(steps), callers, Outcome::All(outcomes)) => {
                let token = callers.map(|it| it.token);
                self.calendar_written(steps, outcomes, token);
            }
            (op, callers, outcome) => {
                let error = format!("the store returned {outcome:?} for {op:?}");
                if let Some(callers) = callers {
                    self.answer_all(callers, &Answer::Unknown(error.as_str().into()));
                }
                self.fail(&StoreError::indeterminate(error));
            }
        }
    }

    /// The store has refused a commit, and nothing of it was done. A caller gets that as its answer; the rest is tried again.
    pub(super) fn refused(&mut self, error: &StoreError) {
        let Some((steps, callers)) = self.commits.waiting.take() else {
            return;
        };
        let why: Arc<str> = error.to_string().into();
        let later = self
            .now
            .boot_micros
            .saturating_add(self.config.refused_micros);
        self.commits.tries_again_at = Some(later);
        self.commits.limit = Some(steps.len() / 2);
        for (op, callers) in steps.iter().zip(callers) {
            if let Op::All(steps) = op {
                if let Some(callers) = callers {
                    self.answer_all(callers, &Answer::Refused(Arc::clone(&why)));
                }
                self.calendar_refused(steps);
                continue;
            }
            if let Op::Expire { .. } = op {
                // The clock and the policy may be others by then.
                self.expiry_refused();
                continue;
            }
            let Some(callers) = callers else {
                // Behind the others, which may free the space that it needs.
                self.commits.push(smaller(op));
                continue;
            };
            self.answer_all(callers, &Answer::Refused(Arc::clone(&why)));
            if let Op::Cancel(handle) | Op::Reschedule(handle, ..) = op {
                self.restore(handle.id);
                self.take_up(handle.id);
            }
        }
        self.refuse_deferred(&why);
        if self.is_stopping {
            self.give_back_starts();
        }
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
    pub fn fail(&mut self, error: &StoreError) {
        self.has_failed = true;
        let cause = error.source().map(ToString::to_string);
        let cause: Arc<str> = cause.unwrap_or_else(|| error.to_string()).into();
        self.failure = Some(Arc::clone(&cause));
        let why: Arc<str> = format!("the store failed: {cause}").into();
        // Of what the store was not asked for, nothing was written.
        let waiting = self.commits.waiting.take();
        let waiting = waiting.into_iter().flat_map(|(_, callers)| callers);
        for callers in waiting.flatten() {
            self.answer_all(callers, &Answer::Unknown(Arc::clone(&why)));
        }
        self.commits.steps.clear();
        for (_, callers) in std::mem::take(&mut self.commits.requests) {
            self.answer_all(callers, &Answer::Failed(Arc::clone(&cause)));
        }
        for deferred in std::mem::take(&mut self.deferred).into_values().flatten() {
            self.answer(deferred.token(), Answer::Failed(Arc::clone(&cause)));
        }
        self.calendars_failed(&cause);
        self.output.push_back(Output::Failed(cause));
    }

    pub(super) fn count(&mut self, handler: &str, count: impl FnOnce(&mut Counts)) {
        if let Some(at) = self.namespace_of(handler) {
            count(&mut self.namespaces[at].counts);
        }
    }

    /// A row lies in this bucket from now on.
    pub(super) fn place(&mut self, row: &Row, bucket: Bucket) {
        match bucket.level {
            Level::Second => {
                let queue = self.queue(&row.handler);
                self.admit(row, queue);
            }
            _ => self.buckets.written(bucket),
        }
    }

    pub(super) fn answer_all(&mut self, callers: Callers, answer: &Answer) {
        for token in callers.all() {
            self.answer(token, answer.clone());
        }
    }

    pub(super) fn answer(&mut self, token: Token, answer: Answer) {
        if !self.is_answered_as_command(token, &answer) {
            self.output.push_back(Output::Answer(token, answer));
        }
    }
}

/// A step that was refused, as it is tried again.
fn smaller(op: &Op) -> Op {
    let mut op = op.clone();
    if let Op::Cascade { limit, .. } = &mut op {
        *limit = PageLimit {
            rows: (limit.rows / 2).max(1),
            bytes: (limit.bytes / 2).max(1),
        };
    }
    op
}
