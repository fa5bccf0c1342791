//! What do other processes order? The store puts an order out each time that it is asked, until its answer is written.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use waterwheel_durable::engine::{Answer, Engine, Token};
use waterwheel_store::{Op, Order};

use super::World;

/// The orders that are not answered.
#[derive(Debug, Default)]
pub(super) struct Orders {
    all: BTreeMap<u64, Ordered>,
    count: u64,
    /// Which orders the commits answer that were asked for, by the requests to the store.
    answered: HashMap<u64, Vec<u64>>,
}

#[derive(Debug)]
struct Ordered {
    order: Order,
    /// What names it in the model.
    token: Token,
    answer: Option<Arc<str>>,
}

impl Orders {
    pub(super) fn is_any(&self) -> bool {
        !self.all.is_empty()
    }

    /// The store is asked for orders.
    pub(super) fn read(&self, engine: &mut Engine) {
        for (number, ordered) in &self.all {
            engine.order(*number, ordered.order.clone());
        }
    }

    /// Checks the answers that a commit is to write. One that was refused comes again, in another commit, and a commit whose reply is late is asked for again.
    ///
    /// # Errors
    ///
    /// An order is answered again, or in another way.
    pub(super) fn commits(
        &mut self,
        request: u64,
        steps: &[Op],
        is_again: bool,
    ) -> Result<(), String> {
        let mut numbers = Vec::new();
        for op in steps {
            let Op::Reply(number, answer) = op else {
                continue;
            };
            let ordered = self.all.get_mut(number);
            let is_first = !numbers.contains(number);
            numbers.push(*number);
            let before = ordered.map(|it| it.answer.get_or_insert_with(|| Arc::clone(answer)));
            if !is_again && (!is_first || before.as_deref() != Some(answer)) {
                return Err(format!(
                    "the order {number} is answered again: {answer:?} after {before:?}"
                ));
            }
        }
        self.answered.insert(request, numbers);
        Ok(())
    }

    /// The process ends, and its orders are withdrawn.
    pub(super) fn ends(&mut self) {
        self.all.clear();
        self.answered.clear();
    }
}

impl World {
    /// Another process orders a cancel. Timers with keys are left out: that a key is free again is known before the answer is written.
    pub(super) fn order(&mut self) {
        let handle = self.any().filter(|it| !self.model.has_key(it.id));
        let Some(handle) = handle else {
            return;
        };
        let token = self.model.cancels(handle.id);
        self.orders.count += 1;
        let ordered = Ordered {
            order: Order::Cancel(handle),
            token,
            answer: None,
        };
        self.orders.all.insert(self.orders.count, ordered);
        self.orders.read(&mut self.engine);
    }

    /// A commit is done, and the answers in it are written.
    pub(super) fn are_answered(&mut self, request: u64) -> Result<(), String> {
        for number in self.orders.answered.remove(&request).unwrap_or_default() {
            let Some(Ordered { token, answer, .. }) = self.orders.all.remove(&number) else {
                continue;
            };
            let answer = match answer.as_deref() {
                Some(Order::DONE) => Answer::Done,
                // Since then, it may have failed and wait for its next attempt, or was redriven.
                Some(Order::FIRED | Order::GONE) => Answer::ShuttingDown,
                Some(other) => Answer::Refused(other.into()),
                None => continue,
            };
            if let Some(id) = self.model.moves(token).filter(|_| answer == Answer::Done) {
                self.has_left(id);
            }
            self.model.answered(token, answer)?;
        }
        Ok(())
    }
}
