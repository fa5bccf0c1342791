//! What does each command do?

mod backup;
mod check;
mod dead;
mod list;
mod namespaces;
mod page;
mod send;
mod show;
mod stats;
mod timer;

use waterwheel_durable_sqlite::{Options, Reader, SqliteStore};

use crate::arguments::{Arguments, Command};
use crate::failure::{Failure, say};
use crate::output::Output;

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<(), Failure> {
    // It works on a damaged file, which no reader opens.
    if let Command::Check(args) = &arguments.command {
        return check::run(&arguments.file, args, output);
    }
    // Its WAL may have to go before anything is read.
    if let Some(wait) = arguments.command.wait() {
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
    match &arguments.command {
        Command::Stats(args) => stats::run(&reader, args, output),
        Command::List(args) => list::run(&reader, args, output),
        Command::Show(args) => show::run(&reader, args, output),
        Command::Dead(args) => dead::run(&reader, args, output),
        Command::Namespaces(args) => namespaces::run(&reader, args, output),
        Command::Check(_) => Ok(()),
        Command::Backup(args) => backup::run(&reader, args, output),
        Command::Cancel(args) => send::cancel(&reader, args, output),
        Command::Redrive(args) => send::redrive(&reader, args, output),
        Command::Discard(args) => send::discard(&reader, args, output),
        Command::Pause(args) => send::pause(&reader, args, output),
        Command::Resume(args) => send::resume(&reader, args, output),
    }
}
