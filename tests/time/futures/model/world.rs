//! A runtime with a paused clock, the real futures, and their comparison with the oracle.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::{unconstrained, yield_now};
use waterwheel::{Instant, Interval, Metrics, Sleep, Timeout, Timer};

use super::known::{self, By, Counts, Drain, Kind, Life, Outcome, State};
use super::oracle::{Oracle, PROBES, SLOTS};
use super::waker::{Log, Sprung};
use super::{Case, Home, Op};
use crate::support::{Probe, metrics, paused, poll_with, unless_over};

pub(super) const HOMES: [Home; 2] = [Home::Current, Home::Own];

/// How far the clock is moved. Deadlines may be further away.
///
/// tokio's own wheel wraps after 2³⁶ ms, or 795 days. Once a sleep on tokio's clock, such as our driver's, waits beyond that, tokio
/// 1.49, the lowest that we admit, writes to memory that it has freed. The driver sleeps for 64 days at most.
const LAST: Duration = Duration::from_secs(86_400 * 700);

/// After this many yields the driver must have nothing more to do.
const YIELDS: usize = 4;

/// Does the steps on the futures and on the oracle, and compares the two after each. Then drops the runtime, whatever is pending,
/// and checks the futures that are left.
///
/// # Panics
///
/// If they differ.
pub(crate) fn run(case: &Case) {
    let runtime = paused();
    let is_end = |op: &Op| matches!(op, Op::DropRuntime);
    let end = case.ops.iter().position(is_end);
    let (within, after) = case.ops.split_at(end.unwrap_or(case.ops.len()));
    let mut world = runtime.block_on(async {
        let mut world = World::new(case);
        for op in within {
            match *op {
                Op::Run => world.run().await,
                Op::Await { which } => world.wait(which).await,
                _ => world.apply(op),
            }
            world.check();
        }
        world
    });
    drop(runtime);
    world.lose_runtime();
    world.check();
    for op in after {
        world.apply(op);
        world.check();
    }
    world.finish();
}

pub(super) struct World {
    pub(super) oracle: Oracle,
    /// When tokio's clock began.
    pub(super) start: Instant,
    pub(super) runtime: Handle,
    pub(super) has_runtime: bool,
    pub(super) timers: [Option<Timer>; 2],
    pub(super) futures: Vec<Option<Timed>>,
    pub(super) drains: [Option<Drained>; 2],
    pub(super) probes: Arc<[Probe]>,
    pub(super) log: Log,
}

/// A future of ours.
pub(super) enum Timed {
    Sleep(Sleep),
    Timeout(Timeout<Gate>),
    Interval(Interval),
}

/// A drain, with a waker of its own.
pub(super) struct Drained {
    pub(super) drain: Pin<Box<dyn Future<Output = ()>>>,
    pub(super) probe: Probe,
    /// How often it had been woken when it was last polled.
    pub(super) before: usize,
}

/// A future that is pending until `is_ready` is set.
#[derive(Default)]
pub(super) struct Gate {
    pub(super) is_ready: bool,
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match self.is_ready {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl World {
    fn new(case: &Case) -> World {
        let start = Instant::now();
        move_clock(case.starts[0]);
        let current = Timer::current();
        move_clock(case.starts[1]);
        let own = Timer::builder().resolution(case.resolution);
        let own = match case.max_pending {
            Some(most) => own.max_pending(most),
            None => own,
        };
        let at_own = case.starts[0] + case.starts[1];
        let currents = known::Timer::new(case.starts[0], current.resolution(), None);
        let owns = known::Timer::new(at_own, case.resolution, case.max_pending);
        let mut oracle = Oracle::new([currents, owns]);
        oracle.now = at_own;
        World {
            oracle,
            start,
            runtime: Handle::current(),
            has_runtime: true,
            timers: [Some(current), Some(own.start().expect("a timer"))],
            futures: (0..SLOTS).map(|_| None).collect(),
            drains: [None, None],
            probes: (0..PROBES).map(|_| Probe::new()).collect(),
            log: Log::default(),
        }
    }

    pub(super) fn instant(&self, time: Duration) -> Instant {
        self.start + time
    }

    fn now(&self) -> Duration {
        let _entered = self.runtime.enter();
        Instant::now() - self.start
    }

    // ----- time -----

    pub(super) fn jump(&mut self, by: Duration) {
        if self.has_runtime && self.oracle.now + by <= LAST {
            move_clock(by);
            self.oracle.now += by;
        }
    }

    /// Lets the driver run, and checks that it then has nothing to do.
    async fn run(&mut self) {
        self.jump(known::whole_millis(self.oracle.now) - self.oracle.now);
        for _ in 0..YIELDS {
            yield_now().await;
        }
        self.driver_ran();
        let turns = |timer: &Timer| timer.metrics().driver_turns();
        let before = self
            .timers
            .each_ref()
            .map(|timer| timer.as_ref().map(turns));
        yield_now().await;
        let after = self
            .timers
            .each_ref()
            .map(|timer| timer.as_ref().map(turns));
        assert_eq!(after, before, "the driver turns, and nothing is due");
    }

    /// Notes that the drivers have run until now.
    fn driver_ran(&mut self) {
        for sprung in self.log.take() {
            // The trap acted within the turn that woke it, and that turn had taken all that was due.
            let home = self.oracle.home_of(sprung.trap);
            self.oracle.run(home, sprung.at - self.start);
            self.hear(sprung);
        }
        for home in HOMES {
            self.oracle.run(home, self.oracle.now);
        }
    }

    /// Waits for a future in the main task, if it will be ready before [`LAST`].
    async fn wait(&mut self, which: usize) {
        let Some(which) = self.pick(which) else {
            return;
        };
        self.run().await;
        self.check();
        let slot = self.oracle.slots[which].as_ref().expect("it is there");
        let timer = &self.oracle.timers[slot.home as usize];
        let due = slot.deadline.map(|deadline| timer.due_at(deadline));
        let Some(due) = due.filter(|&due| due < LAST) else {
            return;
        };
        let due = due.max(self.oracle.now);
        // If the wake-up is lost, this sleep moves the clock, so that the test fails instead of hanging.
        let mut guard = pin!(tokio::time::sleep_until(
            self.instant(due) + Duration::from_millis(2)
        ));
        poll_fn(|context| {
            let now = self.now();
            if now > self.oracle.now {
                self.oracle.now = now;
                self.driver_ran();
            }
            if self.poll(which, By::Main, context.waker()) {
                return Poll::Ready(());
            }
            assert!(guard.as_mut().poll(context).is_pending(), "never ready");
            Poll::Pending
        })
        .await;
        let now = self.oracle.now;
        assert!(now <= due, "woken at {now:?} and not at {due:?}");
        self.check();
        self.run().await;
    }

    fn lose_runtime(&mut self) {
        self.has_runtime = false;
        for home in HOMES {
            self.oracle.lose_runtime(home);
        }
        self.hear_all();
    }

    // ----- polls -----

    /// Polls a future. Returns whether it is ready. The oracle must agree.
    pub(super) fn poll(&mut self, which: usize, by: By, waker: &Waker) -> bool {
        let start = self.start;
        let future = self.futures[which].as_mut().expect("it is there");
        let outcome = match future {
            Timed::Sleep(sleep) => unless_over(|| poll_with(sleep, waker))
                .map_or(Poll::Ready(Outcome::Over), |poll| {
                    poll.map(|()| Outcome::Slept)
                }),
            Timed::Timeout(timeout) => unless_over(|| poll_with(timeout, waker)).map_or(
                Poll::Ready(Outcome::Over),
                |poll| {
                    poll.map(|result| match result {
                        Ok(()) => Outcome::InTime,
                        Err(elapsed) => Outcome::Elapsed {
                            stopped: elapsed.was_stopped(),
                        },
                    })
                },
            ),
            Timed::Interval(interval) => {
                let tick = pin!(unconstrained(interval.try_tick()));
                let tick = Future::poll(tick, &mut Context::from_waker(waker));
                tick.map(|tick| match tick {
                    Ok(tick) => Outcome::Tick(tick - start),
                    Err(error) => {
                        assert!(error.is_shutdown());
                        Outcome::Ended
                    }
                })
            }
        };
        let expected = self.oracle.poll(which, by, self.oracle.now);
        let expected = expected.map_or(Poll::Pending, Poll::Ready);
        assert_eq!(outcome, expected, "{:?}", self.oracle.slots[which]);
        outcome.is_ready()
    }

    pub(super) fn poll_drain(&mut self, home: Home) {
        let Some(drained) = &mut self.drains[home as usize] else {
            return;
        };
        drained.before = drained.probe.wakes();
        let outcome = drained.probe.poll(&mut drained.drain);
        assert_eq!(outcome.is_ready(), self.oracle.poll_drain(home), "drained");
        self.hear_all();
    }

    // ----- traps -----

    /// Reads the log of the traps that the last step has woken.
    pub(super) fn hear_all(&mut self) {
        for sprung in self.log.take() {
            self.hear(sprung);
        }
    }

    fn hear(&mut self, sprung: Sprung) {
        let at = sprung.at - self.start;
        let (victim, is_ready) = self.oracle.spring(sprung.trap, at);
        assert_eq!(sprung.is_ready, is_ready, "what a trap polled");
        self.futures[victim] = sprung.victim.map(Timed::Sleep);
    }

    // ----- checks after each step -----

    pub(super) fn check(&self) {
        let oracle = &self.oracle;
        assert_eq!(self.now(), oracle.now, "the clock");
        assert!(!oracle.is_silent(), "a trap was not woken");
        for (number, probe) in self.probes.iter().enumerate() {
            assert_eq!(
                probe.wakes(),
                oracle.wakes[number],
                "wakes of probe {number}"
            );
            assert_eq!(
                probe.held(),
                oracle.held(number),
                "clones of probe {number}"
            );
        }
        for home in HOMES {
            self.check_timer(home);
        }
        for which in 0..SLOTS {
            self.check_future(which);
        }
    }

    fn check_timer(&self, home: Home) {
        let known = &self.oracle.timers[home as usize];
        if let Some(timer) = &self.timers[home as usize] {
            let pending = self.oracle.pending(home);
            let expected = Counts {
                pending,
                ..known.counts
            };
            assert_eq!(counts(&metrics(timer)), expected, "{home:?}");
            let has_ended = known.state == State::Stopped || known.is_over;
            assert_eq!(timer.is_stopped(), has_ended);
        }
        if let Some(drained) = &self.drains[home as usize] {
            let wakes = drained.probe.wakes() - drained.before;
            match known.drain {
                Drain::None => {}
                Drain::Waits => assert_eq!(wakes, 0, "something is pending"),
                Drain::Woken => assert_ne!(wakes, 0, "nothing is pending"),
            }
        }
    }

    fn check_future(&self, which: usize) {
        let known = match &self.oracle.slots[which] {
            Some(known) if !known.is_away => known,
            _ => return assert!(self.futures[which].is_none(), "a future too many"),
        };
        let home = &self.oracle.timers[known.home as usize];
        match (
            self.futures[which].as_ref().expect("it is there"),
            &known.kind,
        ) {
            (Timed::Sleep(sleep), Kind::Sleep) => {
                assert_eq!(Some(sleep.deadline() - self.start), known.deadline);
                let deadline = known.deadline.expect("a sleep has one");
                let is_due = home.is_due(deadline, self.oracle.now);
                let is_stopped = home.state == State::Stopped;
                let (is_elapsed, was_stopped) = match known.life {
                    Life::New => (false, false),
                    Life::Done { stopped: true } => (is_due || is_stopped, is_stopped),
                    Life::Done { stopped: false } => (true, false),
                    Life::Reset | Life::Pending(_) | Life::Disarmed => {
                        (is_due || is_stopped, is_stopped && !is_due)
                    }
                };
                assert_eq!(sleep.is_elapsed(), is_elapsed, "{known:?}");
                assert_eq!(sleep.was_stopped(), was_stopped, "{known:?}");
            }
            (Timed::Timeout(timeout), Kind::Timeout { is_ready }) => {
                assert_eq!(timeout.get_ref().is_ready, *is_ready);
            }
            (Timed::Interval(interval), Kind::Interval(ticks)) => {
                assert_eq!(interval.period(), ticks.period);
                assert_eq!(interval.missed_ticks(), ticks.missed, "{known:?}");
                assert_eq!(interval.was_stopped(), ticks.has_ended, "{known:?}");
            }
            _ => unreachable!("slots and futures go together"),
        }
    }

    /// Checks after the runtime is gone: everything is ready or panics, and nothing is kept.
    fn finish(mut self) {
        for which in 0..SLOTS {
            if self.futures[which].is_none() {
                continue;
            }
            let is_ready = self.poll(which, By::Main, Waker::noop());
            let known = self.oracle.slots[which].as_ref().expect("it is there");
            let is_never = known.deadline.is_none() && matches!(known.kind, Kind::Timeout { .. });
            assert!(is_ready || is_never, "{known:?} hangs");
            self.check();
            self.drop_future(which);
            self.check();
        }
        for home in HOMES {
            self.poll_drain(home);
            self.drains[home as usize] = None;
            assert_eq!(self.oracle.timers[home as usize].permits, 0, "{home:?}");
        }
        assert!(self.oracle.slots.iter().all(Option::is_none));
        assert!(self.probes.iter().all(|probe| probe.held() == 0));
    }

    pub(super) fn drop_future(&mut self, which: usize) {
        self.futures[which] = None;
        self.oracle.drop(which);
        self.hear_all();
    }

    /// One of the existing futures.
    pub(super) fn pick(&self, which: usize) -> Option<usize> {
        let there = || (0..SLOTS).filter(|&slot| self.futures[slot].is_some());
        there().nth(which.checked_rem(there().count())?)
    }
}

/// Moves tokio's clock, and lets no task run. The first poll of `advance` does that. Its later polls would yield.
fn move_clock(by: Duration) {
    let advance = pin!(tokio::time::advance(by));
    let _ = Future::poll(advance, &mut Context::from_waker(Waker::noop()));
}

fn counts(metrics: &Metrics) -> Counts {
    Counts {
        armed: metrics.armed(),
        fired: metrics.fired(),
        cancelled: metrics.cancelled(),
        stopped: metrics.stopped(),
        pending: metrics.pending(),
    }
}
