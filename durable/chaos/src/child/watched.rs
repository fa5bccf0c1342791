//! A store that says when it is busy with a commit.

use std::sync::Arc;

use waterwheel_store::{Dead, Id, Level, Most, Op, Outcome, Position, Row, Store, StoreError};

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
    fn begin(&mut self) -> Result<u64, StoreError> {
        self.store.begin()
    }

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        let steps_count = steps.len();
        self.log.say(&Line::CommitBegins { steps: steps_count });
        let outcomes = self.store.commit(number, steps);
        self.log.say(&Line::CommitReturned);
        outcomes
    }

    fn tend(&mut self) -> Result<(), StoreError> {
        self.store.tend()
    }

    fn load(
        &mut self,
        handler: &str,
        after: Position,
        before: i64,
        most: Most,
    ) -> Result<Vec<Row>, StoreError> {
        self.store.load(handler, after, before, most)
    }

    fn first_second(&mut self, handler: &str, from: i64) -> Result<Option<i64>, StoreError> {
        self.store.first_second(handler, from)
    }

    fn first_bucket(&mut self, level: Level) -> Result<Option<i64>, StoreError> {
        self.store.first_bucket(level)
    }

    fn handlers(&mut self) -> Result<Vec<Arc<str>>, StoreError> {
        self.store.handlers()
    }

    fn dead(&mut self, after: Id, most: usize) -> Result<Vec<Dead>, StoreError> {
        self.store.dead(after, most)
    }
}
