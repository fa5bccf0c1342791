//! What becomes of an insert, a cancel, a reschedule?

use std::sync::Arc;

use waterwheel_store::{Bucket, Due, Handle, Id, Op, Row};

use super::near::Free;
use super::planted::{self, Planted};
use super::{Answer, Engine, NewTimer, Token};

/// A request for a timer that a commit is about to move.
#[derive(Debug)]
pub(super) enum Deferred {
    Cancel(Token, Handle),
    Reschedule(Token, Handle, Due),
}

impl Deferred {
    pub(super) fn token(&self) -> Token {
        match self {
            Deferred::Cancel(token, _) | Deferred::Reschedule(token, ..) => *token,
        }
    }
}

impl Engine {
    /// Inserts a timer: [`Created`](Answer::Created), or [`Existing`](Answer::Existing) if another one of its handler has its key.
    pub fn insert(&mut self, token: Token, timer: NewTimer) {
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
            has_moved: false,
            key: timer.key,
            payload: timer.payload,
        };
        if planted::is(Planted::AnswerBeforeCommit) {
            self.answer(token, Answer::Created(row.handle()));
        }
        let bucket = Bucket::of(row.due, self.present());
        self.commits.request(Op::Insert(row, bucket), token);
        self.commit();
    }

    /// Cancels a timer: [`Done`](Answer::Done), and it is not delivered; [`AlreadyFired`](Answer::AlreadyFired) if it is with its handler;
    /// [`NotFound`](Answer::NotFound).
    pub fn cancel(&mut self, token: Token, handle: Handle) {
        if self.refuses(token) {
            return;
        }
        match self.near.free(handle.id) {
            Free::Taken => {
                self.commits.request(Op::Cancel(handle), token);
                self.commit();
            }
            Free::WithHandler => self.answer(token, Answer::AlreadyFired),
            Free::Moving => self.defer(handle.id, Deferred::Cancel(token, handle)),
        }
    }

    /// Moves a timer to another due time, with the same answers.
    pub fn reschedule(&mut self, token: Token, handle: Handle, due: Due) {
        if self.refuses(token) {
            return;
        }
        match self.near.free(handle.id) {
            Free::Taken => {
                let bucket = Bucket::of(due, self.present());
                let op = Op::Reschedule(handle, due, bucket);
                self.commits.request(op, token);
                self.commit();
            }
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
        self.commits.request(Op::Redrive(id, due, bucket), token);
        self.commit();
    }

    fn defer(&mut self, id: Id, request: Deferred) {
        self.deferred.entry(id).or_default().push(request);
    }

    /// A timer has moved: what waited for that goes on.
    pub(super) fn take_up(&mut self, id: Id) {
        for request in self.deferred.remove(&id).into_iter().flatten() {
            match request {
                Deferred::Cancel(token, handle) => self.cancel(token, handle),
                Deferred::Reschedule(token, handle, due) => self.reschedule(token, handle, due),
            }
        }
    }

    fn refuses(&mut self, token: Token) -> bool {
        if self.has_failed {
            self.answer(token, Answer::Failed(Arc::from("the store has failed")));
        } else if self.is_stopping {
            self.answer(token, Answer::ShuttingDown);
        }
        self.has_failed || self.is_stopping
    }
}
