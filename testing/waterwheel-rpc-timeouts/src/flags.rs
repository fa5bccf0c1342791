//! The command line.

use std::time::Duration;

use clap::builder::TypedValueParser as _;
use clap::{Parser, ValueEnum, value_parser};

/// Puts an RPC server and its clients under load, with the timers of waterwheel and of tokio in turn, and prints what the timers
/// cost and how late they were. Fails if a call did not end exactly once, or if a timer fired early.
#[derive(Debug, PartialEq, Eq, Parser)]
#[command(
    after_help = "Exit code: 0 passed (also after Ctrl-C), 1 failed or could not start, 2 invalid flags"
)]
pub(crate) struct Flags {
    /// Length of the whole run in seconds; the two clocks take turns
    #[arg(long = "seconds", value_name = "N", default_value = "10")]
    #[arg(value_parser = value_parser!(u64).range(1..=86_400).map(Duration::from_secs))]
    pub(crate) length: Duration,
    /// Number of connections between clients and server
    #[arg(long, value_name = "N", default_value = "200", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) connections: u32,
    /// Number of calls in flight on each connection
    #[arg(long, value_name = "N", default_value = "20", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,
    /// Timeout of a call in ms; the server's delays scale with it
    #[arg(long = "timeout-ms", value_name = "N", default_value = "500")]
    #[arg(value_parser = value_parser!(u64).range(1..=60_000).map(Duration::from_millis))]
    pub(crate) timeout: Duration,
    /// Seed for the server's delays
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Run one clock alone
    #[arg(long, value_name = "CLOCK")]
    pub(crate) only: Option<Side>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    Waterwheel,
    Tokio,
}

impl Flags {
    pub(crate) fn runs(&self, side: Side) -> bool {
        self.only.is_none_or(|only| only == side)
    }

    pub(crate) fn clocks(&self) -> u32 {
        if self.only.is_some() { 1 } else { 2 }
    }

    /// How long each clock is under load: the sum of its slices.
    pub(crate) fn share(&self) -> Duration {
        self.length / self.clocks()
    }
}

impl Default for Flags {
    fn default() -> Self {
        Flags::parse_from(["rpc_timeouts"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Flags, String> {
        let words = ["rpc_timeouts"].into_iter().chain(line.split_whitespace());
        Flags::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn each_flag_is_taken_and_the_length_is_shared_unless_one_clock_runs_alone() {
        let wanted = Flags {
            length: Duration::from_secs(3),
            connections: 4,
            concurrency: 5,
            timeout: Duration::from_millis(6),
            seed: 0,
            only: Some(Side::Tokio),
        };
        assert_eq!(wanted.share(), Duration::from_secs(3));
        assert!(wanted.runs(Side::Tokio) && !wanted.runs(Side::Waterwheel));
        let line =
            "--seconds 3 --connections 4 --concurrency 5 --timeout-ms 6 --seed 0 --only tokio";
        assert_eq!(parsed(line), Ok(wanted));
        let defaults = Flags {
            length: Duration::from_secs(10),
            connections: 200,
            concurrency: 20,
            timeout: Duration::from_millis(500),
            seed: 1,
            only: None,
        };
        assert_eq!(defaults.share(), Duration::from_secs(5));
        assert_eq!(parsed(""), Ok(defaults));
    }

    #[test]
    fn what_cannot_run_is_refused_by_name() {
        for refused in [
            "--seconds=0",
            "--connections=0",
            "--concurrency=0",
            "--timeout-ms=0",
            "--seed=-1",
            "--only=both",
        ] {
            let complaint = parsed(refused).expect_err(refused);
            let flag = refused.split('=').next().unwrap_or_default();
            assert!(complaint.contains(flag), "{complaint}");
        }
    }
}
