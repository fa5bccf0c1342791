//! A PostgreSQL server, as far as the protocol of ownership depends on it: transactions at the isolation level READ COMMITTED, row locks, unique
//! constraints, a write-ahead log, and a standby that lags.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use waterwheel_durable_core::engine::{Query, Reply as Rows};
use waterwheel_durable_core::store::{
    Ended, Id, MemoryStore, Op, Outcome, PageLimit, Row as Timer, RowCursor, Setting, Store,
    StoreError,
};
use waterwheel_durable_postgres::protocol::{
    Attempts, Claim, Drawn, Holder, NodeId, Opening, OwnerId, Pid,
};

use super::{Fault, HANDLERS};

/// A statement of a client.
#[derive(Debug, Clone)]
pub(super) enum Statement {
    Register(NodeId),
    /// Begins a transaction, and increments the counter of a node.
    Beat(NodeId),
    Look,
    /// Locks the rows of two nodes, and increments the counter of the claiming one.
    LockNodes(Claim),
    /// Whether the counter of the other node is as it was observed.
    Compare(Claim),
    Take(Claim),
    /// Ends the transaction of a claim, and removes the other node.
    Remove(Claim),
    Report(NodeId, Arc<[(Id, Option<Ended>)]>),
    Leave(NodeId, Option<OwnerId>),
    Begin,
    /// Begins a transaction, unless there is one, and locks the row of the partition.
    Lock(Opening),
    CommitRow {
        opening: Opening,
        number: u64,
        keeps_from: u64,
    },
    Steps {
        steps: Arc<[Op]>,
        looks_for_keys: bool,
    },
    /// Writes the timeline into the row of the partition, if the commit row of this number exists.
    Confirm(Opening, u64),
    Commit,
    Rollback,
    WasCommitted(Opening, u64),
    Query(Query),
    /// Reads what a new engine needs.
    Begins(Opening),
    Attempts(Opening),
    TerminateBlockers(Pid),
}

/// The server's reply to a statement.
#[derive(Debug)]
pub(super) enum Reply {
    Done,
    /// The number of rows that were updated.
    Updated(u64),
    /// The timeline, the row of the partition with the counter of its node, and the nodes whose deliveries go on.
    Look(u32, Holder, Vec<(NodeId, u64)>),
    Matches(bool),
    Taken(Option<Drawn>),
    Fence(Fence),
    /// An earlier statement of the transaction has failed.
    Aborted,
    Refused,
    Outcomes(Vec<Outcome>),
    /// A unique constraint was violated by a key.
    KeyTaken,
    WasCommitted(Option<bool>),
    Rows(Result<Rows, StoreError>),
    Begins(Option<Begins>),
    Attempts(Option<Attempts>),
}

/// The rows from which a new engine begins.
#[derive(Debug)]
pub(super) struct Begins {
    pub(super) settings: Vec<Setting>,
    pub(super) handlers: Vec<Arc<str>>,
    pub(super) handed_over: Vec<Timer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fence {
    Passed,
    Fenced,
    OtherTimeline,
    Gap,
    Repeated,
}

/// A change of the tables, as in the write-ahead log.
#[derive(Debug, Clone)]
pub(super) enum Write {
    Register(NodeId),
    Beat(NodeId),
    Remove(NodeId),
    Hold {
        node: Option<NodeId>,
        owner: OwnerId,
        timeline: u32,
    },
    Confirm(u32),
    Epoch(Drawn),
    CommitRow(u64, u64),
    /// Deletes the commit rows of an epoch with smaller numbers.
    Forget(u64, u64),
    /// Deletes the commit rows of smaller epochs.
    ForgetEpochs(u64),
    Steps(Arc<[Op]>),
    HandOver(NodeId, Vec<Id>),
    Report(NodeId, Arc<[(Id, Option<Ended>)]>),
}

/// The committed rows.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    nodes: BTreeMap<NodeId, u64>,
    holder: Option<NodeId>,
    pub(super) owner: OwnerId,
    previous: OwnerId,
    /// The epoch of the current opening.
    opened: u64,
    /// The timeline on which the row of the partition was written.
    timeline: u32,
    drawn: Drawn,
    commits: BTreeSet<(u64, u64)>,
    pub(super) timers: MemoryStore,
    /// The deliveries that were handed over, each with its node or its end.
    attempts: BTreeMap<Id, Result<Ended, NodeId>>,
    keeps_ends: bool,
    /// The number of changes of the timers.
    version: u64,
}

impl Tables {
    fn new(fault: Option<Fault>) -> Tables {
        Tables {
            nodes: BTreeMap::new(),
            holder: None,
            owner: OwnerId(0),
            previous: OwnerId(0),
            opened: 0,
            timeline: 1,
            drawn: Drawn {
                epoch: 0,
                timeline: 1,
            },
            commits: BTreeSet::new(),
            timers: MemoryStore::new(),
            attempts: BTreeMap::new(),
            keeps_ends: fault == Some(Fault::EndsKept),
            version: 0,
        }
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Register(node) => {
                self.nodes.entry(*node).or_insert(0);
            }
            Write::Beat(node) => {
                self.nodes.entry(*node).and_modify(|it| *it += 1);
            }
            Write::Remove(node) => {
                self.nodes.remove(node);
                self.attempts
                    .retain(|_, it| it.as_ref().err() != Some(node));
            }
            Write::Hold {
                node,
                owner,
                timeline,
            } => {
                if self.owner != *owner {
                    self.previous = self.owner;
                }
                (self.holder, self.owner, self.timeline) = (*node, *owner, *timeline);
            }
            Write::Confirm(timeline) => self.timeline = *timeline,
            Write::Epoch(drawn) => self.drawn = *drawn,
            Write::CommitRow(epoch, number) => {
                if *number == 0 {
                    self.opened = *epoch;
                }
                self.commits.insert((*epoch, *number));
            }
            Write::Forget(epoch, below) => {
                self.commits
                    .retain(|(of, number)| of != epoch || number >= below);
            }
            Write::ForgetEpochs(below) => self.commits.retain(|(epoch, _)| epoch >= below),
            Write::Steps(steps) => {
                self.execute(steps);
                if !self.keeps_ends {
                    steps.iter().filter_map(ended).for_each(|id| {
                        self.attempts.remove(&id);
                    });
                }
            }
            Write::HandOver(node, ids) => {
                self.holder = None;
                self.attempts.extend(ids.iter().map(|id| (*id, Err(*node))));
            }
            Write::Report(node, ends) => {
                for (id, end) in ends.iter() {
                    if self.attempts.get(id) != Some(&Err(*node)) {
                        continue;
                    }
                    match end {
                        Some(end) => self.attempts.insert(*id, Ok(end.clone())),
                        None => self.attempts.remove(id),
                    };
                }
            }
        }
    }

    /// The timers that were handed over.
    fn handed_over(&mut self) -> Vec<Timer> {
        let mut rows = Vec::new();
        for handler in HANDLERS {
            let all = PageLimit::rows(usize::MAX);
            let loaded = self.timers.load(handler, RowCursor::START, i64::MAX, all);
            rows.extend(loaded.unwrap_or_default());
        }
        rows.retain(|row| self.attempts.contains_key(&row.id));
        rows
    }

    /// Whether it is noted that the delivery of a timer has succeeded.
    pub(super) fn has_ended_well(&self, id: Id) -> bool {
        self.attempts.get(&id) == Some(&Ok(Ended::Well))
    }

    /// The nodes whose deliveries go on, apart from this one, with their counters.
    fn others(&self, node: Option<NodeId>) -> Vec<(NodeId, u64)> {
        let nodes = self.nodes.iter().filter(|(it, _)| Some(**it) != node);
        let others = nodes.filter(|(it, _)| self.attempts.values().any(|of| of == &Err(**it)));
        others.map(|(node, counter)| (*node, *counter)).collect()
    }

    fn execute(&mut self, steps: &[Op]) -> Vec<Outcome> {
        self.version += 1;
        // Each number is new: it is not the store that recognises a commit.
        let outcomes = self.timers.commit(self.version, steps);
        outcomes.unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Node(NodeId),
    Partition,
    /// The unique index: an insert waits for a transaction that has inserted the same number.
    Commit(u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    KeyShare,
    Share,
    Exclusive,
}

impl Mode {
    /// The exclusive mode is that of an update that changes no key.
    fn conflicts(self, other: Mode) -> bool {
        match (self, other) {
            (Mode::KeyShare, _) | (_, Mode::KeyShare) | (Mode::Share, Mode::Share) => false,
            (Mode::Exclusive, _) | (_, Mode::Exclusive) => true,
        }
    }
}

#[derive(Debug, Default)]
struct Transaction {
    writes: Vec<Write>,
    locks: Vec<(Row, Mode)>,
    /// The opening by which it writes timers.
    opening: Option<Opening>,
    /// Whether a statement has failed: the others fail as well, until the end.
    is_aborted: bool,
}

#[derive(Debug, Default)]
struct Backend {
    inbox: VecDeque<(u64, Statement)>,
    transaction: Option<Transaction>,
    /// The rows for whose locks the first statement waits.
    waits_for: Option<(Row, Mode)>,
    idle_since: u64,
    /// The time until which it does nothing.
    slow_until: u64,
    /// The time until which it does nothing, once it has begun to insert a commit row.
    slow_from_snapshot: Option<u64>,
    /// Whether the commit row before that of the first statement existed as the statement began.
    snapshot: Option<bool>,
    /// Whether its next steps are refused.
    refuses: bool,
}

/// A statement has to wait.
#[derive(Debug)]
struct Blocked;

/// A commit, as it becomes visible.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) writes: Vec<Write>,
    /// The opening by which timers were written, and whether it was the current one.
    pub(super) opening: Option<(Opening, bool)>,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) tables: Tables,
    pub(super) timeline: u32,
    standby: Tables,
    /// The commits that the standby misses.
    log: VecDeque<Vec<Write>>,
    /// The maximum number of commits that the standby misses. Without one, there is no standby.
    lag: usize,
    backends: BTreeMap<Pid, Backend>,
    next_pid: i32,
    /// The time until which no connection is accepted.
    pub(super) down_until: u64,
    /// The time until which no transaction that writes can commit.
    pub(super) stalled_until: u64,
    /// How long a transaction may be idle, in microseconds.
    idle_within: u64,
    fault: Option<Fault>,
    /// Whether the next commit that is terminated while it waits is written.
    pub(super) writes_terminated: bool,
    /// The commits since the last look.
    pub(super) committed: Vec<Committed>,
    /// The sessions that were closed, since the last look.
    pub(super) closed: Vec<Pid>,
}

impl Server {
    pub(super) fn new(lag: usize, idle_within: u64, fault: Option<Fault>) -> Server {
        Server {
            tables: Tables::new(fault),
            timeline: 1,
            standby: Tables::new(fault),
            log: VecDeque::new(),
            lag,
            backends: BTreeMap::new(),
            next_pid: 0,
            down_until: 0,
            stalled_until: 0,
            idle_within,
            fault,
            writes_terminated: false,
            committed: Vec::new(),
            closed: Vec::new(),
        }
    }

    pub(super) fn connect(&mut self, now: u64) -> Option<Pid> {
        if now < self.down_until {
            return None;
        }
        self.next_pid += 1;
        let pid = Pid(self.next_pid);
        self.backends.insert(pid, Backend::default());
        Some(pid)
    }

    /// Receives a statement. Returns whether its backend exists.
    pub(super) fn receive(&mut self, pid: Pid, request: u64, statement: Statement) -> bool {
        let backend = self.backends.get_mut(&pid);
        backend.is_some_and(|it| {
            it.inbox.push_back((request, statement));
            true
        })
    }

    /// The client has closed its connection.
    pub(super) fn hang_up(&mut self, pid: Pid) {
        // Earlier statements are carried out first.
        match self.backends.get(&pid) {
            Some(backend) if backend.inbox.is_empty() => self.remove(pid),
            Some(_) => {
                self.receive(pid, u64::MAX, Statement::Rollback);
            }
            None => {}
        }
    }

    fn remove(&mut self, pid: Pid) {
        if self.backends.remove(&pid).is_some() {
            self.closed.push(pid);
        }
    }

    /// Lets a backend do nothing until this time.
    pub(super) fn slow_down(&mut self, pid: Pid, until: u64) {
        if let Some(backend) = self.backends.get_mut(&pid) {
            backend.slow_until = until;
        }
    }

    /// Makes a backend do nothing until this time, once it has begun to insert a commit row.
    pub(super) fn slow_from_snapshot(&mut self, pid: Pid, until: u64) {
        if let Some(backend) = self.backends.get_mut(&pid) {
            backend.slow_from_snapshot = Some(until);
        }
    }

    /// Makes a backend refuse its next steps.
    pub(super) fn refuse(&mut self, pid: Pid) {
        if let Some(backend) = self.backends.get_mut(&pid) {
            backend.refuses = true;
        }
    }

    /// Ends a backend. A commit that waits, for the standby or for space, may have been written.
    pub(super) fn terminate(&mut self, pid: Pid) {
        let Some(backend) = self.backends.get_mut(&pid) else {
            return;
        };
        let waits = matches!(backend.inbox.front(), Some((_, Statement::Commit)));
        let transaction = backend.transaction.take();
        if let Some(transaction) = transaction.filter(|_| waits && self.writes_terminated) {
            self.commit(transaction);
        }
        self.remove(pid);
    }

    pub(super) fn terminate_all(&mut self) {
        let pids: Vec<Pid> = self.backends.keys().copied().collect();
        for pid in pids {
            self.terminate(pid);
        }
    }

    /// Stops the server until this time. Committed rows stay.
    pub(super) fn restart(&mut self, until: u64) {
        self.terminate_all();
        self.stalled_until = 0;
        self.down_until = until;
    }

    /// Promotes the standby, which misses at most this many of the latest commits. Returns those that are lost, oldest first.
    pub(super) fn fail_over(&mut self, loses: usize, until: u64) -> Vec<Vec<Write>> {
        self.terminate_all();
        let kept = self.log.len().saturating_sub(loses);
        let lost = self.log.split_off(kept);
        for writes in std::mem::take(&mut self.log) {
            writes.iter().for_each(|write| self.standby.apply(write));
        }
        self.tables = self.standby.clone();
        self.timeline += 1;
        (self.stalled_until, self.down_until) = (0, until);
        lost.into()
    }

    /// How many commits a failover has to lose for the last take-over to be lost. `None` if the standby has it.
    pub(super) fn commits_since_take(&self) -> Option<usize> {
        let takes = |writes: &Vec<Write>| {
            let takes = |it: &Write| matches!(it, Write::Hold { node: Some(_), .. });
            writes.iter().any(takes)
        };
        let at = self.log.iter().rposition(takes)?;
        Some(self.log.len() - at)
    }

    fn commit(&mut self, transaction: Transaction) {
        let Transaction {
            writes,
            opening,
            is_aborted,
            ..
        } = transaction;
        if writes.is_empty() || is_aborted {
            return;
        }
        let opening = opening.map(|it| (it, it.owner == self.tables.owner));
        writes.iter().for_each(|write| self.tables.apply(write));
        if self.lag > 0 {
            self.log.push_back(writes.clone());
            if self.log.len() > self.lag
                && let Some(writes) = self.log.pop_front()
            {
                writes.iter().for_each(|write| self.standby.apply(write));
            }
        }
        self.committed.push(Committed { writes, opening });
    }

    /// Carries out statements until all wait for something. Returns the replies.
    pub(super) fn run(&mut self, now: u64) -> Vec<(Pid, u64, Reply)> {
        let mut replies = Vec::new();
        loop {
            let busy = self.backends.iter();
            let busy = busy.filter(|(_, it)| !it.inbox.is_empty() && it.slow_until <= now);
            let busy: Vec<Pid> = busy.map(|(pid, _)| *pid).collect();
            let before = replies.len();
            for pid in busy {
                if let Some((request, reply)) = self.next(pid, now) {
                    replies.push((pid, request, reply));
                }
            }
            if replies.len() == before {
                break;
            }
        }
        let idle = self.backends.iter().filter(|(_, it)| {
            let is_idle = it.transaction.is_some() && it.inbox.is_empty();
            is_idle && it.idle_since + self.idle_within <= now
        });
        let idle: Vec<Pid> = idle.map(|(pid, _)| *pid).collect();
        idle.into_iter().for_each(|pid| self.remove(pid));
        replies
    }

    /// The next time at which the server does something without a statement.
    pub(super) fn wakes_at(&self, now: u64) -> Option<u64> {
        let backends = self.backends.values();
        let times = backends.flat_map(|it| {
            let is_idle = it.transaction.is_some() && it.inbox.is_empty();
            let idle = is_idle.then_some(it.idle_since + self.idle_within);
            let slow = (!it.inbox.is_empty()).then_some(it.slow_until);
            idle.into_iter().chain(slow)
        });
        times
            .chain([self.stalled_until])
            .filter(|at| *at > now)
            .min()
    }

    /// Carries out the first statement of a backend, unless it is blocked.
    fn next(&mut self, pid: Pid, now: u64) -> Option<(u64, Reply)> {
        let mut backend = self.backends.remove(&pid)?;
        let (request, statement) = backend.inbox.front().cloned()?;
        let was_gone = request == u64::MAX;
        let is_end = matches!(statement, Statement::Commit | Statement::Rollback);
        let is_aborted = backend.transaction.as_ref().is_some_and(|it| it.is_aborted);
        let done = match is_aborted && !is_end {
            true => Ok(Reply::Aborted),
            false => self.execute(&mut backend, &statement, now),
        };
        if done.is_ok() {
            backend.inbox.pop_front();
            (backend.waits_for, backend.snapshot) = (None, None);
            backend.idle_since = now;
        }
        match was_gone {
            true => self.closed.push(pid),
            false => {
                self.backends.insert(pid, backend);
            }
        }
        done.ok().map(|reply| (request, reply))
    }

    fn execute(
        &mut self,
        backend: &mut Backend,
        statement: &Statement,
        now: u64,
    ) -> Result<Reply, Blocked> {
        match statement {
            Statement::Register(node) => {
                self.alone(now, vec![Write::Register(*node)])?;
            }
            Statement::Beat(node) => return self.beat(backend, *node),
            Statement::Look => {
                let holder = self.holder(backend);
                let others = self.tables.others(self.tables.holder);
                return Ok(Reply::Look(self.timeline, holder, others));
            }
            Statement::LockNodes(claim) => {
                let mut nodes: Vec<NodeId> = claim.from.node.into_iter().collect();
                nodes.extend([claim.node]);
                nodes.sort_unstable();
                for node in nodes {
                    self.lock(backend, Row::Node(node), Mode::Exclusive)?;
                }
                return self.beat(backend, claim.node);
            }
            Statement::Compare(claim) => {
                let counter = claim
                    .from
                    .node
                    .map(|it| self.tables.nodes.get(&it).copied());
                let is_same = counter.flatten() == claim.from.counter;
                let is_own = claim.from.node == Some(claim.node);
                let is_unlooked = self.fault == Some(Fault::CounterNotComparedAgain);
                return Ok(Reply::Matches(is_same || is_own || is_unlooked));
            }
            Statement::Take(claim) => return self.take(backend, claim),
            Statement::Remove(claim) => {
                let transaction = backend.transaction.get_or_insert_default();
                let nodes = claim.from.node.into_iter();
                transaction.writes.extend(nodes.map(Write::Remove));
            }
            Statement::Report(node, ends) => {
                let is_current = self.tables.timeline == self.timeline;
                if is_current {
                    self.alone(now, vec![Write::Report(*node, Arc::clone(ends))])?;
                }
                return Ok(Reply::Matches(is_current));
            }
            Statement::Leave(node, owner) => {
                self.lock(backend, Row::Partition, Mode::Exclusive)?;
                let mut writes = vec![Write::Remove(*node)];
                if let Some(owner) = owner.filter(|it| self.tables.owner == *it) {
                    let timeline = match self.fault {
                        Some(Fault::LeavesOnNewTimeline) => self.timeline,
                        _ => self.tables.timeline,
                    };
                    writes.push(Write::Hold {
                        node: None,
                        owner,
                        timeline,
                    });
                }
                self.alone(now, writes)?;
                backend.transaction = None;
            }
            Statement::Begin => backend.transaction = Some(Transaction::default()),
            Statement::Lock(opening) => return self.fence(backend, opening),
            Statement::CommitRow {
                opening,
                number,
                keeps_from,
            } => return self.commit_row(backend, opening, *number, *keeps_from),
            Statement::Confirm(opening, number) => {
                self.lock(backend, Row::Partition, Mode::Exclusive)?;
                let has_row = self.tables.commits.contains(&(opening.epoch, *number));
                let fence = match self.tables.owner == opening.owner {
                    false => Fence::Fenced,
                    true if !has_row => Fence::Gap,
                    true => Fence::Passed,
                };
                if fence == Fence::Passed {
                    self.alone(now, vec![Write::Confirm(self.timeline)])?;
                }
                backend.transaction = None;
                return Ok(Reply::Fence(fence));
            }
            Statement::Steps {
                steps,
                looks_for_keys,
            } => return Ok(self.steps(backend, steps, *looks_for_keys)),
            Statement::Commit => {
                let writes = backend.transaction.as_ref();
                let writes = writes.is_some_and(|it| !it.writes.is_empty());
                if writes && now < self.stalled_until {
                    return Err(Blocked);
                }
                if let Some(transaction) = backend.transaction.take() {
                    if transaction.is_aborted {
                        return Ok(Reply::Aborted);
                    }
                    self.commit(transaction);
                }
            }
            Statement::Rollback => backend.transaction = None,
            Statement::WasCommitted(opening, number) => {
                let is_known = [self.tables.owner, self.tables.previous].contains(&opening.owner);
                let has_row = self.tables.commits.contains(&(opening.epoch, *number));
                return Ok(Reply::WasCommitted(is_known.then_some(has_row)));
            }
            Statement::Query(query) => {
                let rows = query.clone().execute(&mut self.tables.timers);
                return Ok(Reply::Rows(rows));
            }
            Statement::Begins(opening) => {
                let is_current = self.is_current(opening);
                let timers = &mut self.tables.timers;
                let settings = timers.settings().unwrap_or_default();
                let handlers = timers.handlers().unwrap_or_default();
                let begins = Begins {
                    settings,
                    handlers,
                    handed_over: self.tables.handed_over(),
                };
                return Ok(Reply::Begins(is_current.then_some(begins)));
            }
            Statement::Attempts(opening) => {
                let attempts = self.tables.attempts.iter();
                let attempts = attempts.map(|(id, it)| (*id, it.as_ref().ok().cloned()));
                let attempts = self.is_current(opening).then(|| attempts.collect());
                return Ok(Reply::Attempts(attempts));
            }
            Statement::TerminateBlockers(of) => {
                for pid in self.blockers(*of) {
                    self.terminate(pid);
                }
            }
        }
        Ok(Reply::Done)
    }

    /// Whether the row of the partition belongs to this opening on this timeline.
    fn is_current(&self, opening: &Opening) -> bool {
        self.tables.owner == opening.owner && self.tables.timeline == self.timeline
    }

    /// A transaction of one statement.
    fn alone(&mut self, now: u64, writes: Vec<Write>) -> Result<(), Blocked> {
        if now < self.stalled_until {
            return Err(Blocked);
        }
        self.commit(Transaction {
            writes,
            ..Transaction::default()
        });
        Ok(())
    }

    /// The row of the partition as a statement sees it.
    fn holder(&self, backend: &Backend) -> Holder {
        let own = backend.transaction.as_ref();
        let own = own.map_or(0, |it| {
            let beats = |write: &&Write| matches!(write, Write::Beat(node) if Some(*node) == self.tables.holder);
            it.writes.iter().filter(beats).count() as u64
        });
        let node = self.tables.holder;
        let counter = node.and_then(|node| self.tables.nodes.get(&node));
        Holder {
            node,
            counter: counter.map(|it| it + own),
            owner: self.tables.owner,
            timeline: self.tables.timeline,
        }
    }

    fn beat(&mut self, backend: &mut Backend, node: NodeId) -> Result<Reply, Blocked> {
        self.lock(backend, Row::Node(node), Mode::Exclusive)?;
        let is_registered = self.tables.nodes.contains_key(&node);
        let transaction = backend.transaction.get_or_insert_default();
        if is_registered {
            transaction.writes.push(Write::Beat(node));
        }
        Ok(Reply::Updated(is_registered.into()))
    }

    fn take(&mut self, backend: &mut Backend, claim: &Claim) -> Result<Reply, Blocked> {
        self.lock(backend, Row::Partition, Mode::Exclusive)?;
        let tables = &self.tables;
        if (tables.holder, tables.owner) != (claim.from.node, claim.from.owner) {
            backend.transaction = None;
            return Ok(Reply::Taken(None));
        }
        let drawn = tables.drawn.next(self.timeline);
        let transaction = backend.transaction.get_or_insert_default();
        transaction.writes.extend([
            Write::Hold {
                node: Some(claim.node),
                owner: claim.owner,
                timeline: self.timeline,
            },
            Write::Epoch(drawn),
            Write::ForgetEpochs(tables.opened),
            Write::CommitRow(drawn.epoch, 0),
        ]);
        if let Some(node) = claim.from.node.filter(|it| *it != claim.node) {
            transaction.writes.push(Write::Remove(node));
        }
        Ok(Reply::Taken(Some(drawn)))
    }

    fn fence(&mut self, backend: &mut Backend, opening: &Opening) -> Result<Reply, Blocked> {
        let mode = match self.fault {
            Some(Fault::NoFence) => {
                backend.transaction.get_or_insert_default();
                return Ok(Reply::Fence(Fence::Passed));
            }
            Some(Fault::FenceForKeyShare) => Mode::KeyShare,
            Some(Fault::FenceForShare) => Mode::Share,
            _ => Mode::Exclusive,
        };
        self.lock(backend, Row::Partition, mode)?;
        let is_other = self.tables.timeline != self.timeline;
        Ok(Reply::Fence(match self.tables.owner == opening.owner {
            false => abort(backend, Fence::Fenced),
            true if is_other && self.fault != Some(Fault::FenceOfAnyTimeline) => {
                abort(backend, Fence::OtherTimeline)
            }
            true => Fence::Passed,
        }))
    }

    fn commit_row(
        &mut self,
        backend: &mut Backend,
        opening: &Opening,
        number: u64,
        keeps_from: u64,
    ) -> Result<Reply, Blocked> {
        let epoch = opening.epoch;
        if backend.snapshot.is_none() {
            backend.snapshot = Some(self.tables.commits.contains(&(epoch, number - 1)));
            if let Some(until) = backend.slow_from_snapshot.take() {
                backend.slow_until = until;
                return Err(Blocked);
            }
        }
        self.lock(backend, Row::Commit(epoch, number), Mode::Exclusive)?;
        let has_gap = backend.snapshot == Some(false) && self.fault != Some(Fault::NoGapCheck);
        if self.tables.commits.contains(&(epoch, number)) {
            return Ok(Reply::Fence(abort(backend, Fence::Repeated)));
        }
        if has_gap {
            return Ok(Reply::Fence(abort(backend, Fence::Gap)));
        }
        let transaction = backend.transaction.get_or_insert_default();
        transaction.opening = Some(*opening);
        transaction.writes.extend([
            Write::CommitRow(epoch, number),
            Write::Forget(epoch, keeps_from),
        ]);
        Ok(Reply::Fence(Fence::Passed))
    }

    fn steps(&mut self, backend: &mut Backend, steps: &Arc<[Op]>, looks_for_keys: bool) -> Reply {
        if std::mem::take(&mut backend.refuses) {
            abort(backend, ());
            return Reply::Refused;
        }
        let mut copy = self.tables.clone();
        let mut outcomes = copy.execute(steps);
        let is_taken = |it: &Outcome| matches!(it, Outcome::Exists(_));
        if !looks_for_keys && outcomes.iter().any(is_taken) {
            abort(backend, ());
            return Reply::KeyTaken;
        }
        let transaction = backend.transaction.get_or_insert_default();
        transaction.writes.push(Write::Steps(Arc::clone(steps)));
        let node = transaction.opening.map(|it| it.node);
        for op in steps.iter() {
            if let (Op::HandOver(ids), Some(node)) = (op, node) {
                transaction.writes.push(Write::HandOver(node, ids.clone()));
            }
        }
        let drawn = self.tables.drawn.next(self.timeline);
        if set_epoch(&mut outcomes, drawn.epoch) {
            transaction.writes.push(Write::Epoch(drawn));
        }
        Reply::Outcomes(outcomes)
    }

    /// Locks a row until the end of the transaction.
    fn lock(&self, backend: &mut Backend, row: Row, mode: Mode) -> Result<(), Blocked> {
        backend.waits_for = Some((row, mode));
        match self.holders(row, mode).next() {
            Some(_) => Err(Blocked),
            None => {
                let transaction = backend.transaction.get_or_insert_default();
                transaction.locks.push((row, mode));
                backend.waits_for = None;
                Ok(())
            }
        }
    }

    /// The other backends that have a lock that conflicts with this one.
    fn holders(&self, row: Row, mode: Mode) -> impl Iterator<Item = Pid> {
        let backends = self.backends.iter().filter(move |(_, it)| {
            let locks = it.transaction.iter().flat_map(|it| &it.locks);
            locks
                .into_iter()
                .any(|(locked, held)| *locked == row && held.conflicts(mode))
        });
        backends.map(|(pid, _)| *pid)
    }

    fn blockers(&self, of: Pid) -> Vec<Pid> {
        let waits_for = self.backends.get(&of).and_then(|it| it.waits_for);
        let Some((row, mode)) = waits_for else {
            return Vec::new();
        };
        self.holders(row, mode).filter(|pid| *pid != of).collect()
    }
}

/// The timer whose delivery ends with a step.
fn ended(op: &Op) -> Option<Id> {
    match op {
        Op::Settle(row) | Op::Retry(row, ..) | Op::Bury { row, .. } => Some(row.id),
        _ => None,
    }
}

/// Aborts the transaction with this reply.
fn abort<T>(backend: &mut Backend, reply: T) -> T {
    backend.transaction.get_or_insert_default().is_aborted = true;
    reply
}

/// Sets the epoch that steps have drawn. Returns whether there is one.
fn set_epoch(outcomes: &mut [Outcome], drawn: u64) -> bool {
    let mut has_drawn = false;
    for outcome in outcomes {
        match outcome {
            Outcome::Epoch(epoch) => {
                *epoch = drawn;
                has_drawn = true;
            }
            Outcome::All(outcomes) => has_drawn |= set_epoch(outcomes, drawn),
            _ => {}
        }
    }
    has_drawn
}
