//! The command line.

use std::time::Duration;

use clap::builder::TypedValueParser as _;
use clap::{Parser, value_parser};

/// Puts every kind of load on the timers at once. Fails if a timer is lost or early, if the counters do not add up, or if memory
/// grows.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(after_help = "Exit code: 0 passed, 1 failed, 2 invalid flags")]
pub(crate) struct Flags {
    /// Length of the run in seconds; use at least 600 for a real soak
    #[arg(long = "seconds", value_name = "N", default_value = "10")]
    #[arg(value_parser = value_parser!(u64).range(1..=30 * 86_400).map(Duration::from_secs))]
    pub(crate) length: Duration,
    /// Number of tasks for each kind of load on each timer
    #[arg(long, value_name = "N", default_value = "200", value_parser = value_parser!(u64).range(1..=100_000))]
    pub(crate) tasks: u64,
    /// Seed for the random delays
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
}

impl Flags {
    /// How long a runtime lives: at most a tenth of the run, so that each third of the run has all three endings.
    pub(crate) fn life(&self) -> Duration {
        (self.length / 10).min(Duration::from_secs(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Flags, String> {
        let words = ["soak"].into_iter().chain(line.split_whitespace());
        Flags::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn each_flag_is_taken_and_what_cannot_run_is_refused_by_name() {
        let wanted = Flags {
            length: Duration::from_secs(600),
            tasks: 4,
            seed: 5,
        };
        assert_eq!(wanted.life(), Duration::from_secs(10));
        assert_eq!(parsed("--seconds 600 --tasks 4 --seed 5"), Ok(wanted));
        let defaults = Flags {
            length: Duration::from_secs(10),
            tasks: 200,
            seed: 1,
        };
        assert_eq!(parsed(""), Ok(defaults));
        for flag in ["--seconds", "--tasks"] {
            let complaint = parsed(&format!("{flag}=0")).expect_err(flag);
            assert!(complaint.contains(flag), "{complaint}");
        }
    }
}
