//! The subcommands, one module each; `changes` contains those that change something.

mod backup;
mod changes;
mod check;
mod dead;
mod list;
mod namespaces;
mod show;
mod stats;

use waterwheel_durable_sqlite::{Options, Reader, SqliteStore};

use crate::arguments::{Action, Arguments};
use crate::failure::{Failure, say};
use crate::output::Output;

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<(), Failure> {
    // This works on a damaged file, which a reader does not open.
    if let Action::Check(args) = &arguments.action {
        return check::run(&arguments.file, args, output);
    }
    // A stale WAL must be removed before anything is read.
    if let Some(wait) = arguments.action.wait() {
        let options = Options::default().accept_loss(wait.accept_loss);
        SqliteStore::prepare(&arguments.file, &options)?;
    } else if arguments.file.is_file()
        && let Some(loss) = SqliteStore::lost(&arguments.file)?
    {
        say(&format!(
            "{}: {loss}: put the original `-wal` of the file back, or restore a backup; this command reads what is left",
            arguments.file.display()
        ));
    }
    let reader = Reader::open(&arguments.file)?;
    match &arguments.action {
        Action::Stats(args) => stats::run(&reader, args, output),
        Action::List(args) => list::run(&reader, args, output),
        Action::Show(args) => show::run(&reader, args, output),
        Action::Dead(args) => dead::run(&reader, args, output),
        Action::Namespaces(args) => namespaces::run(&reader, args, output),
        Action::Check(_) => Ok(()),
        Action::Backup(args) => backup::run(&reader, args, output),
        Action::Cancel(args) => changes::cancel(&reader, args, output),
        Action::Redrive(args) => changes::redrive(&reader, args, output),
        Action::Discard(args) => changes::discard(&reader, args, output),
        Action::Pause(args) => changes::pause(&reader, args, output),
        Action::Resume(args) => changes::resume(&reader, args, output),
    }
}
