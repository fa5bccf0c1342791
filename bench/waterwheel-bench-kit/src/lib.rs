//! The kit of all benchmarks and load generators of this repository: `bench/waterwheel-suite`, `bench/waterwheel-durable-bench`, `testing/waterwheel-rpc-timeouts`,
//! `testing/waterwheel-soak`, `bench/waterwheel-contention` and `testing/waterwheel-ports`.
//!
//! A benchmark takes samples in child processes ([`output`]), in interleaved rounds, and writes them to a JSON file with the
//! conditions of the run ([`machine`], [`read_json`], [`write_json`]). Programs read that file: they make a [`Spread`] of the rounds,
//! fill the marked blocks of pages ([`filled`]) and draw charts (`chart`). Each benchmark has its own workloads, tables and targets.
//!
//! | file | question |
//! |---|---|
//! | `spread` | how do rounds, or many values, become a figure with its range? |
//! | `histogram` | how do millions of values, from all workers, become quantiles in fixed memory? |
//! | `random` | how are delays drawn, and repeated from the same seed? |
//! | `text` | how are numbers written and printed? |
//! | `machine`, `threads` | on which machine, with which versions, was it measured, and which resources did this process use? |
//! | `process` | how does another program take a sample, and how does this one end? |
//! | `file` | where do results go? |
//! | `page` | how are figures put into a page? |
//! | `chart` | how are they put into a chart? It needs the feature `charts` |

#![forbid(unsafe_code)]

#[cfg(feature = "charts")]
#[allow(
    missing_docs,
    missing_debug_implementations,
    reason = "for the two programs that draw"
)]
pub mod chart;
mod file;
mod histogram;
pub mod machine;
mod page;
mod process;
pub mod random;
mod spread;
pub mod text;
pub mod threads;

pub use file::{read_json, target_dir, write_json};
pub use histogram::{Counts, Histogram, Quantiles};
pub use page::filled;
pub use process::{exit_code, output};
pub use spread::{Spread, quantile};
