//! A store for durable timers in PostgreSQL.
//!
//! | to | use |
//! |---|---|
//! | describe the database, create its tables and open its timers | [`Postgres`], [`InvalidConfig`], [`OpenError`] |
//! | read and write the timers | [`PostgresStore`] |
//! | understand who owns the timers | [`protocol`] |

#![forbid(unsafe_code)]

mod connection;
mod error;
mod names;
mod owner;
mod postgres;
pub mod protocol;
mod read;
mod schema;
mod server;
mod session;
mod statement;
mod steps;
mod store;
mod tls;

pub use postgres::{InvalidConfig, OpenError, Postgres};
pub use store::PostgresStore;
