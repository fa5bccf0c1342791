//! The layers of `waterwheel::tower`. Time is virtual.

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/report.rs"]
mod report;

mod backoff;
mod bodies;
mod buffer;
mod client_deadline;
mod clocks;
mod deadline;
mod frame_timeout;
mod http_timeout;
mod respond;
mod services;
mod timeout;
mod types;
mod unpolled;
