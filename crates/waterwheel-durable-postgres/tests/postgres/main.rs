//! A store in a PostgreSQL database, as its users and its operators see it. The tests start a server.
//!
//! | file | question |
//! |---|---|
//! | `conformance` | does it pass the suite of all stores, also behind a pooler? |
//! | `opening` | which databases are opened, and what does the error of a refused one say? |
//! | `owners` | which of several processes owns the timers, and when do they change hands? |
//! | `hand_over` | what happens to handlers that run while their process hands the timers over? |
//! | `restored` | what happens in a restored copy of a database? |
//! | `access` | which servers does it trust, and how does it get a password? |
//! | `fence` | what happens to commits after a take-over or a failover, and to those whose replies are lost? |
//! | `counts` | do the counts stay right and few? |
//! | `idle` | how many statements does a process send that has nothing to do? |
//! | `full` | what is refused beyond the limit, and what continues? |

mod access;
mod conformance;
mod counts;
mod database;
mod fence;
mod full;
mod hand_over;
mod idle;
mod opening;
mod owners;
mod restored;
