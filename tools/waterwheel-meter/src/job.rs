use std::time::Duration;

/// A job as the meter shows it: a row of its last pane.
#[derive(Debug, Clone, Default)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Its current state: waits, runs, is paused.
    pub state: String,
    /// The time until it runs next.
    pub next_run: Option<Duration>,
    /// The time between two runs.
    pub period: Option<Duration>,
    /// The number of runs that have ended.
    pub runs: u64,
    /// Why the last run failed, if it did.
    pub last_error: Option<String>,
}

/// The jobs that a program shows in the meter.
#[derive(Debug, Clone, Default)]
pub struct JobList {
    /// The total number of jobs.
    pub total: usize,
    /// The jobs that are shown.
    pub shown: Vec<Job>,
}
