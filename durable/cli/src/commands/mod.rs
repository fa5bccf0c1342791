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

use waterwheel_store_sqlite::{Options, Reader, SqliteStore};

use crate::arguments::{Arguments, Command};
use crate::failure::{Failure, say};
use crate::output::Output;

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<(), Failure> {
    // It works on a damaged file, which no reader opens.
    if let Command::Check(asked) = &arguments.command {
        return check::run(&arguments.file, asked, output);
    }
    // Its log may have to go before anything is read.
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
        Command::Stats(asked) => stats::run(&reader, asked, output),
        Command::List(asked) => list::run(&reader, asked, output),
        Command::Show(asked) => show::run(&reader, asked, output),
        Command::Dead(asked) => dead::run(&reader, asked, output),
        Command::Namespaces(asked) => namespaces::run(&reader, asked, output),
        Command::Check(_) => Ok(()),
        Command::Backup(asked) => backup::run(&reader, asked, output),
        Command::Cancel(asked) => send::cancel(&reader, asked, output),
        Command::Redrive(asked) => send::redrive(&reader, asked, output),
        Command::Discard(asked) => send::discard(&reader, asked, output),
        Command::Pause(asked) => send::pause(&reader, asked, output),
        Command::Resume(asked) => send::resume(&reader, asked, output),
    }
}
