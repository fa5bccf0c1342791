//! A store for durable timers in PostgreSQL: `Durable::builder().store(Postgres::new(url)).open()`.
//!
//! One process owns the timers of a database, and others wait as its standbys. When the owner shuts down, crashes or is unreachable for
//! [one TTL](Postgres::ttl), a standby takes over. An owner that could not renew its lease in time begins no deliveries.
//!
//! An owner that shuts down while handlers are running hands the timers over at once: deliveries pause for a twelfth of the TTL and some
//! milliseconds. The next owner counts these handlers against the limits of handlers and namespaces, and does not deliver their timers again
//! unless they are abandoned or their process dies. So a rolling deployment delivers nothing twice.
//!
//! Handlers that run in a process whose store has failed, or that is cut off from the database, continue. So until they end, more deliveries
//! than a limit of concurrency allows may run, and a timer may be delivered twice. A failover that loses a hand-over has the same effect.
//!
//! A database that was restored from a backup is recognized, and [delivers nothing](Postgres::accept_restore) until an operator accepts that. Copies for tests
//! need a [`cluster_id`](Postgres::cluster_id) of their own.
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
