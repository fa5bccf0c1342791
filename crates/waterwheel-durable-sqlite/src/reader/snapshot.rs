use std::collections::HashSet;

use rusqlite::{CachedStatement, Connection};
use waterwheel_durable_core::store::Scope;

use crate::handlers::Handlers;
use crate::schema::VERSION;

/// The tables at one point in time.
pub(crate) struct Snapshot<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) handlers: Handlers,
    /// The version of the tables. A process that has an older file open may bring it up to date between two reads.
    pub(crate) version: i64,
}

impl<'a> Snapshot<'a> {
    /// Of a transaction that has read nothing yet.
    pub(crate) fn new(connection: &'a Connection) -> rusqlite::Result<Snapshot<'a>> {
        Ok(Snapshot {
            connection,
            handlers: Handlers::read(connection)?,
            version: connection.query_row("PRAGMA user_version", [], |row| row.get(0))?,
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

    /// A statement, by the columns that the tables have: those of version 1 have no `starts`.
    pub(crate) fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'a>> {
        match self.version {
            VERSION => self.connection.prepare_cached(sql),
            _ => self.connection.prepare_cached(&sql.replace("starts", "0")),
        }
    }
}
