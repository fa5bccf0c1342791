//! A store for durable timers in PostgreSQL. So far, this crate contains the protocol by which a process owns the timers, without
//! the statements that carry it out: [`protocol`].

#![forbid(unsafe_code)]

pub mod protocol;
