//! The command, on files that a service has open, that no process has open, and foreign files.

mod bulk;
mod cancel;
mod check;
mod commands;
mod moving;
mod output;
mod policy;
mod reading;
mod refused;
mod reschedule;
mod stopped;
mod support;
