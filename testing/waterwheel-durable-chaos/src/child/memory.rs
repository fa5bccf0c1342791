//! A disk in memory with a capacity, for machines on which no small file system can be mounted.

use std::fs;
use std::path::Path;

use waterwheel_durable_faults::{Content, Disk};
use waterwheel_durable_sqlite::{OpenError, OpenOptions, SqliteStore};

use crate::power_cut::IN_MEMORY;
use crate::protocol::{ChildOptions, WITHOUT_RESERVE};

const FILE: &str = "timers.db";
/// Without the reserve: at the end there is space.
const FILES: [&str; 2] = [FILE, "timers.db-wal"];

#[derive(Debug, Clone)]
pub(super) struct Memory(Disk);

impl Memory {
    /// A disk that has what the file and its log have.
    pub(super) fn of(options: &ChildOptions) -> Result<Memory, String> {
        let disk = Disk::new()?;
        let folder = options.file.parent().unwrap_or(&options.file);
        let files = FILES.iter().filter_map(|name| {
            let bytes = fs::read(folder.join(name)).ok()?;
            Some((*name, bytes))
        });
        disk.put(Content::of(files));
        disk.set_capacity(options.memory, 0);
        Ok(Memory(disk))
    }

    /// Does what the parent says: lets another's file take all space, or none.
    pub(super) fn obey(&self, command: &str) {
        match command {
            "fill" => drop(self.0.fill()),
            "free" => self.0.set_foreign(0),
            _ => {}
        }
    }

    pub(super) fn open(&self, options: &ChildOptions) -> Result<SqliteStore, OpenError> {
        let mut open = OpenOptions {
            vfs: Some(self.0.vfs()),
            files: IN_MEMORY,
            limit: (options.limit > 0).then_some(options.limit),
            ..OpenOptions::DEFAULT
        };
        if options.fault == WITHOUT_RESERVE {
            open.reserve = (0, 0);
        }
        SqliteStore::open_with_options(&self.0.path(FILE), &open)
    }

    /// Writes the file and its log to a real folder, once the store is closed.
    pub(super) fn write_to(&self, file: &Path) -> Result<(), String> {
        let folder = file.parent().unwrap_or(file);
        for name in FILES {
            let bytes = self.0.read(name).unwrap_or_default();
            fs::write(folder.join(name), bytes).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
