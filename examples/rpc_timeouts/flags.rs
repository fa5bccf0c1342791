//! The flags of this example.

use std::time::Duration;

use crate::common::command_line::{self, Argument};

const USAGE: &str = "\
usage: rpc_timeouts [flags]

Puts an RPC server and its clients under load, with the timers of waterwheel and of
tokio in turn, and prints what the timers cost and how late they were. Fails if a call
did not end exactly once, or if a timer fired early.

  --seconds N       length of the whole run in seconds; the two clocks take turns [default: 10]
  --connections N   number of connections between clients and server [default: 200]
  --concurrency N   number of calls in flight on each connection [default: 20]
  --timeout-ms N    timeout of a call in ms; the server's delays scale with it [default: 500]
  --seed N          seed for the server's delays [default: 1]
  --only CLOCK      run one clock alone: waterwheel or tokio
  --help            print this text

exit code: 0 passed (also after Ctrl-C), 1 failed or could not start, 2 invalid flags
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) length: Duration,
    pub(crate) connections: u32,
    pub(crate) concurrency: u32,
    pub(crate) timeout: Duration,
    pub(crate) seed: u64,
    pub(crate) only: Option<Side>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        Flags {
            length: Duration::from_secs(10),
            connections: 200,
            concurrency: 20,
            timeout: Duration::from_millis(500),
            seed: 1,
            only: None,
        }
    }
}

impl command_line::Flags for Flags {
    const USAGE: &'static str = USAGE;

    fn take(&mut self, flag: &str, argument: &mut Argument<'_>) -> Result<(), String> {
        match flag {
            "--seconds" => self.length = Duration::from_secs(argument.whole(1, 86_400)?),
            "--connections" => self.connections = argument.whole(1, 10_000)?,
            "--concurrency" => self.concurrency = argument.whole(1, 10_000)?,
            "--timeout-ms" => self.timeout = Duration::from_millis(argument.whole(1, 60_000)?),
            "--seed" => self.seed = argument.whole(0, u64::MAX)?,
            "--only" => {
                self.only = Some(match argument.value()?.as_str() {
                    "waterwheel" => Side::Waterwheel,
                    "tokio" => Side::Tokio,
                    other => {
                        return Err(format!(
                            "--only must be waterwheel or tokio, but is {other:?}"
                        ));
                    }
                });
            }
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
            length: Duration::from_secs(3),
            connections: 4,
            concurrency: 5,
            timeout: Duration::from_millis(6),
            seed: 0,
            only: Some(Side::Tokio),
        };
        let line =
            "--seconds 3 --connections 4 --concurrency 5 --timeout-ms 6 --seed 0 --only tokio";
        assert_eq!(parsed(line), Ok(Command::Run(wanted)));
        assert_eq!(parsed(""), Ok(Command::Run(Flags::default())));
    }

    #[test]
    fn the_length_is_shared_unless_one_clock_runs_alone() {
        let mut flags = Flags::default();
        assert_eq!(flags.share(), Duration::from_secs(5));
        flags.only = Some(Side::Waterwheel);
        assert_eq!(flags.share(), Duration::from_secs(10));
        assert!(flags.runs(Side::Waterwheel) && !flags.runs(Side::Tokio));
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
            let complaint = parsed::<Flags>(refused).expect_err(refused);
            let flag = refused.split('=').next().unwrap_or_default();
            assert!(complaint.starts_with(flag), "{complaint}");
        }
    }
}
