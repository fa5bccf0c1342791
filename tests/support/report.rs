//! Collects the reports of the feature `tracing` for a test.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::filter::LevelFilter;

#[derive(Clone, Default)]
pub(crate) struct Report(Arc<Mutex<Vec<u8>>>);

impl Report {
    /// Starts to collect the reports of this process, down to `level`. There is one subscriber per process: call this in `alone`.
    pub(crate) fn start(level: LevelFilter) -> Report {
        let report = Report::default();
        let writer = report.clone();
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(move || writer.clone())
            .init();
        report
    }

    /// Returns the reports since the last call.
    pub(crate) fn take(&self) -> String {
        let said = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(said).unwrap()
    }
}

impl io::Write for Report {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
