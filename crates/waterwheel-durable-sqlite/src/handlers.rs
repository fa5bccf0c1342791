//! Which number does a handler have?

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection};

use super::words::{damaged, in_row};

/// The table `handlers`, in memory too. Numbers begin at 1.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    numbers: HashMap<Arc<str>, i64>,
    /// The name of number `n` at `n - 1`.
    names: Vec<Arc<str>>,
}

impl Handlers {
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Handlers> {
        let mut handlers = Handlers::default();
        let sql = "SELECT number, name FROM handlers ORDER BY number";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            let name: String = in_row("handlers", number, row.get(1))?;
            if number != handlers.next() {
                let next = handlers.next();
                return Err(damaged(format!(
                    "table `handlers`: the row {next} is missing, and there is a row {number}"
                )));
            }
            handlers.add(name.into());
        }
        Ok(handlers)
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn name(&self, number: i64) -> rusqlite::Result<&Arc<str>> {
        let at = number
            .checked_sub(1)
            .and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.names.get(at))
            .ok_or_else(|| damaged(format!("the table `handlers` has no number {number}")))
    }

    pub(crate) fn all(&self) -> Vec<Arc<str>> {
        let mut names = self.names.clone();
        names.sort_unstable();
        names
    }

    /// The number of a handler, which is written if it is new.
    pub(crate) fn intern(
        &mut self,
        name: &Arc<str>,
        connection: &Connection,
    ) -> rusqlite::Result<i64> {
        if let Some(number) = self.number(name) {
            return Ok(number);
        }
        let number = self.next();
        let sql = "INSERT INTO handlers (number, name) VALUES (?1, ?2)";
        let mut insert: CachedStatement<'_> = connection.prepare_cached(sql)?;
        insert.execute((number, &**name))?;
        self.add(Arc::clone(name));
        Ok(number)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Forgets those that a transaction has added which was rolled back.
    pub(crate) fn truncate(&mut self, len: usize) {
        for name in self.names.drain(len.min(self.names.len())..) {
            self.numbers.remove(&name);
        }
    }

    fn add(&mut self, name: Arc<str>) {
        self.numbers.insert(Arc::clone(&name), self.next());
        self.names.push(name);
    }

    fn next(&self) -> i64 {
        self.names.len() as i64 + 1
    }
}
