//! Wakers run foreign code when they are woken, cloned or dropped: it may use the timer that calls it,
//! and it may panic.

mod acting;
mod cloning;
mod counting;
mod ending;
mod keeping;
mod panicking;
