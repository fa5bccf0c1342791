//! A waker that re-enters: it owns a sleep, and acts on the sleep when it is woken.

use std::panic;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use tokio::runtime::Handle;
use waterwheel::{Instant, Sleep};

use super::Act;
use crate::support::{Probe, poll_with, unless_over};

/// The acts of the traps, in order.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<Sprung>>>);

/// A trap that was woken.
pub(super) struct Sprung {
    pub(super) trap: usize,
    pub(super) at: Instant,
    /// Whether the sleep was ready, if it was polled.
    pub(super) is_ready: Option<bool>,
    /// The sleep that the trap owned, if it has not dropped it.
    pub(super) victim: Option<Sleep>,
}

impl Log {
    fn push(&self, sprung: Sprung) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(sprung);
    }

    pub(super) fn take(&self) -> Vec<Sprung> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *log)
    }
}

pub(super) struct Trap {
    pub(super) number: usize,
    pub(super) victim: Mutex<Option<Sleep>>,
    pub(super) act: Act,
    /// Where [`Act::Reset`] moves the deadline.
    pub(super) to: Instant,
    pub(super) probes: Arc<[Probe]>,
    pub(super) home: Handle,
    pub(super) log: Log,
}

/// The payload of a trap's panic. No hook sees it.
pub(super) struct Boom;

impl Wake for Trap {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Outside of the runtime `Instant::now` would read another clock.
        let _entered = self.home.enter();
        let mut sprung = Sprung {
            trap: self.number,
            at: Instant::now(),
            is_ready: None,
            victim: None,
        };
        let victim = self.victim.lock().map(|mut victim| victim.take());
        let Some(mut victim) = victim.ok().flatten() else {
            // The trap was woken twice. The oracle fails when it reads this. A panic here would be caught.
            return self.log.push(sprung);
        };
        match self.act {
            Act::Drop => {
                drop(victim);
                return self.log.push(sprung);
            }
            Act::Reset(_) => Pin::new(&mut victim).reset(self.to),
            Act::Poll { probe } => {
                let waker: Waker = self.probes[probe].waker();
                let poll = unless_over(|| poll_with(&mut victim, &waker));
                sprung.is_ready = Some(poll.is_none_or(|poll| poll.is_ready()));
            }
            Act::Panic => {}
        }
        sprung.victim = Some(victim);
        self.log.push(sprung);
        if matches!(self.act, Act::Panic) {
            panic::resume_unwind(Box::new(Boom));
        }
    }
}
