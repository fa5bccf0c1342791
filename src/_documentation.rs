//! Pages of the repository. This module has no code.
//!
//! Other pages are only in the repository itself: `BENCHMARKS.md` (the results), `tests/README.md` (each promise and its tests),
//! `crates/waterwheel-durable/README.md` (timers that survive a restart), `RELEASING.md` (versions and MSRV), `SECURITY.md`, `CONTRIBUTING.md` (how to
//! take part), `docs/decisions` (why it is built this way) and `benches/LOG.md` (experiments).

/// The architecture, and its invariants.
///
/// [decisions]: crate::_documentation
/// [log]: crate::_documentation
/// [tests]: crate::_documentation
#[doc = include_str!("../ARCHITECTURE.md")]
pub mod architecture {}

/// The changelog.
///
/// [comparison]: crate::_documentation::comparison
/// [durable]: crate::_documentation
/// [schedule]: crate::_documentation
/// [switching]: crate::_documentation::switching
#[doc = include_str!("../CHANGELOG.md")]
pub mod changelog {}

/// A comparison with other libraries, and when they are the better choice.
///
/// [benchmarks]: crate::_documentation
/// [rollback]: crate::_documentation::switching#rollback
#[doc = include_str!("../COMPARISON.md")]
pub mod comparison {}

/// Switching a service from `tokio::time`, and rolling back.
///
/// [benchmarks]: crate::_documentation
/// [differences]: crate::time#differences-from-tokiotime
/// [memory]: crate::_documentation
/// [resolution]: crate::Builder::resolution
/// [waking]: crate::Waking
#[doc = include_str!("../docs/switching.md")]
pub mod switching {}
