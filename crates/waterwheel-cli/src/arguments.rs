use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use waterwheel_durable_core::policy::{Backoff, Policy, Rate};
use waterwheel_durable_core::store::{Due, Id, Scope};

use crate::time;

/// Inspects and changes a file of durable timers.
///
/// Commands that only read take no lock, and work while a service has the file open. Commands that change something hand a request to that service and wait
/// for its answer. If no process has the file open, the command makes the change itself.
///
/// Exit codes: 0 on success, 1 if the command failed, also if only for some of the timers, 2 if the arguments are invalid.
#[derive(Debug, Parser)]
#[command(name = "waterwheel", version, max_term_width = 100)]
pub(crate) struct Arguments {
    /// The file that the service opens, such as timers.db. For move, migrate and accept-restore, the URL of a PostgreSQL database.
    pub(crate) file: PathBuf,
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Counts the timers of each handler, and shows the size of the file and which process has it open.
    ///
    /// Reads all timers, which takes a few tenths of a second per million.
    Stats(Json),
    /// Lists the pending timers, in order of their due times.
    List(List),
    /// Shows one timer or dead letter.
    ///
    /// A lookup by handle, or by handler and key, is fast. A lookup of a timer by id alone reads all timers until it is found.
    Show(Show),
    /// Lists the dead letters, that is, the timers that were given up, in order of their ids.
    Dead(Dead),
    /// Lists the namespaces with their counts and policies, and the calendars.
    Namespaces(Json),
    /// Lists the calendars with the times of their next occurrences.
    Calendars(Calendars),
    /// Checks the file for damage: its pages, and every row.
    ///
    /// Reads the whole file and changes nothing. While a service has the file open, it reads in short slices, so that the WAL does not grow. The exit code is 0
    /// if no damage was found, and 1 otherwise.
    Check(Json),
    /// Copies the file, even while a service has it open.
    ///
    /// The copy is the state after one commit. It is synced, and gets its name only when it is complete.
    Backup(Backup),
    /// Cancels timers: those named, or all pending timers of a handler or a namespace.
    ///
    /// A cancel cannot be undone. With --handler or --namespace, a timer that is inserted in the meantime may or may not be cancelled, and calendars keep
    /// creating timers for their occurrences.
    Cancel(Cancel),
    /// Moves timers to another due time.
    Reschedule(Reschedule),
    /// Makes timers due now, or inserts a timer for the handler of a calendar that is due now.
    ///
    /// The handler is called as for any due timer: limits and pauses apply. A calendar keeps its occurrences.
    RunNow(RunNow),
    /// Turns dead letters into pending timers again, due now.
    Redrive(DeadLetters),
    /// Deletes dead letters.
    ///
    /// A discard cannot be undone.
    Discard(DeadLetters),
    /// Stops new deliveries of a namespace until it is resumed, also across restarts.
    Pause(Named),
    /// Resumes the deliveries of a paused namespace.
    Resume(Named),
    /// Shows or changes the policy of a namespace.
    #[command(subcommand)]
    Policy(PolicyAction),
    /// Moves everything from a file into a PostgreSQL database, or back.
    ///
    /// Timers keep their ids, handles, keys, due times and failures, and dead letters, the archive, policies, pauses and calendars are moved as well. No service may have either
    /// store open. If the command is interrupted, repeat it: it continues where it was. Until it has ended, no service opens either store, and afterwards none opens
    /// the old one. At the end it reads both stores again, and compares their counts and a hash.
    Move(Move),
    /// Creates the tables of a PostgreSQL database, or upgrades them.
    Migrate(Migrate),
    /// Lets deliveries begin in a PostgreSQL database that was restored from a backup, or moved to another server.
    AcceptRestore(Database),
}

/// How a PostgreSQL database is used.
#[derive(Debug, Args)]
pub(crate) struct Database {
    /// Reads the password from this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// The name of the installation that the services are configured with.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// How long a process may be unreachable until another one takes its timers over, for new tables [default: 3s].
    #[arg(long, value_name = "DURATION", value_parser = time::parse_span)]
    pub(crate) ttl: Option<Duration>,
    /// Grants this role what a service needs.
    #[arg(long, value_name = "ROLE")]
    pub(crate) grant: Option<String>,
    #[command(flatten)]
    pub(crate) database: Database,
}

#[derive(Debug, Args)]
pub(crate) struct Move {
    /// The file or the URL of the store to move everything into. It must be empty.
    #[arg(required_unless_present = "abandon")]
    pub(crate) target: Option<PathBuf>,
    /// Gives up a move that was not completed, so that services may open the old store again. The new one is useless then.
    #[arg(long, conflicts_with = "target")]
    pub(crate) abandon: bool,
    #[command(flatten)]
    pub(crate) database: Database,
    #[command(flatten)]
    pub(crate) json: Json,
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
    /// Lists only overdue timers.
    #[arg(long)]
    pub(crate) overdue: bool,
    #[command(flatten)]
    pub(crate) page: Page,
    /// Continues after this row: the value printed at the end of the previous page.
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
    /// Continues after this row: the value printed at the end of the previous page.
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<Id>,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Page {
    /// The maximum number of rows. A page also ends once it has 32 MiB of payloads.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
}

/// The timers that are meant.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Of {
    /// Only this handler, by its full name, such as shop/close.
    #[arg(long, value_name = "NAME")]
    pub(crate) handler: Option<String>,
    /// Only this namespace.
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}

impl Of {
    pub(crate) fn scope(&self) -> Scope<'_> {
        scope(self.handler.as_ref(), self.namespace.as_ref())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The handle of a timer, or the id of a timer or dead letter.
    #[arg(value_name = "HANDLE|ID", required_unless_present = "handler")]
    pub(crate) name: Option<Name>,
    /// Looks up a timer of this handler, by its full name. Requires --key or --key-hex.
    #[arg(long, value_name = "NAME", requires = "keyed", conflicts_with = "name")]
    pub(crate) handler: Option<String>,
    /// The key of the timer, as text.
    #[arg(long, value_name = "KEY", value_parser = text, requires = "handler", group = "keyed")]
    pub(crate) key: Option<Key>,
    /// The key of the timer, in hexadecimal.
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
    /// The file to create. An existing file is not overwritten.
    pub(crate) target: PathBuf,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Calendars {
    /// The number of next occurrences to list for each calendar.
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub(crate) next: u32,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// The handles or ids of timers. For an id, all timers are read until it is found.
    #[arg(value_name = "HANDLE|ID", required_unless_present_any = ["handler", "namespace"])]
    pub(crate) names: Vec<Name>,
    /// All pending timers of this handler, by its full name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["names", "namespace"])]
    pub(crate) handler: Option<String>,
    /// All pending timers of this namespace.
    #[arg(long, value_name = "NAME", conflicts_with = "names")]
    pub(crate) namespace: Option<String>,
    /// Only the timers with this tag.
    #[arg(
        long,
        value_name = "TAG",
        requires = "namespace",
        conflicts_with = "handler"
    )]
    pub(crate) tag: Option<String>,
    /// Only counts the timers, and cancels none.
    #[arg(long, conflicts_with = "names")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) change: Change,
}

impl Cancel {
    /// Returns the scope of the command, or `None` if timers are named.
    pub(crate) fn scope(&self) -> Option<Scope<'_>> {
        match scope(self.handler.as_ref(), self.namespace.as_ref()) {
            Scope::All => None,
            scope => Some(scope),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Reschedule {
    /// The handles or ids of timers. For an id, all timers are read until it is found.
    #[arg(value_name = "HANDLE|ID", required = true)]
    pub(crate) names: Vec<Name>,
    /// The new due time, in ISO 8601 format with an offset, such as 2027-01-15T08:00:00Z. A time in the past is due at once.
    #[arg(long, value_name = "TIME", value_parser = time::parse, required_unless_present = "delay", conflicts_with = "delay")]
    pub(crate) at: Option<Due>,
    /// The delay from now until the new due time, such as "2h 30m" or 90s.
    #[arg(long = "in", value_name = "DURATION", value_parser = time::parse_span)]
    pub(crate) delay: Option<Duration>,
    #[command(flatten)]
    pub(crate) change: Change,
}

impl Reschedule {
    pub(crate) fn due(&self, now: Due) -> Due {
        let after = || now.after(self.delay.unwrap_or_default());
        self.at.unwrap_or_else(after)
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunNow {
    /// The handles or ids of timers. For an id, all timers are read until it is found.
    #[arg(value_name = "HANDLE|ID", required_unless_present = "calendar")]
    pub(crate) names: Vec<Name>,
    /// Inserts a timer with the handler and the payload of this calendar. Requires a service that has the file open.
    #[arg(long, value_name = "NAME", conflicts_with = "names")]
    pub(crate) calendar: Option<String>,
    #[command(flatten)]
    pub(crate) change: Change,
}

#[derive(Debug, Args)]
pub(crate) struct DeadLetters {
    /// The ids of dead letters.
    #[arg(value_name = "ID", required_unless_present_any = ["all", "handler", "namespace"])]
    pub(crate) ids: Vec<Id>,
    /// All dead letters.
    #[arg(long, conflicts_with_all = ["ids", "handler", "namespace"])]
    pub(crate) all: bool,
    /// All dead letters of this handler, by its full name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["ids", "namespace"])]
    pub(crate) handler: Option<String>,
    /// All dead letters of this namespace.
    #[arg(long, value_name = "NAME", conflicts_with = "ids")]
    pub(crate) namespace: Option<String>,
    /// Only counts the dead letters, and changes none.
    #[arg(long, conflicts_with = "ids")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) change: Change,
}

impl DeadLetters {
    pub(crate) fn scope(&self) -> Scope<'_> {
        scope(self.handler.as_ref(), self.namespace.as_ref())
    }
}

fn scope<'a>(handler: Option<&'a String>, namespace: Option<&'a String>) -> Scope<'a> {
    match (handler, namespace) {
        (Some(handler), _) => Scope::Handler(handler),
        (None, Some(namespace)) => Scope::Namespace(namespace),
        (None, None) => Scope::All,
    }
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The name of the namespace.
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) change: Change,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyAction {
    /// Shows the policy of a namespace.
    Show(PolicyShow),
    /// Changes the named fields of the policy of a namespace, and keeps the others.
    ///
    /// `none` lifts a limit. Lowering the retention deletes the records that have been archived for longer, and cannot be undone.
    Set(PolicySet),
}

#[derive(Debug, Args)]
pub(crate) struct PolicyShow {
    /// The name of the namespace.
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct PolicySet {
    /// The name of the namespace.
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) fields: PolicyFields,
    #[command(flatten)]
    pub(crate) change: Change,
}

/// The fields of a policy.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct PolicyFields {
    /// The delays after the first, second … failure of a timer, such as 15s,1m,1h, in place of a backoff. `none` allows no retry, and `default` selects the delays of
    /// the service. The retries of a timer or of its handler take precedence.
    #[arg(long, value_name = "DURATION,…|none|default", value_parser = retry_delays, conflicts_with = "backoff")]
    retry_delays: Option<RetryDelays>,
    /// The first and the longest delay after a failure, and the number of attempts, such as 15s,1h,12, in place of retry delays. Without the number: 20.
    #[arg(long, value_name = "FIRST,MAX[,ATTEMPTS]", value_parser = backoff)]
    backoff: Option<Backoff>,
    /// The number of concurrent deliveries.
    #[arg(long, value_name = "COUNT|none", value_parser = optional(number::<usize>))]
    concurrency: Option<Optional<usize>>,
    /// How many deliveries may start in a period, and in a burst, such as 100/1s or 100/1s,20.
    #[arg(long, value_name = "COUNT/DURATION[,BURST]|none", value_parser = optional(rate))]
    rate: Option<Optional<Rate>>,
    /// The share of the service's concurrency, from 1 to 1000.
    #[arg(long, value_name = "SHARE|none", value_parser = optional(number::<u32>))]
    priority: Option<Optional<u32>>,
    /// How many timers may be inserted in a period, and in a burst.
    #[arg(long, value_name = "COUNT/DURATION[,BURST]|none", value_parser = optional(rate))]
    insert_rate: Option<Optional<Rate>>,
    /// For how many days delivered timers are archived.
    #[arg(long, value_name = "DAYS|none", value_parser = optional(number::<u32>))]
    retention: Option<Optional<u32>>,
    /// At how many unclean ends of the process a timer may have been with its handler.
    #[arg(long, value_name = "COUNT|none", value_parser = optional(number::<u32>))]
    starts: Option<Optional<u32>>,
}

impl PolicyFields {
    /// Returns the policy with these fields.
    pub(crate) fn set(&self, mut policy: Policy) -> Policy {
        match &self.retry_delays {
            Some(RetryDelays::These(delays)) => {
                policy = policy.retry_delays(delays.iter().copied());
            }
            // Neither delays nor a backoff.
            Some(RetryDelays::Default) => policy = policy.backoff(None),
            None => {}
        }
        if let Some(backoff) = &self.backoff {
            policy = policy.backoff(backoff.clone());
        }
        if let Some(Optional(count)) = self.concurrency {
            policy = policy.concurrency(count);
        }
        if let Some(Optional(rate)) = self.rate {
            policy = policy.rate(rate);
        }
        if let Some(Optional(share)) = self.priority {
            policy = policy.priority(share);
        }
        if let Some(Optional(rate)) = self.insert_rate {
            policy = policy.insert_rate(rate);
        }
        if let Some(Optional(days)) = self.retention {
            policy = policy.retention(days);
        }
        if let Some(Optional(count)) = self.starts {
            policy = policy.starts(count);
        }
        policy
    }
}

/// A value, or `none`.
#[derive(Debug, Clone, Copy)]
struct Optional<T>(Option<T>);

/// Parses `none`, or a value.
fn optional<T>(
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<Optional<T>, String> + Clone {
    move |text| match text {
        "none" => Ok(Optional(None)),
        text => parse(text).map(|it| Optional(Some(it))),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "expected a number, or `none`".to_owned())
}

#[derive(Debug, Clone)]
enum RetryDelays {
    /// Those of the service.
    Default,
    These(Vec<Duration>),
}

fn retry_delays(text: &str) -> Result<RetryDelays, String> {
    let delays = match text {
        "default" => return Ok(RetryDelays::Default),
        "none" => Ok(Vec::new()),
        text => text.split(',').map(time::parse_span).collect(),
    };
    delays.map(RetryDelays::These)
}

fn backoff(text: &str) -> Result<Backoff, String> {
    let parts: Vec<_> = text.split(',').collect();
    let (first, max, attempts) = match parts[..] {
        [first, max] => (first, max, None),
        [first, max, attempts] => (first, max, Some(number(attempts.trim())?)),
        _ => return Err("expected FIRST,MAX or FIRST,MAX,ATTEMPTS".to_owned()),
    };
    let backoff = Backoff::new(time::parse_span(first)?, time::parse_span(max)?);
    Ok(match attempts {
        Some(attempts) => backoff.max_attempts(attempts),
        None => backoff,
    })
}

fn rate(text: &str) -> Result<Rate, String> {
    let (rate, burst) = match text.split_once(',') {
        Some((rate, burst)) => (rate, Some(number(burst.trim())?)),
        None => (text, None),
    };
    let (count, per) = rate
        .split_once('/')
        .ok_or("expected COUNT/DURATION, such as 100/1s")?;
    let rate = Rate::new(number(count.trim())?, time::parse_span(per)?);
    Ok(match burst {
        Some(burst) => rate.burst(burst),
        None => rate,
    })
}

impl Action {
    /// Returns the options of a command that changes something, or `None` for the other commands.
    pub(crate) fn wait(&self) -> Option<&Wait> {
        match self {
            // A dry run only reads.
            Action::Cancel(args) if args.dry_run => None,
            Action::Redrive(args) | Action::Discard(args) if args.dry_run => None,
            Action::Cancel(args) => Some(&args.change.wait),
            Action::Reschedule(args) => Some(&args.change.wait),
            Action::RunNow(args) => Some(&args.change.wait),
            Action::Redrive(args) | Action::Discard(args) => Some(&args.change.wait),
            Action::Pause(args) | Action::Resume(args) => Some(&args.change.wait),
            Action::Policy(PolicyAction::Set(args)) => Some(&args.change.wait),
            _ => None,
        }
    }
}

/// The options of commands that change something.
#[derive(Debug, Args)]
pub(crate) struct Change {
    #[command(flatten)]
    pub(crate) wait: Wait,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// How many seconds to wait for the process that has the file open to accept the request, up to 3600. A request that was not accepted by then is withdrawn.
    /// For the answer to an accepted one, the command waits as long again.
    #[arg(long = "wait", value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) limit: Duration,
    /// Proceeds although acknowledged work is gone, because the `-wal` was missing, cut short or damaged after a crash, and prints what is gone. Has no effect
    /// while a process has the file open.
    #[arg(long)]
    pub(crate) accept_loss: bool,
}

/// The arguments that name a timer.
#[derive(Debug, Clone)]
pub(crate) enum Name {
    Handle(waterwheel_durable_core::store::Handle),
    Id(Id),
}

impl std::str::FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Name, String> {
        match text.contains('@') {
            true => text
                .parse()
                .map(Name::Handle)
                .map_err(|it: waterwheel_durable_core::store::InvalidHandle| it.to_string()),
            false => text
                .parse()
                .map(Name::Id)
                .map_err(|it: waterwheel_durable_core::store::InvalidId| it.to_string()),
        }
    }
}

fn place(text: &str) -> Result<(Due, Id), String> {
    let place = text.split_once('@').and_then(|(id, due)| {
        let due = due.parse().ok()?;
        Some((Due::from_millis(due), id.parse().ok()?))
    });
    place.ok_or_else(|| "expected ID@MILLISECONDS, as printed at the end of a page".to_owned())
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
        .ok_or_else(|| "expected two hexadecimal digits per byte".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let limit = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
    let limit = limit.filter(|it| *it <= Duration::from_secs(3_600));
    limit.ok_or_else(|| "expected a number of seconds from 0 to 3600".to_owned())
}
