//! One binary with both timers, and a switch at start: how a fleet tries waterwheel on one machine, and goes back.
//!
//! ```text
//! TIMERS=waterwheel cargo run --release --example both_timers
//! TIMERS=tokio cargo run --release --example both_timers
//! ```
//!
//! `time` is the module to copy. This file stands for an application: it calls `time` alone, and does not know which timers it
//! has. `docs/switching.md` is the story.

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
            eprintln!("TIMERS is `tokio` or `waterwheel`, not `{other}`");
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

    // A canary's first question: which timers has it really?
    let metrics = waterwheel::Timer::current().metrics();
    println!("armed in waterwheel: {}", metrics.armed());
    ExitCode::SUCCESS
}

/// Serves a connection until it is idle: an idle deadline that each packet pushes back, and a heartbeat.
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
