//! hyper and hyper-util on our timers, over loopback.

#[path = "../common/rounds.rs"]
mod rounds;
#[path = "../../../../tests/support/mod.rs"]
mod support;

mod attacker;
mod builders;
mod client;
mod frames;
mod http1;
mod http2;
mod server;
