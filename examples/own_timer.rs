//! A timer of your own: how to name it, limit it, measure it, stop it and drain it.
//!
//! ```text
//! cargo run --example own_timer
//! ```

use std::error::Error;
use std::future;

use waterwheel::{Duration, Timer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let timer = Timer::builder()
        .name("requests")
        .resolution(Duration::from_millis(10))
        .max_pending(3)
        .start()?;
    println!("{timer:?}\n");

    // The limit: the timer refuses the fourth future. A server can shed load here, by dropping the request that needs the timer.
    let sleeps = [20, 40, 60].map(|ms| timer.sleep(Duration::from_millis(ms)));
    if let Err(error) = timer.try_sleep(Duration::from_millis(80)) {
        println!("a fourth sleep: {error}");
    }
    for sleep in sleeps {
        sleep.await;
    }
    println!("\nafter three sleeps: {}", timer.metrics());

    // Shutdown: pending futures become ready at once, and `was_stopped` says why.
    let mut nap = timer.sleep(Duration::from_secs(3600));
    let mut call = Box::pin(timer.timeout(Duration::from_secs(3600), future::pending::<()>()));
    tokio::select! {
        () = &mut nap => {}
        _ = &mut call => {}
        () = waterwheel::sleep(Duration::from_millis(20)) => {
            println!("\nshutdown stopped {} timers", timer.shutdown());
        }
    }
    (&mut nap).await;
    println!("the sleep is ready, was_stopped: {}", nap.was_stopped());
    if let Err(elapsed) = call.await {
        println!(
            "the timeout: {elapsed}, was_stopped: {}",
            elapsed.was_stopped()
        );
    }
    println!("a new sleep: {:?}", timer.try_sleep(Duration::ZERO).err());

    // Drain: the timer accepts no new futures, and waits until those that are pending have fired.
    let timer = Timer::builder().start()?;
    let order = tokio::spawn(timer.sleep(Duration::from_millis(50)));
    waterwheel::sleep(Duration::from_millis(10)).await;
    timer.drain().await;
    order.await?;
    println!("\ndrained: {}", timer.metrics());
    Ok(())
}
