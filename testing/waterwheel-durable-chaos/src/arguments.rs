//! What was asked for: `--name value`, each with a default.

use std::collections::BTreeMap;
use std::str::FromStr;

/// The arguments of a command.
#[derive(Debug, Default)]
pub struct Arguments(BTreeMap<String, String>);

impl Arguments {
    /// Reads `--name value`, as often as there is.
    ///
    /// # Errors
    ///
    /// It is not so.
    pub fn parse(mut all: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut arguments = Arguments::default();
        while let Some(name) = all.next() {
            let value = all.next().ok_or_else(|| format!("{name} has no value"))?;
            match name.strip_prefix("--") {
                Some(name) => arguments.0.insert(name.to_owned(), value),
                None => return Err(format!("{name} is no flag")),
            };
        }
        Ok(arguments)
    }

    /// Takes out the value of a name.
    ///
    /// # Errors
    ///
    /// It is no such value.
    pub fn take<T: FromStr>(&mut self, name: &str, default: T) -> Result<T, String> {
        match self.0.remove(name) {
            Some(value) => value
                .parse()
                .map_err(|_| format!("--{name} cannot be {value}")),
            None => Ok(default),
        }
    }

    /// Nothing else was asked for.
    ///
    /// # Errors
    ///
    /// Something was.
    pub fn end(&self) -> Result<(), String> {
        match self.0.keys().next() {
            Some(name) => Err(format!("there is no flag --{name}")),
            None => Ok(()),
        }
    }
}
