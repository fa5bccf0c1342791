//! The results of a run of the suite, which the benchmark writes and the pages and the charts read; and the verdicts on
//! them.
//!
//! The benchmark itself is `src/main.rs`, the pages are `src/bin/pages`, the charts `src/bin/charts`; they exchange one JSON file,
//! a [`Results`]. [`printed()`] parses the report of an example, and is here since the tests of this library run under `cargo
//! test`.

mod measured;
mod printed;
mod report;
mod results;
mod target;
mod verdict;

pub use measured::{Absent, Better, Curve, Failure, Metric, Sample, Series, Table};
pub use printed::printed;
pub use report::{report, report_conditions, report_table, report_targets, verdict_table};
pub use results::{Conditions, Results, build_dir, default_path};
pub use target::{Target, Want};
pub use verdict::{Outcome, Verdict};
