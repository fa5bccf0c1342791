//! `waterwheel::rpc`: deadlines, the header `grpc-timeout`, idle timeouts. Time is virtual.

#[path = "../support/mod.rs"]
mod support;

mod clocks;
mod deadline;
mod grpc_timeout;
mod idle_timeout;
mod scope;
mod touch;
