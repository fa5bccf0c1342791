//! The command, on files that a service holds, that no process holds, and that are none of ours.

mod cancel;
mod check;
mod commands;
mod output;
mod reading;
mod refused;
mod stopped;
mod support;
