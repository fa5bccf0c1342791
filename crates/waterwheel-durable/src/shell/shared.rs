use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use slab::Slab;
use tokio::runtime::{Handle as Runtime, RuntimeFlavor};
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use waterwheel::Timer;
use waterwheel_durable_core::policy::Retries;
use waterwheel_durable_core::store::{
    Command, Due, Ended, Handle, Id, Lease, Outcome, Row, Store, StoreError,
};

use super::clock::Clock;
use super::intake::Intake;
use super::store_queue::{Job, Read, StoreQueue};
use super::task::{guarded, unwound, yield_now};
use super::trace;
use super::worker::{Called, Handler, Handlers, Workers};
use crate::error::Error;
use crate::event::{Event, Hook};
use waterwheel_durable_core::engine::{
    Answer, Delivery, Engine, Now, Output, Reply, Token, by_namespace,
};

/// The maximum age of the engine's time when something happens.
const STALE_MICROS: u64 = 1_000;

/// The state that callers, workers, the driver and the store's thread share.
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) queue: StoreQueue,
    nudge: Notify,
    /// Looked at before each delivery.
    pub(crate) lease: Lease,
    pub(crate) clock: Clock,
    pub(crate) intake: Intake,
    pub(crate) handlers: Handlers,
    pub(super) workers: Workers,
    pub(crate) runtime: Runtime,
    /// A timer of our own: another owner could stop the timer of the runtime.
    pub(crate) timer: Timer,
    hook: Mutex<Option<Arc<Hook>>>,
    /// The number of [`Durable`](crate::Durable) handles that keep the service alive.
    users: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(
        engine: Engine,
        lease: Lease,
        intake: Intake,
        clock: Clock,
        runtime: Runtime,
        timer: Timer,
        hook: Option<Hook>,
    ) -> Arc<Shared> {
        Arc::new(Shared {
            state: Mutex::new(State::new(engine)),
            queue: StoreQueue::default(),
            nudge: Notify::new(),
            lease,
            clock,
            intake,
            handlers: Handlers::default(),
            workers: Workers::default(),
            runtime,
            timer,
            hook: Mutex::new(hook.map(Arc::new)),
            users: AtomicUsize::new(0),
        })
    }

    pub(crate) fn start_driver(self: &Arc<Shared>) {
        self.runtime.spawn(drive(self));
    }

    /// Sends a request to the engine, and waits for its answer.
    ///
    /// # Errors
    ///
    /// [`Error::ShuttingDown`] if the service has ended, [`Error::Unknown`] if it ends before the answer.
    pub(crate) async fn request(
        self: &Arc<Shared>,
        request: impl FnOnce(&mut Engine, Token),
    ) -> Result<Answer, Error> {
        let answer = self.submit(None, request)?;
        answer.await.map_err(|_| Error::unanswered())
    }

    /// Inserts a timer, once there is room for it in the intake.
    ///
    /// # Errors
    ///
    /// Same as [`request`](Shared::request).
    pub(crate) async fn insert(self: &Arc<Shared>, timer: Row) -> Result<Answer, Error> {
        let room = self.intake.admit(self.intake.bytes(&timer)).await?;
        let answer = self.submit(Some(room), |engine, token| {
            engine.handle_insert(token, timer);
        })?;
        answer.await.map_err(|_| Error::unanswered())
    }

    /// Sends a request to the engine. The answer arrives on a channel.
    pub(crate) fn submit(
        self: &Arc<Shared>,
        room: Option<OwnedSemaphorePermit>,
        request: impl FnOnce(&mut Engine, Token),
    ) -> Result<oneshot::Receiver<Answer>, Error> {
        let (answer, receiver) = oneshot::channel();
        // If the service has ended, the permit is dropped without the lock, because that wakes waiting tasks.
        let mut room = room;
        self.with(|state| {
            if state.is_closed {
                return Err(Error::ShuttingDown);
            }
            let room = room.take();
            let token = state.waiting.insert(Waiting { answer, room });
            request(&mut state.engine, token as Token);
            Ok(receiver)
        })
    }

    /// Charges the inserts of a batch against the quotas of their namespaces.
    pub(crate) fn charge(self: &Arc<Shared>, timers: &[Row]) -> Result<(), Error> {
        // Counted before the lock is taken, so that a batch of a million delays no delivery.
        let counts = by_namespace(timers.iter().map(|timer| &*timer.handler));
        let charged = self.with(|state| state.engine.charge(&counts));
        charged.map_err(Error::from_answer)
    }

    /// Inserts many timers that were already charged, under one lock, once there is room for them.
    pub(crate) async fn submit_all(
        self: &Arc<Shared>,
        timers: Vec<Row>,
    ) -> Result<Vec<oneshot::Receiver<Answer>>, Error> {
        if timers.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = timers.iter().map(|timer| self.intake.bytes(timer)).sum();
        let mut room = self.intake.admit(bytes).await?;
        self.with(|state| {
            if state.is_closed {
                return Err(Error::ShuttingDown);
            }
            let insert = |timer| {
                let (answer, receiver) = oneshot::channel();
                let room = room.split(self.intake.bytes(&timer) as usize);
                let token = state.waiting.insert(Waiting { answer, room });
                state.engine.handle_charged_insert(token as Token, timer);
                receiver
            };
            Ok(timers.into_iter().map(insert).collect())
        })
    }

    /// Cancels many timers, under one lock. The answers arrive on channels.
    pub(crate) fn cancel_all(
        self: &Arc<Shared>,
        handles: Vec<Handle>,
    ) -> Result<Vec<oneshot::Receiver<Answer>>, Error> {
        self.with(|state| {
            if state.is_closed {
                return Err(Error::ShuttingDown);
            }
            let cancel = |handle| {
                let (answer, receiver) = oneshot::channel();
                let token = state.waiting.insert(Waiting { answer, room: None });
                state.engine.handle_cancel(token as Token, handle);
                receiver
            };
            Ok(handles.into_iter().map(cancel).collect())
        })
    }

    /// Turns the engine. Returns when to turn it next, in microseconds since boot, and the clocks by which that was computed; `None` once it is closed.
    fn turn(self: &Arc<Shared>) -> Option<(Option<u64>, Now)> {
        let act = |state: &mut State| {
            let next = state.engine.poll_timeout();
            state.sleeps_until = next.unwrap_or(u64::MAX);
            (!state.is_closing).then_some((next, state.engine.now()))
        };
        let (next, todo) = self.collect(0, act);
        self.carry_out(todo);
        next
    }

    pub(super) fn committed(
        self: &Arc<Shared>,
        number: u64,
        outcomes: Result<Vec<Outcome>, StoreError>,
    ) {
        self.with(|state| {
            state.commits += u64::from(outcomes.is_ok());
            state.engine.handle_committed(number, outcomes);
        });
    }

    pub(super) fn replied(self: &Arc<Shared>, number: u64, reply: Result<Reply, StoreError>) {
        self.with(|state| state.engine.handle_reply(number, reply));
    }

    /// Carries out commands from other processes.
    pub(super) fn handle_commands(self: &Arc<Shared>, commands: Vec<(u64, Command)>) {
        self.with(|state| {
            for (number, command) in commands {
                state.engine.handle_command(number, command);
            }
        });
    }

    /// Whether handlers are running in processes that have handed the store over.
    pub(super) fn waits_for_ends(&self) -> bool {
        self.lock().engine.waits_for_ends()
    }

    /// Handles the ends of deliveries in these processes.
    pub(super) fn handle_ends(self: &Arc<Shared>, ends: Vec<(Id, Option<Ended>)>) {
        self.with(|state| state.engine.handle_ends(ends));
    }

    /// Handles a failure of the store outside of the engine's requests.
    pub(super) fn failed(self: &Arc<Shared>, error: &StoreError) {
        self.with(|state| state.engine.handle_failure(error));
    }

    /// Handles the end of a delivery. Returns the next one of the same handler, if any.
    pub(super) fn ended(
        self: &Arc<Shared>,
        called: &Called,
        ended: Ended,
        handler: &Handler,
    ) -> Option<Delivery> {
        let failed = match &ended {
            Ended::Failed(error) | Ended::Later(error, _) => Some(Event::AttemptFailed {
                id: called.id,
                handler: Arc::clone(&handler.name),
                attempt: called.number,
                error: Arc::clone(error),
            }),
            _ => None,
        };
        let (is_retried, mut todo) = self.collect(STALE_MICROS, |state| {
            let has_failed = !matches!(ended, Ended::Well | Ended::Snoozed(_));
            state.failed_attempts += u64::from(has_failed);
            state
                .engine
                .handle_called(&handler.name, called.due, called.wall);
            state.engine.handle_ended(called.id, ended)
        });
        // The engine reports dead letters itself, once they are written.
        todo.events.extend(failed.filter(|_| is_retried));
        self.carry_out_but_next(todo, handler)
    }

    /// Withdraws a delivery before its handler was called, because the wall clock no longer shows its due time or the lease is not held. Returns the next
    /// one of the same handler, if any.
    pub(super) fn withdraw(
        self: &Arc<Shared>,
        delivery: &Delivery,
        handler: &Handler,
    ) -> Option<Delivery> {
        // With the current clocks: by those of the last turn, the timer would be due.
        let ((), todo) = self.collect(0, |state| {
            // Read under the lock, so that no older reading replaces a newer one.
            state.engine.handle_lease(self.lease.is_held());
            state.engine.handle_withdrawn(delivery);
        });
        self.carry_out_but_next(todo, handler)
    }

    /// Whether the store or the engine has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.lock().failure.is_some()
    }

    /// Lets deliveries begin while the lease is held, and only then.
    pub(super) fn look_at_lease(self: &Arc<Shared>) {
        self.with(|state| state.engine.handle_lease(self.lease.is_held()));
    }

    /// Carries out the actions, but returns the next delivery of this handler instead of spawning a worker for it.
    fn carry_out_but_next(
        self: &Arc<Shared>,
        mut todo: Todo,
        handler: &Handler,
    ) -> Option<Delivery> {
        let is_next =
            |it: &Output| matches!(it, Output::Deliver(it) if it.row.handler == handler.name);
        let next = todo.outputs.iter().position(is_next);
        let next = next.map(|at| todo.outputs.remove(at));
        self.carry_out_and_push_out(todo);
        match next {
            Some(Output::Deliver(delivery)) => Some(delivery),
            _ => None,
        }
    }

    pub(crate) fn handle(
        self: &Arc<Shared>,
        handler: Handler,
        concurrency: usize,
        retries: Option<Retries>,
    ) -> bool {
        let name = Arc::clone(&handler.name);
        // Added before the engine delivers to it.
        let is_new = self.handlers.add(handler);
        if is_new {
            let is_closing = self.with(|state| {
                state.unhandled.retain(|it| *it != name);
                state.engine.add_handler(&name, concurrency, retries);
                state.is_closing
            });
            if is_closing {
                // A handle captured by its closure would keep all of this alive.
                drop(self.handlers.take());
            }
        }
        is_new
    }

    /// Begins no more deliveries, and accepts no more requests.
    pub(crate) fn stop(self: &Arc<Shared>) {
        self.with(|state| {
            if !state.is_stopping {
                state.is_stopping = true;
                state.engine.handle_stop();
            }
        });
    }

    /// Begins no more deliveries of a namespace in this run. Resolves when none is running.
    pub(crate) async fn drain(self: &Arc<Shared>, name: &Arc<str>) {
        let (drained, receiver) = oneshot::channel();
        self.with(|state| {
            state.engine.handle_drain(name, true);
            state.draining.retain(|(_, it)| !it.is_closed());
            state.draining.push((Arc::clone(name), drained));
        });
        // Completion is signalled by dropping the sender.
        let _ = receiver.await;
    }

    /// Handles the end of the driver: without a previous shutdown, its runtime has ended.
    fn runtime_ended(self: &Arc<Shared>) {
        let is_news = {
            let state = self.lock();
            !state.is_stopping && state.failure.is_none()
        };
        self.with(|state| state.engine.handle_end_of_handlers());
        self.stop();
        if is_news {
            self.report(Event::RuntimeEnded);
        }
    }

    /// Reports an event. The hook is user code, and may panic.
    pub(super) fn report(&self, event: Event) {
        unwound(|| {
            trace::event(&event);
            let hook = self.lock_hook().clone();
            if let Some(hook) = hook {
                hook.call(&event);
            }
        });
    }

    /// Closes the store after the requests that are already queued.
    pub(crate) fn close(self: &Arc<Shared>) {
        self.with(|state| self.close_in(state));
        self.queue.wake();
        self.nudge.notify_one();
    }

    /// Closes the store as soon as nothing is running.
    pub(crate) fn close_when_idle(self: &Arc<Shared>) {
        self.with(|state| state.closes = state.closes.max(Closes::WhenIdle));
    }

    /// Drops running handlers, and closes the store as soon as the outcomes so far are written. This does not depend on any task.
    pub(crate) fn abandon(self: &Arc<Shared>) {
        self.workers.abort();
        self.with(|state| {
            state.engine.handle_abandon();
            state.closes = Closes::WhenWritten;
        });
    }

    fn close_in(&self, state: &mut State) {
        if !state.is_closing {
            state.is_closing = true;
            self.queue.push(Job::Close);
        }
    }

    /// Cleans up after the store's thread has ended. Values captured by handlers and callers' wakers are user code: a panic in one does not affect the others.
    pub(super) fn closed(self: &Arc<Shared>) {
        // Nothing is delivered any more. The handlers are gone when a shutdown resolves.
        for (_, handler) in self.handlers.take() {
            unwound(|| drop(handler));
        }
        let hook = self.lock_hook().take();
        unwound(|| drop(hook));
        // Frees the loaded rows, even if a handle is kept.
        let now = self.clock.now();
        let (ended, waiting, closing, draining) = {
            let mut state = self.lock();
            state.left = Left {
                abandoned: state.engine.stats().running,
                unsettled: state.engine.unsettled(),
            };
            let next = Engine::after(&mut state.engine, now);
            let ended = std::mem::replace(&mut state.engine, next);
            state.is_stopping = true;
            state.is_closing = true;
            state.is_closed = true;
            let waiting = std::mem::take(&mut state.waiting);
            let closing = std::mem::take(&mut state.closing);
            (ended, waiting, closing, std::mem::take(&mut state.draining))
        };
        drop(ended);
        self.nudge.notify_one();
        for (_, waiting) in waiting {
            waiting.answer(None);
        }
        for (_, sender) in draining {
            unwound(|| drop(sender));
        }
        for sender in closing {
            unwound(|| drop(sender));
        }
    }

    /// Waits until the store is closed. Each waiter has its own channel: with a shared list, a waker that panics would leave the others waiting.
    pub(crate) async fn until_closed(&self) {
        let (closed, receiver) = oneshot::channel();
        {
            let mut state = self.lock();
            if state.is_closed {
                return;
            }
            state.closing.retain(|it| !it.is_closed());
            state.closing.push(closed);
        }
        // Completion is signalled by dropping the sender.
        let _ = receiver.await;
    }

    pub(crate) fn inspect<R>(&self, inspect: impl FnOnce(&View<'_>) -> R) -> R {
        let present = Due::from_millis(self.clock.wall().div_euclid(1_000));
        inspect(&View(&self.lock(), present))
    }

    /// Reads from the store, after the requests that are already queued.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, receiver) = oneshot::channel();
        let read = move |store: Result<&mut dyn Store, StoreError>| {
            let found = store.and_then(|store| guarded(|| read(store)));
            let (found, result) = match found {
                Ok(found) => (Ok(found), Ok(())),
                Err(error) => (Err(Error::of_read(&error)), Err(error)),
            };
            // The caller may be gone and its waker may panic, but the store's error must be returned.
            unwound(|| drop(answer.send(found)));
            result
        };
        self.queue_read(Job::Read(Read(Box::new(read))))?;
        receiver.await.map_err(|_| Error::ShuttingDown)?
    }

    fn queue_read(&self, job: Job) -> Result<(), Error> {
        {
            let state = self.lock();
            if state.is_closing {
                return Err(Error::ShuttingDown);
            }
            // Nothing more is asked of a store that has failed.
            if let Some(why) = &state.failure {
                return Err(Error::Failed(Arc::clone(why)));
            }
            self.queue.push(job);
        }
        self.queue.wake();
        Ok(())
    }

    pub(crate) fn enter(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(self: &Arc<Shared>) {
        if self.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.stop();
            self.with(|state| state.closes = state.closes.max(Closes::WhenUnused));
        }
    }

    /// Calls the engine, and carries out its outputs.
    fn with<R>(self: &Arc<Shared>, act: impl FnOnce(&mut State) -> R) -> R {
        let (result, todo) = self.collect(STALE_MICROS, act);
        self.carry_out_and_push_out(todo);
        result
    }

    /// Calls the engine, after updating its time if that is at least this many microseconds old. Its outputs are queued for the store, or returned.
    ///
    /// # Panics
    ///
    /// If the engine panics, which is a bug in it. It then counts as failed, and all callers are answered.
    fn collect<R>(
        self: &Arc<Shared>,
        stale_micros: u64,
        act: impl FnOnce(&mut State) -> R,
    ) -> (R, Todo) {
        let boot = self.clock.boot();
        let mut todo = Todo::default();
        let mut has_queued = false;
        let mut guard = self.lock();
        let state = &mut *guard;
        let acted = catch_unwind(AssertUnwindSafe(|| {
            if boot.saturating_sub(state.engine.now().boot_micros) >= stale_micros {
                state.engine.handle_time(self.clock.now());
            }
            act(state)
        }));
        if acted.is_err() {
            state.broke_down(&mut todo);
        }
        while let Some(output) = state.engine.poll_output() {
            match output {
                Output::Commit { .. } | Output::Read(..) if state.is_closed => {}
                Output::Commit {
                    number: request,
                    commit: number,
                    ops,
                } => {
                    has_queued = true;
                    self.queue.push(Job::Commit {
                        request,
                        number,
                        ops,
                    });
                }
                Output::Read(number, query) => {
                    has_queued = true;
                    self.queue.push(Job::Query(number, query));
                }
                output => state.note(output, &mut todo),
            }
        }
        state.count(&mut todo);
        state.note_drained(&mut todo);
        if state.is_to_close(self.workers.running()) {
            has_queued = true;
            self.close_in(state);
        }
        let next = state.engine.poll_timeout().unwrap_or(u64::MAX);
        let is_earlier = next < state.sleeps_until;
        if is_earlier {
            state.sleeps_until = next;
        }
        drop(guard);
        if has_queued {
            self.queue.wake();
        }
        if is_earlier {
            self.nudge.notify_one();
            self.push_out();
        }
        match acted {
            Ok(result) => (result, todo),
            Err(panic) => {
                self.carry_out_and_push_out(todo);
                resume_unwind(panic)
            }
        }
    }

    fn carry_out_and_push_out(self: &Arc<Shared>, todo: Todo) {
        let delivers = |it: &Output| matches!(it, Output::Deliver(_));
        let delivers = todo.outputs.iter().any(delivers);
        self.carry_out(todo);
        if delivers {
            self.push_out();
        }
    }

    /// The task that a worker has spawned or woken last is in that worker's own slot, from which no other worker can take it. It would wait if the handler that
    /// runs here now blocked its thread. A task that does nothing pushes it out.
    fn push_out(&self) {
        if is_on_a_worker() {
            self.runtime.spawn(async {});
        }
    }

    /// Carries out the actions that were collected under the lock. User code may panic without harm to the rest.
    fn carry_out(self: &Arc<Shared>, todo: Todo) {
        let mut callers = todo.callers.into_iter();
        for output in todo.outputs {
            match output {
                Output::Answer(_, answer) => {
                    if let Some(waiting) = callers.next() {
                        waiting.answer(Some(answer));
                    }
                }
                Output::Deliver(delivery) => unwound(|| {
                    let handler = self.handlers.of(&delivery.row.handler);
                    // Every handler exists until the store is closed, after which nothing is delivered.
                    if let Some(handler) = handler {
                        self.workers.spawn(self, handler, delivery);
                    }
                }),
                output => {
                    if let Some(event) = Event::of_output(output) {
                        self.report(event);
                    }
                }
            }
        }
        debug_assert!(callers.next().is_none(), "each caller has an answer");
        for sender in todo.drained {
            unwound(|| drop(sender));
        }
        for event in todo.events {
            self.report(event);
        }
    }

    fn lock_hook(&self) -> MutexGuard<'_, Option<Arc<Hook>>> {
        self.hook.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of the engine is caught while the lock is held: see `collect`.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this runs on a worker of a multi-threaded runtime.
fn is_on_a_worker() -> bool {
    Runtime::try_current().is_ok_and(|it| it.runtime_flavor() != RuntimeFlavor::CurrentThread)
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// Turns the engine whenever it is due, until it is closed or the runtime ends.
fn drive(shared: &Arc<Shared>) -> impl Future<Output = ()> + use<> {
    // Created before the first poll, because a runtime that ends may drop a task that was never polled.
    let end = End(Arc::clone(shared));
    turn(end)
}

async fn turn(end: End) {
    let shared = &end.0;
    while let Some((next, turned)) = shared.turn() {
        if next.is_none_or(|at| at > shared.clock.boot()) {
            let sleep = shared.clock.sleep_until(&shared.timer, next, turned);
            let mut sleep = pin!(sleep);
            let mut nudge = pin!(shared.nudge.notified());
            let slept = poll_fn(|context| match nudge.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Ok(())),
                Poll::Pending => sleep.as_mut().poll(context),
            })
            .await;
            if slept.is_err() {
                return;
            }
        } else {
            // Runs again after the tasks that this turn has spawned.
            yield_now().await;
        }
    }
}

/// Stops the service when the driver ends, which happens with its runtime, if not by a shutdown: nothing would be delivered, so nothing is accepted either.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        // Both may run user code: wakers and the hook. A panic in it must not keep the store from being closed.
        unwound(|| self.0.runtime_ended());
        unwound(|| self.0.close());
    }
}

/// The state behind the lock.
#[derive(Debug)]
struct State {
    engine: Engine,
    /// The callers that wait for answers. The keys are the engine's tokens.
    waiting: Slab<Waiting>,
    /// The callers that wait until the store is closed.
    closing: Vec<oneshot::Sender<()>>,
    /// The callers that wait until no delivery of a namespace is running.
    draining: Vec<(Arc<str>, oneshot::Sender<()>)>,
    /// When the driver turns the engine next, unless it is nudged.
    sleeps_until: u64,
    /// The engine's counts, which outlive it.
    jumps: u64,
    refusals: u64,
    full: u64,
    is_full: bool,
    commits: u64,
    failed_attempts: u64,
    unhandled: Vec<Arc<str>>,
    /// Why the store has failed.
    failure: Option<Arc<str>>,
    is_stopping: bool,
    closes: Closes,
    /// Whether the store's thread was asked to end.
    is_closing: bool,
    /// The work that was left when the store was closed.
    left: Left,
    is_closed: bool,
}

/// The work that was left when the store was closed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Left {
    /// The number of deliveries that had not ended.
    pub(crate) abandoned: usize,
    /// The number of deliveries that had ended, but whose outcome is not written.
    pub(crate) unsettled: usize,
}

/// When the store is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closes {
    /// When requested explicitly.
    ByRequest,
    /// As soon as no handler is running and nothing has to be written; at once, if the store has failed.
    WhenUnused,
    /// Like `WhenUnused`, but running handlers may finish even if the store has failed.
    WhenIdle,
    /// As soon as nothing has to be written, even if handlers are running.
    WhenWritten,
}

/// A caller that waits for an answer. To be dropped without the lock, since that wakes the caller's task.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Answer>,
    /// The share of the intake that an insert takes until it is answered.
    room: Option<OwnedSemaphorePermit>,
}

impl Waiting {
    /// Answers the caller, which may be gone. A panic of its waker does not affect those that wait for room.
    fn answer(self, answer: Option<Answer>) {
        let sender = self.answer;
        // Freed first, so that a caller that has its answer finds the room free.
        unwound(|| drop(self.room));
        unwound(|| match answer {
            Some(answer) => drop(sender.send(answer)),
            None => drop(sender),
        });
    }
}

/// Actions to take after the lock is released.
#[derive(Debug, Default)]
struct Todo {
    /// The engine's outputs, apart from the requests to the store.
    outputs: Vec<Output>,
    /// The callers that wait for the answers in `outputs`, in the same order.
    callers: Vec<Waiting>,
    /// The callers whose drained namespaces have no running deliveries left.
    drained: Vec<oneshot::Sender<()>>,
    /// Events that the shell itself has noticed.
    events: Vec<Event>,
}

impl State {
    fn new(engine: Engine) -> State {
        State {
            engine,
            waiting: Slab::new(),
            closing: Vec::new(),
            draining: Vec::new(),
            sleeps_until: 0,
            jumps: 0,
            refusals: 0,
            full: 0,
            is_full: false,
            commits: 0,
            failed_attempts: 0,
            unhandled: Vec::new(),
            failure: None,
            is_stopping: false,
            closes: Closes::ByRequest,
            is_closing: false,
            left: Left::default(),
            is_closed: false,
        }
    }

    /// Records an output to be carried out, except requests to the store.
    fn note(&mut self, output: Output, todo: &mut Todo) {
        match &output {
            Output::Answer(token, _) => {
                let token = usize::try_from(*token).unwrap_or(usize::MAX);
                match self.waiting.try_remove(token) {
                    Some(waiting) => todo.callers.push(waiting),
                    None => return,
                }
            }
            // The turn that produced this came before the handler was added, in the same call.
            Output::Unhandled(name) if self.engine.has_handler(name) => return,
            Output::Unhandled(name) => self.unhandled.push(Arc::clone(name)),
            Output::NoneDue(name) => self.unhandled.retain(|it| it != name),
            Output::Failed(error) => self.failure = Some(Arc::clone(error)),
            _ => {}
        }
        todo.outputs.push(output);
    }

    /// Copies the engine's counts. The engine that replaces it after the end has none.
    fn count(&mut self, todo: &mut Todo) {
        if self.is_closed {
            return;
        }
        let stats = self.engine.stats();
        self.refusals = stats.refusals;
        (self.full, self.is_full) = (stats.full, stats.is_full);
        if std::mem::replace(&mut self.jumps, stats.jumps) != stats.jumps {
            todo.events.push(Event::ClockJumped);
        }
    }

    /// Collects the drained namespaces that have no running deliveries left.
    fn note_drained(&mut self, todo: &mut Todo) {
        if self.draining.is_empty() {
            return;
        }
        let engine = &self.engine;
        let is_idle = |name: &Arc<str>| {
            engine
                .namespaces()
                .get(name)
                .is_none_or(|it| it.running == 0)
        };
        let drained = self.draining.extract_if(.., |(name, _)| is_idle(name));
        todo.drained.extend(drained.map(|(_, sender)| sender));
    }

    /// Handles a panic of the engine: what was written is unknown.
    fn broke_down(&mut self, todo: &mut Todo) {
        let error: Arc<str> = "the engine panicked: please report this bug".into();
        self.engine.handle_panic(&error);
        let why: Arc<str> = "the engine panicked (please report this bug)".into();
        for (token, waiting) in std::mem::take(&mut self.waiting) {
            let answer = Answer::Unknown(Arc::clone(&why));
            todo.callers.push(waiting);
            todo.outputs.push(Output::Answer(token as Token, answer));
        }
        self.note(Output::Failed(error), todo);
    }

    /// Whether to close the store now, given the number of running attempts.
    fn is_to_close(&self, attempts: usize) -> bool {
        // Operations that the store has refused are retried later and must not delay this. Once it has failed, nothing is written.
        let is_written = self.engine.is_written() || self.engine.has_failed();
        match self.closes {
            Closes::ByRequest => false,
            // The engine also counts deliveries that are still to be spawned, but not once the store has failed.
            Closes::WhenIdle if self.engine.has_failed() => attempts == 0,
            Closes::WhenUnused if self.engine.has_failed() => true,
            Closes::WhenIdle | Closes::WhenUnused => self.engine.stats().running == 0 && is_written,
            Closes::WhenWritten => is_written,
        }
    }
}

/// A read-only view of the engine.
pub(crate) struct View<'a>(&'a State, Due);

impl View<'_> {
    /// The wall clock now, as opposed to the engine's last reading of it.
    pub(crate) fn present(&self) -> Due {
        self.1
    }

    /// The work that was left when the store was closed.
    pub(crate) fn left(&self) -> Left {
        self.0.left
    }

    /// The number of requests that wait for their answers.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.0.waiting.len()
    }

    pub(crate) fn jumps(&self) -> u64 {
        self.0.jumps
    }

    pub(crate) fn refusals(&self) -> u64 {
        self.0.refusals
    }

    pub(crate) fn full(&self) -> u64 {
        self.0.full
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.is_full
    }

    pub(crate) fn failed_attempts(&self) -> u64 {
        self.0.failed_attempts
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn commits(&self) -> u64 {
        self.0.commits
    }

    pub(crate) fn failure(&self) -> Option<Arc<str>> {
        self.0.failure.clone()
    }

    pub(crate) fn unhandled(&self) -> Vec<Arc<str>> {
        self.0.unhandled.clone()
    }
}
