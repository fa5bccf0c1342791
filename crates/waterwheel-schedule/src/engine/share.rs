//! What leads from a job to its table.

use std::ops::Deref;
use std::sync::Arc;

use super::table::Table;

/// A way to the table, one for each clone of a scheduler: its jobs hold it. So threads that have a clone each do not all write one count of references.
#[derive(Debug)]
pub(crate) struct Share(Arc<Table>);

impl Share {
    pub(crate) fn new(table: Arc<Table>) -> Arc<Share> {
        Arc::new(Share(table))
    }
}

impl Deref for Share {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.0
    }
}
