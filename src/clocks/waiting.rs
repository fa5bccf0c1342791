//! A wait for a point in time of one clock, whatever happens to that clock.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, SystemTime};

use tokio::task::coop;
use tokio::time::Sleep;

use super::fallback::until_next_look;

/// A clock that sleeps can be set by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    /// Since 1970; the present may move back.
    Wall,
    /// Since an instant before the first sleep, the time in which the machine was suspended included where the system counts it.
    Boot,
}

pub(super) fn wall_now() -> Duration {
    since_1970(SystemTime::now())
}

/// Zero for times before 1970: they have passed in any case.
pub(super) fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// The clock of a wait. The tests have one that they set.
pub(super) trait Timepiece {
    /// The name of a waker that waits.
    type Key: Copy;

    fn now(&self) -> Duration;

    /// Has this waker woken at the deadline. `None` if no thread waits for the clock.
    fn insert(&self, deadline: Duration, waker: &Waker) -> Option<Self::Key>;

    /// Has this waker woken in place of the one under this key, if it is another. `false` if that has been woken.
    fn keep(&self, key: Self::Key, waker: &Waker) -> bool;

    /// Lets go of the waker under this key.
    fn remove(&self, key: Self::Key);
}

pub(super) struct Waiting<T: Timepiece> {
    timepiece: T,
    deadline: Duration,
    state: State<T::Key>,
}

enum State<K> {
    New,
    /// The thread has its waker, under this key.
    Queued(K),
    /// The future looks again when this sleep is over.
    Looks(Pin<Box<Sleep>>),
    Over,
}

impl<T: Timepiece> Waiting<T> {
    pub(super) fn new(timepiece: T, deadline: Duration) -> Waiting<T> {
        Waiting {
            timepiece,
            deadline,
            state: State::New,
        }
    }

    /// How long it will take, if the clock is not set.
    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_sub(self.timepiece.now())
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // First: a task that awaits one such sleep after the other gives way from time to time.
        let coop = ready!(coop::poll_proceed(context));
        while !matches!(self.state, State::Over) {
            if self.deadline <= self.timepiece.now() {
                self.leave(State::Over);
            } else if self.is_waiting(context) {
                return Poll::Pending;
            }
        }
        coop.made_progress();
        Poll::Ready(())
    }

    /// Whether the task of this context will be woken. If not, the clock is to be looked at again.
    fn is_waiting(&mut self, context: &mut Context<'_>) -> bool {
        let is_waiting = match &mut self.state {
            State::New => {
                self.state = match self.timepiece.insert(self.deadline, context.waker()) {
                    Some(key) => State::Queued(key),
                    None => State::Looks(until_next_look(self.left())),
                };
                // A sleep has to be polled.
                return matches!(self.state, State::Queued(_));
            }
            State::Queued(key) => self.timepiece.keep(*key, context.waker()),
            State::Looks(sleep) => sleep.as_mut().poll(context).is_pending(),
            State::Over => false,
        };
        if !is_waiting {
            // The future was woken, and then the clock was set back; or it must look again.
            self.state = State::New;
        }
        is_waiting
    }

    fn leave(&mut self, state: State<T::Key>) {
        if let State::Queued(key) = std::mem::replace(&mut self.state, state) {
            self.timepiece.remove(key);
        }
    }
}

impl<T: Timepiece> Drop for Waiting<T> {
    fn drop(&mut self) {
        self.leave(State::Over);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;
    use std::sync::Arc;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use super::{Timepiece, Waiting};
    use crate::Timer;
    use crate::clocks::queue::{Key, Queue};
    use crate::tests::Wakes;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A clock that is set by hand.
    #[derive(Default)]
    struct Fake {
        now: Cell<Duration>,
        has_thread: Cell<bool>,
        queue: RefCell<Queue>,
    }

    impl Fake {
        fn new(has_thread: bool) -> Rc<Fake> {
            let fake = Fake::default();
            fake.has_thread.set(has_thread);
            Rc::new(fake)
        }

        /// Moves the clock, forwards or back, and wakes what is due.
        fn set(&self, seconds: u64) {
            self.now.set(at(seconds));
            let due = self.queue.borrow_mut().take_due(self.now.get());
            due.into_iter().for_each(Waker::wake);
        }

        fn first(&self) -> Option<Duration> {
            self.queue.borrow().first()
        }
    }

    impl Timepiece for Rc<Fake> {
        type Key = Key;

        fn now(&self) -> Duration {
            self.now.get()
        }

        fn insert(&self, deadline: Duration, waker: &Waker) -> Option<Key> {
            let mut queue = self.queue.borrow_mut();
            let has_thread = self.has_thread.get();
            has_thread.then(|| queue.insert(deadline, waker.clone()).0)
        }

        fn keep(&self, key: Key, waker: &Waker) -> bool {
            let mut queue = self.queue.borrow_mut();
            queue.replace(key, waker.clone()).is_ok()
        }

        fn remove(&self, key: Key) {
            self.queue.borrow_mut().remove(key);
        }
    }

    /// A sleep until the tenth second, or so, and the task that polls it.
    struct Polled {
        waiting: Waiting<Rc<Fake>>,
        task: (Arc<Wakes>, Waker),
    }

    impl Polled {
        fn until(seconds: u64, clock: &Rc<Fake>) -> Polled {
            Polled {
                waiting: Waiting::new(Rc::clone(clock), at(seconds)),
                task: Wakes::new(),
            }
        }

        fn is_ready(&mut self) -> bool {
            let mut context = Context::from_waker(&self.task.1);
            self.waiting.poll(&mut context).is_ready()
        }

        fn wakes(&self) -> usize {
            self.task.0.count()
        }
    }

    /// Lets this time pass for the sleeps that look.
    async fn pass(seconds: u64) {
        tokio::time::advance(at(seconds)).await;
        tokio::task::yield_now().await;
    }

    #[test]
    fn a_clock_that_is_set_back_is_waited_for_again() {
        let clock = Fake::new(true);
        let mut sleep = Polled::until(10, &clock);
        for round in 1..=3 {
            assert!(!sleep.is_ready());
            assert_eq!(clock.first(), Some(at(10)));
            clock.set(10);
            assert_eq!((sleep.wakes(), clock.first()), (round, None));
            clock.set(4);
        }
        assert!(!sleep.is_ready());
        clock.set(11);
        assert!(sleep.is_ready());
        assert!(sleep.is_ready());
        assert_eq!(sleep.wakes(), 4);
    }

    #[test]
    fn a_sleep_that_is_over_or_dropped_leaves_the_queue() {
        let clock = Fake::new(true);
        let mut over = Polled::until(10, &clock);
        let mut dropped = Polled::until(20, &clock);
        assert!(!over.is_ready() && !dropped.is_ready());
        // Before the thread has looked.
        clock.now.set(at(10));
        assert!(over.is_ready());
        assert_eq!(clock.first(), Some(at(20)));
        drop(dropped);
        assert_eq!(clock.first(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_thread_it_looks_once_a_minute() {
        let clock = Fake::new(false);
        let mut sleep = Polled::until(150, &clock);
        assert!(!sleep.is_ready());
        for look in 1..=2 {
            pass(59).await;
            assert_eq!(sleep.wakes(), look - 1);
            pass(1).await;
            assert_eq!(sleep.wakes(), look);
            clock.set(60 * look as u64);
            assert!(!sleep.is_ready());
        }
        pass(30).await;
        assert_eq!(sleep.wakes(), 3);
        clock.set(150);
        assert!(sleep.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_thread_it_notices_a_clock_that_is_set() {
        let clock = Fake::new(false);
        let mut sleep = Polled::until(30, &clock);
        assert!(!sleep.is_ready());
        clock.set(20);
        pass(30).await;
        assert!(!sleep.is_ready(), "the clock was set back meanwhile");
        clock.set(0);
        pass(10).await;
        assert!(!sleep.is_ready(), "and once more");
        // A poll that no look has asked for.
        clock.set(30);
        assert!(sleep.is_ready());
        assert_eq!(sleep.wakes(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_starts_later_takes_over() {
        let clock = Fake::new(false);
        let mut sleep = Polled::until(100, &clock);
        assert!(!sleep.is_ready());
        clock.has_thread.set(true);
        assert!(!sleep.is_ready());
        assert_eq!(clock.first(), None, "it waits for its look");
        pass(60).await;
        assert!(!sleep.is_ready());
        assert_eq!(clock.first(), Some(at(100)));
        clock.set(100);
        assert_eq!(sleep.wakes(), 2);
        assert!(sleep.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn it_looks_beside_a_timer_that_was_shut_down() {
        let clock = Fake::new(false);
        let mut armed = Polled::until(10, &clock);
        assert!(!armed.is_ready());
        Timer::current().shutdown();
        let mut new = Polled::until(10, &clock);
        assert!(!armed.is_ready() && !new.is_ready());
        clock.set(10);
        pass(10).await;
        assert_eq!([armed.wakes(), new.wakes()], [1, 1]);
        assert!(armed.is_ready() && new.is_ready());
    }
}
