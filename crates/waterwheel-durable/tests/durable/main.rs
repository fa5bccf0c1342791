//! Durable timers as users see them, on real clocks and threads; with a real file where that matters, and otherwise with a store in memory.

#[macro_use]
mod support;

mod backpressure;
mod bad_input;
mod batches;
mod calendars;
mod cancels;
mod clocks;
mod dead_letters;
mod failures;
mod far;
mod faults;
mod full;
mod handlers;
mod hooks;
mod inside;
mod jumps;
mod keys;
mod leases;
mod limits;
mod moves;
mod namespaces;
mod opening;
mod pauses;
mod pending;
mod poison;
mod retention;
mod retry_delays;
mod runtimes;
mod stopping;
mod tags;
mod types;
mod unhandled;
