//! One binary with both timers and a switch at startup, so that a fleet can run waterwheel as a canary on one machine, and roll
//! back by configuration.
//!
//! ```text
//! TIMERS=waterwheel cargo run --release --example both_timers
//! TIMERS=tokio cargo run --release --example both_timers
//! ```
//!
//! `time` is the module to copy. This file stands in for an application: it only calls `time`, and does not know which timers it
//! uses. `docs/switching.md` has the details.

#![forbid(unsafe_code)]

pub mod time;

use std::env;
use std::pin::pin;
use std::process::ExitCode;

use time::{Duration, Instant, MissedTickBehavior, Timers};
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> ExitCode {
    let timers = match env::var("TIMERS").as_deref() {
        Ok("waterwheel") => Timers::Waterwheel,
        Ok("tokio") | Err(_) => Timers::Tokio,
        Ok(other) => {
            eprintln!("TIMERS must be `tokio` or `waterwheel`, but is `{other}`");
            return ExitCode::from(2);
        }
    };
    time::choose(timers);
    println!("timers: {timers:?}");

    let (sender, packets) = mpsc::channel(8);
    let peer = tokio::spawn(async move {
        for number in 0..3 {
            time::sleep(Duration::from_millis(10)).await;
            let _ = sender.send(number).await;
        }
        // Silence, but the connection stays open.
        sender.closed().await;
    });
    let limit = Duration::from_secs(10);
    match time::timeout(limit, connection(packets)).await {
        Ok((packets, heartbeats)) => {
            println!("{packets} packets, {heartbeats} heartbeats, then idle");
        }
        Err(elapsed) => println!("{elapsed}"),
    }
    let _ = peer.await;

    // The first thing to check on a canary: which timers does it really use?
    let metrics = waterwheel::Timer::current().metrics();
    println!("armed in waterwheel: {}", metrics.armed());
    ExitCode::SUCCESS
}

/// Serves a connection until it is idle, with an idle deadline that each packet pushes back, and a heartbeat.
async fn connection(mut packets: mpsc::Receiver<u32>) -> (u32, u32) {
    let patience = Duration::from_millis(100);
    let mut idle = pin!(time::sleep(patience));
    let mut heartbeat = time::interval(Duration::from_millis(20));
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut received, mut beats) = (0, 0);
    loop {
        tokio::select! {
            Some(_) = packets.recv() => {
                received += 1;
                idle.as_mut().reset(Instant::now() + patience);
            }
            _ = heartbeat.tick() => beats += 1,
            () = &mut idle => return (received, beats),
        }
    }
}
