//! Wakers run code that is not ours: it may use the timer that calls it, and it may panic.
//!
//! Not here: wakers that act or panic when they are *cloned*. Safe code cannot make one (a clone
//! of an `Arc` runs none), and this crate has no `unsafe`, in its tests neither.

#[path = "../support/mod.rs"]
mod support;

mod acting;
mod counting;
mod ending;
mod keeping;
mod panicking;
