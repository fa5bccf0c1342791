//! Moves everything from one store to another, with ids, handles and keys.

use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};
use std::sync::Arc;

use foldhash::fast::FixedState;

use super::{
    ArchiveCursor, Archived, Bucket, Dead, Handle, Id, Level, Op, Outcome, PageLimit,
    PendingCursor, Row, RowCursor, Scope, Setting, Store, StoreError,
};

/// The setting that marks both stores of a transfer. A service opens neither.
const MARK: &str = "transfer";

/// How much is written in a commit: a store in a database has a deadline for each.
const AT_A_TIME: PageLimit = PageLimit {
    rows: 1_024,
    bytes: 1 << 20,
};

/// Whether a setting is moved. Runs of the target are counted anew.
fn is_moved(setting: &Setting) -> bool {
    ![MARK, Setting::CLEAN].contains(&&*setting.name)
}

/// Moves all timers, dead letters, archived records and settings, with the ids, handles and keys of the timers, into an empty store. Neither store may have been
/// [begun](Store::begin), and no service may use them meanwhile. A store whose [lease](Store::lease) is not held is refused, since timers that must not be delivered
/// from it would be delivered from the other one. So is one with deliveries that were [handed over](Store::handed_over) and are not settled.
///
/// The handle with which an insert is answered that has the key of an archived timer has the due time of the record, which differs from that of the
/// original handle if the timer was retried.
///
/// The stores are marked, so that no service opens either of them before everything is moved, or the source afterwards. A transfer that was interrupted
/// continues where it was, with the same stores. At the end, everything is read again from both stores, and compared.
///
/// `names` are those of the source and the target, for messages. `progress` is called after each commit.
///
/// # Errors
///
/// [`TransferError`].
pub fn transfer(
    source: &mut dyn Store,
    target: &mut dyn Store,
    names: (&str, &str),
    progress: &mut dyn FnMut(Contents),
) -> Result<Contents, TransferError> {
    transfer_by(AT_A_TIME, source, target, names, progress)
}

/// Same as [`transfer`], with this much in a commit. For tests.
///
/// # Errors
///
/// [`TransferError`].
#[doc(hidden)]
pub fn transfer_by(
    limit: PageLimit,
    source: &mut dyn Store,
    target: &mut dyn Store,
    names: (&str, &str),
    progress: &mut dyn FnMut(Contents),
) -> Result<Contents, TransferError> {
    let mut source = Side::begin(source, names.0, limit)?;
    let mut target = Side::begin(target, names.1, limit)?;
    let is_same = |to: &str| to == names.1;
    let (id, position) = match (source.mark()?, target.mark()?) {
        (None, None) => (std::hash::RandomState::new().hash_one(names), None),
        // The process has ended before the target was marked.
        (Some(Mark::Source { id, to }), None) if is_same(&to) => (id, None),
        (
            Some(Mark::Source { id, .. }),
            Some(Mark::Target {
                id: other,
                position,
            }),
        ) if id == other => (id, Some(position)),
        // It has ended before the target was complete, or before it could say so.
        (Some(Mark::Moved { id, .. }), Some(Mark::Target { id: other, .. })) if id == other => {
            target.complete()?;
            return target.contents(&mut |_| {});
        }
        (Some(Mark::Moved { to, .. }), None) if is_same(&to) => {
            return target.contents(&mut |_| {});
        }
        (Some(mark @ Mark::Target { .. }), _) | (Some(mark), None) => {
            return Err(source.refuses(mark.to_string()));
        }
        (_, Some(mark)) => return Err(target.refuses(mark.to_string())),
    };
    source.check_deliveries()?;
    if position.is_none() {
        target.check_empty()?;
    }
    let to = target.name.to_owned();
    let mut next = match position {
        Some(position) => position,
        None => {
            source.set_mark(&Mark::Source { id, to: to.clone() })?;
            let position = Position::START;
            // The ids of the source are not assigned again.
            let epoch = Op::NextEpoch(source.epoch);
            target.commit(vec![epoch, Mark::Target { id, position }.set()])?;
            position
        }
    };
    let handlers = source.store.handlers().map_err(|it| source.failed(it))?;
    let mut moved = Contents::default();
    while let Some((items, position)) = source.read(&handlers, next)? {
        let before = moved;
        items.iter().for_each(|item| moved.add(item));
        let mut steps: Vec<Op> = items.into_iter().flat_map(Item::steps).collect();
        steps.push(Mark::Target { id, position }.set());
        // All of them or none, and none is refused because the target is nearly full.
        match target.commit(vec![Op::All(steps)]) {
            Ok(()) => {
                next = position;
                progress(moved);
            }
            // Perhaps it takes too long.
            Err(error) if error.is_definite() && source.limit.rows > 1 => {
                source.limit.rows /= 2;
                source.limit.bytes /= 2;
                moved = before;
            }
            Err(error) => return Err(error),
        }
    }
    let (before, after) = (source.contents(progress)?, target.contents(progress)?);
    if before != after {
        return Err(TransferError::Differs { before, after });
    }
    source.set_mark(&Mark::Moved { id, to })?;
    target.complete()?;
    Ok(after)
}

/// Lets services open the source of a transfer again that was not completed. Its target cannot be used any more.
///
/// # Errors
///
/// [`TransferError`], also if no transfer from this store is in progress.
pub fn abandon_transfer(source: &mut dyn Store, name: &str) -> Result<(), TransferError> {
    let mut source = Side::begin(source, name, AT_A_TIME)?;
    match source.mark()? {
        Some(Mark::Source { .. }) => source.complete(),
        Some(mark @ Mark::Moved { .. }) => Err(source.refuses(mark.to_string())),
        _ => Err(source.refuses("no transfer from it is in progress".to_owned())),
    }
}

/// Returns why no service may use a store with these settings: it takes part in a transfer, or its timers were moved.
#[must_use]
pub fn refused_by_transfer(settings: &[Setting]) -> Option<String> {
    let mark = settings.iter().find(|it| &*it.name == MARK)?;
    Some(Mark::parse(&mark.value).map_or_else(
        || "a newer version has moved its timers".to_owned(),
        |mark| mark.to_string(),
    ))
}

/// The contents of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Contents {
    /// The number of pending timers.
    pub timers: u64,
    /// The number of dead letters.
    pub dead: u64,
    /// The number of archived records.
    pub archived: u64,
    /// The number of settings: policies, calendars, pauses.
    pub settings: u64,
    /// The sum of the hashes of all of these.
    hash: u64,
}

impl Contents {
    fn add(&mut self, item: &Item) {
        match item {
            Item::Setting(_) => self.settings += 1,
            Item::Dead(_) => self.dead += 1,
            Item::Archived(..) => self.archived += 1,
            Item::Pending(..) => self.timers += 1,
        }
        self.hash = self.hash.wrapping_add(item.hash());
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Contents {
            timers,
            dead,
            archived,
            settings,
            ..
        } = self;
        write!(
            f,
            "{timers} timers, {dead} dead letters, {archived} archived records and {settings} settings"
        )
    }
}

/// A transfer has failed. It can be continued, unless the stores do not fit.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransferError {
    /// A store has failed.
    #[non_exhaustive]
    Failed {
        /// The store.
        store: String,
        /// The cause.
        error: StoreError,
    },
    /// A store cannot take part.
    #[non_exhaustive]
    Refused {
        /// The store.
        store: String,
        /// The cause.
        why: String,
    },
    /// The stores do not have the same contents at the end.
    #[non_exhaustive]
    Differs {
        /// The contents of the source.
        before: Contents,
        /// The contents of the target.
        after: Contents,
    },
}

impl TransferError {
    /// Whether a store has refused something, so that it is as before.
    fn is_definite(&self) -> bool {
        matches!(self, TransferError::Failed { error, .. } if error.is_definite())
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::Failed { store, error } => write!(f, "{store}: {error}"),
            TransferError::Refused { store, why } => write!(f, "{store}: {why}"),
            TransferError::Differs { before, after } => write!(
                f,
                "the source has {before} (hash {:016x}), but the target {after} (hash {:016x}): please report this bug",
                before.hash, after.hash
            ),
        }
    }
}

impl Error for TransferError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TransferError::Failed { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// A store of a transfer.
struct Side<'a> {
    store: &'a mut dyn Store,
    name: &'a str,
    limit: PageLimit,
    /// The last epoch.
    epoch: u64,
    /// The number of the last commit.
    number: u64,
}

impl<'a> Side<'a> {
    fn begin(
        store: &'a mut dyn Store,
        name: &'a str,
        limit: PageLimit,
    ) -> Result<Side<'a>, TransferError> {
        let mut side = Side {
            store,
            name,
            limit,
            epoch: 0,
            number: 0,
        };
        side.epoch = side.store.begin().map_err(|it| side.failed(it))?;
        match side.store.lease().is_held() {
            true => Ok(side),
            false => Err(side.refuses(
                "no deliveries may begin in it: if it was restored from a backup, accept that first"
                    .to_owned(),
            )),
        }
    }

    fn failed(&self, error: StoreError) -> TransferError {
        let store = self.name.to_owned();
        TransferError::Failed { store, error }
    }

    fn refuses(&self, why: String) -> TransferError {
        let store = self.name.to_owned();
        TransferError::Refused { store, why }
    }

    fn mark(&mut self) -> Result<Option<Mark>, TransferError> {
        let settings = self.store.settings().map_err(|it| self.failed(it))?;
        match settings.iter().find(|it| &*it.name == MARK) {
            Some(setting) => match Mark::parse(&setting.value) {
                Some(mark) => Ok(Some(mark)),
                None => Err(self.refuses("a newer version has moved its timers".to_owned())),
            },
            None => Ok(None),
        }
    }

    fn set_mark(&mut self, mark: &Mark) -> Result<(), TransferError> {
        self.commit(vec![mark.set()])
    }

    /// Checks that no deliveries of other processes are in progress or not settled.
    fn check_deliveries(&mut self) -> Result<(), TransferError> {
        let handed_over = self.store.handed_over().map_err(|it| self.failed(it))?;
        match handed_over.len() {
            0 => Ok(()),
            count => Err(self.refuses(format!(
                "{count} deliveries of a process that was shut down are in progress, or not settled: start a service, and shut it down once they are"
            ))),
        }
    }

    /// Lets services open it.
    fn complete(&mut self) -> Result<(), TransferError> {
        let clean = Op::set_clean(self.epoch, 0);
        self.commit(vec![clean, Op::Set(MARK.into(), None)])
    }

    fn check_empty(&mut self) -> Result<(), TransferError> {
        let handlers = self.store.handlers().map_err(|it| self.failed(it))?;
        match self.read(&handlers, Position::START)? {
            None => Ok(()),
            Some(_) => Err(self.refuses("it is not empty".to_owned())),
        }
    }

    fn commit(&mut self, steps: Vec<Op>) -> Result<(), TransferError> {
        let number = self.number + 1;
        let outcomes = self.store.commit(number, &steps);
        let outcomes = outcomes.map_err(|it| self.failed(it))?;
        self.number = number;
        for outcome in outcomes {
            if let Outcome::Epoch(epoch) = outcome {
                self.epoch = epoch;
            }
        }
        self.store.maintain().map_err(|it| self.failed(it))
    }

    /// Reads everything.
    fn contents(&mut self, progress: &mut dyn FnMut(Contents)) -> Result<Contents, TransferError> {
        let handlers = self.store.handlers().map_err(|it| self.failed(it))?;
        let (mut contents, mut next) = (Contents::default(), Position::START);
        while let Some((items, position)) = self.read(&handlers, next)? {
            items.iter().for_each(|item| contents.add(item));
            next = position;
            progress(contents);
        }
        Ok(contents)
    }

    /// Returns the first items after a position, at least one, and the position after them. `None` if there are no more.
    fn read(
        &mut self,
        handlers: &[Arc<str>],
        mut from: Position,
    ) -> Result<Option<(Vec<Item>, Position)>, TransferError> {
        loop {
            let read = from.read(self.store, handlers, self.limit);
            let read = read.map_err(|it| self.failed(it))?;
            let Some((items, next)) = read else {
                return Ok(None);
            };
            if !items.is_empty() {
                return Ok(Some((items, next)));
            }
            from = next;
        }
    }
}

/// The role of a store in a transfer.
enum Mark {
    /// Everything is being moved out of it.
    Source { id: u64, to: String },
    /// Everything was moved out of it.
    Moved { id: u64, to: String },
    /// Everything up to a position was moved into it.
    Target { id: u64, position: Position },
}

impl Mark {
    fn set(&self) -> Op {
        Op::Set(MARK.into(), Some(self.to_value()))
    }

    fn to_value(&self) -> Arc<[u8]> {
        let text = match self {
            Mark::Source { id, to } => format!("source {id} {to}"),
            Mark::Moved { id, to } => format!("moved {id} {to}"),
            Mark::Target { id, position } => {
                let Position { part, at, cursor } = position;
                let [first, second, third] = cursor;
                format!("target {id} {part} {at} {first} {second} {third}")
            }
        };
        text.into_bytes().into()
    }

    fn parse(value: &[u8]) -> Option<Mark> {
        let text = std::str::from_utf8(value).ok()?;
        let (kind, rest) = text.split_once(' ')?;
        let (id, rest) = rest.split_once(' ')?;
        let (id, to) = (id.parse().ok()?, rest.to_owned());
        Some(match kind {
            "source" => Mark::Source { id, to },
            "moved" => Mark::Moved { id, to },
            "target" => {
                let mut words = rest.split(' ');
                let (part, at) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let mut number = || words.next()?.parse().ok();
                let cursor = [number()?, number()?, number()?];
                let position = Position { part, at, cursor };
                Mark::Target { id, position }
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mark::Source { to, .. } => write!(
                f,
                "its timers are being moved to {to}: complete that with `waterwheel move`, or abandon it with `--abandon`"
            ),
            Mark::Moved { to, .. } => write!(f, "its timers were moved to {to}: use that store"),
            Mark::Target { .. } => {
                f.write_str("timers are being moved into it: complete that with `waterwheel move`, or delete it")
            }
        }
    }
}

/// A part of a store's contents, and a position in it. The meaning of the cursor depends on the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    part: u8,
    /// The number of the handler or of the level.
    at: usize,
    cursor: [i64; 3],
}

/// The parts, in order: keys of dead letters are free, so these precede timers that have the same key.
const SETTINGS: u8 = 0;
const DEAD: u8 = 1;
const ARCHIVE: u8 = 2;
const SECONDS: u8 = 3;
const LEVELS: u8 = 4;

type Read = (Vec<Item>, Position);

impl Position {
    const START: Position = Position::first(SETTINGS, 0);

    const fn first(part: u8, at: usize) -> Position {
        let cursor = [i64::MIN, 0, 0];
        Position { part, at, cursor }
    }

    fn with(self, cursor: [i64; 3]) -> Position {
        Position { cursor, ..self }
    }

    /// Returns some items after this position, or none, and the next position. `None` at the end.
    fn read(
        self,
        store: &mut dyn Store,
        handlers: &[Arc<str>],
        limit: PageLimit,
    ) -> Result<Option<Read>, StoreError> {
        let [first, second, third] = self.cursor;
        let small = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        let handler = handlers.get(self.at);
        Ok(Some(match (self.part, handler) {
            (SETTINGS, _) => {
                let settings = store.settings()?.into_iter();
                let settings = settings.filter(is_moved);
                (
                    settings.map(Item::Setting).collect(),
                    Position::first(DEAD, 0),
                )
            }
            (DEAD, _) => {
                let page = store.dead(Scope::All, id_of(second), limit)?;
                let next = match page.next {
                    Some(id) => self.with([first, stored(id), third]),
                    None => Position::first(ARCHIVE, 0),
                };
                (page.dead.into_iter().map(Item::Dead).collect(), next)
            }
            (ARCHIVE, Some(handler)) => {
                let after = ArchiveCursor {
                    day: first,
                    block: small(second),
                    index: small(third),
                };
                let page = store.archived(handler, after, i64::MAX, limit.rows)?;
                let next = match page.last() {
                    Some((at, _)) => self.with([at.day, at.block.into(), at.index.into()]),
                    None => Position::first(ARCHIVE, self.at + 1),
                };
                let items = page.into_iter();
                let items = items.map(|(_, it)| Item::Archived(Arc::clone(handler), it));
                (items.collect(), next)
            }
            (ARCHIVE, None) => (Vec::new(), Position::first(SECONDS, 0)),
            (SECONDS, Some(handler)) => {
                let after = RowCursor {
                    second: first,
                    id: id_of(second),
                };
                let rows = store.load(handler, after, i64::MAX, limit)?;
                let next = match rows.last().map(Row::cursor) {
                    Some(at) => self.with([at.second, stored(at.id), third]),
                    None => Position::first(SECONDS, self.at + 1),
                };
                let items = rows
                    .into_iter()
                    .map(|row| Item::Pending(Level::Second, row));
                (items.collect(), next)
            }
            (SECONDS, None) => (Vec::new(), Position::first(LEVELS, 0)),
            _ => {
                let Some(level) = Level::CASCADING.get(self.at).copied() else {
                    return Ok(None);
                };
                let number = first;
                let after = PendingCursor {
                    bucket: Bucket { level, number },
                    id: id_of(second),
                };
                let rows = store.load_level(after, limit)?;
                let next = match rows.last() {
                    Some(row) => self.with([level.bucket(row.due).number, stored(row.id), third]),
                    None => Position::first(LEVELS, self.at + 1),
                };
                let items = rows.into_iter().map(|row| Item::Pending(level, row));
                (items.collect(), next)
            }
        }))
    }
}

fn id_of(number: i64) -> Id {
    Id::from_stored(number.cast_unsigned())
}

fn stored(id: Id) -> i64 {
    id.get().cast_signed()
}

/// Something that is moved.
#[derive(Debug)]
enum Item {
    Setting(Setting),
    Dead(Dead),
    /// A record in the archive of a handler.
    Archived(Arc<str>, Archived),
    /// A timer in a bucket of this level.
    Pending(Level, Row),
}

impl Item {
    /// The steps that write it.
    fn steps(self) -> Vec<Op> {
        let in_second = |row: &Row| Op::Insert(row.clone(), Level::Second.bucket(row.due));
        match self {
            Item::Setting(Setting { name, value, .. }) => vec![Op::Set(name, Some(value))],
            Item::Dead(Dead { row, at, error }) => {
                vec![in_second(&row), Op::Bury { row, at, error }]
            }
            Item::Archived(handler, it) => {
                let mut row = Row::new(it.id, it.due, &*handler, Vec::new());
                (row.failures, row.key) = (it.failures, it.key);
                vec![in_second(&row), Op::Archive(row, it.at)]
            }
            Item::Pending(level, row) => {
                let bucket = level.bucket(row.due);
                vec![Op::Insert(row, bucket)]
            }
        }
    }

    fn hash(&self) -> u64 {
        let mut hasher = FixedState::with_seed(0).build_hasher();
        match self {
            Item::Setting(it) => (0, &it.name, &it.value).hash(&mut hasher),
            Item::Dead(Dead { row, at, error }) => {
                (1, at.as_millis(), error).hash(&mut hasher);
                hash_row(row, &mut hasher);
            }
            Item::Archived(handler, it) => {
                let times = (it.due.as_millis(), it.at.as_millis());
                (2, handler, it.id, times, it.failures, &it.key).hash(&mut hasher);
            }
            Item::Pending(level, row) => {
                (3, level.number()).hash(&mut hasher);
                hash_row(row, &mut hasher);
            }
        }
        hasher.finish()
    }
}

fn hash_row(row: &Row, hasher: &mut impl std::hash::Hasher) {
    let Handle { id, due, handler } = row.handle();
    (id, due.as_millis(), handler, row.due.as_millis()).hash(hasher);
    (row.failures, row.starts, &row.key, &row.payload).hash(hasher);
    (
        row.tag(),
        row.extras.as_ref().and_then(|it| it.retries.as_ref()),
    )
        .hash(hasher);
}
