//! Plays a script by hand, and notes the observations after each step.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::{unconstrained, yield_now};
use tokio::time::advance;
use waterwheel::{Duration, Instant};

use super::book::{Book, Filings, Place};
use super::script::{Restart, millis};
use super::{Op, Times};
use crate::support::paused;

/// The observations after a step.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) op: Op,
    pub(crate) now: Duration,
    pub(crate) poll: Option<Polled>,
    /// The state of the sleep that the step touched, or of all sleeps if time has passed.
    pub(crate) states: Vec<State>,
    pub(crate) wakes: Vec<Woken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polled {
    Pending,
    Ready,
    /// The time of a timeout has passed.
    Elapsed,
    Tick(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) id: usize,
    pub(crate) deadline: Duration,
    pub(crate) is_elapsed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Woken {
    pub(crate) id: usize,
    /// The poll whose waker was woken.
    pub(crate) poll: usize,
    pub(crate) at: Duration,
    pub(crate) tick: u64,
    pub(crate) place: Place,
}

/// Plays the script with these timers.
pub(crate) fn play<T: Times>(script: &[Op]) -> Vec<Seen> {
    paused().block_on(unconstrained(async {
        let mut world = World::<T> {
            start: Instant::now(),
            made: Vec::new(),
            filings: Filings::default(),
            wakes: Arc::default(),
        };
        let mut seen = Vec::with_capacity(script.len());
        for op in script {
            seen.push(world.step(*op).await);
        }
        seen
    }))
}

/// Lets the driver run until it has served and moved this many timers.
pub(crate) async fn settle(timers: usize) {
    // A turn of ours moves 128 timers, and a timer moves once per dial.
    for _ in 0..8 + timers / 12 {
        yield_now().await;
    }
}

struct World<T: Times> {
    start: Instant,
    made: Vec<Option<Made<T>>>,
    filings: Filings,
    wakes: Arc<Mutex<Vec<(usize, usize, Instant)>>>,
}

struct Made<T: Times> {
    book: Book,
    polls: usize,
    /// The future, if it exists. Its number stays when it is dropped.
    future: Option<Any<T>>,
}

enum Any<T: Times> {
    Sleep(Pin<Box<T::Sleep>>),
    Interval(T::Interval),
    Timeout(Pin<Box<T::Timeout<Gate>>>, Arc<AtomicBool>),
}

impl<T: Times> World<T> {
    fn instant(&self, at: u64) -> Instant {
        self.start + millis(at)
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    async fn step(&mut self, op: Op) -> Seen {
        let now = self.now();
        let mut poll = None;
        match op {
            Op::Sleep { id, at, by_delay } => {
                let sleep = match at.checked_sub(now) {
                    Some(delay) if by_delay => T::sleep(millis(delay)),
                    _ => T::sleep_until(self.instant(at)),
                };
                self.make(id, Book::of_sleep(at), Any::Sleep(Box::pin(sleep)));
            }
            Op::Interval {
                id,
                start,
                period,
                missed,
            } => {
                let interval = T::interval_at(self.instant(start), millis(period), missed);
                let book = Book::of_interval(start, period, missed);
                self.make(id, book, Any::Interval(interval));
            }
            Op::Timeout { id, at, by_delay } => {
                let is_open = Arc::new(AtomicBool::new(false));
                let gate = Gate(Arc::clone(&is_open));
                let timeout = match at.checked_sub(now) {
                    Some(delay) if by_delay => T::timeout(millis(delay), gate),
                    _ => T::timeout_at(self.instant(at), gate),
                };
                let timeout = Any::Timeout(Box::pin(timeout), is_open);
                self.make(id, Book::of_sleep(at), timeout);
            }
            Op::Poll { id } => poll = self.poll(id, now),
            Op::Reset { id, to } => self.reset(id, to, now),
            Op::Restart { id, how } => self.restart(id, how, now),
            Op::Complete { id } => {
                if let Some(Any::Timeout(_, gate)) = self.future(id) {
                    gate.store(true, Ordering::Relaxed);
                }
            }
            Op::Drop { id } => {
                if let Some(Some(made)) = self.made.get_mut(id) {
                    made.future = None;
                }
            }
            Op::Advance { to, settles } => {
                if to > now {
                    advance(millis(to - now)).await;
                }
                if settles {
                    settle(self.made.len()).await;
                }
            }
            Op::Await { to } => {
                if to > now {
                    T::sleep_until(self.instant(to)).await;
                }
                settle(self.made.len()).await;
            }
        }
        Seen {
            op,
            now: self.start.elapsed(),
            poll,
            states: self.states(op.id()),
            wakes: self.take_wakes(),
        }
    }

    fn make(&mut self, id: usize, book: Book, future: Any<T>) {
        if self.made.len() <= id {
            self.made.resize_with(id + 1, || None);
        }
        self.made[id] = Some(Made {
            book,
            polls: 0,
            future: Some(future),
        });
    }

    fn future(&mut self, id: usize) -> Option<&mut Any<T>> {
        self.made.get_mut(id)?.as_mut()?.future.as_mut()
    }

    fn poll(&mut self, id: usize, now: u64) -> Option<Polled> {
        let made = self.made.get_mut(id)?.as_mut()?;
        let future = made.future.as_mut()?;
        made.polls += 1;
        let waker = Waker::from(Arc::new(Note {
            id,
            poll: made.polls,
            wakes: Arc::clone(&self.wakes),
        }));
        let mut context = Context::from_waker(&waker);
        let polled = match future {
            Any::Sleep(sleep) => sleep.as_mut().poll(&mut context).map(|()| Polled::Ready),
            Any::Interval(interval) => T::poll_tick(interval, &mut context)
                .map(|tick| Polled::Tick(tick.saturating_duration_since(self.start))),
            Any::Timeout(timeout, _) => timeout.as_mut().poll(&mut context).map(|it| match it {
                Ok(()) => Polled::Ready,
                Err(_) => Polled::Elapsed,
            }),
        };
        let is_over = matches!(future, Any::Timeout(..)) && polled.is_ready();
        if is_over {
            made.future = None;
        } else {
            made.book.poll(now, &mut self.filings);
        }
        Some(match polled {
            Poll::Ready(polled) => polled,
            Poll::Pending => Polled::Pending,
        })
    }

    fn reset(&mut self, id: usize, to: u64, now: u64) {
        let deadline = self.instant(to);
        let Some(Some(made)) = self.made.get_mut(id) else {
            return;
        };
        match &mut made.future {
            Some(Any::Sleep(sleep)) => T::reset(sleep.as_mut(), deadline),
            Some(Any::Interval(interval)) => T::restart_at(interval, deadline),
            Some(Any::Timeout(..)) | None => return,
        }
        made.book.reset(to, now, &mut self.filings);
    }

    fn restart(&mut self, id: usize, how: Restart, now: u64) {
        let Some(Some(made)) = self.made.get_mut(id) else {
            return;
        };
        let Some(Any::Interval(interval)) = &mut made.future else {
            return;
        };
        match how {
            Restart::Period => T::restart(interval),
            Restart::Now => T::restart_now(interval),
            Restart::After(delay) => T::restart_after(interval, millis(delay)),
        }
        made.book.restart(how, now, &mut self.filings);
    }

    /// The states of one sleep, or of all existing ones.
    fn states(&self, which: Option<usize>) -> Vec<State> {
        let ids = match which {
            Some(id) => id..self.made.len().min(id + 1),
            None => 0..self.made.len(),
        };
        let state = |id: usize| match &self.made[id].as_ref()?.future {
            Some(Any::Sleep(sleep)) => Some(State {
                id,
                deadline: T::deadline(sleep).saturating_duration_since(self.start),
                is_elapsed: T::is_elapsed(sleep),
            }),
            _ => None,
        };
        ids.filter_map(state).collect()
    }

    fn take_wakes(&mut self) -> Vec<Woken> {
        let wakes = std::mem::take(&mut *self.wakes.lock().expect("no waker panics"));
        let mut woken = Vec::with_capacity(wakes.len());
        for (id, poll, at) in wakes {
            let book = &self.made[id].as_ref().expect("it was polled").book;
            if !book.is_mute {
                woken.push(Woken {
                    id,
                    poll,
                    at: at.saturating_duration_since(self.start),
                    tick: book.tick,
                    place: book.place,
                });
            }
        }
        woken
    }
}

/// A waker that notes when it is woken.
struct Note {
    id: usize,
    poll: usize,
    wakes: Arc<Mutex<Vec<(usize, usize, Instant)>>>,
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut wakes = self.wakes.lock().expect("no waker panics");
        wakes.push((self.id, self.poll, Instant::now()));
    }
}

/// A future that is ready once it is opened.
struct Gate(Arc<AtomicBool>);

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}
