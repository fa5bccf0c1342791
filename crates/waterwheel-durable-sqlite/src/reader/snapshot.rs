use std::collections::HashSet;

use rusqlite::{CachedStatement, Connection};
use waterwheel_durable_core::store::Scope;

use crate::read::Handlers;

/// The tables at one point in time.
pub(crate) struct Snapshot<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) handlers: Handlers,
}

impl<'a> Snapshot<'a> {
    /// Begins a transaction that has read nothing yet.
    pub(crate) fn new(connection: &'a Connection) -> rusqlite::Result<Snapshot<'a>> {
        Ok(Snapshot {
            connection,
            handlers: Handlers::read(connection)?,
        })
    }

    /// The numbers of these handlers.
    pub(crate) fn numbers(&self, scope: &Scope) -> HashSet<i64> {
        let all = self.handlers.all();
        let meant = all.iter().filter(|name| scope.contains(name));
        meant
            .filter_map(|name| self.handlers.number(name))
            .collect()
    }

    pub(crate) fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.connection.prepare_cached(sql)
    }
}
