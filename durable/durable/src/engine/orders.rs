//! What becomes of an order of another process? It is a request like a caller's, and its answer is written to the store.

use std::sync::Arc;

use waterwheel_store::{Op, Order};

use super::planted::{self, Planted};
use super::{Answer, Engine, Token};

/// The tokens of orders have it, and those of callers do not.
const IS_ORDER: Token = 1 << 63;

impl Engine {
    /// Carries out an order of another process, once. It may be asked for again until its [answer](Op::Reply) is written.
    pub fn order(&mut self, number: u64, order: Order) {
        let is_new = self.orders.insert(number) || planted::is(Planted::OrderedAgain);
        if number & IS_ORDER != 0 || !is_new {
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

/// [`Order::DONE`], or why not.
fn in_words(answer: &Answer) -> String {
    match answer {
        Answer::Done => Order::DONE.into(),
        Answer::AlreadyFired => Order::FIRED.into(),
        Answer::NotFound => Order::GONE.into(),
        Answer::UnknownNamespace(name) => format!("there is no namespace {name:?}"),
        Answer::Refused(why) => why.to_string(),
        Answer::ShuttingDown => "nothing was done, because the service is shutting down: repeat the command when it has ended".into(),
        Answer::Full => "the store is full, and nothing was written: free space on its disk".into(),
        Answer::Failed(why) => format!(
            "nothing was done, because the store failed earlier ({why}): restart the service, and repeat the command"
        ),
        Answer::Unknown(why) => format!(
            "it is not known what was done ({why}): restart the service, and look before you repeat the command"
        ),
        Answer::Created(_)
        | Answer::Existing(_)
        | Answer::Declared(_)
        | Answer::Quota { .. }
        | Answer::OutOfIds => {
            "the service gave an unexpected answer: please report this bug".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_answered_in_words() {
        let why = || Arc::from("no \"sync\"");
        let failed = Answer::Failed(why());
        let unknown = Answer::Unknown(why());
        for (answer, expected) in [
            (&Answer::Done, "done"),
            (&Answer::Full, "the store is full"),
            (&failed, "the store failed earlier (no \"sync\"): restart"),
            (&unknown, "what was done (no \"sync\"): restart"),
            (&Answer::Refused(why()), "no \"sync\""),
            (
                &Answer::UnknownNamespace("shop".into()),
                "no namespace \"shop\"",
            ),
        ] {
            let words = in_words(answer);
            assert!(words.contains(expected), "{words}");
            let begins = words.chars().next();
            assert!(begins.is_some_and(char::is_lowercase), "{words}");
        }
    }
}
