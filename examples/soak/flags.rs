//! The flags of this example.

use std::time::Duration;

use crate::common::command_line::{self, Argument};

const USAGE: &str = "\
usage: soak [flags]

Puts every kind of load on the timers at once. Fails if a timer is lost or early,
if the counters do not add up, or if memory grows.

  --seconds N   length of the run in seconds [default: 10]; use at least 600 for a real soak
  --tasks N     number of tasks for each kind of load on each timer [default: 200]
  --seed N      seed for the random delays [default: 1]
  --help        print this text

exit code: 0 passed, 1 failed, 2 invalid flags
";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) length: Duration,
    pub(crate) tasks: u64,
    pub(crate) seed: u64,
}

impl Flags {
    /// How long a runtime lives: at most a tenth of the run, so that each third of the run has all three endings.
    pub(crate) fn life(&self) -> Duration {
        (self.length / 10).min(Duration::from_secs(10))
    }
}

impl Default for Flags {
    fn default() -> Self {
        Flags {
            length: Duration::from_secs(10),
            tasks: 200,
            seed: 1,
        }
    }
}

impl command_line::Flags for Flags {
    const USAGE: &'static str = USAGE;

    fn take(&mut self, flag: &str, argument: &mut Argument<'_>) -> Result<(), String> {
        match flag {
            "--seconds" => self.length = Duration::from_secs(argument.whole(1, 30 * 86_400)?),
            "--tasks" => self.tasks = argument.whole(1, 100_000)?,
            "--seed" => self.seed = argument.whole(0, u64::MAX)?,
            _ => return argument.unknown(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::command_line::{Command, parsed};

    #[test]
    fn each_flag_is_taken() {
        let wanted = Flags {
            length: Duration::from_secs(600),
            tasks: 4,
            seed: 5,
        };
        assert_eq!(wanted.life(), Duration::from_secs(10));
        let line = "--seconds 600 --tasks 4 --seed 5";
        assert_eq!(parsed(line), Ok(Command::Run(wanted)));
        assert_eq!(parsed(""), Ok(Command::Run(Flags::default())));
    }

    #[test]
    fn what_cannot_run_is_refused_by_name() {
        for flag in ["--seconds", "--tasks"] {
            let complaint = parsed::<Flags>(&format!("{flag}=0")).expect_err(flag);
            assert!(complaint.starts_with(flag), "{complaint}");
        }
    }
}
