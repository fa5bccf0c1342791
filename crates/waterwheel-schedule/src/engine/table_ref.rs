//! What leads from a job to its table.

use std::ops::Deref;
use std::sync::Arc;

use super::table::Table;

/// A way to the table, one for each clone of a scheduler: its jobs hold it. So threads that have a clone each do not all write one count of references.
#[derive(Debug)]
pub(crate) struct TableRef(Arc<Table>);

impl TableRef {
    pub(crate) fn new(table: Arc<Table>) -> Arc<TableRef> {
        Arc::new(TableRef(table))
    }
}

impl Deref for TableRef {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        &self.0
    }
}
