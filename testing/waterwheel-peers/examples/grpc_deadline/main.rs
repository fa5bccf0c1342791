//! A deadline that travels: a client gives a call 200 ms, and two gRPC servers in a row stop working on it in time.
//!
//! ```text
//! cargo run --release -p waterwheel-peers --example grpc_deadline
//! ```
//!
//! The client asks A, A asks B. The layers that propagate the deadline are in `tests/grpc`: `DeadlineLayer` and `RespondLayer` around
//! each server (`wire`), and `ClientDeadlineLayer` around each channel (`link`).

use std::error::Error;

use waterwheel::rpc::Deadline;
use waterwheel::{Duration, Instant, sleep};

#[path = "../../tests/grpc/link.rs"]
mod link;
#[path = "../../tests/grpc/wire.rs"]
mod wire;

use link::{Ask, Client, Handlers, Link};
use wire::{Channel, serve};

const LIMIT: Duration = Duration::from_millis(200);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let handlers = [Handlers::default(), Handlers::default()];
    let [of_a, of_b] = handlers.clone();
    let b = serve(Link {
        name: "B",
        next: None,
        handlers: of_b,
    });
    let to_b = Client::new(Channel::to(b.await).await);
    let a = serve(Link {
        name: "A",
        next: Some(to_b),
        handlers: of_a,
    });
    let mut client = Client::new(Channel::to(a.await).await);

    let ask = client.ask(Ask { forever: false });
    let answer = Deadline::after(LIMIT).scope(ask).await??;
    println!(
        "through {:?}, with {:?} µs left there",
        answer.path, answer.left
    );

    let begun = Instant::now();
    let ask = client.ask(Ask { forever: true });
    match Deadline::after(LIMIT).scope(ask).await {
        Ok(Ok(answer)) => println!("an answer: {answer:?}"),
        Ok(Err(status)) => println!("{:?} after {:?}", status.code(), begun.elapsed()),
        Err(elapsed) => println!("{elapsed} after {:?}", begun.elapsed()),
    }
    while handlers.iter().any(|handlers| handlers.running() > 0) {
        sleep(Duration::from_millis(1)).await;
    }
    let ends = handlers.iter().filter_map(Handlers::last_end).max();
    let worked = ends.map(|end| end - begun);
    println!("the servers stopped working on it after {worked:?}");
    Ok(())
}
