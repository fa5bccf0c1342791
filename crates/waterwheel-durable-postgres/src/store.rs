use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use waterwheel_durable_core::store::{
    self, ArchiveCursor, Archived, Counts, DeadLetters, Ended, Handle, HandlePage, Id, Level,
    Notice, Op, Outcome, PageLimit, PendingCursor, Row, RowCursor, Scope, Setting, Store,
    StoreError,
};

use crate::connection::Connection;
use crate::error::Error;
use crate::owner::{NotOpened, Owner, Patience};
use crate::protocol::{Failure, Lease, Opening, Writer};
use crate::read::Reads;
use crate::server::{Server, runtime, since_boot};

/// How deliveries begin in a restored database.
const ACCEPT: &str =
    "call `Postgres::accept_restore`, or run `SELECT waterwheel.accept_restore()` in the database";

/// The only partition so far.
const PARTITION: u8 = 0;

/// Durable timers in a PostgreSQL database, owned by this process. After another one has taken them over, commits fail for good. Dropping the store gives the
/// timers back, so that another process owns them at once.
#[derive(Debug)]
pub struct PostgresStore {
    server: Server,
    /// `None` once it is dropped.
    runtime: Option<Runtime>,
    limit: Option<u64>,
    /// An upper bound on the stored timers and dead letters.
    rows: u64,
    owner: Owner,
    /// The opening that the next `begin` uses.
    opened: Option<(Opening, Lease)>,
    current: Option<(Writer<Server>, Lease)>,
    /// Whether it was reported that deliveries are suspended.
    has_reported: bool,
}

impl PostgresStore {
    /// Waits until this process owns the timers.
    pub(crate) fn open(
        server: Server,
        limit: Option<u64>,
        patience: &Patience<'_>,
    ) -> Result<PostgresStore, NotOpened> {
        let owner = Owner::start(server.clone(), PARTITION)?;
        let opened = owner.opened(patience)?;
        Ok(PostgresStore {
            server,
            // Dropping it panics in a task.
            runtime: Some(runtime()?),
            limit,
            rows: 0,
            owner,
            opened: Some(opened),
            current: None,
            has_reported: false,
        })
    }

    /// Ends the current opening, and begins the next one as soon as possible.
    fn open_again(&mut self) -> Result<(Opening, Lease), NotOpened> {
        if let Some((_, lease)) = self.current.take() {
            lease.close();
        }
        let patience = Patience {
            at_most: None,
            unreached: self.server.terms().ttl,
            is_wanted: &|| true,
        };
        match self.owner.opened(&patience) {
            Err(NotOpened::Ended) => {
                self.owner = Owner::start(self.server.clone(), PARTITION)?;
                self.owner.opened(&patience)
            }
            opened => opened,
        }
    }

    /// Carries out a call with the writer.
    fn with<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut Writer<Server>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match (&mut self.current, &self.runtime) {
            (Some((writer, _)), Some(runtime)) => runtime.block_on(call(writer)),
            _ => Err(StoreError::definite("`begin` has not been called")),
        }
    }

    fn read<T>(
        &mut self,
        mut call: impl AsyncFnMut(Reads<'_>) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        let read = async |connection: &mut Connection| {
            connection.begin_call();
            let reads = Reads {
                connection,
                partition: PARTITION,
            };
            call(reads).await.map_err(Failure::from)
        };
        self.with(async |writer| writer.call(read).await)
    }

    /// How many timers may be inserted.
    fn room(&mut self, limit: u64, inserts: u64) -> u64 {
        // If it fails, the bound is as good as before, and the commit itself will tell.
        if self.rows.saturating_add(inserts) > limit
            && let Ok(rows) = self.count_rows()
        {
            self.rows = rows;
        }
        limit.saturating_sub(self.rows)
    }

    /// Reads what the opening has to know. After a failover, connections may fail for a while.
    fn read_first(&mut self) -> Result<(), StoreError> {
        let give_up_at = Instant::now() + self.server.terms().ttl;
        loop {
            let read = self.read(async |mut reads| reads.names().await);
            let counted = read.and_then(|table| {
                *self.server.names().lock() = table;
                match self.limit {
                    Some(_) => self.count_rows(),
                    None => Ok(0),
                }
            });
            match counted {
                Ok(rows) => {
                    self.rows = rows;
                    return Ok(());
                }
                Err(_) if Instant::now() < give_up_at => {
                    thread::sleep(self.server.terms().reconnect_every());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn read_handed_over(&mut self) -> Result<Vec<Row>, StoreError> {
        self.maintain()?;
        let ids: Vec<Id> = self.ends()?.into_iter().map(|(id, _)| id).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.read(async |mut reads| reads.handed_over(&ids).await)
    }

    fn count_rows(&mut self) -> Result<u64, StoreError> {
        self.read(async |mut reads| reads.count_rows().await)
    }
}

impl Store for PostgresStore {
    fn begin(&mut self) -> Result<u64, StoreError> {
        let (opening, lease) = match self.opened.take() {
            Some(opened) => opened,
            None => self
                .open_again()
                .map_err(|why| StoreError::definite(why.to_string()))?,
        };
        let writer = Writer::new(
            self.server.clone(),
            self.server.terms(),
            opening,
            lease.clone(),
        );
        self.current = Some((writer, lease));
        self.read_first()?;
        Ok(opening.epoch)
    }

    fn partition(&self) -> u8 {
        PARTITION
    }

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        let mut room = u64::MAX;
        if let Some(limit) = self.limit {
            let inserts = inserts(steps);
            if inserts > 0 {
                room = self.room(limit, inserts);
                self.rows = self.rows.saturating_add(inserts.min(room));
            }
        }
        self.server.names().lock().room = room;
        let outcomes = self.with(async |writer| writer.commit(number, steps).await);
        let mut names = self.server.names().lock();
        match &outcomes {
            Ok(_) => names.set_all_stored(),
            Err(_) => names.forget_not_stored(),
        }
        outcomes
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        self.with(async |writer| writer.confirm().await)
    }

    fn load(
        &mut self,
        handler: &str,
        after: RowCursor,
        before: i64,
        limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError> {
        self.read(async |mut reads| reads.load(handler, after, before, limit).await)
    }

    fn first_second(&mut self, handler: &str, from: i64) -> Result<Option<i64>, StoreError> {
        self.read(async |mut reads| reads.first_second(handler, from).await)
    }

    fn first_bucket(&mut self, level: Level) -> Result<Option<i64>, StoreError> {
        self.read(async |mut reads| reads.first_bucket(level).await)
    }

    fn load_level(
        &mut self,
        after: PendingCursor,
        limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError> {
        self.read(async |mut reads| reads.load_level(after, limit).await)
    }

    fn handlers(&mut self) -> Result<Vec<Arc<str>>, StoreError> {
        Ok(self.server.names().lock().stored())
    }

    fn dead(
        &mut self,
        scope: Scope<'_>,
        after: Id,
        limit: PageLimit,
    ) -> Result<DeadLetters, StoreError> {
        self.read(async |mut reads| reads.dead(scope, after, limit).await)
    }

    fn find(&mut self, handler: &str, key: &[u8]) -> Result<Option<Handle>, StoreError> {
        self.read(async |mut reads| reads.find(handler, key).await)
    }

    fn get(&mut self, handle: &Handle) -> Result<Option<Row>, StoreError> {
        self.read(async |mut reads| reads.get(handle).await)
    }

    fn handles(
        &mut self,
        scope: Scope<'_>,
        after: Option<PendingCursor>,
        limit: usize,
    ) -> Result<HandlePage, StoreError> {
        self.read(async |mut reads| reads.handles(scope, after, limit).await)
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        self.read(async |mut reads| reads.counts().await)
    }

    fn tagged(&mut self, tag: &str, after: Id, limit: usize) -> Result<Vec<Handle>, StoreError> {
        self.read(async |mut reads| reads.tagged(tag, after, limit).await)
    }

    fn archived(
        &mut self,
        handler: &str,
        after: ArchiveCursor,
        before: i64,
        limit: usize,
    ) -> Result<Vec<(ArchiveCursor, Archived)>, StoreError> {
        self.read(async |mut reads| reads.archived(handler, after, before, limit).await)
    }

    fn first_archived(&mut self, handler: &str) -> Result<Option<i64>, StoreError> {
        self.read(async |mut reads| reads.first_archived(handler).await)
    }

    fn settings(&mut self) -> Result<Vec<Setting>, StoreError> {
        self.read(async |mut reads| reads.settings().await)
    }

    fn lease(&self) -> store::Lease {
        let Some((_, lease)) = &self.current else {
            return store::Lease::new(|| false);
        };
        let lease = lease.clone();
        store::Lease::new(move || lease.allows_deliveries(since_boot()))
    }

    /// Gives the timers back. Handlers that run go on.
    fn give_up(&mut self) {
        self.owner.stop();
    }

    fn hands_over(&self) -> bool {
        true
    }

    /// After a failover, connections may fail for a while.
    fn handed_over(&mut self) -> Result<Vec<Row>, StoreError> {
        let give_up_at = Instant::now() + self.server.terms().ttl;
        loop {
            match self.read_handed_over() {
                Err(error) if error.is_definite() && Instant::now() < give_up_at => {
                    thread::sleep(self.server.terms().reconnect_every());
                }
                read => return read,
            }
        }
    }

    fn ends(&mut self) -> Result<Vec<(Id, Option<Ended>)>, StoreError> {
        let ends = self.with(async |writer| writer.attempts().await)?;
        self.server.names().lock().handed_over = ends.iter().map(|(id, _)| *id).collect();
        Ok(ends)
    }

    fn notices(&mut self) -> Vec<Notice> {
        let leases = self.current.iter().map(|(_, lease)| lease);
        let is_suspended = leases.into_iter().any(Lease::is_suspended);
        let was_reported = std::mem::replace(&mut self.has_reported, is_suspended);
        let notice = || Notice::restored(&self.server.database(), ACCEPT);
        let is_new = is_suspended && !was_reported;
        is_new.then(notice).into_iter().collect()
    }

    fn set_hint(&mut self, hint: store::Hint) {
        self.owner.set_hint(hint);
    }

    /// It has no commands so far. The service also checks the lease then, and whether another process has taken over.
    fn commands_every(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.current = None;
        // Dropping it panics in a task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The number of timers that a commit may insert. A redriven dead letter is counted already.
fn inserts(steps: &[Op]) -> u64 {
    let count = steps.iter().map(|op| match op {
        Op::Insert(..) => 1,
        Op::All(steps) => inserts(steps),
        _ => 0,
    });
    count.sum()
}
