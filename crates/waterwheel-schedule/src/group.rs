use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::engine::limits::Limit;
use crate::engine::table::Table;

/// A bound on how many jobs of a group run at a time. Made by [`Scheduler::group`](crate::Scheduler::group).
#[derive(Clone)]
pub struct Group {
    table: Arc<Table>,
    index: usize,
}

impl Group {
    #[track_caller]
    pub(crate) fn new(table: &Arc<Table>, name: Arc<str>, most: usize) -> Group {
        let most = NonZeroUsize::new(most);
        assert!(most.is_some(), "a group runs at least 1 job at a time");
        let mut state = table.state();
        state.groups.push(Limit::new(Some(name), most));
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

    /// The group's name.
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
