//! The pages of the repository. There is no code here.
//!
//! In the repository alone, since they are read beside the code: `BENCHMARKS.md` (the figures), `tests/README.md` (each promise with
//! its tests), `CONTRIBUTING.md` and `benches/LOG.md` (what was tried).

/// How it is built, and what must stay true.
///
/// [contributing]: crate::_documentation
/// [log]: crate::_documentation
#[doc = include_str!("../ARCHITECTURE.md")]
pub mod architecture {}

/// What changed.
#[doc = include_str!("../CHANGELOG.md")]
pub mod changelog {}

/// What other libraries do, and when they serve better.
///
/// [benchmarks]: crate::_documentation
#[doc = include_str!("../COMPARISON.md")]
pub mod comparison {}

/// How a service switches from `tokio::time`, and back.
///
/// [differences]: crate::time#what-behaves-differently-from-tokiotime
#[doc = include_str!("../docs/switching.md")]
pub mod switching {}
