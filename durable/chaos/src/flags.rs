//! Flags with values.

use std::str::FromStr;

#[derive(Debug)]
pub(crate) struct Flags(Vec<String>);

impl Flags {
    pub(crate) fn new(arguments: impl IntoIterator<Item = String>) -> Flags {
        Flags(arguments.into_iter().collect())
    }

    /// Takes the first argument, a command.
    pub(crate) fn command(&mut self) -> Option<String> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    /// The value of a flag, if it is there.
    pub(crate) fn take<T: FromStr>(&mut self, flag: &str) -> Result<Option<T>, String> {
        let Some(at) = self.0.iter().position(|it| it == flag) else {
            return Ok(None);
        };
        self.0.remove(at);
        if at == self.0.len() {
            return Err(format!("{flag} needs a value"));
        }
        let value = self.0.remove(at);
        let parsed = value.parse();
        parsed
            .map(Some)
            .map_err(|_| format!("{flag} cannot be {value:?}"))
    }

    /// Nothing else is there.
    pub(crate) fn end(self) -> Result<(), String> {
        match self.0.first() {
            Some(other) => Err(format!("what is {other:?}?")),
            None => Ok(()),
        }
    }
}
