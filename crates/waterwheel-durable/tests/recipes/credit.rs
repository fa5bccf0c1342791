use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, params};
use waterwheel_durable::{Delivery, Durable, Failure};

/// Credits an account, once for each id.
fn credit(database: &mut Connection, id: &str, account: i64, amount: i64) -> rusqlite::Result<()> {
    let transaction = database.transaction()?;
    let fence = "INSERT INTO done (service, id) VALUES ('billing', ?1) ON CONFLICT DO NOTHING";
    let is_first = transaction.execute(fence, [id])? == 1;
    if is_first {
        let effect = "UPDATE accounts SET balance = balance + ?2 WHERE number = ?1";
        transaction.execute(effect, params![account, amount])?;
    }
    transaction.commit()
}

async fn bonus(database: Arc<Mutex<Connection>>, delivery: Delivery) -> Result<(), Failure> {
    let (account, amount) = delivery.json()?;
    let id = delivery.id().to_string();
    let work = move || {
        let mut database = database.lock().unwrap_or_else(PoisonError::into_inner);
        credit(&mut database, &id, account, amount)
    };
    tokio::task::spawn_blocking(work).await??;
    Ok(())
}

fn register(timers: &Durable, database: Arc<Mutex<Connection>>) {
    timers.handle("billing/bonus", move |delivery| {
        bonus(database.clone(), delivery)
    });
}
