//! Where the lines are kept: the last of them, if they are many.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::log::Line;

/// With so many bytes, the file gets the name of the one before, and another one is begun. Other commands than `soak` do not come to that.
const LONGEST: usize = 1 << 29;

#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: usize,
}

impl Log {
    pub(crate) fn create(path: &Path) -> io::Result<Log> {
        Ok(Log {
            path: path.to_owned(),
            file: BufWriter::new(File::create(path)?),
            bytes: 0,
        })
    }

    pub(crate) fn write(&mut self, line: &Line) -> io::Result<()> {
        if self.bytes > LONGEST {
            self.flush()?;
            fs::rename(&self.path, self.path.with_extension("before"))?;
            *self = Log::create(&self.path)?;
        }
        let text = format!("{line}\n");
        self.bytes += text.len();
        self.file.write_all(text.as_bytes())
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
