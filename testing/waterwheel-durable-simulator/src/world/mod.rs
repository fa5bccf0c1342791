//! The world of a life: it decides what happens next.
//!
//! | file | question |
//! |---|---|
//! | `calendars` | which calendars are declared and removed? |
//! | `deliveries` | how does a delivery end? |
//! | `namespaces` | which policies are set, and which namespaces are paused? |
//! | `commands` | which commands of other processes wait for their answers? |
//! | `requests` | what do callers and other processes ask for? |
//! | `process` | how does a process end, and the next one begin? |
//! | `watch` | what does the engine output, and what must hold each time? |

mod calendars;
mod commands;
mod deliveries;
mod namespaces;
mod process;
mod requests;
mod watch;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable_core::engine::{Config, Engine, Now, Token};
use waterwheel_durable_core::store::{Id, Row};

use crate::calendars::Calendars;
use crate::disk::{Broken, Disk, Replied};
use crate::life::{Fault, Lives};
use crate::model::Model;
use crate::namespaces::{NAMES, Namespaces, Shares, Terms};
use commands::Commands;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// A tick of the engine's wheel, in microseconds.
const TICK: u64 = 1_000;
const RETRY_DELAYS: [u64; 3] = [1, 20, 400];
const HANDLERS: [&str; 4] = ["mail", "shop/close", "shop/later", "bank/mail"];

/// A step of a life, with all random decisions about its type.
#[derive(Debug, Clone, Copy)]
enum Action {
    AskForCalendar,
    ChangeNamespace,
    ReadCommands,
    Insert,
    Command,
    Cancel,
    Reschedule,
    Redrive,
    EndDelivery,
    /// The store handles a request, and the machine may stop before the result is synced.
    Work {
        stops: bool,
    },
    Reply,
    Wait,
    Jump,
    Slew,
    Deploy,
    SetFull(bool),
    Crash,
    Stop,
    Nothing,
}

/// A store, an engine, and the oracles.
#[derive(Debug)]
pub struct World {
    rng: Rng,
    now: Now,
    disk: Disk,
    engine: Engine,
    model: Model,
    with_handlers: Vec<Row>,
    /// Deliveries whose handlers are not called yet, and when they were handed out.
    on_their_way: HashMap<Id, u64>,
    /// Whether the life is in its final phase: everything comes due, and nothing goes wrong.
    is_ending: bool,
    has_faults: bool,
    /// Whether the engine was stopped, but the process has not ended yet.
    is_stopping: bool,
    /// The last commit that the engine has requested, if it has no answer yet.
    writes: Option<u64>,
    /// Whether the store has no space for inserts now and then.
    fills: bool,
    jumps: bool,
    /// Whether the machine crashes. A crash repairs faults that exist in memory alone, and so hides them.
    crashes: bool,
    /// The maximum concurrency of a handler. If it is 1, most due timers wait for their handlers.
    max_concurrency: usize,
    /// Whether half of the cancels and reschedules are of timers that are delivered next.
    asks_for_near: bool,
    /// Whether some cancels and reschedules have a handle with the right id but another fault.
    forges: bool,
    /// Whether most timers are due within seconds.
    is_near: bool,
    /// The maximum length of payloads.
    largest: usize,
    /// The maximum number of concurrent deliveries of each handler: zero while it is missing.
    concurrency: [usize; HANDLERS.len()],
    /// The time until which the engine may wait before it asks again, in microseconds since boot: the store has refused, or a reply was lost.
    may_wait_until: u64,
    /// The oracle of namespaces, if they have policies.
    namespaces: Namespaces,
    has_policies: bool,
    shares: Shares,
    /// Whether namespaces have nothing but priorities, and most timers wait for a place.
    is_crowded: bool,
    /// Whether something may have been settled or archived, or has expired, since the archive was last checked.
    archives: bool,
    /// How far the wall clock was ahead of the other when last checked, in microseconds: slewing since then adds up.
    ahead_of_boot: i64,
    /// How often the wall clock was set in this process.
    jumps_made: u64,
    /// Timers whose starts were noted in this process, and those that may wait until another one was tried, as they were with their handlers at a
    /// process's end.
    starts: HashMap<Id, Arc<str>>,
    accused: HashMap<Id, Arc<str>>,
    /// Timers whose starts are being noted.
    starting: HashSet<Id>,
    /// An insert without an immediate answer, and its handler.
    inserts: Option<(Token, Arc<str>)>,
    /// The oracle of calendars, if there are any.
    calendars: Calendars,
    has_calendars: bool,
    /// How many seconds their zone is ahead of UTC.
    ahead: i64,
    /// The number of declarations.
    versions: u32,
    /// The number of the last requested commit.
    last_commit: u64,
    /// Commands from other processes that have not been answered.
    commands: Commands,
    traces: bool,
    /// The last step in words, if steps are told.
    told: Option<String>,
    config: Config,
}

impl Fault for Broken {
    type World = World;
}

impl Lives for World {
    type Fault = Broken;

    fn new(seed: u64, broken: Option<Broken>) -> Result<World, String> {
        let mut rng = Rng::with_seed(seed);
        let wall = 1_800_000_000 * SECOND + rng.i64(0..DAY);
        let now = Now {
            boot_micros: rng.u64(0..1_000_000_000),
            wall_micros: wall,
        };
        let has_faults = rng.bool();
        let has_policies = rng.bool();
        let is_crowded = has_policies && rng.u32(0..3) == 0;
        let mut ids = Rng::with_seed(!seed);
        let config = Config {
            window: rng.i64(0..4),
            page: rng.usize(1..8),
            max_in_memory: if is_crowded { 64 } else { rng.usize(1..20) },
            max_bytes_in_memory: match rng.u32(0..4) {
                0 => rng.usize(0..10_000),
                _ => usize::MAX,
            },
            retry_delays: RETRY_DELAYS.map(Duration::from_secs).to_vec(),
            concurrency: (is_crowded || has_policies && rng.bool()).then(|| rng.usize(1..6)),
            max_in_commit: rng.usize(1..12),
            max_bytes_in_commit: rng.usize(0..2_000),
            reply_micros: if has_faults { 5_000_000 } else { u64::MAX },
            refused_micros: 200_000,
            grace: Duration::from_millis(rng.u64(0..2_000)),
            largest_drift_micros: 1_000,
            partition: ids.u8(0..64),
            hands_over: false,
            // So few that a life needs several epochs.
            ids_in_epoch: match ids.u32(0..3) {
                0 => ids.u64(6..24),
                _ => Id::IN_EPOCH,
            },
        };
        let refuses = if rng.u32(0..4) == 0 { 30 } else { 2 };
        let mut disk = Disk::new(broken, refuses);
        let terms = std::array::from_fn(|_| match has_policies && rng.bool() {
            true => Terms::by_chance(&mut rng, is_crowded),
            false => Terms::default(),
        });
        disk.create(NAMES.into_iter().zip(&terms));
        let engine = disk.begin(&config, now, 0, &HANDLERS);
        let mut world = World {
            has_faults,
            fills: rng.u32(0..4) == 0,
            jumps: rng.bool(),
            crashes: rng.bool(),
            max_concurrency: if rng.bool() && !is_crowded { 1 } else { 5 },
            asks_for_near: rng.bool(),
            forges: rng.bool(),
            is_near: is_crowded || rng.u32(0..3) == 0,
            largest: [1, 1_000][rng.usize(0..2)],
            concurrency: [0; HANDLERS.len()],
            may_wait_until: 0,
            namespaces: Namespaces::new(terms, now.boot_micros),
            has_policies,
            shares: Shares::default(),
            is_crowded,
            archives: false,
            ahead_of_boot: 0,
            jumps_made: 0,
            starts: HashMap::new(),
            accused: HashMap::new(),
            starting: HashSet::new(),
            inserts: None,
            calendars: Calendars::default(),
            has_calendars: rng.u32(0..3) == 0,
            ahead: 0,
            versions: 0,
            last_commit: 0,
            commands: Commands::default(),
            traces: std::env::var_os("WATERWHEEL_TRACE").is_some(),
            told: None,
            rng,
            now,
            disk,
            engine,
            model: Model::default(),
            with_handlers: Vec::new(),
            on_their_way: HashMap::new(),
            is_ending: false,
            is_stopping: false,
            writes: None,
            config,
        };
        world.process_begins()?;
        world.deploy();
        Ok(world)
    }

    fn length(&mut self) -> usize {
        let limit = if self.rng.u32(0..4) == 0 { 1_000 } else { 200 };
        self.rng.usize(20..limit)
    }

    fn chance(&self) -> u64 {
        self.rng.get_seed()
    }

    fn set_chance(&mut self, state: u64) {
        self.rng.seed(state);
    }

    fn step(&mut self) -> Result<(), String> {
        let action = self.choose();
        self.tell(|| format!("{action:?}"));
        self.act(action)?;
        self.follow()
    }

    fn rest(&mut self) -> Result<(), String> {
        self.store_rests()
    }

    fn come_to_an_end(&mut self) -> Result<(), String> {
        self.all_comes_due()
    }

    fn tells(&mut self) {
        self.told = Some(String::new());
    }

    fn told(&self) -> &str {
        self.told.as_deref().unwrap_or_default()
    }

    fn trace_terms(&self) {
        if self.traces {
            eprintln!("{:?}\n{:?}", self.config, self.namespaces);
        }
    }
}

impl World {
    fn tell(&mut self, text: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            *told = text();
        }
    }

    fn choose(&mut self) -> Action {
        if self.has_calendars && self.rng.u32(0..20) == 0 {
            return Action::AskForCalendar;
        }
        if self.has_policies && self.rng.u32(0..16) == 0 {
            return Action::ChangeNamespace;
        }
        if self.commands.is_any() && self.rng.u32(0..10) == 0 {
            return Action::ReadCommands;
        }
        match self.rng.u32(0..100) {
            0..14 => Action::Insert,
            14 => Action::Command,
            15..18 => Action::Cancel,
            18..22 => Action::Reschedule,
            22 if self.rng.bool() => Action::Redrive,
            23..38 => Action::EndDelivery,
            38..58 => Action::Work {
                stops: self.crashes && self.rng.u32(0..6) == 0,
            },
            58..78 => Action::Reply,
            78..95 => Action::Wait,
            95..97 if self.jumps => Action::Jump,
            96 => Action::Slew,
            97 => Action::Deploy,
            22 => Action::SetFull(self.fills && self.rng.bool()),
            98 if self.crashes => Action::Crash,
            99 if self.crashes || self.rng.u32(0..4) == 0 => Action::Stop,
            _ => Action::Nothing,
        }
    }

    fn act(&mut self, action: Action) -> Result<(), String> {
        match action {
            Action::AskForCalendar => self.ask_for_calendar(),
            Action::ChangeNamespace => self.change_namespace(),
            Action::ReadCommands => self.commands.read(&mut self.engine),
            Action::Insert => self.insert(),
            Action::Command => self.command(),
            Action::Cancel => self.cancel(),
            Action::Reschedule => self.reschedule(),
            Action::Redrive => self.redrive(),
            Action::EndDelivery => self.end_delivery()?,
            Action::Work { stops } => {
                self.work(self.has_faults, stops);
                if stops && self.disk.is_unsynced() {
                    self.crash()?;
                }
            }
            Action::Reply => self.reply()?,
            Action::Wait => self.wait(),
            Action::Jump => self.jump(),
            Action::Slew => self.slew(),
            Action::Deploy => self.deploy(),
            Action::SetFull(is_full) => self.disk.set_full(is_full),
            Action::Crash => self.crash()?,
            Action::Stop => self.stop()?,
            Action::Nothing => {}
        }
        Ok(())
    }

    /// Lets time pass, possibly until the engine's next timeout.
    fn wait(&mut self) {
        let next = self.engine.poll_timeout();
        let towards = next.map_or(0, |next| next.saturating_sub(self.now.boot_micros));
        let micros = match self.rng.u32(0..6) {
            0 => self.rng.u64(0..2_000),
            1 => self.rng.u64(0..2_000_000),
            2 => towards / 2,
            3 => towards + self.rng.u64(0..5_000),
            _ => towards,
        };
        self.tell(|| format!("wait {micros} us"));
        self.pass(micros);
    }

    fn pass(&mut self, micros: u64) {
        self.now.boot_micros += micros;
        self.now.wall_micros += micros.cast_signed();
        self.turn();
    }

    fn turn(&mut self) {
        self.calendars.shows(self.now.wall_micros);
        self.engine.handle_time(self.now);
        let ahead = self.now.wall_micros - self.now.boot_micros.cast_signed();
        let shift = (ahead - self.ahead_of_boot).unsigned_abs();
        if shift >= self.config.largest_drift_micros {
            self.ahead_of_boot = ahead;
        }
        if shift >= SECOND.unsigned_abs() {
            self.jumps_made += 1;
            self.namespaces.clock_was_set(self.now.boot_micros);
        }
    }

    /// Sets the wall clock.
    fn jump(&mut self) {
        let kinds = if self.has_calendars { 9 } else { 5 };
        let by = match self.rng.u32(0..kinds) {
            0 => self.rng.i64(-3_000..3_000),
            1 => self.rng.i64(-2 * SECOND..2 * SECOND),
            2 => 3_600 * SECOND,
            3 => -3_600 * SECOND,
            // Some occurrences come again, and some are missed.
            5..7 => self.rng.i64(-100 * SECOND..0),
            7 => self.rng.i64(-DAY..0),
            8 => self.rng.i64(0..2 * DAY),
            _ => self.rng.i64(-400 * DAY..400 * DAY),
        };
        self.tell(|| format!("set the clock by {by} us"));
        self.now.wall_micros += by;
        self.turn();
    }

    /// Makes the wall clock run slightly faster or slower.
    fn slew(&mut self) {
        self.now.wall_micros += self.rng.i64(-500..500);
        self.turn();
    }

    /// Deploys a handler that was missing.
    fn deploy(&mut self) {
        for (handler, places) in HANDLERS.into_iter().zip(&mut self.concurrency) {
            if self.is_ending || self.rng.u32(0..3) > 0 {
                let concurrency = self.rng.usize(1..=self.max_concurrency);
                *places = concurrency;
                let name = Arc::from(handler);
                self.engine.add_handler(&name, concurrency, None);
            }
        }
    }

    fn work(&mut self, has_faults: bool, stops: bool) {
        if !self.disk.work(&mut self.rng, has_faults, stops) {
            self.may_wait(self.config.reply_micros);
        }
    }

    fn may_wait(&mut self, micros: u64) {
        let until = self.now.boot_micros.saturating_add(micros);
        self.may_wait_until = self.may_wait_until.max(until);
    }

    /// Notes that a timer was removed, or has moved: its noted starts no longer count.
    fn has_left(&mut self, id: Id) {
        self.starts.remove(&id);
        self.starting.remove(&id);
        self.accused.remove(&id);
    }

    fn reply(&mut self) -> Result<(), String> {
        if let Some(replied) = self.disk.reply(&mut self.rng) {
            if self.traces {
                eprintln!("reply: {replied:?}");
            }
            let is_done = replied.is_done();
            self.tell(|| format!("reply: {replied:?}"));
            let (Replied::Commit(number, _) | Replied::Read(number, _)) = replied;
            self.calendars.replied(number, is_done);
            for id in self.model.replied(number, is_done) {
                self.has_left(id);
            }
            if let Replied::Commit(_, Err(_)) | Replied::Read(_, Err(_)) = replied {
                self.may_wait(self.config.refused_micros);
            }
            match replied {
                Replied::Commit(_, outcomes) => self.engine.handle_committed(number, outcomes),
                Replied::Read(_, reply) => self.engine.handle_reply(number, reply),
            }
            if is_done {
                self.are_answered(number)?;
            }
            self.writes = self.writes.filter(|request| *request != number);
        }
        Ok(())
    }
}
