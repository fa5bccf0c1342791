//! Adapters to the traits of other crates, a feature each. What they do is documented where it is used: at the crate's index.
//!
//! | file | feature | what it plugs into |
//! |---|---|---|
//! | `hyper` | `hyper` | `hyper::rt::{Timer, Sleep}` |

#[cfg(feature = "hyper")]
mod hyper;
