use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::engine::concurrency_limit::ConcurrencyLimit;
use crate::engine::table::Table;

/// A limit on how many jobs of a group run at the same time. Created by [`Scheduler::group`](crate::Scheduler::group).
#[derive(Clone)]
pub struct Group {
    table: Arc<Table>,
    index: usize,
}

impl Group {
    #[track_caller]
    pub(crate) fn new(table: &Arc<Table>, name: Arc<str>, most: usize) -> Group {
        let most = NonZeroUsize::new(most);
        assert!(most.is_some(), "the limit of a group must be at least 1");
        let mut state = table.state();
        state.groups.push(ConcurrencyLimit::new(Some(name), most));
        Group {
            index: state.groups.len() - 1,
            table: Arc::clone(table),
        }
    }

    pub(crate) fn is_of(&self, table: &Arc<Table>) -> bool {
        Arc::ptr_eq(&self.table, table)
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Returns the name of the group.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        let name = self.table.state().groups[self.index].name.clone();
        name.unwrap_or_default()
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Group").field(&self.name()).finish()
    }
}
