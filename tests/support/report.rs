//! What the feature `tracing` reports, to be read by a test.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::filter::LevelFilter;

#[derive(Clone, Default)]
pub(crate) struct Report(Arc<Mutex<Vec<u8>>>);

impl Report {
    /// From now on, what this process reports, down to `level`. A subscriber is one for the process: call it in `alone`.
    pub(crate) fn start(level: LevelFilter) -> Report {
        let report = Report::default();
        let writer = report.clone();
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(move || writer.clone())
            .init();
        report
    }

    /// What has come since the last look.
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
