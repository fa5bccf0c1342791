//! What goes wrong in a process, and what must not come of it: workers that block or never rest,
//! wakers that do their worst, runtimes that end in the middle of things.

mod blocked;
mod busy;
mod herd;
mod hostage;
mod runtimes;
mod wakers;
