use waterwheel_durable::{Cancelled, Durable, Error};

async fn paid(timers: &Durable, order: u64) -> Result<Cancelled, Error> {
    match timers.find("close", format!("order-{order}")).await? {
        Some(timer) => timers.cancel(timer).await,
        None => Ok(Cancelled::NotFound),
    }
}
