//! Takes each sample in its own process.
//!
//! - Nothing of one contestant is left when the next is measured: no helper thread that never ends (pingora-timeout,
//!   async-io and futures-timer have one each), no memory, no thread-local state.
//! - The layout of code and data in memory differs from process to process, and it alone can make a loop faster or slower.
//!   So the rounds cover many layouts instead of one.
//! - tokio's alternative timer, which is another program, takes part in each round like the others.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use waterwheel_bench_kit::output;
use waterwheel_suite::Sample;

use crate::workload::Workload;

/// The flag that a child process is started with.
pub(crate) const FLAG: &str = "--sample";

/// The longest sample takes less than a minute. After this time the sample counts as failed: a wake was lost.
const PATIENCE: Duration = Duration::from_secs(300);

/// A program that takes samples: this one, or the one with tokio's alternative timer.
pub(crate) struct Program {
    path: PathBuf,
    quick: bool,
}

impl Program {
    pub(crate) fn new(path: PathBuf, quick: bool) -> Self {
        Self { path, quick }
    }

    /// Starts the program for one sample and waits for it.
    pub(crate) fn sample(&self, title: &str, name: &str) -> Result<Sample, String> {
        let mut command = Command::new(&self.path);
        command
            .args(self.quick.then_some("--quick"))
            .args([FLAG, title, name]);
        let text = output(&mut command, PATIENCE)?;
        serde_json::from_str(&text).map_err(|error| format!("no sample: {error}"))
    }
}

/// The child's side: takes one sample, of the contestant with this name in the workload with this title, and prints it.
pub(crate) fn sample(workloads: Vec<Workload>, title: &str, name: &str) -> Result<(), String> {
    let mut workloads = workloads.into_iter();
    let workload = workloads.find(|workload| workload.title == title);
    let mut entrants = workload
        .ok_or_else(|| format!("no workload {title:?}"))?
        .entrants
        .into_iter();
    let entrant = entrants.find(|entrant| entrant.name == name);
    let sample = entrant
        .ok_or_else(|| format!("{title:?} has no contestant {name:?}"))?
        .sample();
    let text = serde_json::to_string(&sample).map_err(|error| error.to_string())?;
    println!("{text}");
    Ok(())
}
