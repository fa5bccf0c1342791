//! The engine's link to the store and to waiting callers: its outputs, the requests in flight, the next commit, and the answers.
//!
//! | type | question |
//! |---|---|
//! | [`StoreLink`] | what is put out, and at what time? |
//! | [`InFlight`] | which requests to the store are in flight, and was a reply lost? |
//! | [`Commits`] | what is written next, and who waits for it? |
//!
//! One commit is in flight at a time. The engine's own operations come before those of callers, so a million simultaneous inserts do not delay a delivery.

use std::collections::{BTreeSet, VecDeque};
use std::error::Error;
use std::sync::Arc;

use crate::store::{Command, Id, Level, Op, PageLimit, Row, StoreError};
use foldhash::{HashMap, HashSet};

use super::clocks::Now;
use super::io::{Answer, Config, Output, Query, Token};
use super::planted::{self, Planted};

/// The bit that marks the tokens of commands. Tokens of callers do not have it.
const IS_COMMAND: Token = 1 << 63;

#[derive(Debug)]
pub(super) struct StoreLink {
    config: Arc<Config>,
    /// The time that the engine was last told, at which all outputs are made.
    pub(super) now: Now,
    output: VecDeque<Output>,
    in_flight: InFlight,
    commits: Commits,
    /// Commands from other processes that have not been answered.
    commands: HashSet<u64>,
    pub(super) refusals: Refusals,
    /// Whether no more requests are accepted.
    is_stopping: bool,
    pub(super) is_lease_held: bool,
    /// Why the store has failed, if it has.
    failure: Option<Arc<str>>,
}

/// Counts of what the store has refused.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// The number of commits and reads that it refused.
    pub(super) count: u64,
    /// Whether the last read and the last commit were refused, in this order.
    goes_on: [bool; 2],
    /// The number of inserts that found the store full.
    pub(super) full: u64,
    /// Whether the last insert found the store full.
    pub(super) is_full: bool,
}

/// The callers that wait for the outcome of an operation.
#[derive(Debug)]
pub(super) struct Callers {
    pub(super) token: Token,
    /// Callers whose requests were identical, or were overtaken by this one.
    pub(super) others: Vec<Token>,
}

impl From<Token> for Callers {
    fn from(token: Token) -> Callers {
        let others = Vec::new();
        Callers { token, others }
    }
}

/// The purpose of a query, which determines how its reply is used.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Rows {
        queue: usize,
        before: i64,
        limit: PageLimit,
    },
    Second(usize),
    Bucket(Level),
    Archive(usize),
}

impl StoreLink {
    pub(super) fn new(config: Arc<Config>, now: Now) -> StoreLink {
        StoreLink {
            config,
            now,
            output: VecDeque::new(),
            in_flight: InFlight::default(),
            commits: Commits::default(),
            commands: HashSet::default(),
            refusals: Refusals::default(),
            is_stopping: false,
            is_lease_held: true,
            failure: None,
        }
    }

    pub(super) fn poll(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    pub(super) fn put_out(&mut self, output: Output) {
        self.output.push_back(output);
    }

    // Accepting and answering requests.

    /// Accepts no request from now on.
    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Sets whether the lease of the store is held. Returns whether that is new.
    pub(super) fn set_lease(&mut self, is_held: bool) -> bool {
        let is_new = std::mem::replace(&mut self.is_lease_held, is_held) != is_held;
        if is_new && !self.has_failed() {
            self.put_out(match is_held {
                true => Output::LeaseHeld,
                false => Output::LeaseLost,
            });
        }
        is_new
    }

    /// Whether deliveries may begin.
    pub(super) fn may_deliver(&self) -> bool {
        !self.is_stopping && self.is_lease_held
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether requests can proceed: the store has not failed, and the engine is not stopping.
    pub(super) fn is_open(&self) -> bool {
        !self.has_failed() && !self.is_stopping
    }

    /// Answers a request if it is no longer accepted. Returns whether it was refused.
    pub(super) fn refuses(&mut self, token: Token) -> bool {
        if let Some(why) = self.failure.clone() {
            self.answer(token, Answer::Failed(why));
        } else if self.is_stopping {
            self.answer(token, Answer::ShuttingDown);
        }
        !self.is_open()
    }

    pub(super) fn answer(&mut self, token: Token, answer: Answer) {
        if token & IS_COMMAND == 0 {
            self.output.push_back(Output::Answer(token, answer));
        } else if !self.has_failed() {
            // A command's answer is written to the store.
            let words = in_words(&answer).into();
            self.push(Op::Reply(token & !IS_COMMAND, words));
        }
    }

    pub(super) fn answer_all(&mut self, callers: Callers, answer: &Answer) {
        for token in callers.others.into_iter().chain([callers.token]) {
            self.answer(token, answer.clone());
        }
    }

    /// Accepts a command from another process, once. The command may be passed in again until its [answer](Op::Reply) is written.
    pub(super) fn accept_command(&mut self, number: u64) -> Option<Token> {
        let is_new = self.commands.insert(number) || planted::is(Planted::CommandAgain);
        (number & IS_COMMAND == 0 && is_new).then_some(IS_COMMAND | number)
    }

    /// Forgets a command whose answer is written.
    pub(super) fn command_answered(&mut self, number: u64) {
        self.commands.remove(&number);
    }

    // Requests to the store.

    pub(super) fn read(&mut self, query: Query, purpose: Purpose) {
        let deadline = self.deadline();
        let number = self.in_flight.add_read(query.clone(), purpose, deadline);
        self.put_out(Output::Read(number, query));
    }

    /// Sends the commit in flight to the store, again if it was sent before.
    fn send_commit(&mut self) {
        let deadline = self.deadline();
        let Some(ops) = self.commits.in_flight.clone() else {
            return;
        };
        let number = self.in_flight.add_commit(deadline);
        let commit = self.commits.count;
        self.put_out(Output::Commit {
            number,
            commit,
            ops,
        });
    }

    /// When a request that is sent now counts as lost.
    fn deadline(&self) -> u64 {
        self.now
            .boot_micros
            .saturating_add(self.config.reply_micros)
    }

    /// Sends requests again that were not answered in time, as their replies count as lost.
    pub(super) fn resend_overdue(&mut self) {
        let last = self.in_flight.number;
        while let Some(&(deadline, number)) = self.in_flight.deadlines.first()
            && deadline <= self.now.boot_micros
            && number <= last
        {
            if self.in_flight.complete_commit(number) {
                self.send_commit();
            } else if let Some((query, purpose)) = self.in_flight.complete_read(number) {
                self.read(query, purpose);
            } else {
                return;
            }
        }
    }

    /// Completes the commit. Returns whether the answer was new.
    pub(super) fn complete_commit(&mut self, number: u64, error: Option<&StoreError>) -> bool {
        let is_news = self.in_flight.complete_commit(number);
        if is_news {
            self.note_refusal(true, error);
        }
        is_news
    }

    /// Completes a query. `None` if it was already answered.
    pub(super) fn complete_read(
        &mut self,
        number: u64,
        error: Option<&StoreError>,
    ) -> Option<(Query, Purpose)> {
        let (query, purpose) = self.in_flight.complete_read(number)?;
        self.note_refusal(false, error);
        Some((query, purpose))
    }

    /// Counts a refusal, and reports the first of consecutive ones.
    fn note_refusal(&mut self, is_commit: bool, error: Option<&StoreError>) {
        let goes_on = &mut self.refusals.goes_on[usize::from(is_commit)];
        let went_on = *goes_on;
        let error = error.filter(|error| error.is_definite());
        *goes_on = error.is_some();
        if let Some(error) = error {
            self.refusals.count += 1;
            if !went_on {
                self.put_out(Output::Refused(error.to_string().into()));
            }
        }
    }

    /// Notes whether an insert found the store full, and reports a change.
    pub(super) fn note_space(&mut self, is_full: bool) {
        self.refusals.full += u64::from(is_full);
        if std::mem::replace(&mut self.refusals.is_full, is_full) != is_full {
            self.put_out(match is_full {
                true => Output::Full,
                false => Output::HasSpace,
            });
        }
    }

    /// Sends a refused read again a little later, as if its reply had been lost.
    pub(super) fn retry_later(&mut self, query: Query, purpose: Purpose) {
        let again = self.tries_again_at();
        self.in_flight.add_read(query, purpose, again);
    }

    /// When something that is refused now is retried.
    fn tries_again_at(&self) -> u64 {
        self.now
            .boot_micros
            .saturating_add(self.config.refused_micros)
    }

    /// The number of the last request, if rows are being loaded.
    pub(super) fn loading(&self) -> Option<u64> {
        (!self.in_flight.loads.is_empty()).then_some(self.in_flight.number)
    }

    /// The number of the oldest unanswered request for rows.
    pub(super) fn oldest_load(&self) -> Option<u64> {
        self.in_flight.loads.first().copied()
    }

    /// When something is sent again because its reply counts as lost or it was refused, in microseconds since boot.
    pub(super) fn resends_at(&self) -> Option<u64> {
        let lost = self
            .in_flight
            .deadlines
            .first()
            .map(|(deadline, _)| *deadline);
        lost.into_iter().chain(self.commits.retries_at()).min()
    }

    // Commits.

    /// Writes one of the engine's own operations with the next commit.
    pub(super) fn push(&mut self, op: Op) {
        self.commits.own.push_back(op);
    }

    /// Writes a caller's operation, at once if no commit is in flight.
    pub(super) fn request(&mut self, op: Op, callers: impl Into<Callers>) {
        self.queue(op, callers);
        self.commit();
    }

    /// Writes a caller's operation with the next commit.
    pub(super) fn queue(&mut self, op: Op, callers: impl Into<Callers>) {
        self.commits.requested.push_back(op);
        self.commits.callers.push_back(callers.into());
    }

    /// Writes the pending operations, unless a commit is in flight or delayed by a refusal.
    pub(super) fn commit(&mut self) {
        let commits = &mut self.commits;
        if commits.in_flight.is_some() || !commits.has_ops() || commits.is_delayed(self.now) {
            return;
        }
        commits.retries_at = None;
        let ops = commits.take_next(self.config.max_in_commit, self.config.max_bytes_in_commit);
        commits.count += 1;
        commits.in_flight = Some(Arc::new(ops));
        self.send_commit();
    }

    /// Completes a durable commit, given the number of outcomes. Returns its operations, whose callers are [taken](StoreLink::take_waiting) in the same order.
    pub(super) fn committed(
        &mut self,
        outcomes: usize,
    ) -> Result<Option<Arc<Vec<Op>>>, StoreError> {
        let commits = &mut self.commits;
        if let Some(ops) = &commits.in_flight
            && ops.len() != outcomes
        {
            let expected = ops.len();
            let error = format!("the store returned {outcomes} outcomes for {expected} operations");
            return Err(StoreError::indeterminate(error));
        }
        let ops = commits.in_flight.take();
        if ops.is_some() {
            // A commit of this size fits, so perhaps one twice as large does too.
            let limit = commits.limit.map(|limit| limit.max(1) * 2);
            commits.limit = limit.filter(|limit| *limit < self.config.max_in_commit);
        }
        Ok(ops)
    }

    /// Completes a refused commit, which has changed nothing. Returns its operations. The next commit is smaller, and later.
    pub(super) fn refused(&mut self) -> Option<Arc<Vec<Op>>> {
        let ops = self.commits.in_flight.take()?;
        self.commits.retries_at = Some(self.tries_again_at());
        self.commits.limit = Some(ops.len() / 2);
        Some(ops)
    }

    /// The callers of the commit that was answered: one entry for each of its operations.
    pub(super) fn take_waiting(&mut self) -> Vec<Option<Callers>> {
        std::mem::take(&mut self.commits.waiting)
    }

    /// Retries a refused operation after the others, which may free the space that it needs.
    pub(super) fn push_again(&mut self, op: &Op) {
        let mut op = op.clone();
        if let Op::Cascade { limit, .. } = &mut op {
            *limit = PageLimit {
                rows: (limit.rows / 2).max(1),
                bytes: (limit.bytes / 2).max(1),
            };
        }
        self.push(op);
    }

    /// The timers that are moved for another attempt in the next commit.
    pub(super) fn retries(&self) -> impl Iterator<Item = Id> {
        self.commits.own.iter().filter_map(|op| match op {
            Op::Retry(row, ..) | Op::Snooze(row, ..) => Some(row.id),
            _ => None,
        })
    }

    /// Removes and returns the notes of starts that are waiting for the next commit.
    pub(super) fn take_starts(&mut self) -> Vec<Row> {
        let mut starts = Vec::new();
        for op in std::mem::take(&mut self.commits.own) {
            match op {
                Op::Start(row) => starts.push(row),
                op => self.commits.own.push_back(op),
            }
        }
        starts
    }

    /// Whether nothing has to be written.
    pub(super) fn is_clear(&self) -> bool {
        !self.commits.has_ops() && self.commits.in_flight.is_none()
    }

    /// Whether no commit is in flight or delayed, and only the engine's own operations are to be written.
    pub(super) fn has_only_own_steps(&self) -> bool {
        let commits = &self.commits;
        let is_idle = commits.in_flight.is_none() && !commits.is_delayed(self.now);
        is_idle && commits.requested.is_empty()
    }

    /// Removes the step that hands the store over, if it has not been sent. Returns whether it did.
    pub(super) fn take_hand_over(&mut self) -> bool {
        let is_it = |op: &Op| matches!(op, Op::HandOver(_));
        let at = self.commits.own.iter().position(is_it);
        at.and_then(|at| self.commits.own.remove(at)).is_some()
    }

    /// Whether nothing has to be written, apart from what the store has refused and is asked again later.
    pub(super) fn is_written(&self) -> bool {
        self.is_clear() || self.commits.retries_at().is_some()
    }

    /// Until when nothing is written, because the store has refused.
    pub(super) fn delayed_until(&self) -> Option<u64> {
        let at = self.commits.retries_at;
        at.filter(|_| self.commits.is_delayed(self.now))
    }

    /// The number of ended deliveries whose outcome is not written yet.
    pub(super) fn unsettled(&self) -> usize {
        let in_flight = self.commits.in_flight.iter().flat_map(|ops| ops.iter());
        let ends = |op: &&Op| {
            matches!(
                op,
                Op::Settle(_)
                    | Op::Archive(..)
                    | Op::Retry(..)
                    | Op::Snooze(..)
                    | Op::Bury { .. }
                    | Op::Report(..)
            )
        };
        in_flight.chain(&self.commits.own).filter(ends).count()
    }

    /// Handles a failure of the store: nothing more is asked of it, and waiting callers are answered. `is_of_commit`: it is the outcome of the commit in flight,
    /// and not of another request. Returns the cause.
    pub(super) fn fail(&mut self, error: &StoreError, is_of_commit: bool) -> Arc<str> {
        let cause = error.source().map(ToString::to_string);
        let cause: Arc<str> = cause.unwrap_or_else(|| error.to_string()).into();
        self.failure = Some(Arc::clone(&cause));
        let answer = match is_of_commit && error.wrote_nothing() {
            true => Answer::Failed(Arc::clone(&cause)),
            false => Answer::Unknown(format!("the store failed: {cause}").into()),
        };
        self.commits.in_flight = None;
        for callers in self.take_waiting().into_iter().flatten() {
            self.answer_all(callers, &answer);
        }
        // Operations that were never sent to the store were not applied.
        self.commits.own.clear();
        self.commits.requested.clear();
        for callers in std::mem::take(&mut self.commits.callers) {
            self.answer_all(callers, &Answer::Failed(Arc::clone(&cause)));
        }
        cause
    }

    /// Handles a panic of the engine.
    pub(super) fn break_down(&mut self, why: &Arc<str>) {
        self.failure = Some(Arc::clone(why));
        self.output.clear();
    }
}

#[derive(Debug, Default)]
struct InFlight {
    number: u64,
    /// The queries by their numbers, with the time when each counts as lost.
    reads: HashMap<u64, (Query, Purpose, u64)>,
    /// The number of the commit, and when it counts as lost.
    commit: Option<(u64, u64)>,
    /// The queries that load rows.
    loads: BTreeSet<u64>,
    /// When each request counts as lost, and its number. Those whose replies cannot be lost are left out.
    deadlines: BTreeSet<(u64, u64)>,
}

impl InFlight {
    /// Adds a request. Returns its number.
    fn add(&mut self, deadline: u64) -> u64 {
        self.number += 1;
        if deadline < u64::MAX {
            self.deadlines.insert((deadline, self.number));
        }
        self.number
    }

    fn add_read(&mut self, query: Query, purpose: Purpose, deadline: u64) -> u64 {
        let number = self.add(deadline);
        if matches!(purpose, Purpose::Rows { .. }) {
            self.loads.insert(number);
        }
        self.reads.insert(number, (query, purpose, deadline));
        number
    }

    fn add_commit(&mut self, deadline: u64) -> u64 {
        let number = self.add(deadline);
        self.commit = Some((number, deadline));
        number
    }

    /// Completes the query with this number. `None` if it was already answered.
    fn complete_read(&mut self, number: u64) -> Option<(Query, Purpose)> {
        let (query, purpose, deadline) = self.reads.remove(&number)?;
        self.loads.remove(&number);
        self.deadlines.remove(&(deadline, number));
        Some((query, purpose))
    }

    /// Completes the commit that was sent with this number. Returns whether the answer was new.
    fn complete_commit(&mut self, number: u64) -> bool {
        let completed = self.commit.take_if(|(sent, _)| *sent == number);
        if let Some((number, deadline)) = completed {
            self.deadlines.remove(&(deadline, number));
        }
        completed.is_some()
    }
}

#[derive(Debug, Default)]
struct Commits {
    /// The engine's own operations: cascades, and the results of deliveries. Each concerns a different timer or level, so their order does not matter.
    own: VecDeque<Op>,
    /// The operations of callers, in order.
    requested: VecDeque<Op>,
    /// The callers of each operation in `requested`.
    callers: VecDeque<Callers>,
    in_flight: Option<Arc<Vec<Op>>>,
    /// The callers of each operation in flight.
    waiting: Vec<Option<Callers>>,
    count: u64,
    /// When to ask the store again after a refusal.
    retries_at: Option<u64>,
    /// The maximum number of operations in the next commit after a refused one: a nearly full disk may have space for a smaller one.
    limit: Option<usize>,
}

impl Commits {
    fn has_ops(&self) -> bool {
        !self.own.is_empty() || !self.requested.is_empty()
    }

    fn is_delayed(&self, now: Now) -> bool {
        self.retries_at.is_some_and(|at| now.boot_micros < at)
    }

    /// When refused operations are retried.
    fn retries_at(&self) -> Option<u64> {
        let waits = self.in_flight.is_none() && self.has_ops();
        self.retries_at.filter(|_| waits)
    }

    /// Takes the operations of the next commit, and notes who waits for them. The engine's own come first, but up to half is reserved for callers.
    fn take_next(&mut self, limit: usize, max_bytes: usize) -> Vec<Op> {
        let limit = self.limit.map_or(limit, |fewer| fewer.min(limit)).max(1);
        let own = match limit {
            _ if self.requested.is_empty() => limit,
            // Alternately, so that one that is always refused does not delay the others.
            1 => usize::from(self.count.is_multiple_of(2)),
            _ => limit - self.requested.len().min(limit / 2),
        };
        let half = match self.requested.is_empty() {
            true => max_bytes,
            false => max_bytes / 2,
        };
        let (own, bytes) = within(&self.own, own, half);
        let max_bytes = max_bytes.saturating_sub(bytes);
        let (requested, _) = within(&self.requested, limit - own, max_bytes);
        let mut ops = Vec::with_capacity(own + requested);
        ops.extend(self.own.drain(..own));
        ops.extend(self.requested.drain(..requested));
        self.waiting = Vec::with_capacity(own + requested);
        self.waiting.resize_with(own, || None);
        self.waiting
            .extend(self.callers.drain(..requested).map(Some));
        ops
    }
}

/// How many of the first operations go into a commit, and how many bytes they insert: at most `limit`, and none after `max_bytes` are reached.
fn within(ops: &VecDeque<Op>, limit: usize, max_bytes: usize) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    for op in ops.iter().take(limit) {
        if bytes >= max_bytes.max(1) {
            break;
        }
        count += 1;
        bytes += inserted(op);
    }
    (count, bytes)
}

/// How many bytes an operation inserts.
fn inserted(op: &Op) -> usize {
    match op {
        Op::Insert(row, _) => row.bytes(),
        // A calendar's occurrences.
        Op::All(ops) => ops.iter().map(inserted).sum(),
        _ => 0,
    }
}

/// The answer to a command in words: [`Command::DONE`], or why not.
fn in_words(answer: &Answer) -> String {
    match answer {
        Answer::Done => Command::DONE.into(),
        Answer::AlreadyFired => Command::FIRED.into(),
        Answer::NotFound => Command::GONE.into(),
        Answer::Created(handle) => format!("{}{handle}", Command::INSERTED),
        Answer::Existing(handle) => format!("another timer has the key: {handle}"),
        Answer::UnknownNamespace(name) => format!("there is no namespace {name:?}"),
        Answer::Quota(over) => format!(
            "the namespace {:?} has used up its quota of inserts: try again later",
            over.namespace
        ),
        Answer::Refused(why) => why.to_string(),
        Answer::ShuttingDown => "nothing was done, because the service is shutting down: repeat the command when it has ended".into(),
        Answer::Full => "the store is full, and nothing was written: free space on its disk".into(),
        Answer::Failed(why) => format!(
            "nothing was done, because the store failed earlier ({why}): restart the service, and repeat the command"
        ),
        Answer::Unknown(why) => format!(
            "it is not known what was done ({why}): restart the service, and look before you repeat the command"
        ),
        Answer::OutOfIds => "no more ids are left: restart the service".into(),
        Answer::Declared(_) | Answer::Erased(_) => {
            "the service gave an unexpected answer: please report this bug".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::io::OverQuota;
    use super::*;
    use crate::store::Handle;

    #[test]
    fn a_command_is_answered_in_words() {
        let why = || Arc::from("no \"sync\"");
        let failed = Answer::Failed(why());
        let unknown = Answer::Unknown(why());
        let handle: Handle = "10000000007@5@close".parse().unwrap();
        let created = Answer::Created(handle.clone());
        let quota = Answer::Quota(OverQuota {
            namespace: "shop".into(),
            retry_after: None,
        });
        for (answer, expected) in [
            (&Answer::Done, "done"),
            (&Answer::Full, "the store is full"),
            (&failed, "the store failed earlier (no \"sync\"): restart"),
            (&unknown, "what was done (no \"sync\"): restart"),
            (&Answer::Refused(why()), "no \"sync\""),
            (
                &Answer::UnknownNamespace("shop".into()),
                "no namespace \"shop\"",
            ),
            (&created, "inserted 10000000007@5@close"),
            (
                &Answer::Existing(handle),
                "has the key: 10000000007@5@close",
            ),
            (&quota, "the namespace \"shop\" has used up its quota"),
        ] {
            let words = in_words(answer);
            assert!(words.contains(expected), "{words}");
            let begins = words.chars().next();
            assert!(begins.is_some_and(char::is_lowercase), "{words}");
        }
    }
}
