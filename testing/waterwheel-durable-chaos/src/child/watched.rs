//! A store that logs when it is busy with a commit.

use std::sync::Arc;

use waterwheel_durable_core::store::{Op, Outcome, Store, StoreError, forward};

use super::log::Log;
use crate::protocol::Line;

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
    forward!(this => this.store; begin);

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        self.log.say(&Line::CommitBegins { steps: steps.len() });
        let outcomes = self.store.commit(number, steps);
        if let Err(error) = &outcomes {
            // Not even a full disk may fail a commit: the store reserves space for what must be written.
            self.log.wrong(format!("a commit has failed: {error}"));
        }
        let done = outcomes.as_deref().unwrap_or_default();
        self.log.say(&Line::CommitReturned {
            settled: steps.iter().zip(done).filter(settles).count() as u64,
        });
        outcomes
    }

    forward!(this => this.store; maintain reads);
}

fn settles((step, _): &(&Op, &Outcome)) -> bool {
    matches!(
        step,
        Op::Settle(_) | Op::Archive(..) | Op::Retry(..) | Op::Snooze(..) | Op::Bury { .. }
    )
}
