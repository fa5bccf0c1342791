//! Parses the command line by hand: a few numbers need no dependency.

use std::io;
use std::process::ExitCode;

use super::text::print;

/// The flags that an example takes.
pub(crate) trait Flags: Default {
    const USAGE: &'static str;

    /// Stores the value of one flag. Returns [`Argument::unknown`] for a flag that the example does not have.
    fn take(&mut self, flag: &str, argument: &mut Argument<'_>) -> Result<(), String>;
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command<F> {
    Run(F),
    Help,
}

/// Parses the arguments of this process and calls `run`. The exit code is 0 if `run` returns true, 1 if it does not, and 2
/// for flags that make no sense.
pub(crate) fn main<F: Flags>(run: fn(&F) -> io::Result<bool>) -> ExitCode {
    let example = env!("CARGO_CRATE_NAME");
    let arguments = std::env::args_os().skip(1);
    match parse::<F>(arguments.map(|argument| argument.to_string_lossy().into_owned())) {
        Ok(Command::Help) => {
            print(F::USAGE);
            ExitCode::SUCCESS
        }
        Ok(Command::Run(flags)) => match run(&flags) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("{example}: {error}");
                ExitCode::FAILURE
            }
        },
        Err(complaint) => {
            eprint!("{example}: {complaint}\n\n{}", F::USAGE);
            ExitCode::from(2)
        }
    }
}

/// Parses `--flag value` and `--flag=value`. The error names the flag and says which values it takes.
pub(crate) fn parse<F: Flags>(
    arguments: impl IntoIterator<Item = String>,
) -> Result<Command<F>, String> {
    let mut flags = F::default();
    let mut rest = arguments.into_iter();
    while let Some(text) = rest.next() {
        let (flag, attached) = match text.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (text.as_str(), None),
        };
        if matches!(flag, "--help" | "-h") && attached.is_none() {
            return Ok(Command::Help);
        }
        let mut argument = Argument {
            text: &text,
            flag,
            attached,
            rest: &mut rest,
        };
        flags.take(flag, &mut argument)?;
    }
    Ok(Command::Run(flags))
}

/// A flag. Its value is attached to it or is the next argument.
pub(crate) struct Argument<'a> {
    text: &'a str,
    flag: &'a str,
    attached: Option<String>,
    rest: &'a mut dyn Iterator<Item = String>,
}

impl Argument<'_> {
    pub(crate) fn value(&mut self) -> Result<String, String> {
        let value = self.attached.take().or_else(|| self.rest.next());
        value.ok_or_else(|| format!("{} needs a value", self.flag))
    }

    pub(crate) fn whole<N>(&mut self, least: N, most: N) -> Result<N, String>
    where
        N: std::str::FromStr + std::fmt::Display + PartialOrd,
    {
        let value = self.value()?;
        match value.parse() {
            Ok(number) if (&least..=&most).contains(&&number) => Ok(number),
            _ => Err(format!(
                "{} must be a whole number from {least} to {most}, but is {value:?}",
                self.flag
            )),
        }
    }

    pub(crate) fn unknown(&self) -> Result<(), String> {
        Err(format!("unknown flag {:?}", self.text))
    }
}

/// Parses one line of arguments.
#[cfg(test)]
pub(crate) fn parsed<F: Flags>(line: &str) -> Result<Command<F>, String> {
    parse(line.split_whitespace().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Sizes {
        height: u32,
        seed: u64,
        name: String,
    }

    impl Flags for Sizes {
        const USAGE: &'static str = "";

        fn take(&mut self, flag: &str, argument: &mut Argument<'_>) -> Result<(), String> {
            match flag {
                "--height" => self.height = argument.whole(1, 100)?,
                "--seed" => self.seed = argument.whole(0, u64::MAX)?,
                "--name" => self.name = argument.value()?,
                _ => return argument.unknown(),
            }
            Ok(())
        }
    }

    #[test]
    fn a_flag_is_taken_in_both_spellings() {
        let wanted = Sizes {
            height: 7,
            seed: u64::MAX,
            name: "a=b".into(),
        };
        let apart = parsed("--height 7 --seed 18446744073709551615 --name a=b");
        assert_eq!(apart, Ok(Command::Run(wanted)));
        let joined = parsed("--height=7 --seed=18446744073709551615 --name=a=b");
        assert_eq!(joined, apart);
        assert_eq!(parsed(""), Ok(Command::Run(Sizes::default())));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for value in ["0", "101", "-1", "1.5", "ten", "99999999999999999999", ""] {
            let complaint = parsed::<Sizes>(&format!("--height={value}")).expect_err(value);
            assert!(complaint.starts_with("--height"), "{complaint}");
            assert!(complaint.contains(&format!("{value:?}")), "{complaint}");
        }
        for line in ["--height", "--seed 1 --height"] {
            let complaint = parsed::<Sizes>(line).expect_err(line);
            assert_eq!(complaint, "--height needs a value");
        }
        for line in ["--fast", "10", "-x", "--", "--help=yes"] {
            let complaint = parsed::<Sizes>(line).expect_err(line);
            assert!(complaint.contains(line), "{complaint}");
        }
    }

    #[test]
    fn help_wins_over_a_run() {
        assert_eq!(parsed::<Sizes>("--height 3 --help"), Ok(Command::Help));
        assert_eq!(parsed::<Sizes>("-h"), Ok(Command::Help));
    }
}
