//! Cancels and reschedules, including those that wait because a commit is about to move their timer.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::store::{Bucket, Due, Handle, Id, Op};
use foldhash::{HashMap, HashMapExt as _};

use super::clocks::Now;
use super::io::{Answer, Token};
use super::loaded::{Free, Loaded};
use super::store_link::{Callers, StoreLink};

/// A request that takes a timer out of memory.
#[derive(Debug)]
pub(super) enum Change {
    Cancel(Token, Handle),
    Reschedule(Token, Handle, Due),
}

impl Change {
    fn token(&self) -> Token {
        match self {
            Change::Cancel(token, _) | Change::Reschedule(token, ..) => *token,
        }
    }

    fn id(&self) -> Id {
        match self {
            Change::Cancel(_, handle) | Change::Reschedule(_, handle, _) => handle.id,
        }
    }
}

/// The requests that wait, by their timers.
#[derive(Debug)]
pub(super) struct Deferred {
    waiting: HashMap<Id, VecDeque<Change>>,
}

impl Deferred {
    pub(super) fn new() -> Deferred {
        Deferred {
            waiting: HashMap::new(),
        }
    }

    /// Writes a request, unless the timer is with its handler or being moved by a commit.
    pub(super) fn request(&mut self, change: Change, loaded: &mut Loaded, link: &mut StoreLink) {
        let id = change.id();
        match loaded.free(id) {
            Free::Taken => {
                let token = change.token();
                link.request(into_op(change, link.now), token);
            }
            Free::WithHandler => link.answer(change.token(), Answer::AlreadyFired),
            Free::Moving => self.waiting.entry(id).or_default().push_back(change),
        }
    }

    /// Continues with the requests that waited for a timer to move.
    pub(super) fn take_up(&mut self, id: Id, loaded: &mut Loaded, link: &mut StoreLink) {
        let Some(mut waiting) = self.waiting.remove(&id) else {
            return;
        };
        if !link.is_open() {
            for change in waiting {
                link.refuses(change.token());
            }
            return;
        }
        while let Some(first) = waiting.pop_front() {
            let (change, callers) = fold(first, &mut waiting);
            match loaded.free(id) {
                Free::Taken => {
                    if !waiting.is_empty() {
                        self.waiting.insert(id, waiting);
                    }
                    return link.request(into_op(change, link.now), callers);
                }
                Free::WithHandler | Free::Moving => {
                    link.answer_all(callers, &Answer::AlreadyFired);
                }
            }
        }
    }

    /// Answers the requests that waited for a cancelled timer, and those merged with its cancel: it no longer exists.
    pub(super) fn cancelled(&mut self, id: Id, others: Vec<Token>, link: &mut StoreLink) {
        let waiting = self.waiting.remove(&id).into_iter().flatten();
        for token in others.into_iter().chain(waiting.map(|it| it.token())) {
            link.answer(token, Answer::NotFound);
        }
    }

    /// Answers requests for timers whose refused move is retried: they would wait as long as the store refuses.
    pub(super) fn refused(&mut self, refused: &Answer, link: &mut StoreLink) {
        if self.waiting.is_empty() {
            return;
        }
        let moving = link.retries().filter_map(|id| self.waiting.remove(&id));
        let moving: Vec<_> = moving.flatten().collect();
        for change in moving {
            link.answer(change.token(), refused.clone());
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Answers all waiting requests after the store has failed.
    pub(super) fn failed(&mut self, cause: &Arc<str>, link: &mut StoreLink) {
        for change in std::mem::take(&mut self.waiting).into_values().flatten() {
            link.answer(change.token(), Answer::Failed(Arc::clone(cause)));
        }
    }
}

fn into_op(change: Change, now: Now) -> Op {
    match change {
        Change::Cancel(_, handle) => Op::Cancel(handle),
        Change::Reschedule(_, handle, due) => {
            Op::Reschedule(handle, due, Bucket::of(due, now.due()))
        }
    }
}

/// Merges consecutive requests into one: cancels by the same handle, or moves, of which the last one wins.
fn fold(mut first: Change, waiting: &mut VecDeque<Change>) -> (Change, Callers) {
    let mut callers = Callers::from(first.token());
    match &mut first {
        Change::Cancel(_, handle) => {
            while let Some(Change::Cancel(token, other)) = waiting.front()
                && other == handle
            {
                callers.others.push(*token);
                waiting.pop_front();
            }
        }
        Change::Reschedule(_, handle, due) => {
            while let Some(Change::Reschedule(token, other, later)) = waiting.front()
                && other == handle
            {
                *due = *later;
                callers
                    .others
                    .push(std::mem::replace(&mut callers.token, *token));
                waiting.pop_front();
            }
        }
    }
    (first, callers)
}
