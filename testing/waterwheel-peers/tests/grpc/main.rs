//! gRPC by hand, without protoc: prost messages, tonic's codec and calls, and hyper with our timer below them.

#[path = "../common/rounds.rs"]
mod rounds;
#[path = "../../../../tests/support/mod.rs"]
mod support;

mod chain;
mod deadline;
mod link;
mod wire;
