//! What lies behind the lock, and what is done after that was let go of.

use std::sync::Arc;

use slab::Slab;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use waterwheel_durable_core::store::Due;

use super::task::unwound;
use crate::event::Event;
use waterwheel_durable_core::engine::{Answer, Engine, Output, Token};

#[derive(Debug)]
pub(super) struct State {
    pub(super) engine: Engine,
    /// Who waits for which answer. The keys are the engine's tokens.
    pub(super) waiting: Slab<Waiting>,
    /// Who waits for the end.
    pub(super) closing: Vec<oneshot::Sender<()>>,
    /// Who waits until no delivery of a namespace goes on.
    pub(super) draining: Vec<(Arc<str>, oneshot::Sender<()>)>,
    /// When the driver turns the engine next, unless it is nudged.
    pub(super) sleeps_until: u64,
    /// As the engine has counted them. They outlive it.
    pub(super) jumps: u64,
    pub(super) refusals: u64,
    pub(super) full: u64,
    pub(super) is_full: bool,
    pub(super) commits: u64,
    pub(super) failed_attempts: u64,
    pub(super) unhandled: Vec<Arc<str>>,
    /// Why the store has failed.
    pub(super) failure: Option<Arc<str>>,
    pub(super) is_stopping: bool,
    pub(super) closes: Closes,
    /// The store's thread was asked to end.
    pub(super) is_closing: bool,
    /// What was left to do when the store was closed.
    pub(super) left: Left,
    pub(super) is_closed: bool,
}

/// What was left to do when the store was closed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Left {
    /// How many deliveries had not ended.
    pub(crate) abandoned: usize,
    /// How many had, and that is not written.
    pub(crate) unsettled: usize,
}

/// When the store is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Closes {
    /// When it is asked to.
    ByRequest,
    /// As soon as no handler runs and nothing is to be written; at once, if the store has failed.
    WhenUnused,
    /// The same, and handlers may end also if the store has failed.
    WhenIdle,
    /// As soon as nothing is to be written, whatever the handlers do.
    WhenWritten,
}

/// Someone who waits for an answer. To be dropped without the lock: it wakes tasks of callers.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) answer: oneshot::Sender<Answer>,
    /// The part of the intake that an insert takes until it is answered.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

impl Waiting {
    /// The caller may have gone. A panic of its waker is nothing to those who wait for the room.
    pub(super) fn answer(self, answer: Option<Answer>) {
        let sender = self.answer;
        // First: who has the answer finds the room free.
        unwound(|| drop(self.room));
        unwound(|| match answer {
            Some(answer) => drop(sender.send(answer)),
            None => drop(sender),
        });
    }
}

/// What is done after the lock was let go of.
#[derive(Debug, Default)]
pub(super) struct Todo {
    /// What the engine has put out, but for what is asked of the store.
    pub(super) outputs: Vec<Output>,
    /// Who waits for the answers among them, in their order.
    pub(super) callers: Vec<Waiting>,
    /// Who waits for the end of deliveries that have ended.
    pub(super) drained: Vec<oneshot::Sender<()>>,
    /// What the shell itself has noticed.
    pub(super) events: Vec<Event>,
}

impl State {
    pub(super) fn new(engine: Engine) -> State {
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

    /// Takes an output over, but for those that ask the store.
    pub(super) fn note(&mut self, output: Output, todo: &mut Todo) {
        match &output {
            Output::Answer(token, _) => {
                let token = usize::try_from(*token).unwrap_or(usize::MAX);
                match self.waiting.try_remove(token) {
                    Some(waiting) => todo.callers.push(waiting),
                    None => return,
                }
            }
            // The turn that has put it out came before the handler, in the same call.
            Output::Unhandled(name) if self.engine.has_handler(name) => return,
            Output::Unhandled(name) => self.unhandled.push(Arc::clone(name)),
            Output::NoneDue(name) => self.unhandled.retain(|it| it != name),
            Output::Failed(error) => self.failure = Some(Arc::clone(error)),
            _ => {}
        }
        todo.outputs.push(output);
    }

    /// Takes over what the engine has counted. The one in place after the end has counted nothing.
    pub(super) fn count(&mut self, todo: &mut Todo) {
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

    /// Of some namespaces that are drained, no delivery goes on any more.
    pub(super) fn note_drained(&mut self, todo: &mut Todo) {
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

    /// The engine has panicked: it is not known what was written.
    pub(super) fn broke_down(&mut self, todo: &mut Todo) {
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

    /// Whether the store is to be closed now. So many attempts are being made.
    pub(super) fn is_to_close(&self, attempts: usize) -> bool {
        // What the store has refused is tried again later, and holds nothing up. Once it has failed, nothing is written.
        let is_written = self.engine.is_written() || self.engine.has_failed();
        match self.closes {
            Closes::ByRequest => false,
            // The engine counts those as well that wait to be spawned; but not once the store has failed.
            Closes::WhenIdle if self.engine.has_failed() => attempts == 0,
            Closes::WhenUnused if self.engine.has_failed() => true,
            Closes::WhenIdle | Closes::WhenUnused => self.engine.stats().running == 0 && is_written,
            Closes::WhenWritten => is_written,
        }
    }
}

/// What can be seen of the engine.
pub(crate) struct View<'a>(pub(super) &'a State, pub(super) Due);

impl View<'_> {
    /// The wall clock now, as opposed to the engine's last reading of it.
    pub(crate) fn present(&self) -> Due {
        self.1
    }

    /// What was left to do when the store was closed.
    pub(crate) fn left(&self) -> Left {
        self.0.left
    }

    /// How many requests wait for their answers.
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
