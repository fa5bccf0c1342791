//! What happens next?

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable::engine::{
    Answer, Call, Config, Ended, Engine, NewTimer, Now, Output, Token,
};
use waterwheel_store::{Due, Handle, Id, Most, Row, Store};

use crate::disk::{Broken, Disk};
use crate::model::Model;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
const LADDER: [u64; 3] = [1, 20, 400];
/// More than a row takes beside its payload, as the engine counts.
const ROW_BYTES: usize = 300;
const HANDLERS: [&str; 3] = ["mail", "close", "later"];

/// A promise that was not kept in the life of a seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broke {
    /// The seed that repeats it.
    pub seed: u64,
    /// After how many steps.
    pub step: usize,
    /// What was not kept.
    pub what: String,
}

impl fmt::Display for Broke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broke { seed, step, what } = self;
        write!(f, "seed {seed}, step {step}: {what}")
    }
}

impl std::error::Error for Broke {}

/// Runs the life of a seed.
///
/// # Errors
///
/// What was promised and not kept.
pub fn run(seed: u64, broken: Option<Broken>) -> Result<(), Broke> {
    let mut world = World::new(seed, broken);
    let most = if world.rng.u32(0..4) == 0 { 1_000 } else { 200 };
    let steps = world.rng.usize(20..most);
    let mut step = 0;
    let mut live = || {
        while step < steps {
            world.step()?;
            step += 1;
        }
        world.come_to_an_end()
    };
    let lived: Result<(), String> = live();
    lived.map_err(|what| Broke { seed, step, what })
}

struct World {
    rng: Rng,
    now: Now,
    disk: Disk,
    engine: Engine,
    model: Model,
    with_handlers: Vec<Row>,
    /// All that is due from now on comes up, and nothing goes wrong.
    is_ending: bool,
    has_faults: bool,
    /// The engine was stopped, and the process has not ended yet.
    is_stopping: bool,
    /// The last commit that the engine has asked for, if it was not answered.
    writes: Option<u64>,
    jumps: bool,
    /// A crash mends what is wrong in memory alone, and so hides it.
    crashes: bool,
    /// Where it is 1, most of what is due waits for its handler.
    most_concurrency: usize,
    /// Half of the cancels and reschedules are of what is delivered next.
    asks_for_near: bool,
    /// Some of the cancels and reschedules have a handle with the right id and with something else that is wrong.
    forges: bool,
    /// Most timers are due within seconds.
    is_near: bool,
    /// How large payloads are at most.
    largest: usize,
    traces: bool,
    config: Config,
}

impl World {
    fn new(seed: u64, broken: Option<Broken>) -> World {
        let mut rng = Rng::with_seed(seed);
        let wall = 1_800_000_000 * SECOND + rng.i64(0..DAY);
        let now = Now {
            boot_micros: rng.u64(0..1_000_000_000),
            wall_micros: wall,
        };
        let has_faults = rng.bool();
        let config = Config {
            window: rng.i64(0..4),
            page: rng.usize(1..8),
            most_in_memory: rng.usize(1..20),
            most_bytes_in_memory: match rng.u32(0..4) {
                0 => rng.usize(0..10_000),
                _ => usize::MAX,
            },
            ladder: LADDER.map(Duration::from_secs).to_vec(),
            most_in_commit: rng.usize(1..12),
            reply_micros: if has_faults { 5_000_000 } else { u64::MAX },
            refused_micros: 200_000,
            largest_drift_micros: 1_000,
        };
        let refuses = if rng.u32(0..4) == 0 { 30 } else { 2 };
        let mut disk = Disk::new(broken, refuses);
        let engine = begin(&mut disk, &config, now);
        let mut world = World {
            has_faults,
            jumps: rng.bool(),
            crashes: rng.bool(),
            most_concurrency: if rng.bool() { 1 } else { 5 },
            asks_for_near: rng.bool(),
            forges: rng.bool(),
            is_near: rng.u32(0..3) == 0,
            largest: [1, 1_000][rng.usize(0..2)],
            traces: std::env::var_os("WATERWHEEL_TRACE").is_some(),
            rng,
            now,
            disk,
            engine,
            model: Model::default(),
            with_handlers: Vec::new(),
            is_ending: false,
            is_stopping: false,
            writes: None,
            config,
        };
        world.deploy();
        world
    }

    fn step(&mut self) -> Result<(), String> {
        match self.rng.u32(0..100) {
            0..14 => self.insert(),
            14..18 => self.cancel(),
            18..22 => self.reschedule(),
            22 => self.redrive(),
            23..38 => self.end_delivery(),
            38..58 => {
                self.disk.work(&mut self.rng, self.has_faults);
                if self.crashes && self.disk.is_unsynced() && self.rng.u32(0..6) == 0 {
                    self.crash()?;
                }
            }
            58..78 => self.reply(),
            78..95 => self.wait(),
            95..97 if self.jumps => self.jump(),
            96 => self.slew(),
            97 => self.deploy(),
            98 if self.crashes => self.crash()?,
            99 if self.rng.u32(0..4) == 0 => self.stop()?,
            _ => {}
        }
        self.follow()
    }

    fn insert(&mut self) {
        let key = (self.rng.u32(0..5) == 0).then(|| Arc::from([self.rng.u8(0..3)]));
        let timer = NewTimer {
            handler: Arc::from(HANDLERS[self.rng.usize(0..HANDLERS.len())]),
            due: self.some_due(),
            key,
            payload: vec![7; self.rng.usize(0..self.largest)].into(),
        };
        let token = self.model.inserts(timer.due, timer.key.clone());
        self.engine.insert(token, timer);
    }

    fn cancel(&mut self) {
        if let Some(mut handle) = self.any() {
            let token = self.model.cancels(handle.id);
            self.forge(token, &mut handle);
            self.engine.cancel(token, handle);
        }
    }

    fn reschedule(&mut self) {
        if let Some(mut handle) = self.any() {
            let due = self.some_due();
            let token = self.model.reschedules(handle.id, due);
            self.forge(token, &mut handle);
            self.engine.reschedule(token, handle, due);
        }
    }

    fn any(&mut self) -> Option<Handle> {
        match self.asks_for_near && self.rng.bool() {
            true => self.model.any_near(&mut self.rng),
            false => self.model.any(&mut self.rng),
        }
    }

    /// Perhaps the handle of a request is not as it should be: it was mangled, or made up.
    fn forge(&mut self, token: Token, handle: &mut Handle) {
        if self.forges && self.rng.u32(0..4) == 0 {
            match self.rng.u32(0..3) {
                0 => handle.handler = Arc::from("nowhere"),
                1 => handle.handler = Arc::from(HANDLERS[self.rng.usize(0..HANDLERS.len())]),
                _ => handle.due = self.some_due(),
            }
            self.model.forges(token);
        }
    }

    fn redrive(&mut self) {
        if self.disk.is_unsynced() {
            // The store's one thread lists no letter before it is durable.
            return;
        }
        let dead = self.disk.store().dead(Id::NONE, 1).unwrap_or_default();
        if let Some(dead) = dead.first().filter(|it| !self.model.is_redriven(it.row.id)) {
            let token = self.model.redrives(dead.row.id);
            self.engine.redrive(token, dead.row.id);
        }
    }

    fn some_due(&mut self) -> Due {
        let rng = &mut self.rng;
        let kinds = if self.is_near { 4 } else { 8 };
        let later = match rng.u32(0..kinds) {
            0 => rng.i64(-DAY..1),
            1 => rng.i64(0..3_000),
            2..4 => rng.i64(0..5 * SECOND),
            4 => rng.i64(0..100 * SECOND),
            5 => rng.i64(0..7_200 * SECOND),
            6 => rng.i64(0..3 * DAY),
            _ => rng.i64(0..4_000 * DAY),
        };
        let due = self.now.wall_micros + later;
        Due::from_millis(due.div_euclid(1_000) + 1)
    }

    fn end_delivery(&mut self) {
        if self.with_handlers.is_empty() {
            return;
        }
        let which = self.rng.usize(0..self.with_handlers.len());
        let row = self.with_handlers.swap_remove(which);
        let fate = if self.is_ending {
            9
        } else {
            self.rng.u32(0..10)
        };
        let ended = match fate {
            0..3 => Ended::Failed(Arc::from("no")),
            3 => Ended::Dead(Arc::from("never")),
            _ => Ended::Well,
        };
        match &ended {
            Ended::Failed(_) => match LADDER.get(row.failures as usize) {
                Some(delay) => {
                    let delay = *delay as i64 * SECOND;
                    // The engine's time is that of its last turn.
                    let from = self.now.wall_micros.div_euclid(1_000) * 1_000;
                    self.model.failed(row.id, from + delay);
                }
                None => self.model.ended(row.id),
            },
            _ => self.model.ended(row.id),
        }
        self.engine.ended(row.id, ended);
    }

    /// Time goes on, towards what the engine waits for, or not.
    fn wait(&mut self) {
        let next = self.engine.next_turn();
        let towards = next.map_or(0, |next| next.saturating_sub(self.now.boot_micros));
        let micros = match self.rng.u32(0..6) {
            0 => self.rng.u64(0..2_000),
            1 => self.rng.u64(0..2_000_000),
            2 => towards / 2,
            3 => towards + self.rng.u64(0..5_000),
            _ => towards,
        };
        self.pass(micros);
    }

    fn pass(&mut self, micros: u64) {
        self.now.boot_micros += micros;
        self.now.wall_micros += micros.cast_signed();
        self.engine.turn(self.now);
    }

    /// The wall clock is set.
    fn jump(&mut self) {
        let by = match self.rng.u32(0..5) {
            0 => self.rng.i64(-3_000..3_000),
            1 => self.rng.i64(-2 * SECOND..2 * SECOND),
            2 => 3_600 * SECOND,
            3 => -3_600 * SECOND,
            _ => self.rng.i64(-400 * DAY..400 * DAY),
        };
        self.now.wall_micros += by;
        self.engine.turn(self.now);
    }

    /// The wall clock goes a little faster or slower.
    fn slew(&mut self) {
        self.now.wall_micros += self.rng.i64(-500..500);
        self.engine.turn(self.now);
    }

    /// A handler that was missing is there.
    fn deploy(&mut self) {
        for handler in HANDLERS {
            if self.is_ending || self.rng.u32(0..3) > 0 {
                let concurrency = self.rng.usize(1..=self.most_concurrency);
                self.engine.handle(&Arc::from(handler), concurrency);
            }
        }
    }

    fn reply(&mut self) {
        if let Some((number, reply)) = self.disk.reply(&mut self.rng) {
            if self.traces {
                eprintln!("{number} is answered: {reply:?}");
            }
            self.engine.replied(number, reply);
            self.writes = self.writes.filter(|asked| *asked != number);
        }
    }

    /// The service shuts down, as far as it comes, and starts again.
    fn stop(&mut self) -> Result<(), String> {
        self.follow()?;
        if self.traces {
            eprintln!("the service shuts down");
        }
        self.engine.stop();
        self.is_stopping = true;
        // Perhaps not all deliveries come to an end in time.
        let is_patient = self.rng.bool();
        for _ in 0..50_000 {
            self.follow()?;
            let is_over = self.engine.is_written() && !is_patient;
            if !self.is_stopping {
                // The store has failed meanwhile.
                return Ok(());
            } else if self.engine.is_idle() || is_over {
                self.model.stopped(self.engine.is_idle())?;
                self.with_handlers.clear();
                return self.start_again();
            }
            match self.rng.u32(0..4) {
                0 if !self.with_handlers.is_empty() => self.end_delivery(),
                1 if self.disk.is_asked() => self.disk.work(&mut self.rng, self.has_faults),
                2 if self.disk.has_replied() => self.reply(),
                3 if self.rng.u32(0..8) == 0 => self.cancel(),
                _ if self.disk.is_asked() || self.disk.has_replied() => {}
                _ => {
                    let next = self.engine.next_turn().unwrap_or_default();
                    self.pass(next.saturating_sub(self.now.boot_micros));
                }
            }
        }
        Err(format!("it does not come to rest: {:?}", self.engine))
    }

    /// The machine stops, and starts again after a while.
    fn crash(&mut self) -> Result<(), String> {
        // What was answered was answered.
        self.follow()?;
        if self.traces {
            eprintln!("the machine stops");
        }
        self.disk.crash(&mut self.rng);
        self.model.crashed();
        self.with_handlers.clear();
        self.start_again()
    }

    /// A new process begins.
    fn start_again(&mut self) -> Result<(), String> {
        self.disk.restart();
        (self.is_stopping, self.writes) = (false, None);
        let off = match self.rng.u32(0..3) {
            0 => self.rng.i64(0..SECOND),
            1 => self.rng.i64(0..DAY),
            _ => self.rng.i64(0..40 * DAY),
        };
        self.now.boot_micros = self.rng.u64(0..60_000_000);
        self.now.wall_micros += off;
        self.engine = begin(&mut self.disk, &self.config, self.now);
        self.deploy();
        Ok(())
    }

    /// Does what the engine wants done.
    fn follow(&mut self) -> Result<(), String> {
        while let Some(output) = self.engine.output() {
            if self.traces {
                eprintln!("{:?} {output:?}", self.now);
            }
            match output {
                Output::Store(request) => {
                    match &request.call {
                        Call::Commit(..) => self.writes = Some(request.number),
                        Call::Load { most, .. } => self.is_light(*most)?,
                        _ => {}
                    }
                    self.disk.ask(request);
                }
                Output::Deliver(delivery) if self.is_stopping => {
                    return Err(format!("delivered after a stop: {:?}", delivery.row));
                }
                Output::Deliver(delivery) => {
                    self.model.delivered(&delivery.row, self.now.wall_micros)?;
                    self.with_handlers.push(delivery.row);
                }
                Output::Answer(token, answer) => {
                    if answer == Answer::OutOfIds {
                        return Err("out of ids".to_owned());
                    }
                    self.model.answered(token, answer)?;
                }
                Output::Failed(_) => return self.crash(),
                Output::Unhandled(_) | Output::Dead(..) => {}
            }
        }
        match self.writes {
            Some(commit) if self.engine.is_written() && !self.engine.has_failed() => Err(format!(
                "all is written, says the engine, and {commit} is not answered"
            )),
            _ => self.is_bounded(),
        }
    }

    /// A load brings no more than may be in memory, but for its last row.
    fn is_light(&self, most: Most) -> Result<(), String> {
        let all = self.config.most_bytes_in_memory.max(1);
        match most.bytes <= all && most.rows <= self.config.most_in_memory {
            true => Ok(()),
            false => Err(format!("{most:?} is loaded, of {all} bytes")),
        }
    }

    /// No more is in memory than may be: a row of each handler beside the bytes.
    fn is_bounded(&self) -> Result<(), String> {
        let payloads: usize = self.with_handlers.iter().map(Row::bytes).sum();
        let (held, bytes) = (self.engine.held(), self.engine.held_bytes());
        let most = HANDLERS.len() * self.config.most_in_memory;
        let largest = HANDLERS.len() * (self.largest + ROW_BYTES);
        let most_bytes = self.config.most_bytes_in_memory.saturating_add(largest);
        match held <= most && bytes <= most_bytes && payloads <= bytes {
            true => Ok(()),
            false => Err(format!(
                "{held} of {most} timers and {bytes} of {most_bytes} bytes are in memory, {payloads} are with handlers"
            )),
        }
    }

    /// Lets all that is left come up.
    fn come_to_an_end(&mut self) -> Result<(), String> {
        (self.is_ending, self.has_faults) = (true, false);
        self.deploy();
        self.follow()?;
        let mut crashes = if self.crashes { 8 } else { 0 };
        for _ in 0..20_000 {
            let is_busy = self.disk.is_asked() || self.disk.has_replied();
            if self.disk.has_replied() {
                self.reply();
            } else if self.disk.is_asked() {
                self.disk.work(&mut self.rng, false);
                // Most cascades are now.
                if crashes > 0 && self.disk.is_unsynced() && self.rng.u32(0..8) == 0 {
                    crashes -= 1;
                    self.crash()?;
                }
            } else if !self.with_handlers.is_empty() {
                self.end_delivery();
            } else {
                match self.engine.next_turn() {
                    Some(next) => self.pass(next.saturating_sub(self.now.boot_micros)),
                    None if !is_busy => return self.is_done(),
                    None => {}
                }
            }
            self.follow()?;
        }
        let left = self.disk.store().len();
        Err(format!(
            "it does not come to an end: {left} are left, {:?}",
            self.engine
        ))
    }

    fn is_done(&mut self) -> Result<(), String> {
        self.model.is_done()?;
        let (stored, known) = (self.disk.store().len(), self.engine.in_memory());
        let (held, bytes) = (self.engine.held(), self.engine.held_bytes());
        let is_idle = self.engine.is_idle() && self.engine.is_written();
        match (stored, known, held, bytes, is_idle) {
            (0, 0, 0, 0, true) => Ok(()),
            _ => Err(format!(
                "{stored} are stored, {known} known, {held} and {bytes} bytes counted at the end"
            )),
        }
    }
}

fn begin(disk: &mut Disk, config: &Config, now: Now) -> Engine {
    let store = disk.store();
    let epoch = store.begin().unwrap_or(1);
    let handlers = store.handlers().unwrap_or_default();
    Engine::new(config.clone(), epoch, handlers, now)
}
