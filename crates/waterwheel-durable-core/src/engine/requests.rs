//! What becomes of an insert, a cancel, a reschedule?

use std::collections::VecDeque;

use crate::store::{Bucket, Due, Handle, Id, Op, Row};

use super::loaded::Free;
use super::planted::{self, Planted};
use super::{Answer, Engine, NewTimer, Token};

/// A request for a timer that a commit is about to move.
#[derive(Debug)]
pub(super) enum Deferred {
    Cancel(Token, Handle),
    Reschedule(Token, Handle, Due),
}

/// The callers that wait for the outcome of a step.
#[derive(Debug)]
pub(super) struct Callers {
    pub(super) token: Token,
    /// Their requests were the same, or were overtaken by this one.
    pub(super) others: Vec<Token>,
}

impl From<Token> for Callers {
    fn from(token: Token) -> Callers {
        let others = Vec::new();
        Callers { token, others }
    }
}

impl Callers {
    pub(super) fn all(self) -> impl Iterator<Item = Token> {
        self.others.into_iter().chain([self.token])
    }
}

impl Deferred {
    pub(super) fn token(&self) -> Token {
        match self {
            Deferred::Cancel(token, _) | Deferred::Reschedule(token, ..) => *token,
        }
    }
}

impl Engine {
    /// Inserts a timer: [`Created`](Answer::Created), or [`Existing`](Answer::Existing) if another one of its handler has its key; or what
    /// [`charge`](Engine::charge) has against it.
    pub fn insert(&mut self, token: Token, timer: NewTimer) {
        if self.refuses(token) {
            return;
        }
        if let Err(answer) = self.charge_one(&timer.handler) {
            return self.answer(token, answer);
        }
        self.insert_charged(token, timer);
    }

    /// Inserts a timer whose insert was [charged](Engine::charge).
    pub fn insert_charged(&mut self, token: Token, timer: NewTimer) {
        if self.refuses(token) {
            return;
        }
        let Some(id) = Id::new(self.epoch, self.inserted) else {
            return self.answer(token, Answer::OutOfIds);
        };
        self.inserted += 1;
        let row = Row {
            id,
            due: timer.due,
            handler: timer.handler,
            failures: 0,
            starts: 0,
            has_moved: false,
            key: timer.key,
            payload: timer.payload,
        };
        if planted::is(Planted::AnswerBeforeCommit) {
            self.answer(token, Answer::Created(row.handle()));
        }
        let bucket = Bucket::of(row.due, self.present());
        self.request(Op::Insert(row, bucket), token);
    }

    /// Cancels a timer: [`Done`](Answer::Done), and it is not delivered; [`AlreadyFired`](Answer::AlreadyFired) if it is with its handler;
    /// [`NotFound`](Answer::NotFound).
    pub fn cancel(&mut self, token: Token, handle: Handle) {
        if self.refuses(token) {
            return;
        }
        match self.loaded.free(handle.id) {
            Free::Taken => self.request(Op::Cancel(handle), token),
            Free::WithHandler => self.answer(token, Answer::AlreadyFired),
            Free::Moving => self.defer(handle.id, Deferred::Cancel(token, handle)),
        }
    }

    /// Moves a timer to another due time, with the same answers.
    pub fn reschedule(&mut self, token: Token, handle: Handle, due: Due) {
        if self.refuses(token) {
            return;
        }
        match self.loaded.free(handle.id) {
            Free::Taken => self.request(self.move_to(handle, due), token),
            Free::WithHandler => self.answer(token, Answer::AlreadyFired),
            Free::Moving => self.defer(handle.id, Deferred::Reschedule(token, handle, due)),
        }
    }

    /// Makes a dead letter a timer again, due now: [`Done`](Answer::Done) or [`NotFound`](Answer::NotFound).
    pub fn redrive(&mut self, token: Token, id: Id) {
        if self.refuses(token) {
            return;
        }
        let due = self.present();
        let bucket = Bucket::of(due, due);
        self.request(Op::Redrive(id, due, bucket), token);
    }

    /// Deletes a dead letter: [`Done`](Answer::Done) or [`NotFound`](Answer::NotFound).
    pub fn discard(&mut self, token: Token, id: Id) {
        if !self.refuses(token) {
            self.request(Op::Discard(id), token);
        }
    }

    fn defer(&mut self, id: Id, request: Deferred) {
        self.deferred.entry(id).or_default().push_back(request);
    }

    pub(super) fn request(&mut self, op: Op, callers: impl Into<Callers>) {
        self.commits.request(op, callers.into());
        self.commit();
    }

    fn move_to(&self, handle: Handle, due: Due) -> Op {
        let bucket = Bucket::of(due, self.present());
        Op::Reschedule(handle, due, bucket)
    }

    /// A timer has moved: what waited for that goes on.
    pub(super) fn take_up(&mut self, id: Id) {
        let Some(mut waiting) = self.deferred.remove(&id) else {
            return;
        };
        if self.has_failed || self.is_stopping {
            for request in waiting {
                self.refuses(request.token());
            }
            return;
        }
        while let Some(request) = waiting.pop_front() {
            let (op, callers) = self.fold(request, &mut waiting);
            match self.loaded.free(id) {
                Free::Taken => {
                    if !waiting.is_empty() {
                        self.deferred.insert(id, waiting);
                    }
                    return self.request(op, callers);
                }
                Free::WithHandler | Free::Moving => self.answer_all(callers, &Answer::AlreadyFired),
            }
        }
    }

    /// Makes one step of a request and those that follow it: cancels by the same handle, or moves, of which the last one counts.
    fn fold(&self, first: Deferred, waiting: &mut VecDeque<Deferred>) -> (Op, Callers) {
        let mut callers = Callers::from(first.token());
        match first {
            Deferred::Cancel(_, handle) => {
                while let Some(Deferred::Cancel(token, other)) = waiting.front()
                    && *other == handle
                {
                    callers.others.push(*token);
                    waiting.pop_front();
                }
                (Op::Cancel(handle), callers)
            }
            Deferred::Reschedule(_, handle, mut due) => {
                while let Some(Deferred::Reschedule(token, other, later)) = waiting.front()
                    && *other == handle
                {
                    due = *later;
                    callers
                        .others
                        .push(std::mem::replace(&mut callers.token, *token));
                    waiting.pop_front();
                }
                (self.move_to(handle, due), callers)
            }
        }
    }

    /// A timer is cancelled: there is none for what waited.
    pub(super) fn cancelled(&mut self, id: Id, others: Vec<Token>) {
        let waiting = self.deferred.remove(&id).into_iter().flatten();
        for token in others.into_iter().chain(waiting.map(|it| it.token())) {
            self.answer(token, Answer::NotFound);
        }
    }

    pub(super) fn refuses(&mut self, token: Token) -> bool {
        if self.has_failed {
            let why = self.failure.clone().unwrap_or_default();
            self.answer(token, Answer::Failed(why));
        } else if self.is_stopping {
            self.answer(token, Answer::ShuttingDown);
        }
        self.has_failed || self.is_stopping
    }
}
