//! Timeouts: a call that completes in time, one that does not, and one deadline for several steps.
//!
//! ```text
//! cargo run --example timeout
//! ```

use std::io;

use waterwheel::{Duration, Instant, sleep, timeout, timeout_at};

/// Stands in for a call to another service that takes this long.
async fn call(takes: Duration) -> &'static str {
    sleep(takes).await;
    "answer"
}

/// The error of a timeout converts into `io::Error`, so `?` is enough.
async fn read_reply() -> io::Result<&'static str> {
    let reply = timeout(Duration::from_millis(20), call(Duration::from_secs(5))).await?;
    Ok(reply)
}

#[tokio::main]
async fn main() {
    let limit = Duration::from_millis(100);

    match timeout(limit, call(Duration::from_millis(10))).await {
        Ok(answer) => println!("a fast call returned its {answer}"),
        Err(elapsed) => println!("a fast call failed: {elapsed}"),
    }

    let start = Instant::now();
    match timeout(limit, call(Duration::from_secs(5))).await {
        Ok(answer) => println!("a slow call returned its {answer}"),
        Err(elapsed) => println!("a slow call: {elapsed}, after {:?}", start.elapsed()),
    }

    if let Err(error) = read_reply().await {
        println!("as an io::Error: {error}, kind {:?}", error.kind());
    }

    // One deadline for several steps: the time that a step takes is no longer available to the next ones.
    let deadline = Instant::now() + limit;
    for step in 1.. {
        if timeout_at(deadline, call(Duration::from_millis(30)))
            .await
            .is_err()
        {
            println!("step {step} ran into the deadline that all steps share");
            break;
        }
        println!("step {step} completed in time");
    }
}
