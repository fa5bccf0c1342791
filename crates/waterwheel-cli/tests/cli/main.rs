//! The command, on files that a service has open, that no process has open, and foreign files.

mod cancel;
mod check;
mod commands;
mod output;
mod reading;
mod refused;
mod stopped;
mod support;
