//! The watchdog thread: one helper thread for the whole process, which looks at the targets of the drivers that it serves.
//!
//! It serves no timer, and decides only how to wake. Each driver reads its own clock to see what is due. There are three kinds:
//!
//! - A [`Thread`](super::Waking::Thread) driver is woken at its target. tokio rounds a sleep up to its own milliseconds; the thread wakes on time.
//! - A [`Watched`](super::Waking::Watched) driver is woken by tokio's clock. The thread looks at it [`LAZY`] after its target, so some twenty times a second
//!   while all is well. If a target still stands long after its time, no worker has turned tokio's clock, and the thread wakes the driver's task. From then on it looks
//!   [`CLOSE`] after each target, for [`ALERT`].
//! - A [`WatchedClosely`](super::Waking::WatchedClosely) driver is like a watched one, but the thread always looks [`CLOSE`] after its target.
//!
//! All are woken from outside. A task that a worker wakes runs next on that worker. If the task before it blocks, no other worker
//! can take it. A task that is woken from outside is taken by any worker that is free.
//!
//! The thread is started when a driver first has a target, and ends with the last driver. While no driver has a target, it
//! sleeps without end.
//!
//! # No look is missed
//!
//! The thread sleeps until the instant at which it must look at one of its drivers next, and says so in `looks_at`. A driver whose
//! target moves to later says nothing. The thread looks once too often then, and sees the later target.
//!
//! ```text
//! lowers a target                          the thread
//! 1. lower the target                     a. write `looks_at`
//! 2. read `looks_at`                      b. read every target
//!    too late for the target?                to be looked at before?
//!    then notify, with the lock held         then look again
//! ```
//!
//! All four accesses are sequentially consistent, so 2 reads what a wrote, or b reads what 1 wrote. The thread holds the lock from a
//! until it waits, so a notification finds it waiting. Whether the driver was late is written before a and read after 2.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use slab::Slab;

use super::Wakeup;
use crate::clock::{machine_now, nanos_since_start};
use crate::driver::host;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, OwnLine, global, thread_local};
use crate::wheel::Tick;

/// How long after its target the thread looks at a watched driver. tokio's clock wakes the driver within a millisecond or so. Long, so that the
/// thread rarely wakes; short enough for the bound documented at [`Waking`](super::Waking).
const LAZY: Duration = Duration::from_millis(50);

/// The delay for a driver that was recently late, or is watched closely. A target this overdue wakes the driver.
const CLOSE: Duration = Duration::from_millis(8);

/// A target this overdue at a look made for another reason is checked again at [`CLOSE`]. tokio's clock may be about to serve one that is less late.
const SUSPECT: Duration = Duration::from_millis(2);

/// How long the thread looks closely at a driver that it has found late.
const ALERT: Duration = Duration::from_secs(1);

/// How long after its target the thread waits for a driver that it wakes to answer a nudge with a new target, before it wakes the driver's
/// task.
const PATIENCE: Duration = Duration::from_millis(1);

/// `looks_at` while the thread does not wait: it reads every target before it does.
const AWAKE: u64 = 0;
/// `looks_at` while the thread waits without end.
const NEVER: u64 = u64::MAX;

global! {
    static THREAD: Thread = Thread {
        members: Mutex::new(Members {
            is_running: false,
            list: Slab::new(),
        }),
        changed: Condvar::new(),
        looks_at: OwnLine(AtomicU64::new(NEVER)),
    };
}

struct Thread {
    members: Mutex<Members>,
    changed: Condvar,
    /// When the thread looks at its members next, in nanoseconds of `nanos_since_start`. Written with the lock held.
    looks_at: OwnLine<AtomicU64>,
}

/// The drivers that the thread serves.
struct Members {
    /// Whether the thread runs.
    is_running: bool,
    list: Slab<Member>,
}

struct Member {
    driver: Arc<Wakeup>,
    /// The target at which a `Thread` driver was nudged, and when.
    nudged: Option<(Tick, Instant)>,
    /// Until when a watched driver that was late is looked at closely.
    alert_until: Option<Instant>,
}

/// The membership of a driver.
pub(super) struct Membership {
    /// Its place in the list, `OUTSIDE` or `LEFT`. Written with the lock held.
    place: AtomicUsize,
    /// Whether the driver was late a moment ago. Written by the thread, with the lock held.
    is_alert: AtomicBool,
}

const OUTSIDE: usize = usize::MAX;
/// The driver has ended. It does not join again.
const LEFT: usize = usize::MAX - 1;

impl Membership {
    pub(super) fn new() -> Membership {
        Membership {
            place: AtomicUsize::new(OUTSIDE),
            is_alert: AtomicBool::new(false),
        }
    }

    fn place(&self) -> usize {
        // Relaxed: a driver joins before it is first asked for a target by others, and `LEFT` is looked for with the lock held.
        self.place.load(Ordering::Relaxed)
    }

    fn is_member(&self) -> bool {
        self.place() < LEFT
    }

    fn is_alert(&self) -> bool {
        // Relaxed: `update` reads it after `looks_at`, which the thread writes after it has changed this.
        self.is_alert.load(Ordering::Relaxed)
    }

    fn set_alert(&self, is_alert: bool) {
        // Futures read this line: it is not written for nothing.
        if self.is_alert() != is_alert {
            self.is_alert.store(is_alert, Ordering::Relaxed);
        }
    }
}

/// The action that a driver needs.
enum Look {
    /// Nothing before this instant; `None` for never.
    Wait(Option<Instant>),
    Nudge(Tick),
    Wake,
}

impl Member {
    fn new(driver: &Arc<Wakeup>) -> Member {
        Member {
            driver: Arc::clone(driver),
            nudged: None,
            alert_until: None,
        }
    }

    fn look(&self, now: Instant) -> Look {
        let target = self.driver.target();
        let start = self.driver.instant_of(target);
        match start {
            None => Look::Wait(None),
            Some(start) if self.driver.is_woken_by_thread() => {
                self.look_to_wake(target, start, now)
            }
            Some(start) => self.look_on_guard(start, now),
        }
    }

    fn look_to_wake(&self, target: Tick, start: Instant, now: Instant) -> Look {
        let (at, is_nudge) = match self.nudged {
            // As a rule the driver's next target is a millisecond after this one or more. So the driver need not notify the thread, which
            // looks no later than that. A thread that was late itself gives the driver some time.
            Some((nudged, when)) if nudged == target => {
                ((start + PATIENCE).max(when + PATIENCE / 2), false)
            }
            _ => (start, true),
        };
        match at <= now {
            false => Look::Wait(Some(at)),
            true if is_nudge => Look::Nudge(target),
            true => Look::Wake,
        }
    }

    fn look_on_guard(&self, start: Instant, now: Instant) -> Look {
        let late = now.saturating_duration_since(start);
        if late >= CLOSE {
            Look::Wake
        } else if late >= SUSPECT {
            Look::Wait(Some(start + CLOSE))
        } else {
            Look::Wait(Some(first_look(&self.driver, start)))
        }
    }

    /// Notes what the thread has seen, and how it looks from now on.
    fn note(&mut self, look: &Look, now: Instant) {
        match look {
            Look::Wait(_) => {}
            Look::Nudge(target) => self.nudged = Some((*target, now)),
            Look::Wake => self.nudged = None,
        }
        if self.driver.is_woken_by_thread() || self.driver.is_watched_closely() {
            return;
        }
        if matches!(look, Look::Wake) {
            self.alert_until = Some(now + ALERT);
        } else if self.alert_until.is_some_and(|until| until <= now) {
            self.alert_until = None;
        }
        self.driver.member.set_alert(self.alert_until.is_some());
    }
}

/// When the thread looks at a driver whose target starts at `start`.
fn first_look(driver: &Wakeup, start: Instant) -> Instant {
    if driver.is_woken_by_thread() {
        return start;
    }
    match driver.is_watched_closely() || driver.member.is_alert() {
        true => start + CLOSE,
        false => start + LAZY,
    }
}

/// Has the thread look at a driver in time, when it has a new target.
pub(super) fn update(driver: &Arc<Wakeup>) {
    let Some(start) = driver.instant_of(driver.target()) else {
        return;
    };
    // 2. of the proof above. Before it is asked whether the driver was late.
    let looks_at = THREAD.looks_at.load(Ordering::SeqCst);
    let at = first_look(driver, start);
    if looks_at > nanos_since_start(at) || !driver.member.is_member() {
        join(driver, at);
    }
}

/// Adds a driver to the list, unless it is there, and has the thread look at `at` or before.
#[cold]
fn join(driver: &Arc<Wakeup>, at: Instant) {
    let mut members = THREAD.members.lock();
    match driver.member.place() {
        // A future meets the end of its timer. The driver would not leave again.
        LEFT => return,
        OUTSIDE => {
            let place = members.list.insert(Member::new(driver));
            driver.member.place.store(place, Ordering::Relaxed);
        }
        _ => {}
    }
    if !members.is_running {
        if host::start_watchdog(run).is_err() {
            let member = members.remove(driver, OUTSIDE);
            drop(members);
            // Without the lock, as in `leave`.
            drop(member);
            driver.lose_thread();
            return;
        }
        members.is_running = true;
        THREAD.looks_at.store(AWAKE, Ordering::SeqCst);
    }
    if THREAD.looks_at.load(Ordering::SeqCst) > nanos_since_start(at) {
        THREAD.changed.notify_one();
    }
}

/// Takes a driver that has ended off the list, for good.
pub(super) fn leave(driver: &Arc<Wakeup>) {
    let mut members = THREAD.members.lock();
    let member = members.remove(driver, LEFT);
    if member.is_some() && members.list.is_empty() {
        THREAD.changed.notify_one();
    }
    drop(members);
    // The member may hold the last reference to a runtime, whose end runs foreign code.
    drop(member);
}

thread_local! {
    static IS_WATCHDOG: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is the watchdog thread, which takes no turn.
pub(in crate::driver) fn is_this_thread() -> bool {
    IS_WATCHDOG.try_with(Cell::get).unwrap_or(false)
}

fn run() {
    IS_WATCHDOG.with(|is_this| is_this.set(true));
    let mut due = Vec::new();
    let mut members = THREAD.members.lock();
    while !members.list.is_empty() {
        // Not `AWAKE` first: as long as it is earlier than a target, it says that the thread looks in time, and so it does.
        let now = machine_now();
        let next = members.look(now, &mut due);
        if !due.is_empty() {
            THREAD.looks_at.store(AWAKE, Ordering::SeqCst);
            drop(members);
            for (driver, is_nudge) in due.drain(..) {
                // To drop the last reference to a runtime runs what its builder was given. A panic there must not end the
                // thread of all other drivers.
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    if is_nudge {
                        driver.nudge();
                    } else {
                        driver.wake();
                    }
                    drop(driver);
                }));
            }
            members = THREAD.members.lock();
            continue;
        }
        // a. and b. of the proof above.
        THREAD
            .looks_at
            .store(next.map_or(NEVER, nanos_since_start), Ordering::SeqCst);
        if members.has_look_before(next, now) {
            continue;
        }
        let most = next.map(|at| at.saturating_duration_since(machine_now()));
        members = THREAD.changed.wait(members, most);
    }
    members.is_running = false;
}

/// In a model no wait times out by itself: the model moves the clock and calls this.
#[cfg(waterwheel_loom)]
pub(in crate::driver) fn clock_has_moved() {
    let members = THREAD.members.lock();
    if THREAD.looks_at.load(Ordering::SeqCst) <= nanos_since_start(machine_now()) {
        THREAD.changed.notify_one();
    }
    drop(members);
}

impl Members {
    /// Looks at each driver. Puts those that are to be woken into `due`, with whether a nudge will do. Returns when the first of the
    /// others is to be looked at.
    fn look(&mut self, now: Instant, due: &mut Vec<(Arc<Wakeup>, bool)>) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        for (_, member) in &mut self.list {
            let look = member.look(now);
            member.note(&look, now);
            match look {
                Look::Wait(at) => next = next.into_iter().chain(at).min(),
                Look::Nudge(_) => due.push((Arc::clone(&member.driver), true)),
                Look::Wake => due.push((Arc::clone(&member.driver), false)),
            }
        }
        next
    }

    fn has_look_before(&self, next: Option<Instant>, now: Instant) -> bool {
        self.list.iter().any(|(_, member)| match member.look(now) {
            Look::Wait(None) => false,
            Look::Wait(Some(at)) => next.is_none_or(|next| at < next),
            Look::Nudge(_) | Look::Wake => true,
        })
    }

    /// Takes a driver off the list. `after` is where it is then.
    fn remove(&mut self, driver: &Wakeup, after: usize) -> Option<Member> {
        let place = driver.member.place();
        driver.member.place.store(after, Ordering::Relaxed);
        (place < LEFT).then(|| self.list.remove(place))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::{ALERT, LEFT, Look, Member};

    use crate::driver::wakeup::{Wakeup, Waking};
    use crate::tests::{clock_of, one_worker};
    use crate::wheel::Tick;

    /// A driver whose target is 10 s ahead, and when that starts.
    fn driver(waking: Waking) -> (tokio::runtime::Runtime, Arc<Wakeup>, Instant) {
        let runtime = one_worker();
        let entered = runtime.enter();
        let wakeup = Arc::new(Wakeup::new(clock_of(&runtime), waking));
        drop(entered);
        let target = Tick::new(10_000);
        assert!(wakeup.sleep_towards(Tick::ZERO, target, || true));
        let start = wakeup.instant_of(target).unwrap();
        (runtime, wakeup, start)
    }

    #[test]
    fn a_watched_driver_is_looked_at_lazily_until_it_is_late() {
        let ms = Duration::from_millis;
        // When the driver is looked at next, in milliseconds after its target, at a look that is so late. `None` if it is woken.
        let looks_at =
            |member: &Member, start: Instant, late: u64| match member.look(start + ms(late)) {
                Look::Wake => None,
                Look::Wait(Some(at)) => Some((at - start).as_millis()),
                _ => panic!("it is neither woken nor looked at"),
            };
        let (_runtime, watched, start) = driver(Waking::Watched);
        let mut member = Member::new(&watched);
        for (late, next) in [
            (0, Some(50)),
            (1, Some(50)),
            (2, Some(8)),
            (7, Some(8)),
            (8, None),
            (60, None),
        ] {
            assert_eq!(looks_at(&member, start, late), next, "{late} ms late");
        }
        // For a second after it was late, it is looked at sooner.
        let found = start + ms(50);
        let look = member.look(found);
        member.note(&look, found);
        for (late, next) in [(0, Some(8)), (7, Some(8)), (8, None)] {
            assert_eq!(
                looks_at(&member, start, late),
                next,
                "{late} ms late, again"
            );
        }
        let look = member.look(start);
        member.note(&look, found + ALERT - ms(1));
        assert_eq!(looks_at(&member, start, 0), Some(8));
        member.note(&look, found + ALERT);
        assert_eq!(looks_at(&member, start, 0), Some(50));
        let (_runtime, closely, start) = driver(Waking::WatchedClosely);
        let member = Member::new(&closely);
        for (late, next) in [(0, Some(8)), (7, Some(8)), (8, None)] {
            assert_eq!(
                looks_at(&member, start, late),
                next,
                "closely, {late} ms late"
            );
        }
    }

    // A future that lowers the target meets the end of its driver. Nobody would take the driver off the list again.
    #[test]
    fn a_driver_that_has_ended_does_not_join_again() {
        let runtime = one_worker();
        let _entered = runtime.enter();
        let wakeup = Arc::new(Wakeup::new(clock_of(&runtime), Waking::Thread));
        assert!(wakeup.sleep_towards(Tick::ZERO, Tick::new(3_600_000), || true));
        assert!(wakeup.arrange());
        assert!(wakeup.member.is_member());
        wakeup.end();
        for earlier in [3_500_000, 3_400_000] {
            wakeup.request(Tick::new(earlier));
            assert_eq!(wakeup.target(), Tick::new(earlier));
            assert_eq!(wakeup.member.place(), LEFT);
        }
    }
}
