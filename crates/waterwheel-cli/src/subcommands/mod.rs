//! The subcommands; `changes` has the common part of those that change something.

mod backup;
mod calendars;
mod cancel;
mod changes;
mod check;
mod database;
mod dead;
mod dead_letters;
mod list;
mod namespaces;
mod pause;
mod policy;
mod reschedule;
mod show;
mod stats;
mod transfer;

use waterwheel_durable_sqlite::{Reader, Sqlite, SqliteStore};

use crate::arguments::{Action, Arguments, PolicyAction};
use crate::failure::{Failure, say};
use crate::output::Output;

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<(), Failure> {
    // These need no reader. `check` works on a damaged file, which one does not open.
    match &arguments.action {
        Action::Check(args) => return check::run(&arguments.file, args, output),
        Action::Move(args) => return transfer::run(&arguments.file, args, output),
        Action::Migrate(args) => return database::migrate(&arguments.file, args, output),
        Action::AcceptRestore(args) => {
            return database::accept_restore(&arguments.file, args, output);
        }
        _ => {}
    }
    if database::is_url(&arguments.file) {
        return Err(Failure::because("this works for a file only"));
    }
    // A stale WAL must be removed before anything is read.
    if let Some(wait) = arguments.action.wait() {
        let file = Sqlite::new(&arguments.file);
        file.accept_loss(wait.accept_loss).prepare()?;
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
        Action::Calendars(args) => calendars::run(&reader, args, output),
        Action::Check(_) | Action::Move(_) | Action::Migrate(_) | Action::AcceptRestore(_) => {
            Ok(())
        }
        Action::Backup(args) => backup::run(&reader, args, output),
        Action::Cancel(args) => cancel::run(&reader, args, output),
        Action::Reschedule(args) => reschedule::reschedule(&reader, args, output),
        Action::RunNow(args) => reschedule::run_now(&reader, args, output),
        Action::Redrive(args) => dead_letters::redrive(&reader, args, output),
        Action::Discard(args) => dead_letters::discard(&reader, args, output),
        Action::Pause(args) => pause::pause(&reader, args, output),
        Action::Resume(args) => pause::resume(&reader, args, output),
        Action::Policy(PolicyAction::Show(args)) => policy::show(&reader, args, output),
        Action::Policy(PolicyAction::Set(args)) => policy::set(&reader, args, output),
    }
}
