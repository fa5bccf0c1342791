//! Durable timers as their users see them, on real clocks and real threads; on a real file where it is the point, and else on a store in memory.

#[macro_use]
mod support;

mod backpressure;
mod batches;
mod calendars;
mod cancels;
mod clocks;
mod failures;
mod far;
mod faults;
mod full;
mod handlers;
mod hooks;
mod inside;
mod keys;
mod letters;
mod life;
mod moves;
mod opening;
mod runtimes;
mod stopping;
mod types;
mod unhandled;
