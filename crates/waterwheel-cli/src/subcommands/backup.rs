//! Copies the file.

use serde::Serialize;
use waterwheel_durable_sqlite::{Reader, backup};

use super::stats::size;
use crate::arguments::Backup;
use crate::failure::Failure;
use crate::output::Output;
use crate::text;

#[derive(Serialize)]
struct Made {
    file: String,
    bytes: u64,
    epoch: u64,
}

pub(crate) fn run(reader: &Reader, args: &Backup, output: &mut Output) -> Result<(), Failure> {
    let made = backup(reader.path(), &args.target)?;
    let file = made.path.display().to_string();
    if args.json.json {
        let (bytes, epoch) = (made.bytes, made.epoch);
        return output.json(&Made { file, bytes, epoch });
    }
    output.line(&format!("{}: {}", text::clean(&file), size(made.bytes)))
}
