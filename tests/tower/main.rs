//! The layers of `waterwheel::tower`. Time is virtual.

#[path = "../support/mod.rs"]
mod support;

#[macro_use]
#[path = "../support/auto_traits.rs"]
mod has_auto_traits;

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
