//! A store for durable timers in PostgreSQL: `Durable::builder().store(Postgres::new(url)).open()`.
//!
//! One process owns the timers of a database, and others wait as its standbys. When the owner ends, is killed or has been unreachable for
//! [one TTL](Postgres::ttl), one of them takes over. An owner that could not renew its lease in time begins no deliveries.
//!
//! | to | use |
//! |---|---|
//! | describe the database, create its tables and open its timers | [`Postgres`], [`DatabaseError`] |
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

pub use postgres::{DatabaseError, Postgres};
pub use store::PostgresStore;
