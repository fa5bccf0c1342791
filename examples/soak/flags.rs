//! The command line, parsed by hand: three numbers do not need a dependency.

use std::time::Duration;

pub(crate) const USAGE: &str = "\
usage: soak [flags]

  --seconds N   length of the run [10]; 600 is a soak, 10 a look
  --tasks N     tasks of each kind of load on each timer [200]
  --seed N      seed of the delays [1]
  --help        this text
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run(Flags),
    Help,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) length: Duration,
    pub(crate) tasks: u64,
    pub(crate) seed: u64,
}

impl Flags {
    /// How long a runtime lives: all three endings have their turn in each third of the run.
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

/// Understands `--flag value` and `--flag=value`. The error names the flag and says what it wants.
pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut flags = Flags::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let (flag, attached) = match argument.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        let mut value = |least, most| {
            let text = attached.clone().or_else(|| arguments.next());
            let text = text.ok_or_else(|| format!("{flag} wants a value"))?;
            match text.parse() {
                Ok(number) if (least..=most).contains(&number) => Ok(number),
                _ => Err(format!(
                    "{flag} is a whole number from {least} to {most}, not {text:?}"
                )),
            }
        };
        match flag {
            "--seconds" => flags.length = Duration::from_secs(value(1, 30 * 86_400)?),
            "--tasks" => flags.tasks = value(1, 100_000)?,
            "--seed" => flags.seed = value(0, u64::MAX)?,
            "--help" | "-h" if attached.is_none() => return Ok(Command::Help),
            _ => return Err(format!("unknown flag {argument:?}")),
        }
    }
    Ok(Command::Run(flags))
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
            length: Duration::from_secs(600),
            tasks: 4,
            seed: 5,
        };
        assert_eq!(wanted.life(), Duration::from_secs(10));
        let apart = parsed("--seconds 600 --tasks 4 --seed 5");
        assert_eq!(apart, Ok(Command::Run(wanted)));
        assert_eq!(parsed("--seconds=600 --tasks=4 --seed=5"), apart);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for flag in ["--seconds", "--tasks"] {
            for value in ["0", "-1", "1.5", "ten", "99999999999999999999", ""] {
                let complaint = parsed(&format!("{flag}={value}")).expect_err(value);
                assert!(complaint.starts_with(flag), "{complaint}");
            }
        }
        for line in ["--seed -1", "--seed x", "--seconds"] {
            let complaint = parsed(line).expect_err(line);
            let flag = line.split_whitespace().next().unwrap_or_default();
            assert!(complaint.starts_with(flag), "{complaint}");
        }
        for line in ["--fast", "10", "-x", "--", "--help=yes"] {
            assert!(parsed(line).expect_err(line).contains(line), "{line}");
        }
        assert_eq!(parsed("--seconds 3 --help"), Ok(Command::Help));
    }
}
