//! A store that says when it is busy with a commit.

use std::sync::Arc;

use waterwheel_store::{Op, Outcome, Store, StoreError, pass_on};

use super::Log;
use crate::log::Line;

pub(super) struct Watched<S> {
    store: S,
    log: Arc<Log>,
}

impl<S: Store> Watched<S> {
    pub(super) fn new(store: S, log: Arc<Log>) -> Watched<S> {
        Watched { store, log }
    }
}

impl<S: Store> Store for Watched<S> {
    pass_on!(this => this.store; begin);

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        let steps_count = steps.len();
        self.log.say(&Line::CommitBegins { steps: steps_count });
        let outcomes = self.store.commit(number, steps);
        self.log.say(&Line::CommitReturned);
        outcomes
    }

    pass_on!(this => this.store; tend reads);
}
