use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, params};
use waterwheel_durable::{Durable, NewTimer};

struct Row {
    id: i64,
    handler: String,
    due: SystemTime,
    payload: Vec<u8>,
}

/// Relays the oldest rows, and returns how many there were.
async fn relay(
    timers: &Durable,
    database: &Mutex<Connection>,
) -> Result<usize, Box<dyn std::error::Error>> {
    let rows = first_rows(database)?;
    let batch = rows.iter().map(|row| {
        NewTimer::at(&row.handler, row.due)
            .key(format!("outbox-{}", row.id))
            .bytes(row.payload.clone())
    });
    timers.insert_many(batch).await?; // synced
    delete(database, &rows)?;
    Ok(rows.len())
}

fn first_rows(database: &Mutex<Connection>) -> rusqlite::Result<Vec<Row>> {
    let database = database.lock().unwrap_or_else(PoisonError::into_inner);
    let sql = "SELECT id, handler, due_millis, payload FROM timer_outbox ORDER BY id LIMIT 100";
    let mut statement = database.prepare(sql)?;
    let rows = statement.query_map([], |row| {
        let due: i64 = row.get(2)?;
        Ok(Row {
            id: row.get(0)?,
            handler: row.get(1)?,
            due: SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(due).unwrap_or(0)),
            payload: row.get(3)?,
        })
    })?;
    rows.collect()
}

/// Deletes the rows that were relayed, and no others: a transaction with a lower id may have been committed since.
fn delete(database: &Mutex<Connection>, rows: &[Row]) -> rusqlite::Result<()> {
    let mut database = database.lock().unwrap_or_else(PoisonError::into_inner);
    let transaction = database.transaction()?;
    for row in rows {
        transaction.execute("DELETE FROM timer_outbox WHERE id = ?1", params![row.id])?;
    }
    transaction.commit()
}
