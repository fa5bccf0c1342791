//! Faults in a process that must not spread: workers that block or never rest, wakers that
//! misbehave, runtimes that end in the middle of things.

mod blocked;
mod busy;
mod herd;
mod hostage;
mod runtimes;
mod wakers;
