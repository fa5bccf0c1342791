//! The world of a cluster: it decides what happens next.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable_core::engine::Config;
use waterwheel_durable_core::store::{Due, Id, PageLimit, RowCursor, Store};
use waterwheel_durable_postgres::protocol::Terms;

use crate::life::{self, Lives};

use super::network::{Client, Network};
use super::node::Node;
use super::promises::Promises;
use super::server::{Server, Write};
use super::{CONCURRENCY, Fault, HANDLERS, NODES, WALL};

const SECOND: u64 = 1_000_000;
const TTL: u64 = 3 * SECOND;
const TERMS: Terms = Terms {
    ttl: Duration::from_micros(TTL),
    kept_commits: 4,
};
/// The time after which a cluster without faults delivers what is due: a standby has seen that the owner is gone, and has read what is due.
const RECOVERY: u64 = 2 * TTL + 2 * SECOND;

/// A step of a life.
#[derive(Debug, Clone, Copy)]
enum Action {
    /// Inserts this many timers.
    Insert(usize),
    Cancel,
    /// Lets time pass, in microseconds.
    Wait(u64),
    /// A node stops for this time, and goes on.
    Pause(usize, u64),
    /// A node is cut off from the server for this time.
    Cut(usize, u64),
    /// For this time, the packets of a node to the server and back are delayed by up to this much.
    Delay(usize, u64, [u64; 2]),
    /// All packets are late while the owner stops or is cut off for about as long as a take-over takes.
    Race {
        owner: usize,
        stops: u64,
        is_cut: bool,
        latencies: [u64; 2],
    },
    /// Another node takes over from this one, which stops or gives the partition back. The new owner is cut off, and a failover loses the take-over.
    LoseTakeOver {
        owner: usize,
        gives_back: bool,
        /// Whether it leaves after the failover.
        leaves: bool,
    },
    /// The backends of a node do nothing for this time, at once or in the middle of a statement.
    Slow {
        node: usize,
        micros: u64,
        in_statement: bool,
    },
    /// A node is killed, and its backends get stuck.
    Wedge(usize),
    /// The next steps of a node are refused.
    Refuse(usize),
    /// The connections of a node are closed by the server.
    Reset(usize),
    /// The next commit of a node loses its reply.
    SwallowCommit(usize),
    Kill(usize),
    Stop(usize),
    /// The owner stops while timers are with its handlers, and something may happen to it before they end.
    HandOver(usize, Then),
    Start(usize),
    /// The server restarts, and is down for this long.
    Restart(u64),
    /// The standby is promoted, after this time, without this number of commits.
    FailOver(usize, u64),
    /// Nothing can be committed for this time.
    Stall(u64),
    /// Most faults end.
    Heal,
}

/// An event that follows a hand-over.
#[derive(Debug, Clone, Copy)]
enum Then {
    Nothing,
    Kill,
    Pause(u64),
    Cut(u64),
    Stall(u64),
}

/// A cluster, its faults, and the oracle.
#[derive(Debug)]
pub struct World {
    network: Rc<RefCell<Network>>,
    nodes: [Option<Node>; NODES],
    /// The time until which a node is stopped.
    paused_until: [u64; NODES],
    promises: Promises,
    config: Config,
    fault: Option<Fault>,
    /// The number of nodes.
    count: usize,
    /// Whether nodes have faults of their own, the server has, and the standby is promoted.
    harms_nodes: bool,
    harms_server: bool,
    fails_over: bool,
    /// When the last fault is over.
    healthy_from: u64,
    /// The time until which it may be unknown whether a request was carried out.
    excused_until: u64,
    /// The last step in words, if steps are told.
    told: Option<String>,
    traces: bool,
    length: usize,
}

impl life::Fault for Fault {
    type World = World;
}

impl Lives for World {
    type Fault = Fault;

    fn new(seed: u64, fault: Option<Fault>) -> Result<World, String> {
        let mut rng = Rng::with_seed(seed);
        let fails_over = rng.u32(0..3) == 0;
        let lag = match fails_over {
            true => rng.usize(1..80),
            false => 0,
        };
        let idle = TERMS.idle_within().as_micros();
        let server = Server::new(lag, u64::try_from(idle).unwrap_or(u64::MAX), fault);
        let config = Config {
            page: rng.usize(1..64),
            max_in_commit: rng.usize(1..64),
            retry_delays: vec![Duration::from_secs(1)],
            hands_over: true,
            ids_in_epoch: match rng.u32(0..3) {
                0 => rng.u64(6..24),
                _ => Id::IN_EPOCH,
            },
            ..Config::default()
        };
        let count = if rng.bool() { 3 } else { 2 };
        let (harms_nodes, harms_server) = (rng.u32(0..4) > 0, rng.bool());
        let length = rng.usize(10..80);
        let now = rng.u64(0..1_000 * SECOND);
        let mut network = Network::new(rng, now, server);
        for link in &mut network.links {
            link.rate = [955, 1_000, 1_045][network.rng.usize(0..3)];
        }
        let network = Rc::new(RefCell::new(network));
        let mut world = World {
            network,
            nodes: [const { None }; NODES],
            paused_until: [0; NODES],
            promises: Promises::default(),
            config,
            fault,
            count,
            harms_nodes,
            harms_server,
            fails_over,
            healthy_from: now,
            excused_until: 0,
            told: None,
            traces: std::env::var_os("WATERWHEEL_TRACE").is_some(),
            length,
        };
        (0..count).for_each(|node| world.start(node));
        world.pass(SECOND)?;
        Ok(world)
    }

    fn length(&mut self) -> usize {
        self.length
    }

    fn chance(&self) -> u64 {
        self.network.borrow().rng.get_seed()
    }

    fn set_chance(&mut self, state: u64) {
        self.network.borrow_mut().rng.seed(state);
    }

    fn step(&mut self) -> Result<(), String> {
        let action = self.choose();
        let now = self.network.borrow().now;
        if self.traces {
            eprintln!("{now}: {action:?}");
        }
        if let Some(told) = &mut self.told {
            *told = format!("{action:?}");
        }
        self.act(action)?;
        self.settle()?;
        if let Some(told) = &mut self.told {
            let packets = self.network.borrow().packets();
            told.push_str(&format!(", {packets} packets so far"));
        }
        self.is_prompt()
    }

    fn rest(&mut self) -> Result<(), String> {
        self.heal();
        self.pass(RECOVERY)
    }

    fn come_to_an_end(&mut self) -> Result<(), String> {
        self.heal();
        for _ in 0..20 {
            // One that was stopping has ended meanwhile.
            (0..self.count).for_each(|node| self.start(node));
            self.pass(10 * SECOND)?;
            self.is_prompt()?;
            let left = self.network.borrow().server.tables.timers.len();
            let is_idle = self.nodes.iter().flatten().any(Node::is_idle);
            if left == 0 && is_idle {
                return self.promises.is_done();
            }
        }
        let left = self.network.borrow().server.tables.timers.len();
        Err(format!("it does not come to an end: {left} are left"))
    }

    fn tells(&mut self) {
        self.told = Some(String::new());
    }

    fn told(&self) -> &str {
        self.told.as_deref().unwrap_or_default()
    }
}

impl World {
    fn start(&mut self, node: usize) {
        if self.nodes[node].is_none() {
            let network = Rc::clone(&self.network);
            let client = Client { network, node };
            let looks = self.fault != Some(Fault::LeaseNotLookedAt);
            self.nodes[node] = Some(Node::new(client, TERMS, self.config.clone(), looks));
            self.paused_until[node] = 0;
            self.mark_trouble(node, 0);
        }
    }

    /// A duration around one TTL: most are shorter.
    fn some_time(rng: &mut Rng) -> u64 {
        match rng.u32(0..3) {
            0 => rng.u64(0..TTL / 3),
            1 => rng.u64(0..2 * TTL),
            _ => rng.u64(TTL * 9 / 10..TTL * 3 / 2),
        }
    }

    /// Latencies around those of a heartbeat that fails.
    fn some_latencies(rng: &mut Rng) -> [u64; 2] {
        std::array::from_fn(|_| rng.u64(0..3) * SECOND / 2)
    }

    fn choose(&mut self) -> Action {
        let mut network = self.network.borrow_mut();
        let rng = &mut network.rng;
        let node = rng.usize(0..self.count);
        let owner = (0..self.count).find(|it| {
            let opening = self.nodes[*it].as_ref().and_then(Node::opening);
            opening.is_some_and(|it| Some(it.owner) == self.promises.latest)
        });
        // Most faults concern the owner.
        let node = owner.filter(|_| rng.u32(0..4) > 0).unwrap_or(node);
        let time = World::some_time(rng);
        match rng.u32(0..100) {
            0..30 => Action::Insert(rng.usize(1..6)),
            30..35 => Action::Cancel,
            35..60 => Action::Wait(match rng.u32(0..3) {
                0 => rng.u64(0..20_000),
                1 => rng.u64(0..SECOND),
                _ => rng.u64(0..2 * TTL),
            }),
            60..64 => Action::Start(node),
            64..66 => Action::Heal,
            66 => Action::Stop(node),
            67 if self.harms_nodes => Action::Wedge(node),
            87 if self.harms_server => Action::Refuse(node),
            68..70 if self.harms_nodes => Action::Kill(node),
            70..75 if self.harms_nodes => Action::Pause(node, time),
            75..79 if self.harms_nodes => Action::Cut(node, time),
            79..82 if self.harms_nodes => Action::Delay(node, time, World::some_latencies(rng)),
            82 if self.harms_nodes => Action::Slow {
                node,
                micros: time,
                in_statement: rng.bool(),
            },
            83..85 if self.harms_nodes => Action::Race {
                owner: node,
                stops: TTL + rng.u64(0..SECOND),
                is_cut: rng.bool(),
                latencies: match rng.bool() {
                    true => World::some_latencies(rng),
                    false => [0; 2],
                },
            },
            85..87 if self.harms_nodes => Action::Reset(node),
            88..90 if self.harms_nodes => Action::SwallowCommit(node),
            90..93 if self.harms_server => Action::Restart(time),
            93..95 if self.harms_server => Action::Stall(time),
            95 if self.fails_over => Action::LoseTakeOver {
                owner: node,
                gives_back: rng.bool(),
                leaves: rng.bool(),
            },
            96..98 if self.fails_over => Action::FailOver(rng.usize(0..80), rng.u64(0..TTL)),
            98..100 => Action::HandOver(
                node,
                match rng.u32(0..5) {
                    0 if self.harms_nodes => Then::Kill,
                    1 if self.harms_nodes => Then::Pause(TTL + rng.u64(0..2 * SECOND)),
                    2 if self.harms_nodes => Then::Cut(time),
                    3 if self.harms_server => Then::Stall(TTL + rng.u64(0..2 * SECOND)),
                    _ => Then::Nothing,
                },
            ),
            _ => Action::Wait(rng.u64(0..200_000)),
        }
    }

    /// A fault of the whole cluster lasts for this time.
    fn mark_unhealthy(&mut self, micros: u64) -> u64 {
        let mut network = self.network.borrow_mut();
        let now = network.now;
        let until = now + micros;
        for link in &mut network.links {
            // A take-over from a node that had trouble may be under way, and end later.
            if link.trouble_until + TTL + SECOND > now {
                link.trouble_until = link.trouble_until.max(until);
            }
        }
        drop(network);
        self.healthy_from = self.healthy_from.max(until);
        self.excused_until = self.excused_until.max(until + TTL);
        until
    }

    /// A fault of this node lasts for this time.
    fn mark_trouble(&mut self, node: usize, micros: u64) -> u64 {
        let until = self.mark_unhealthy(micros);
        let link = &mut self.network.borrow_mut().links[node];
        link.trouble_until = link.trouble_until.max(until);
        until
    }

    /// Something happens to this node that a lease outlasts, and that leaves no outcome unknown.
    fn mark_minor(&mut self, node: usize) {
        let excused_until = self.excused_until;
        self.mark_trouble(node, SECOND);
        self.excused_until = excused_until;
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::Insert(count) => (0..count).for_each(|_| self.insert()),
            Action::Cancel => {
                let node = self.network.borrow_mut().rng.usize(0..self.count);
                self.cancel(node);
            }
            Action::Wait(micros) => self.pass(micros)?,
            Action::Pause(node, micros) => {
                self.paused_until[node] = self.mark_trouble(node, micros);
            }
            Action::Cut(node, micros) => {
                let until = self.mark_trouble(node, micros);
                self.network.borrow_mut().links[node].cut_until = until;
            }
            Action::Delay(node, micros, latency) => {
                let late = latency[0].max(latency[1]);
                let until = self.mark_trouble(node, micros + late);
                let link = &mut self.network.borrow_mut().links[node];
                (link.late_until, link.latency) = (until, latency);
            }
            Action::Race {
                owner,
                stops,
                is_cut,
                latencies,
            } => {
                (0..self.count).try_for_each(|node| {
                    self.act(Action::Delay(node, stops + 2 * SECOND, latencies))
                })?;
                self.pass(SECOND)?;
                // Due while the lease runs out.
                self.insert_until(TTL, TTL * 7 / 5);
                self.pass(SECOND / 2)?;
                match is_cut {
                    true => self.act(Action::Cut(owner, stops))?,
                    false => self.act(Action::Pause(owner, stops))?,
                }
                self.pass(stops)?;
            }
            Action::LoseTakeOver {
                owner,
                gives_back,
                leaves,
            } => {
                // Due after the failover.
                self.insert_until(TTL + SECOND, TTL + 4 * SECOND);
                self.pass(SECOND / 10)?;
                match gives_back {
                    true => self.act(Action::Stop(owner))?,
                    false => self.act(Action::Pause(owner, TTL + SECOND))?,
                }
                self.pass(TTL + SECOND)?;
                self.lose_take_over(owner)?;
                self.start(owner);
                (0..4).for_each(|_| self.cancel(owner));
                if leaves {
                    self.act(Action::Stop(owner))?;
                }
                self.pass(SECOND)?;
            }
            Action::Slow {
                node,
                micros,
                in_statement,
            } => {
                let until = self.mark_trouble(node, micros);
                let mut network = self.network.borrow_mut();
                for pid in network.sessions_of(node) {
                    match in_statement {
                        true => network.server.slow_from_snapshot(pid, until),
                        false => network.server.slow_down(pid, until),
                    }
                }
            }
            Action::Wedge(node) => {
                let mut network = self.network.borrow_mut();
                let until = network.now + 60 * SECOND;
                for pid in network.sessions_of(node) {
                    network.server.slow_down(pid, until);
                }
                drop(network);
                self.act(Action::Kill(node))?;
            }
            Action::Refuse(node) => {
                let mut network = self.network.borrow_mut();
                for pid in network.sessions_of(node) {
                    network.server.refuse(pid);
                }
            }
            Action::Reset(node) => {
                self.mark_minor(node);
                let mut network = self.network.borrow_mut();
                for pid in network.sessions_of(node) {
                    network.server.terminate(pid);
                }
            }
            Action::SwallowCommit(node) => {
                self.mark_minor(node);
                self.network.borrow_mut().links[node].swallows_commit = true;
            }
            Action::Kill(node) => {
                self.mark_trouble(node, 0);
                self.nodes[node] = None;
                self.promises.killed(node);
            }
            Action::Stop(node) => {
                self.mark_minor(node);
                self.nodes[node].iter_mut().for_each(Node::stop);
            }
            Action::HandOver(node, then) => {
                self.insert_until(0, SECOND);
                self.pass(SECOND / 2)?;
                self.act(Action::Stop(node))?;
                let passes = self.network.borrow_mut().rng.u64(0..SECOND);
                self.pass(passes)?;
                if self.fails_over && matches!(then, Then::Nothing | Then::Cut(_)) {
                    // The hand-over is lost, or the take-over that has followed.
                    let loses = self.network.borrow_mut().rng.usize(0..24);
                    self.act(Action::FailOver(loses, 0))?;
                }
                match then {
                    Then::Nothing => {}
                    Then::Kill => self.act(Action::Kill(node))?,
                    Then::Pause(micros) => self.act(Action::Pause(node, micros))?,
                    Then::Cut(micros) => self.act(Action::Cut(node, micros))?,
                    Then::Stall(micros) => self.act(Action::Stall(micros))?,
                }
                self.pass(TTL + SECOND)?;
                if self.fails_over && matches!(then, Then::Pause(_)) {
                    self.lose_take_over(node)?;
                }
                self.pass(SECOND)?;
            }
            Action::Start(node) => self.start(node),
            Action::Restart(micros) => {
                let until = self.mark_unhealthy(micros);
                self.network.borrow_mut().server.restart(until);
            }
            Action::FailOver(loses, micros) => {
                let until = self.mark_unhealthy(micros);
                self.network.borrow_mut().server.terminate_all();
                self.check()?;
                let mut network = self.network.borrow_mut();
                let lost = network.server.fail_over(loses, until);
                self.promises.reverted(&lost, &mut network.server.tables);
                if self.traces {
                    eprintln!("lost: {lost:?}");
                }
            }
            Action::Stall(micros) => {
                let until = self.mark_unhealthy(micros);
                self.network.borrow_mut().server.stalled_until = until;
            }
            Action::Heal => self.heal(),
        }
        Ok(())
    }

    /// A failover loses the last take-over, from this node. The new owner is cut off.
    fn lose_take_over(&mut self, owner: usize) -> Result<(), String> {
        let opening = |node: &usize| self.nodes[*node].as_ref().and_then(Node::opening);
        let latest = self.promises.latest;
        let taker = (0..self.count).find(|it| opening(it).map(|it| it.owner) == latest);
        if let Some(taker) = taker.filter(|it| *it != owner) {
            self.act(Action::Cut(taker, TTL))?;
        }
        let loses = self.network.borrow().server.commits_since_take();
        match loses {
            Some(loses) => self.act(Action::FailOver(loses, 0)),
            None => Ok(()),
        }
    }

    fn heal(&mut self) {
        let mut network = self.network.borrow_mut();
        let now = network.now;
        for link in &mut network.links {
            (link.cut_until, link.late_until) = (0, 0);
            link.swallows_commit = false;
        }
        network.server.down_until = network.server.down_until.min(now);
        network.server.stalled_until = network.server.stalled_until.min(now);
        self.paused_until = [0; NODES];
        drop(network);
        self.mark_unhealthy(0);
    }

    /// Cancels a random timer at this node, if it runs an engine.
    fn cancel(&mut self, node: usize) {
        let mut network = self.network.borrow_mut();
        let handle = self.promises.any(&mut network.rng);
        let is_awake = self.paused_until[node] <= network.now;
        drop(network);
        let node = self.nodes[node].as_mut().filter(|_| is_awake);
        if let (Some(handle), Some(node)) = (handle, node) {
            node.cancel(&mut self.promises, handle);
        }
    }

    fn insert(&mut self) {
        let mut network = self.network.borrow_mut();
        let now = network.now;
        let rng = &mut network.rng;
        let later = match rng.u32(0..4) {
            0 => 0,
            1 => rng.u64(0..SECOND),
            2 => rng.u64(0..100 * SECOND),
            _ => rng.u64(0..2 * TTL),
        };
        drop(network);
        self.insert_due(now + later);
    }

    /// Inserts timers that are due within these durations from now.
    fn insert_until(&mut self, from: u64, to: u64) {
        for number in 0..16 {
            let now = self.network.borrow().now;
            self.insert_due(now + from + (to - from) / 16 * number);
        }
    }

    /// Inserts a timer that is due at this time since boot, in a process that is an owner.
    fn insert_due(&mut self, at: u64) {
        let mut network = self.network.borrow_mut();
        let now = network.now;
        let rng = &mut network.rng;
        let key = (rng.u32(0..4) == 0).then(|| rng.u8(0..3));
        let handler = HANDLERS[rng.usize(0..HANDLERS.len())];
        let any = rng.usize(0..self.count);
        drop(network);
        let due = Due::from_millis((WALL + at.cast_signed()) / 1_000);
        // A stopped process accepts nothing.
        let is_awake = |node: &usize| self.paused_until[*node] <= now;
        let owns = |node: &usize| {
            self.nodes[*node]
                .as_ref()
                .is_some_and(|it| it.opening().is_some())
        };
        let node = (0..self.count).map(|it| (it + any) % self.count);
        let node = node.filter(is_awake).find(owns);
        if let Some(node) = node.and_then(|node| self.nodes[node].as_mut()) {
            node.insert(&mut self.promises, handler, due, key);
        }
    }

    /// Lets time pass.
    fn pass(&mut self, micros: u64) -> Result<(), String> {
        let end = self.network.borrow().now + micros;
        loop {
            self.settle()?;
            let next = self.network.borrow().next_event();
            let paused = self.paused_until.iter().copied();
            let now = self.network.borrow().now;
            let next = next.into_iter().chain(paused.filter(|at| *at > now)).min();
            match next.filter(|at| *at <= end) {
                Some(at) => self.network.borrow_mut().now = at,
                None => break,
            }
        }
        self.network.borrow_mut().now = end;
        self.settle()
    }

    /// Lets everything happen that happens now.
    fn settle(&mut self) -> Result<(), String> {
        self.network.borrow_mut().deliver();
        self.check()?;
        let now = self.network.borrow().now;
        self.promises.may_be_unknown = now < self.excused_until;
        for node in 0..self.count {
            let is_awake = self.paused_until[node] <= now;
            if let Some(it) = self.nodes[node].as_mut().filter(|_| is_awake)
                && it.poll(&mut self.promises)?
            {
                self.nodes[node] = None;
            }
            self.check_running()?;
        }
        Ok(())
    }

    /// Checks that no timer is with two handlers, and that limits hold for all processes together. A handler whose process has lost the lease does not count.
    fn check_running(&self) -> Result<(), String> {
        let nodes = self.nodes.iter().flatten();
        let nodes = nodes.filter(|it| it.is_lease_held());
        let running: Vec<_> = nodes.flat_map(Node::with_handlers).collect();
        let mut ids: Vec<Id> = running.iter().map(|row| row.id).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("with two handlers: {:?}", pair[0]));
        }
        for handler in HANDLERS {
            let count = running.iter().filter(|row| *row.handler == *handler);
            let count = count.count();
            if count > CONCURRENCY {
                return Err(format!("{count} deliveries of {handler} run at a time"));
            }
        }
        Ok(())
    }

    /// Checks what the server has committed.
    fn check(&mut self) -> Result<(), String> {
        let mut network = self.network.borrow_mut();
        let committed = std::mem::take(&mut network.server.committed);
        for committed in committed {
            if self.traces {
                eprintln!("{}: {committed:?}", network.now);
            }
            self.check_removal(&committed.writes, &network)?;
            let tables = &mut network.server.tables;
            self.promises.committed(&committed, tables)?;
        }
        Ok(())
    }

    /// Checks that a node is declared dead only if something has happened to it.
    fn check_removal(&self, writes: &[Write], network: &Network) -> Result<(), String> {
        // A node that leaves removes its own row, without a heartbeat.
        let is_claim = writes.iter().any(|it| matches!(it, Write::Beat(_)));
        for write in writes.iter().filter(|_| is_claim) {
            let Write::Remove(dead) = write else {
                continue;
            };
            let lives = (0..self.count).find(|node| {
                let link = &network.links[*node];
                let has_trouble = link.trouble_until + TTL + SECOND > network.now;
                self.nodes[*node].is_some() && link.node == Some(*dead) && !has_trouble
            });
            if let Some(node) = lives {
                return Err(format!("the node {node} lives, and is declared dead"));
            }
        }
        Ok(())
    }

    /// Checks that, without faults, each timer that is due is with a handler, or no place of its handler is free.
    fn is_prompt(&mut self) -> Result<(), String> {
        let nodes = self.nodes.iter().flatten();
        let running = nodes.flat_map(Node::with_handlers);
        let running: Vec<_> = running
            .map(|row| (row.id, Arc::clone(&row.handler)))
            .collect();
        let mut network = self.network.borrow_mut();
        let now = network.now;
        let is_any = self.nodes.iter().flatten().any(Node::is_open);
        if !is_any || now < self.healthy_from + RECOVERY {
            return Ok(());
        }
        let overdue = now.saturating_sub(5 * SECOND);
        let before = Due::from_millis((WALL + overdue.cast_signed()) / 1_000).second();
        for handler in HANDLERS {
            let timers = &mut network.server.tables.timers;
            let limit = PageLimit::rows(usize::MAX);
            let rows = timers.load(handler, RowCursor::START, before, limit);
            let rows = rows.unwrap_or_default().into_iter();
            // Timers whose starts are noted are tried one at a time.
            for row in rows.filter(|it| it.start_count() == 0) {
                let is_running = running.iter().any(|(id, _)| *id == row.id)
                    || self.promises.has_ended_since(row.id, overdue);
                let of_handler = running.iter().filter(|(_, of)| **of == *handler);
                if !is_running && of_handler.count() < CONCURRENCY {
                    return Err(format!("overdue, and with no handler: {row:?}"));
                }
            }
        }
        Ok(())
    }
}
