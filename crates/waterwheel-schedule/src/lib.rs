//! Jobs for tokio on a calendar.

#![forbid(unsafe_code)]

#[cfg(feature = "cron")]
pub mod calendar;
