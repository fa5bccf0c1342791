//! The pages of the repository. There is no code here.
//!
//! These are read beside the code, in the package's own files: `BENCHMARKS.md` (the figures), `tests/README.md` (each promise with its
//! tests), `durable/README.md` (timers that outlive the process), `CONTRIBUTING.md` (how to take part) and `benches/LOG.md` (what was tried).

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
/// [benchmarks]: crate::_documentation
/// [differences]: crate::time#what-behaves-differently-from-tokiotime
/// [memory]: crate::_documentation
/// [resolution]: crate::Builder::resolution
/// [waking]: crate::Waking
#[doc = include_str!("../docs/switching.md")]
pub mod switching {}
