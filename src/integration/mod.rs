//! Adapters to the traits of other crates, a feature each. What they do is documented where it is used: at the crate's index.
//!
//! | file | feature | what it plugs into |
//! |---|---|---|
//! | `hyper` | `hyper` | `hyper::rt::{Timer, Sleep}` |
//! | `tower/` | `tower` | `tower::{Layer, Service}`, over HTTP bodies |
//! | `tower/backoff` | `tower-retry` | `tower::retry::backoff::{Backoff, MakeBackoff}` |

#[cfg(feature = "hyper")]
mod hyper;
#[cfg(feature = "tower")]
pub mod tower;
