//! The connections between nodes and the server, and the order of events.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable_core::engine::{Query, Reply as Rows};
use waterwheel_durable_core::store::{Ended, Id, Op, Outcome};
use waterwheel_durable_postgres::protocol::{
    Attempts, Beat, Claim, Commit, Database, Drawn, Failure, NodeId, Opening, OwnerId, Pid,
    Rejection, Session,
};

use super::server::{Begins, Fence, Reply, Server, Statement};

/// A packet, as it arrives.
#[derive(Debug)]
enum Arrival {
    Statement(Pid, u64, Statement),
    Reply(Pid, u64, Reply),
    /// The client has closed the connection.
    HangUp(Pid),
    /// The server has closed it.
    Reset(Pid),
    /// A connection is asked for, by a node.
    Connect(u64, usize),
    Connected(u64, Option<Pid>),
}

/// The faults of the connections of a node.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Link {
    /// The time until which nothing arrives, in either direction.
    pub(super) cut_until: u64,
    /// The time until which packets are late, and the largest latencies to the server and back.
    pub(super) late_until: u64,
    pub(super) latency: [u64; 2],
    /// Whether the reply to the next `COMMIT` is lost with its connection.
    pub(super) swallows_commit: bool,
    /// When something that happened to this node alone is over.
    pub(super) trouble_until: u64,
    /// The latest node id of its process.
    pub(super) node: Option<NodeId>,
    /// The rate of its clock, per mille.
    pub(super) rate: u64,
}

#[derive(Debug)]
pub(super) struct Network {
    /// In microseconds since boot, which is the same for all machines.
    pub(super) now: u64,
    pub(super) rng: Rng,
    pub(super) server: Server,
    pub(super) links: [Link; super::NODES],
    arrivals: BTreeMap<(u64, u64), Arrival>,
    /// The times at which somebody wants to be polled.
    wakes: BTreeSet<u64>,
    count: u64,
    /// The nodes of connections, and when the last packet of each direction arrives.
    sessions: HashMap<Pid, (usize, [u64; 2])>,
    replies: HashMap<u64, Reply>,
    connected: HashMap<u64, Option<Pid>>,
    /// Connections that are closed for their clients.
    broken: HashSet<Pid>,
}

impl Network {
    pub(super) fn new(rng: Rng, now: u64, server: Server) -> Network {
        Network {
            now,
            rng,
            server,
            links: [Link::default(); super::NODES],
            arrivals: BTreeMap::new(),
            wakes: BTreeSet::new(),
            count: 0,
            sessions: HashMap::new(),
            replies: HashMap::new(),
            connected: HashMap::new(),
            broken: HashSet::new(),
        }
    }

    pub(super) fn wake_at(&mut self, at: u64) {
        if at > self.now {
            self.wakes.insert(at);
        }
    }

    fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// The number of packets that were sent.
    pub(super) fn packets(&self) -> u64 {
        self.count
    }

    fn latency(&mut self, node: usize, direction: usize) -> u64 {
        let link = self.links[node];
        let late = match self.now < link.late_until {
            true => self.rng.u64(0..=link.latency[direction]),
            false => 0,
        };
        late + self.rng.u64(20..3_000)
    }

    fn is_cut(&self, node: usize) -> bool {
        self.now < self.links[node].cut_until
    }

    /// Sends something over a connection. While it is cut, packets wait. Packets do not overtake each other.
    fn send(&mut self, pid: Pid, direction: usize, arrival: Arrival) {
        let Some((node, last)) = self.sessions.get(&pid).copied() else {
            return;
        };
        let from = self.now.max(self.links[node].cut_until);
        let at = (from + self.latency(node, direction)).max(last[direction] + 1);
        if let Some((_, last)) = self.sessions.get_mut(&pid) {
            last[direction] = at;
        }
        let number = self.number();
        self.arrivals.insert((at, number), arrival);
    }

    fn ask(&mut self, pid: Pid, statement: Statement) -> u64 {
        let request = self.number();
        self.send(pid, 0, Arrival::Statement(pid, request, statement));
        request
    }

    /// The time of the next event after now.
    pub(super) fn next_event(&self) -> Option<u64> {
        let arrival = self.arrivals.keys().next().map(|(at, _)| *at);
        let wake = self.wakes.iter().next().copied();
        let server = self.server.wakes_at(self.now);
        arrival.into_iter().chain(wake).chain(server).min()
    }

    /// Lets everything arrive that is due now, and the server work.
    pub(super) fn deliver(&mut self) {
        self.wakes = self.wakes.split_off(&(self.now + 1));
        while let Some(entry) = self.arrivals.first_entry()
            && entry.key().0 <= self.now
        {
            match entry.remove() {
                Arrival::Statement(pid, request, statement) => {
                    if !self.server.receive(pid, request, statement) {
                        self.send(pid, 1, Arrival::Reset(pid));
                    }
                }
                Arrival::Reply(pid, request, reply) => {
                    if !self.broken.contains(&pid) {
                        self.replies.insert(request, reply);
                    }
                }
                Arrival::HangUp(pid) => self.server.hang_up(pid),
                Arrival::Reset(pid) => {
                    self.broken.insert(pid);
                }
                Arrival::Connect(request, node) => {
                    let pid = self.server.connect(self.now);
                    if let Some(pid) = pid {
                        self.sessions.insert(pid, (node, [0; 2]));
                    }
                    let at = self.now + self.latency(node, 1);
                    if !self.is_cut(node) {
                        let connected = Arrival::Connected(request, pid);
                        self.arrivals.insert((at, request), connected);
                    }
                }
                Arrival::Connected(request, pid) => {
                    self.connected.insert(request, pid);
                }
            }
        }
        self.work();
    }

    /// Lets the server work, and sends its replies.
    fn work(&mut self) {
        self.server.writes_terminated = self.rng.bool();
        for (pid, request, reply) in self.server.run(self.now) {
            self.send(pid, 1, Arrival::Reply(pid, request, reply));
        }
        for pid in std::mem::take(&mut self.server.closed) {
            self.send(pid, 1, Arrival::Reset(pid));
        }
    }

    /// The connections that a node has open.
    pub(super) fn sessions_of(&self, node: usize) -> Vec<Pid> {
        let sessions = self.sessions.iter();
        let sessions = sessions.filter(|(pid, (of, _))| *of == node && !self.broken.contains(pid));
        let mut sessions: Vec<Pid> = sessions.map(|(pid, _)| *pid).collect();
        sessions.sort_unstable();
        sessions
    }

    /// The client gives a connection up.
    fn close(&mut self, pid: Pid) {
        if self.broken.insert(pid) {
            self.send(pid, 0, Arrival::HangUp(pid));
        }
    }
}

/// A node's access to the network, its clock, and the server.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) network: Rc<RefCell<Network>>,
    pub(super) node: usize,
}

/// A connection of a node.
#[derive(Debug)]
pub(super) struct Connection {
    client: Client,
    pid: Pid,
    deadline: u64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.client.network.borrow_mut().close(self.pid);
    }
}

impl Connection {
    /// Sends a statement, and waits for the reply.
    async fn ask(&mut self, statement: Statement) -> Result<Reply, Failure> {
        let request = self.send(statement);
        self.reply(request).await
    }

    /// Sends a statement. Returns the number of the request, and until when to wait for its reply.
    fn send(&mut self, statement: Statement) -> (u64, u64) {
        let mut network = self.client.network.borrow_mut();
        let until = network.now + self.deadline;
        network.wake_at(until);
        (network.ask(self.pid, statement), until)
    }

    async fn reply(&mut self, (request, until): (u64, u64)) -> Result<Reply, Failure> {
        poll_fn(|_| {
            let mut network = self.client.network.borrow_mut();
            if let Some(reply) = network.replies.remove(&request) {
                return Poll::Ready(Ok(reply));
            }
            let why = match network.broken.contains(&self.pid) {
                true => "closed by the server",
                false if network.now >= until => "no reply",
                false => return Poll::Pending,
            };
            network.close(self.pid);
            Poll::Ready(Err(Failure::Disconnected(why.into())))
        })
        .await
    }

    /// Sends the last statement of a transaction. The connection may be reset afterwards.
    fn send_commit(&mut self) -> (u64, u64) {
        let request = self.send(Statement::Commit);
        let mut network = self.client.network.borrow_mut();
        if std::mem::take(&mut network.links[self.client.node].swallows_commit) {
            network.close(self.pid);
        }
        drop(network);
        request
    }

    async fn commit(&mut self) -> Result<(), Failure> {
        let request = self.send_commit();
        self.reply(request).await?;
        Ok(())
    }

    async fn roll_back(&mut self) -> Result<(), Failure> {
        self.ask(Statement::Rollback).await?;
        Ok(())
    }

    /// The replies to the statements of a commit.
    async fn outcomes(&mut self, requests: [(u64, u64); 3]) -> Result<Vec<Outcome>, Rejection> {
        let [lock, row, steps] = requests;
        passed(&self.reply(lock).await?)?;
        passed(&self.reply(row).await?)?;
        match self.reply(steps).await? {
            Reply::Outcomes(outcomes) => Ok(outcomes),
            Reply::KeyTaken => Err(Rejection::KeyTaken),
            Reply::Refused => Err(Rejection::Refused("no space".into())),
            other => unreachable!("{other:?} is no reply to steps"),
        }
    }

    pub(super) async fn query(&mut self, query: Query) -> Result<Rows, Failure> {
        match self.ask(Statement::Query(query)).await? {
            Reply::Rows(rows) => rows.map_err(|error| Failure::Refused(error.to_string().into())),
            other => Err(unexpected(&other)),
        }
    }

    pub(super) async fn begins(&mut self, opening: &Opening) -> Result<Begins, Failure> {
        match self.ask(Statement::Begins(*opening)).await? {
            Reply::Begins(begins) => begins.ok_or_else(|| Failure::Refused("not current".into())),
            other => Err(unexpected(&other)),
        }
    }
}

fn passed(reply: &Reply) -> Result<(), Rejection> {
    match reply {
        Reply::Fence(Fence::Passed) => Ok(()),
        Reply::Fence(Fence::Fenced) => Err(Rejection::Fenced),
        Reply::Fence(Fence::OtherTimeline) => Err(Rejection::OtherTimeline),
        Reply::Fence(Fence::Gap) => Err(Rejection::Gap),
        Reply::Fence(Fence::Repeated) => Err(Rejection::Repeated),
        other => unreachable!("{other:?} is no reply to a fence"),
    }
}

/// The outcome of a step, if it has only one.
fn known(op: &Op) -> Option<Outcome> {
    match op {
        Op::Insert(row, _) if row.key.is_none() => Some(Outcome::Inserted),
        Op::Settle(_)
        | Op::Start(_)
        | Op::Retry(..)
        | Op::Bury { .. }
        | Op::Set(..)
        | Op::HandOver(_) => Some(Outcome::Done),
        _ => None,
    }
}

fn unexpected(reply: &Reply) -> Failure {
    unreachable!("{reply:?} is no reply to this statement")
}

impl Database for Client {
    type Session = Connection;

    fn now(&self) -> Duration {
        let network = self.network.borrow();
        Duration::from_micros(network.now * network.links[self.node].rate / 1_000)
    }

    async fn sleep_until(&self, at: Duration) {
        poll_fn(|_| {
            if self.now() >= at {
                return Poll::Ready(());
            }
            let mut network = self.network.borrow_mut();
            let at = u64::try_from(at.as_micros()).unwrap_or(u64::MAX / 1_000);
            let rate = network.links[self.node].rate;
            network.wake_at((at * 1_000).div_ceil(rate));
            Poll::Pending
        })
        .await;
    }

    fn random(&self) -> u64 {
        self.network.borrow_mut().rng.u64(1..)
    }

    async fn connect(&self, deadline: Duration) -> Result<Connection, Failure> {
        let deadline = u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX);
        let (request, until) = {
            let mut network = self.network.borrow_mut();
            let until = network.now + deadline;
            network.wake_at(until);
            let request = network.number();
            if !network.is_cut(self.node) {
                let at = network.now + network.latency(self.node, 0);
                let connect = Arrival::Connect(request, self.node);
                network.arrivals.insert((at, request), connect);
            }
            (request, until)
        };
        let pid = poll_fn(|_| {
            let mut network = self.network.borrow_mut();
            match network.connected.remove(&request) {
                Some(Some(pid)) => Poll::Ready(Ok(pid)),
                Some(None) => Poll::Ready(Err("refused")),
                None if network.now >= until => Poll::Ready(Err("no reply")),
                None => Poll::Pending,
            }
        });
        let client = self.clone();
        match pid.await {
            Ok(pid) => Ok(Connection {
                client,
                pid,
                deadline,
            }),
            Err(why) => Err(Failure::Disconnected(why.into())),
        }
    }
}

impl Session for Connection {
    async fn register(&mut self, node: NodeId) -> Result<(), Failure> {
        self.client.network.borrow_mut().links[self.client.node].node = Some(node);
        self.ask(Statement::Register(node)).await?;
        Ok(())
    }

    /// The statements are sent together.
    async fn beat(&mut self, node: NodeId, _: u8) -> Result<Beat, Failure> {
        let requests = [Statement::Beat(node), Statement::Look, Statement::Commit];
        let [beat, look, commit] = requests.map(|it| self.send(it));
        let is_registered = match self.reply(beat).await? {
            Reply::Updated(rows) => rows > 0,
            other => return Err(unexpected(&other)),
        };
        let (timeline, holder, others) = match self.reply(look).await? {
            Reply::Look(timeline, holder, others) => (timeline, holder, others),
            other => return Err(unexpected(&other)),
        };
        self.reply(commit).await?;
        Ok(Beat {
            is_registered,
            timeline,
            holder,
            others,
            is_suspended: false,
        })
    }

    async fn leave(&mut self, node: NodeId, _: u8, owner: Option<OwnerId>) -> Result<(), Failure> {
        self.ask(Statement::Leave(node, owner)).await?;
        Ok(())
    }

    async fn claim(&mut self, claim: &Claim) -> Result<bool, Failure> {
        let is_registered = match self.ask(Statement::LockNodes(claim.clone())).await? {
            Reply::Updated(rows) => rows > 0,
            other => return Err(unexpected(&other)),
        };
        let is_same = match self.ask(Statement::Compare(claim.clone())).await? {
            Reply::Matches(is_same) => is_same,
            other => return Err(unexpected(&other)),
        };
        if !(is_registered && is_same) {
            self.roll_back().await?;
        }
        Ok(is_registered && is_same)
    }

    async fn take(&mut self, claim: &Claim) -> Result<Option<Drawn>, Failure> {
        match self.ask(Statement::Take(claim.clone())).await? {
            Reply::Taken(Some(drawn)) => {
                self.commit().await?;
                Ok(Some(drawn))
            }
            Reply::Taken(None) => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    async fn remove(&mut self, claim: &Claim) -> Result<(), Failure> {
        self.ask(Statement::Remove(claim.clone())).await?;
        self.commit().await
    }

    async fn report(
        &mut self,
        opening: &Opening,
        ends: &[(Id, Option<Ended>)],
    ) -> Result<bool, Failure> {
        match self
            .ask(Statement::Report(opening.node, ends.into()))
            .await?
        {
            Reply::Matches(is_current) => Ok(is_current),
            other => Err(unexpected(&other)),
        }
    }

    async fn attempts(&mut self, opening: &Opening) -> Result<Option<Attempts>, Failure> {
        match self.ask(Statement::Attempts(*opening)).await? {
            Reply::Attempts(attempts) => Ok(attempts),
            other => Err(unexpected(&other)),
        }
    }

    async fn begin(&mut self) -> Result<Pid, Failure> {
        self.ask(Statement::Begin).await?;
        Ok(self.pid)
    }

    /// The statements are sent together, and `COMMIT` with them if the outcomes are known before.
    async fn transact(&mut self, commit: &Commit<'_>) -> Result<Vec<Outcome>, Rejection> {
        let row = Statement::CommitRow {
            opening: *commit.opening,
            number: commit.number,
            keeps_from: commit.keeps_from,
        };
        let steps = Statement::Steps {
            steps: commit.steps.into(),
            looks_for_keys: commit.looks_for_keys,
        };
        let requests = [Statement::Lock(*commit.opening), row, steps];
        let requests = requests.map(|it| self.send(it));
        let known: Option<Vec<Outcome>> = commit.steps.iter().map(known).collect();
        let end = known.as_ref().map(|_| self.send_commit());
        let done = self.outcomes(requests).await;
        let outcomes = match (done, &known) {
            (Ok(outcomes), _) => outcomes,
            (Err(Rejection::Disconnected(why)), Some(known)) => {
                return Err(Rejection::InDoubt(known.clone(), why));
            }
            (Err(Rejection::Disconnected(why)), None) => return Err(Rejection::Disconnected(why)),
            (Err(rejection), _) => {
                let end = end.unwrap_or_else(|| self.send(Statement::Rollback));
                self.reply(end).await?;
                return Err(rejection);
            }
        };
        assert!(known.is_none_or(|known| known == outcomes));
        let end = end.unwrap_or_else(|| self.send_commit());
        match self.reply(end).await {
            Ok(_) => Ok(outcomes),
            Err(failure) => Err(Rejection::InDoubt(outcomes, failure.to_string().into())),
        }
    }

    async fn confirm(&mut self, opening: &Opening, number: u64) -> Result<(), Rejection> {
        let confirm = Statement::Confirm(*opening, number);
        passed(&self.ask(confirm).await?)
    }

    async fn was_committed(
        &mut self,
        opening: &Opening,
        number: u64,
    ) -> Result<Option<bool>, Failure> {
        match self.ask(Statement::WasCommitted(*opening, number)).await? {
            Reply::WasCommitted(was_committed) => Ok(was_committed),
            other => Err(unexpected(&other)),
        }
    }

    async fn terminate_blockers(&mut self, of: Pid) -> Result<(), Failure> {
        self.ask(Statement::TerminateBlockers(of)).await?;
        Ok(())
    }
}
