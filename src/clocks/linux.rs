//! The thread that waits on two `timerfd`s and an `eventfd`.
//!
//! # No wake-up is lost
//!
//! A sleep that becomes the first of its queue signals the thread after it has given back the lock. The thread reads the queues, sets the
//! timers, and then polls them and an `eventfd`. A sleep that the thread has not seen has signalled it or will, and the poll returns. The timers are set to
//! points in time, not to spans: one that has passed meanwhile, or that the clock is set beyond, fires at once.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{self, Errno};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use super::queue::{Key, Queue};
use super::waiting::{Face, Timepiece, wall_now};
use crate::sync::{Mutex, wake_all};

#[derive(Clone, Copy)]
pub(super) struct Clock(pub(super) Face);

impl Timepiece for Clock {
    type Key = Key;

    fn now(&self) -> Duration {
        match self.0 {
            Face::Wall => wall_now(),
            // Never negative: it counts from the boot.
            Face::Boot => clock_gettime(ClockId::Boottime)
                .try_into()
                .unwrap_or_default(),
        }
    }

    fn insert(&self, deadline: Duration, waker: &Waker) -> Option<Key> {
        Some(thread()?.insert(self.0, deadline, waker.clone()))
    }

    fn keep(&self, key: Key, waker: &Waker) -> bool {
        thread().is_some_and(|thread| thread.keep(self.0, key, waker))
    }

    fn remove(&self, key: Key) {
        if let Some(thread) = thread() {
            thread.remove(self.0, key);
        }
    }
}

/// The state that the sleeps share with the thread.
struct Thread {
    queues: Mutex<Queues>,
    signal: OwnedFd,
}

#[derive(Default)]
struct Queues {
    wall: Queue,
    boot: Queue,
}

impl Queues {
    fn of(&mut self, face: Face) -> &mut Queue {
        match face {
            Face::Wall => &mut self.wall,
            Face::Boot => &mut self.boot,
        }
    }
}

/// The process's thread, started at the first call. `None` if it cannot be, for want of descriptors perhaps: the next call tries again.
fn thread() -> Option<&'static Thread> {
    static THREAD: Started<Arc<Thread>> = Started::new();
    THREAD.get_or_start(Thread::start).map(|thread| &**thread)
}

impl Thread {
    fn start() -> io::Result<Arc<Thread>> {
        let timers = Timers::new()?;
        let thread = Arc::new(Thread {
            queues: Mutex::new(Queues::default()),
            signal: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        });
        let shared = Arc::clone(&thread);
        // Linux shows 15 bytes of a thread's name.
        let builder = thread::Builder::new().name("waterwheel-time".into());
        let run = move || timers.run(&shared);
        builder.spawn(run).map_err(|_| Errno::AGAIN)?;
        Ok(thread)
    }

    fn insert(&self, face: Face, deadline: Duration, waker: Waker) -> Key {
        let (key, is_first) = self.queues.lock().of(face).insert(deadline, waker);
        if is_first {
            self.notify();
        }
        key
    }

    fn keep(&self, face: Face, key: Key, waker: &Waker) -> bool {
        let will_wake = self.queues.lock().of(face).will_wake(key, waker);
        match will_wake {
            Some(true) => true,
            Some(false) => {
                // To clone and to drop a waker is foreign code: both without the lock.
                let waker = waker.clone();
                let replaced = self.queues.lock().of(face).replace(key, waker);
                replaced.is_ok()
            }
            None => false,
        }
    }

    fn remove(&self, face: Face, key: Key) {
        let removed = self.queues.lock().of(face).remove(key);
        drop(removed);
    }

    fn notify(&self) {
        // A counter that is full has not been read yet.
        let _ = io::write(&self.signal, &1_u64.to_ne_bytes());
    }
}

struct Timers {
    wall: OwnedFd,
    boot: OwnedFd,
}

impl Timers {
    fn new() -> io::Result<Timers> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Timers {
            wall: timerfd_create(TimerfdClockId::Realtime, flags)?,
            boot: timerfd_create(TimerfdClockId::Boottime, flags)?,
        })
    }

    fn run(&self, thread: &Thread) {
        loop {
            for face in [Face::Wall, Face::Boot] {
                let due = thread.queues.lock().of(face).take_due(Clock(face).now());
                wake_all(due.into_iter());
                let first = thread.queues.lock().of(face).first();
                self.set(face, first);
            }
            self.wait(thread);
        }
    }

    /// Sets a timer to a point in time, or to none.
    fn set(&self, face: Face, first: Option<Duration>) {
        let absolute = TimerfdTimerFlags::ABSTIME;
        let (timer, flags) = match face {
            Face::Wall => (&self.wall, absolute | TimerfdTimerFlags::CANCEL_ON_SET),
            Face::Boot => (&self.boot, absolute),
        };
        let never = Timespec::default();
        let it_value = match first {
            // Zero would be never. What is beyond the range is years away.
            Some(first) => {
                Timespec::try_from(first.max(Duration::from_nanos(1))).unwrap_or(Timespec {
                    tv_sec: i64::MAX,
                    tv_nsec: 0,
                })
            }
            None => never,
        };
        let value = Itimerspec {
            it_interval: never,
            it_value,
        };
        // An error says that the wall clock was set before this call; the timer is set nevertheless, by the new time.
        let _ = timerfd_settime(timer, flags, &value);
    }

    /// Waits for a timer, a signal, or the wall clock to be set.
    fn wait(&self, thread: &Thread) {
        let sources = [&self.wall, &self.boot, &thread.signal];
        let mut polled = sources.map(|source| PollFd::new(source, PollFlags::IN));
        // An error is an interrupted call: the queues are looked at once more.
        let _ = poll(&mut polled, None);
        for source in sources {
            // None of these reads blocks. A clock that was set is an error.
            let _ = io::read(source, &mut [0_u8; 8]);
        }
    }
}

/// A value that is started at its first use, and again at the next if that has failed.
struct Started<T> {
    value: OnceLock<T>,
    /// Held while it is started: two must not be.
    starting: std::sync::Mutex<()>,
}

impl<T> Started<T> {
    const fn new() -> Started<T> {
        Started {
            value: OnceLock::new(),
            starting: std::sync::Mutex::new(()),
        }
    }

    fn get_or_start<E>(&self, start: impl FnOnce() -> Result<T, E>) -> Option<&T> {
        if let Some(value) = self.value.get() {
            return Some(value);
        }
        let _starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have been first.
        if self.value.get().is_none() {
            let value = start().ok()?;
            let _ = self.value.set(value);
        }
        self.value.get()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::Started;

    #[test]
    fn a_start_that_failed_is_tried_again_and_one_is_enough() {
        let started = Started::new();
        assert_eq!(started.get_or_start(|| Err("no descriptors")), None);
        assert_eq!(started.get_or_start(|| Err("still none")), None);
        assert_eq!(started.get_or_start(|| Ok::<_, ()>(1)), Some(&1));
        assert_eq!(started.get_or_start(|| Ok::<_, ()>(2)), Some(&1));
    }

    #[test]
    fn threads_that_ask_at_once_start_one() {
        let started = Started::new();
        let starts = AtomicUsize::new(0);
        let all = Barrier::new(4);
        let start = || {
            // Room for the others to start one as well, if they could.
            for _ in 0..1_000 {
                thread::yield_now();
            }
            Ok::<_, ()>(starts.fetch_add(1, Ordering::SeqCst))
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    all.wait();
                    assert_eq!(started.get_or_start(start), Some(&0));
                });
            }
        });
        assert_eq!(starts.load(Ordering::SeqCst), 1);
    }
}
