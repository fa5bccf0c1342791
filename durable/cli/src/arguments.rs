use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use waterwheel_store::{Due, Id, Whose};

/// Looks into a file of durable timers, and cancels, redrives and pauses what is in it.
///
/// What only reads takes no lock, and works beside the service that has the file open. What changes something is handed to that service, which answers; if
/// no process has the file open, it is done here.
///
/// Exit codes: 0; 1 if it did not work, or not for all; 2 if it was not understood.
#[derive(Debug, Parser)]
#[command(name = "waterwheel-timers", version, max_term_width = 100)]
pub(crate) struct Arguments {
    /// The file that the service has opened.
    pub(crate) file: PathBuf,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Counts the timers of each handler, and says how large the file is and who has it open.
    ///
    /// It reads all timers: some tenths of a second a million.
    Stats(Json),
    /// Lists the timers that wait, in order of their due times.
    List(List),
    /// Shows one timer or dead letter.
    ///
    /// By its handle, and by its handler and key, it is found at once. By its id alone, all timers are read until it is found.
    Show(Show),
    /// Lists the dead letters: timers that were given up. In order of their ids.
    Dead(Dead),
    /// Lists the namespaces with their counts and policies.
    Namespaces(Json),
    /// Looks for damage in the file: its pages, and each row.
    ///
    /// It reads the whole file and changes nothing. Beside a service it reads in short slices, so that the log does not grow. Exit code: 0 if nothing was found, 1 if
    /// something was.
    Check(Json),
    /// Copies the file, also while a service has it open.
    ///
    /// The copy is what one commit has left. It is synced, and gets its name when it is whole.
    Backup(Backup),
    /// Cancels timers: these, or all that wait of a handler or a namespace.
    ///
    /// A cancel cannot be undone. Of a handler or a namespace, a timer that is inserted meanwhile may be cancelled or not; a calendar goes on to file its
    /// occurrences.
    Cancel(Cancel),
    /// Makes dead letters timers again, due now.
    Redrive(Letters),
    /// Deletes dead letters.
    Discard(Letters),
    /// Delivers nothing of a namespace until it is resumed, also after a restart.
    Pause(Named),
    /// Delivers what a namespace has again.
    Resume(Named),
}

#[derive(Debug, Args)]
pub(crate) struct Json {
    /// Prints JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) of: Of,
    /// Only what is due.
    #[arg(long)]
    pub(crate) overdue: bool,
    #[command(flatten)]
    pub(crate) page: Page,
    /// Those after this one: what the page before has ended with.
    #[arg(long, value_name = "ID@MILLISECONDS", value_parser = place)]
    pub(crate) after: Option<(Due, Id)>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Dead {
    #[command(flatten)]
    pub(crate) of: Of,
    #[command(flatten)]
    pub(crate) page: Page,
    /// Those after this one: what the page before has ended with.
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<Id>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Page {
    /// How many at most.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
}

/// Whose timers are meant.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Of {
    /// Only of this handler, by its full name.
    #[arg(long, value_name = "NAME")]
    pub(crate) handler: Option<String>,
    /// Only of this namespace.
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

impl Of {
    pub(crate) fn whose(&self) -> Whose<'_> {
        whose(self.handler.as_ref(), self.namespace.as_ref())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The handle of a timer, or the id of one or of a dead letter.
    #[arg(value_name = "HANDLE|ID", required_unless_present = "handler")]
    pub(crate) name: Option<Name>,
    /// The timer of this handler, by its full name, that has a key.
    #[arg(long, value_name = "NAME", requires = "keyed", conflicts_with = "name")]
    pub(crate) handler: Option<String>,
    /// The key, as text.
    #[arg(long, value_name = "KEY", value_parser = text, requires = "handler", group = "keyed")]
    pub(crate) key: Option<Key>,
    /// The key, in hexadecimal.
    #[arg(long, value_name = "HEX", value_parser = hex, requires = "handler", group = "keyed")]
    pub(crate) key_hex: Option<Key>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// A business key.
#[derive(Debug, Clone)]
pub(crate) struct Key(pub(crate) Vec<u8>);

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file that is created.
    pub(crate) target: PathBuf,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The handles of timers, or their ids. By an id, all timers are read until it is found.
    #[arg(value_name = "HANDLE|ID", required_unless_present_any = ["handler", "namespace"])]
    pub(crate) names: Vec<Name>,
    /// All that wait of this handler, by its full name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["names", "namespace"])]
    pub(crate) handler: Option<String>,
    /// All that wait of this namespace.
    #[arg(long, value_name = "NAME", conflicts_with = "names")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) wait: Wait,
}

impl Cancel {
    /// Whose timers are meant. `None` if they are named.
    pub(crate) fn whose(&self) -> Option<Whose<'_>> {
        match whose(self.handler.as_ref(), self.namespace.as_ref()) {
            Whose::All => None,
            whose => Some(whose),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Letters {
    /// The ids of dead letters.
    #[arg(value_name = "ID", required_unless_present_any = ["all", "handler", "namespace"])]
    pub(crate) ids: Vec<Id>,
    /// All of them.
    #[arg(long, conflicts_with_all = ["ids", "handler", "namespace"])]
    pub(crate) all: bool,
    /// All of this handler, by its full name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["ids", "namespace"])]
    pub(crate) handler: Option<String>,
    /// All of this namespace.
    #[arg(long, value_name = "NAME", conflicts_with = "ids")]
    pub(crate) namespace: Option<String>,
    #[command(flatten)]
    pub(crate) wait: Wait,
}

impl Letters {
    pub(crate) fn whose(&self) -> Whose<'_> {
        whose(self.handler.as_ref(), self.namespace.as_ref())
    }
}

fn whose<'a>(handler: Option<&'a String>, namespace: Option<&'a String>) -> Whose<'a> {
    match (handler, namespace) {
        (Some(handler), _) => Whose::Handler(handler),
        (None, Some(namespace)) => Whose::Namespace(namespace),
        (None, None) => Whose::All,
    }
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The namespace.
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) wait: Wait,
}

impl Command {
    /// How an order is carried out, if it is one.
    pub(crate) fn wait(&self) -> Option<&Wait> {
        match self {
            Command::Cancel(asked) => Some(&asked.wait),
            Command::Redrive(asked) | Command::Discard(asked) => Some(&asked.wait),
            Command::Pause(asked) | Command::Resume(asked) => Some(&asked.wait),
            _ => None,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// How long the process that has the file open has to take an order. What it has not taken by then is withdrawn.
    #[arg(long = "wait", value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) limit: Duration,
    /// Goes on though acknowledged work is gone: after a crash, the `-wal` was missing, cut short or damaged. It says what is gone. Where a process has the file
    /// open, nothing was, or that process has gone on.
    #[arg(long)]
    pub(crate) accept_loss: bool,
}

/// What names a timer.
#[derive(Debug, Clone)]
pub(crate) enum Name {
    Handle(waterwheel_store::Handle),
    Id(Id),
}

impl std::str::FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Name, String> {
        match text.contains('@') {
            true => text
                .parse()
                .map(Name::Handle)
                .map_err(|it: waterwheel_store::InvalidHandle| it.to_string()),
            false => text
                .parse()
                .map(Name::Id)
                .map_err(|it: waterwheel_store::InvalidId| it.to_string()),
        }
    }
}

fn place(text: &str) -> Result<(Due, Id), String> {
    let place = text.split_once('@').and_then(|(id, due)| {
        let due = due.parse().ok()?;
        Some((Due::from_millis(due), id.parse().ok()?))
    });
    place.ok_or_else(|| "it is what a page has ended with".to_owned())
}

fn text(key: &str) -> Result<Key, std::convert::Infallible> {
    Ok(Key(key.as_bytes().to_vec()))
}

fn hex(key: &str) -> Result<Key, String> {
    let digits = key.bytes().map(|digit| char::from(digit).to_digit(16));
    let digits: Option<Vec<u8>> = digits
        .map(|digit| digit.and_then(|it| u8::try_from(it).ok()))
        .collect();
    let digits = digits.filter(|it| it.len().is_multiple_of(2));
    let bytes = digits.map(|it| it.chunks(2).map(|two| two[0] << 4 | two[1]).collect());
    bytes
        .map(Key)
        .ok_or_else(|| "it has two hexadecimal digits a byte".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let limit = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
    let limit = limit.filter(|it| *it <= Duration::from_secs(3_600));
    limit.ok_or_else(|| "it is a number of seconds, up to 3600".to_owned())
}
