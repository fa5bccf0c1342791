//! What becomes of an order of another process? It is a request like a caller's, and its answer is written to the store.

use std::sync::Arc;

use waterwheel_store::{Op, Order};

use super::{Answer, Engine, Token};

/// The tokens of orders have it, and those of callers do not.
const IS_ORDER: Token = 1 << 63;

impl Engine {
    /// Carries out an order of another process, once. It may be asked for again until its [answer](Op::Reply) is written.
    pub fn order(&mut self, number: u64, order: Order) {
        if number & IS_ORDER != 0 || !self.orders.insert(number) {
            return;
        }
        let token = IS_ORDER | number;
        match order {
            Order::Cancel(handle) => self.cancel(token, handle),
            Order::Redrive(id) => self.redrive(token, id),
            Order::Discard(id) => self.discard(token, id),
            Order::Pause(name) => self.pause(token, &name, true),
            Order::Resume(name) => self.pause(token, &name, false),
        }
        self.go_on();
    }

    /// Answers a request if it is an order's.
    pub(super) fn is_answered_as_order(&mut self, token: Token, answer: &Answer) -> bool {
        if token & IS_ORDER == 0 {
            return false;
        }
        if !self.has_failed {
            let words: Arc<str> = in_words(answer).into();
            self.commits.push(Op::Reply(token & !IS_ORDER, words));
        }
        true
    }

    /// The answer is written.
    pub(super) fn replied_to(&mut self, number: u64) {
        self.orders.remove(&number);
    }
}

/// `done`, or why not.
fn in_words(answer: &Answer) -> String {
    match answer {
        Answer::Done => "done".into(),
        Answer::AlreadyFired => "the timer is with its handler, or has just been".into(),
        Answer::NotFound => "there is no such timer or dead letter".into(),
        Answer::UnknownNamespace(name) => format!("there is no namespace {name:?}"),
        Answer::Refused(why) => format!("the store has refused it: {why}"),
        Answer::ShuttingDown => "the service shuts down".into(),
        other => format!("{other:?}"),
    }
}
