//! A process that is connected to the server: its ownership of the partition, and the engine that it runs while it is the owner.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use waterwheel_durable_core::engine::{
    Config, Delivery, Engine, Now, Output, Reply, Token, new_row,
};
use waterwheel_durable_core::store::{Due, Ended, Handle, Id, Outcome, Row, StoreError};
use waterwheel_durable_postgres::protocol::{
    Database, Event, Lease, Opening, Ownership, Terms, Writer,
};

use super::network::Client;
use super::promises::Promises;
use super::server::Begins;
use super::{CONCURRENCY, HANDLERS, LONGEST, WALL};

/// The time between reads of the ends of deliveries that were handed over, in microseconds.
const READS_ENDS_EVERY: u64 = 50_000;

/// The time between checks of an idle store, in microseconds.
const CHECKS_EVERY: u64 = 1_000_000;

/// The result of a request to the store.
enum Done {
    Begins(Result<Begins, StoreError>),
    Ends(Result<Vec<(Id, Option<Ended>)>, StoreError>),
    Commit(u64, Result<Vec<Outcome>, StoreError>),
    Read(u64, Result<Reply, StoreError>),
    Check(Result<(), StoreError>),
}

/// The store of a run, which carries out one request at a time.
enum Store {
    Idle(Writer<Client>),
    Busy(Pin<Box<dyn Future<Output = (Writer<Client>, Done)>>>),
    /// While the next request begins.
    Moved,
}

/// A run of an engine, from an opening until the engine ends.
struct Run {
    opening: Opening,
    lease: Lease,
    store: Store,
    engine: Option<Engine>,
    requests: VecDeque<Output>,
    /// Deliveries whose handlers have not been called yet.
    on_their_way: VecDeque<Delivery>,
    /// The running deliveries, and when they end.
    running: Vec<(u64, Row)>,
    reads_ends_at: u64,
    checks_at: u64,
    is_stopping: bool,
}

pub(super) struct Node {
    client: Client,
    terms: Terms,
    config: Config,
    owning: Pin<Box<dyn Future<Output = ()>>>,
    events: Rc<RefCell<VecDeque<Event>>>,
    stops: Rc<Cell<bool>>,
    run: Option<Run>,
    /// Whether it looks at the lease before each delivery.
    looks: bool,
}

/// Owns the partition until it should stop, and then gives it back.
async fn own(
    mut ownership: Ownership<Client>,
    events: Rc<RefCell<VecDeque<Event>>>,
    stops: Rc<Cell<bool>>,
) {
    loop {
        let event = {
            let mut next = pin!(ownership.next());
            poll_fn(|cx| match stops.get() {
                true => Poll::Ready(None),
                false => next.as_mut().poll(cx).map(Some),
            })
            .await
        };
        match event {
            Some(event) => events.borrow_mut().push_back(event),
            None => {
                // If it fails, the lease runs out.
                let _ = ownership.release().await;
                return;
            }
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("opening", &self.opening())
            .finish_non_exhaustive()
    }
}

impl Node {
    pub(super) fn new(client: Client, terms: Terms, config: Config, looks: bool) -> Node {
        let events = Rc::default();
        let stops = Rc::default();
        let ownership = Ownership::new(client.clone(), 0, terms);
        Node {
            owning: Box::pin(own(ownership, Rc::clone(&events), Rc::clone(&stops))),
            client,
            terms,
            config,
            events,
            stops,
            run: None,
            looks,
        }
    }

    fn now(&self) -> Now {
        let boot_micros = self.client.network.borrow().now;
        Now {
            boot_micros,
            wall_micros: WALL + boot_micros.cast_signed(),
        }
    }

    /// The opening whose engine runs.
    pub(super) fn opening(&self) -> Option<Opening> {
        let run = self.run.as_ref().filter(|it| it.engine.is_some());
        run.map(|it| it.opening)
    }

    /// The timers that are with its handlers.
    pub(super) fn with_handlers(&self) -> impl Iterator<Item = &Row> {
        let run = self.run.as_ref().into_iter();
        run.flat_map(|it| it.running.iter().map(|(_, row)| row))
    }

    /// Whether its lease is held.
    pub(super) fn is_lease_held(&self) -> bool {
        let now = self.client.now();
        self.run.as_ref().is_some_and(|it| it.lease.is_held(now))
    }

    /// Whether it begins deliveries, or would if it was the owner.
    pub(super) fn is_open(&self) -> bool {
        !self.stops.get() && !self.run.as_ref().is_some_and(|it| it.is_stopping)
    }

    fn engine(&mut self) -> Option<&mut Engine> {
        self.run.as_mut().and_then(|it| it.engine.as_mut())
    }

    /// Inserts a timer, if the engine runs.
    pub(super) fn insert(
        &mut self,
        promises: &mut Promises,
        handler: &str,
        due: Due,
        key: Option<u8>,
    ) {
        let node = self.client.node;
        if let Some(engine) = self.engine() {
            let key = key.map(|it| Arc::from([it]));
            let token = promises.inserts(node, handler, due, key.clone());
            let payload = Promises::payload(token);
            engine.handle_insert(token, new_row(handler.into(), due, key, payload));
        }
    }

    pub(super) fn cancel(&mut self, promises: &mut Promises, handle: Handle) {
        if let Some(engine) = self.engine() {
            let token: Token = promises.cancels(&handle);
            engine.handle_cancel(token, handle);
        }
    }

    /// Ends the process after its timers are settled, and gives the partition back.
    pub(super) fn stop(&mut self) {
        match &mut self.run {
            Some(run) if run.engine.is_some() => {
                run.is_stopping = true;
                run.engine.iter_mut().for_each(Engine::handle_stop);
            }
            _ => {
                self.run = None;
                self.stops.set(true);
            }
        }
    }

    /// Lets the process do what it can do now. Returns whether it has ended.
    pub(super) fn poll(&mut self, promises: &mut Promises) -> Result<bool, String> {
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            if self.owning.as_mut().poll(&mut cx).is_ready() {
                return Ok(true);
            }
            while let Some(event) = { self.events.borrow_mut().pop_front() } {
                self.handle(event, promises)?;
            }
            let mut goes_on = self.ask();
            goes_on |= self.store(&mut cx)?;
            self.time();
            goes_on |= self.end_deliveries(promises);
            goes_on |= self.follow(promises)?;
            goes_on |= self.begin_deliveries(promises)?;
            if !goes_on {
                break;
            }
        }
        if let Some(run) = &self.run {
            let timeout = run.engine.as_ref().and_then(Engine::poll_timeout);
            let ends = run.running.iter().map(|(at, _)| *at).min();
            let mut network = self.client.network.borrow_mut();
            let wakes = timeout
                .into_iter()
                .chain(ends)
                .chain([run.reads_ends_at, run.checks_at]);
            wakes.for_each(|at| network.wake_at(at));
        }
        Ok(false)
    }

    fn handle(&mut self, event: Event, promises: &mut Promises) -> Result<(), String> {
        match event {
            Event::Opened(..) if self.stops.get() => {}
            Event::Opened(opening, lease) => {
                let writer = Writer::new(self.client.clone(), self.terms, opening, lease.clone());
                self.run = Some(Run {
                    opening,
                    lease,
                    store: Store::Idle(writer),
                    engine: None,
                    requests: VecDeque::new(),
                    on_their_way: VecDeque::new(),
                    running: Vec::new(),
                    reads_ends_at: 0,
                    checks_at: 0,
                    is_stopping: false,
                });
            }
            Event::Lost => {
                let error = StoreError::lost("the lease is lost");
                match self.engine() {
                    Some(engine) => engine.handle_failure(&error),
                    None => self.run = None,
                }
                self.follow(promises)?;
            }
            Event::Standby { .. } | Event::Regained | Event::Failed(_) => {}
        }
        Ok(())
    }

    /// Begins the next request to the store.
    fn ask(&mut self) -> bool {
        let now = self.now().boot_micros;
        let Some(run) = &mut self.run else {
            return false;
        };
        let has_work = !run.requests.is_empty() || run.engine.is_none();
        let is_checked = !run.lease.is_unconfirmed() && now < run.checks_at;
        let engine = run.engine.as_ref();
        let reads_ends = engine.is_some_and(|it| it.waits_for_ends() && run.reads_ends_at <= now);
        if !matches!(run.store, Store::Idle(_)) || !has_work && is_checked && !reads_ends {
            return false;
        }
        let Store::Idle(mut writer) = std::mem::replace(&mut run.store, Store::Moved) else {
            return false;
        };
        let request = run.requests.pop_front();
        let (is_open, opening) = (run.engine.is_some(), run.opening);
        run.store = Store::Busy(Box::pin(async move {
            let done = match request {
                Some(Output::Commit {
                    number,
                    commit,
                    ops,
                }) => Done::Commit(number, writer.commit(commit, &ops).await),
                Some(Output::Read(number, query)) => {
                    let read = writer.call(async |it| it.query(query.clone()).await);
                    Done::Read(number, read.await)
                }
                _ if reads_ends => Done::Ends(writer.attempts().await),
                _ if is_open => Done::Check(writer.confirm().await),
                _ => {
                    // If it fails, this is repeated.
                    let _ = writer.confirm().await;
                    Done::Begins(writer.call(async |it| it.begins(&opening).await).await)
                }
            };
            (writer, done)
        }));
        true
    }

    /// Lets the store work.
    fn store(&mut self, cx: &mut Context<'_>) -> Result<bool, String> {
        let now = self.now();
        let Some(run) = &mut self.run else {
            return Ok(false);
        };
        let Store::Busy(busy) = &mut run.store else {
            return Ok(false);
        };
        let Poll::Ready((writer, done)) = busy.as_mut().poll(cx) else {
            return Ok(false);
        };
        run.store = Store::Idle(writer);
        match (done, &mut run.engine) {
            (Done::Begins(Ok(begins)), engine) => {
                let (config, epoch) = (self.config.clone(), run.opening.epoch);
                let mut begun = Engine::new(config, epoch, begins.handlers, now);
                begun.restore_settings(&begins.settings);
                begun.restore_handed_over(begins.handed_over);
                for handler in HANDLERS {
                    begun.add_handler(&handler.into(), CONCURRENCY, None);
                }
                *engine = Some(begun);
            }
            (Done::Begins(Err(_)), _) => {}
            (Done::Check(Ok(())), _) => run.checks_at = now.boot_micros + CHECKS_EVERY,
            (Done::Ends(ends), Some(engine)) => {
                run.reads_ends_at = now.boot_micros + READS_ENDS_EVERY;
                // If it fails, it is repeated.
                if let Ok(ends) = ends {
                    engine.handle_ends(ends);
                }
            }
            // It is checked again.
            (Done::Check(Err(error)), _) if error.is_definite() => {}
            (Done::Check(Err(error)), Some(engine)) => engine.handle_failure(&error),
            (Done::Commit(number, outcomes), Some(engine)) => {
                engine.handle_committed(number, outcomes);
            }
            (Done::Read(number, reply), Some(engine)) => engine.handle_reply(number, reply),
            (Done::Commit(..) | Done::Read(..) | Done::Ends(_) | Done::Check(Err(_)), None) => {
                return Err("the store has worked for no engine".to_owned());
            }
        }
        Ok(true)
    }

    fn time(&mut self) {
        let now = self.now();
        if let Some(engine) = self.engine() {
            engine.handle_time(now);
        }
    }

    fn end_deliveries(&mut self, promises: &mut Promises) -> bool {
        let now = self.now().boot_micros;
        let Some(run) = &mut self.run else {
            return false;
        };
        let Some(at) = run.running.iter().position(|(at, _)| *at <= now) else {
            return false;
        };
        let (_, row) = run.running.swap_remove(at);
        promises.ends(row.id, now);
        if let Some(engine) = &mut run.engine {
            let fails = self.client.network.borrow_mut().rng.u32(0..8) == 0;
            let ended = match fails {
                true => promises.fails(row.id),
                false => Ended::Well,
            };
            engine.handle_ended(row.id, ended);
        }
        true
    }

    /// Carries out the outputs of the engine.
    fn follow(&mut self, promises: &mut Promises) -> Result<bool, String> {
        let mut goes_on = false;
        while let Some(output) = self.engine().and_then(Engine::poll_output) {
            goes_on = true;
            let Some(run) = &mut self.run else {
                break;
            };
            match output {
                Output::Commit { .. } | Output::Read(..) => run.requests.push_back(output),
                Output::Deliver(delivery) => run.on_their_way.push_back(delivery),
                Output::Answer(token, answer) => promises.answered(token, &answer)?,
                Output::Failed(_) => {
                    // Answers to requests may follow.
                    while let Some(output) = run.engine.as_mut().and_then(Engine::poll_output) {
                        if let Output::Answer(token, answer) = output {
                            promises.answered(token, &answer)?;
                        }
                    }
                    run.lease.close();
                    if run.is_stopping {
                        self.stops.set(true);
                    }
                    self.run = None;
                }
                _ => {}
            }
        }
        if let Some(run) = &mut self.run
            && let Some(engine) = &run.engine
            && run.is_stopping
            && engine.is_idle()
            && engine.is_written()
            && run.on_their_way.is_empty()
        {
            self.stops.set(true);
            self.run = None;
        }
        Ok(goes_on)
    }

    /// Calls the handlers of deliveries, if the lease is held. Otherwise it withdraws them, as the shell does.
    fn begin_deliveries(&mut self, promises: &mut Promises) -> Result<bool, String> {
        let now = self.now();
        let Some(run) = &mut self.run else {
            return Ok(false);
        };
        let is_held = run.lease.allows_deliveries(self.client.now()) || !self.looks;
        if let Some(engine) = &mut run.engine {
            engine.handle_lease(is_held);
        }
        if run.on_their_way.is_empty() {
            return Ok(false);
        }
        while let Some(delivery) = run.on_their_way.pop_front() {
            if !is_held {
                if let Some(engine) = &mut run.engine {
                    engine.handle_withdrawn(&delivery);
                }
                continue;
            }
            let row = delivery.row;
            if row.due.as_millis() * 1_000 > now.wall_micros {
                return Err(format!("early: {row:?}"));
            }
            promises.delivered(&row, &run.opening)?;
            let mut network = self.client.network.borrow_mut();
            let longest = match network.rng.u32(0..64) {
                0 => 10 * LONGEST,
                1..4 => LONGEST,
                4..16 => 2_000_000,
                _ => 20_000,
            };
            let takes = network.rng.u64(0..longest);
            run.running.push((now.boot_micros + takes, row));
        }
        Ok(true)
    }

    /// Whether nothing is left to do for the engine.
    pub(super) fn is_idle(&self) -> bool {
        let run = self.run.as_ref();
        run.and_then(|it| it.engine.as_ref())
            .is_some_and(|it| it.is_idle() && it.is_written())
    }
}
