//! The standard output, whose reader may close it.

use std::io::{self, BufWriter, StdoutLock, Write};

use serde::Serialize;

use crate::failure::Failure;

pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(crate) fn new() -> Output {
        Output(BufWriter::new(io::stdout().lock()))
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        Ok(writeln!(self.0, "{}", line.trim_end())?)
    }

    /// Writes one JSON document, for programs.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut self.0, value).map_err(io::Error::from)?;
        Ok(writeln!(self.0)?)
    }

    /// Writes a JSON document on one line.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.0, value).map_err(io::Error::from)?;
        Ok(writeln!(self.0)?)
    }

    /// Writes out the buffer now: the next line may take a while.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }

    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.flush()
    }
}
