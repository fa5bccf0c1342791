//! The command line, parsed by hand: five numbers and a choice do not need a dependency.

use std::time::Duration;

pub(crate) const USAGE: &str = "\
usage: rpc_timeouts [flags]

  --seconds N       length of the whole run, shared by the two clocks [10]
  --connections N   connections between client and server [200]
  --concurrency N   calls in flight on each connection [20]
  --timeout-ms N    timeout of a call; the server's delays scale with it [500]
  --seed N          seed of the server's delays [1]
  --only CLOCK      run one clock alone: waterwheel or tokio
  --help            this text
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run(Flags),
    Help,
}

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

    /// How long each clock is under load.
    pub(crate) fn turn(&self) -> Duration {
        match self.only {
            Some(_) => self.length,
            None => self.length / 2,
        }
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

/// Understands `--flag value` and `--flag=value`. The error names the flag and says what it wants.
pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut flags = Flags::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let (flag, attached) = match argument.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        let mut value = || {
            attached
                .clone()
                .or_else(|| arguments.next())
                .ok_or_else(|| format!("{flag} wants a value"))
        };
        match flag {
            "--seconds" => {
                flags.length = Duration::from_secs(whole(flag, &value()?, 1, 86_400)?);
            }
            "--connections" => flags.connections = small(flag, &value()?, 10_000)?,
            "--concurrency" => flags.concurrency = small(flag, &value()?, 10_000)?,
            "--timeout-ms" => {
                flags.timeout = Duration::from_millis(whole(flag, &value()?, 1, 60_000)?);
            }
            "--seed" => flags.seed = whole(flag, &value()?, 0, u64::MAX)?,
            "--only" => {
                flags.only = Some(match value()?.as_str() {
                    "waterwheel" => Side::Waterwheel,
                    "tokio" => Side::Tokio,
                    other => return Err(format!("--only is waterwheel or tokio, not {other:?}")),
                });
            }
            "--help" | "-h" if attached.is_none() => return Ok(Command::Help),
            _ => return Err(format!("unknown flag {argument:?}")),
        }
    }
    Ok(Command::Run(flags))
}

fn small(flag: &str, text: &str, most: u32) -> Result<u32, String> {
    // In range because `whole` has just checked it against `most`.
    whole(flag, text, 1, most.into()).map(|number| u32::try_from(number).unwrap_or(most))
}

fn whole(flag: &str, text: &str, least: u64, most: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!(
            "{flag} is a whole number from {least} to {most}, not {text:?}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn no_flags_are_the_defaults() {
        assert_eq!(parsed(""), Ok(Command::Run(Flags::default())));
    }

    #[test]
    fn each_flag_is_taken_in_both_spellings() {
        let wanted = Flags {
            length: Duration::from_secs(3),
            connections: 4,
            concurrency: 5,
            timeout: Duration::from_millis(6),
            seed: 0,
            only: Some(Side::Tokio),
        };
        let apart =
            "--seconds 3 --connections 4 --concurrency 5 --timeout-ms 6 --seed 0 --only tokio";
        assert_eq!(parsed(apart), Ok(Command::Run(wanted)));
        let joined =
            "--seconds=3 --connections=4 --concurrency=5 --timeout-ms=6 --seed=0 --only=tokio";
        assert_eq!(parsed(joined), parsed(apart));
    }

    #[test]
    fn the_length_is_shared_unless_one_clock_runs_alone() {
        let mut flags = Flags::default();
        assert_eq!(flags.turn(), Duration::from_secs(5));
        flags.only = Some(Side::Waterwheel);
        assert_eq!(flags.turn(), Duration::from_secs(10));
        assert!(flags.runs(Side::Waterwheel) && !flags.runs(Side::Tokio));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for flag in [
            "--seconds",
            "--connections",
            "--concurrency",
            "--timeout-ms",
        ] {
            for value in ["0", "-1", "1.5", "ten", "99999999999999999999", ""] {
                let complaint = parsed(&format!("{flag}={value}")).expect_err(value);
                assert!(complaint.starts_with(flag), "{complaint}");
            }
        }
        for line in [
            "--seed -1",
            "--seed x",
            "--only both",
            "--seconds",
            "--only",
        ] {
            let complaint = parsed(line).expect_err(line);
            assert!(
                complaint.starts_with(line.split_whitespace().next().unwrap_or_default()),
                "{complaint}"
            );
        }
        for line in ["--fast", "10", "-x", "--", "--help=yes"] {
            assert!(parsed(line).expect_err(line).contains(line), "{line}");
        }
    }

    #[test]
    fn help_wins_over_a_run() {
        assert_eq!(parsed("--seconds 3 --help"), Ok(Command::Help));
    }
}
