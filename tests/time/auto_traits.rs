//! Sizes, auto traits and `Debug` of the public types.

use std::fmt::Debug;
use std::future::{Pending, pending};
use std::marker::PhantomPinned;
use std::rc::Rc;

use waterwheel::error::{AdvanceError, BuildError, Elapsed, Error, InvalidResolution};
use waterwheel::ext::{ChunksTimeout, Throttle, Timeout as StreamTimeout, TimeoutRepeating};
use waterwheel::rpc::grpc_timeout::{Header, InvalidTimeout, format, parse};
use waterwheel::rpc::{Deadline, Guarded, IdleTimeout, Scoped};
use waterwheel::wheel::{Expire, Key, Progress, Resolution, Tick, Ticks, Verdict, Wheel};
use waterwheel::{
    Builder, DialSnapshot, Duration, Interval, Lateness, ManualClock, Metrics, MissedTickBehavior,
    ShardSnapshot, Sleep, Snapshot, Timeout, Timer,
};

use crate::support::{current_thread, ms, own_timer, paused, poll_once};

#[test]
fn a_sleep_is_small() {
    assert!(size_of::<Sleep>() <= 32, "{}", size_of::<Sleep>());
    assert!(size_of::<Option<Sleep>>() <= 32);
    assert!(size_of::<Timeout<()>>() <= 32);
    assert_eq!(size_of::<Timer>(), size_of::<usize>());
    assert!(size_of::<Elapsed>() <= 1);
}

#[test]
fn what_holds_a_sleep_is_not_much_larger() {
    // A `Sleep`, a `Duration`, a flag.
    assert!(size_of::<StreamTimeout<()>>() <= 56);
    assert!(size_of::<Throttle<()>>() <= 56);
    assert!(size_of::<TimeoutRepeating<()>>() <= size_of::<Interval>() + 8);
    // In addition to these, a `Vec` and the size of a chunk.
    assert!(size_of::<ChunksTimeout<futures::stream::Empty<()>>>() <= 96);
    assert!(size_of::<Deadline>() <= 16);
    assert_eq!(size_of::<Option<Deadline>>(), size_of::<Deadline>());
    // The sleep contains the scope's deadline; in addition there is the timer.
    assert!(size_of::<Scoped<()>>() <= size_of::<Timeout<()>>() + size_of::<Timer>());
    assert_eq!(size_of::<IdleTimeout>(), size_of::<usize>());
    assert!(
        size_of::<Guarded<()>>() <= 48,
        "{}",
        size_of::<Guarded<()>>()
    );
    assert!(size_of::<Header>() <= 10);
}

#[test]
fn a_snapshot_keeps_its_slots_in_boxes() {
    // Two boxes of slots, a `Duration`, the hand.
    assert!(size_of::<DialSnapshot>() <= 56);
    assert!(size_of::<ShardSnapshot>() <= 64);
    assert!(size_of::<Snapshot>() <= 128, "{}", size_of::<Snapshot>());
}

type Sendable = Pending<u8>;
type Local = Pending<Rc<u8>>;
type Pinned = (PhantomPinned, u8);

#[test]
fn auto_traits_are_what_they_are_meant_to_be() {
    assert_auto_traits! {
        Sleep: true true true;
        Interval: true true true;
        Timeout<Sendable>: true true true;
        // A type that holds a future has the future's traits.
        Timeout<Rc<u8>>: false false true;
        Timeout<std::cell::Cell<u8>>: true false true;
        Timeout<Pinned>: true true false;
        StreamTimeout<Sendable>: true true true;
        StreamTimeout<Rc<u8>>: false false true;
        StreamTimeout<Pinned>: true true false;
        TimeoutRepeating<Sendable>: true true true;
        TimeoutRepeating<Rc<u8>>: false false true;
        TimeoutRepeating<Pinned>: true true false;
        Throttle<std::cell::Cell<u8>>: true false true;
        Throttle<Pinned>: true true false;
        ChunksTimeout<futures::stream::Pending<u8>>: true true true;
        ChunksTimeout<futures::stream::Pending<Rc<u8>>>: false false true;
        Deadline: true true true;
        Scoped<Sendable>: true true true;
        Scoped<Rc<u8>>: false false true;
        Scoped<Pinned>: true true false;
        IdleTimeout: true true true;
        Guarded<Sendable>: true true true;
        Guarded<std::cell::Cell<u8>>: true false true;
        Guarded<Pinned>: true true false;
        Header: true true true;
        InvalidTimeout: true true true;
        Timer: true true true;
        Builder: true true true;
        ManualClock: true true true;
        AdvanceError: true true true;
        Metrics: true true true;
        Lateness: true true true;
        Snapshot: true true true;
        ShardSnapshot: true true true;
        DialSnapshot: true true true;
        MissedTickBehavior: true true true;
        Elapsed: true true true;
        Error: true true true;
        BuildError: true true true;
        InvalidResolution: true true true;
        Wheel<u8>: true true true;
        Wheel<Rc<u8>>: false false true;
        Wheel<std::cell::Cell<u8>>: true false true;
        Wheel<Pinned>: true true false;
        Expire<'static, u8>: true true true;
        Expire<'static, Rc<u8>>: false false true;
        Key: true true true;
        Tick: true true true;
        Ticks: true true true;
        Resolution: true true true;
        Verdict: true true true;
        Progress: true true true;
    }
    assert!(
        has!(Local: Send),
        "`Pending` is `Send` for each type that it never gives"
    );
}

#[test]
fn unwind_safety_is_that_of_tokios_timers_or_better() {
    use std::panic::{RefUnwindSafe, UnwindSafe};
    assert!(has!(Elapsed: UnwindSafe) && has!(Elapsed: RefUnwindSafe));
    assert!(has!(Error: UnwindSafe) && has!(Error: RefUnwindSafe));
    assert!(has!(Metrics: UnwindSafe) && has!(Metrics: RefUnwindSafe));
    assert!(has!(Snapshot: UnwindSafe) && has!(Snapshot: RefUnwindSafe));
    if has!(tokio::time::Sleep: UnwindSafe) {
        assert!(has!(Sleep: UnwindSafe));
    }
}

#[tokio::test]
async fn the_futures_of_methods_may_be_sent_to_another_thread() {
    fn sendable<T: Send + Sync + 'static>(_: T) {}
    fn sendable_for_now<T: Send>(_: T) {}
    let timer = own_timer();
    let mut interval = timer.interval(ms(1));
    sendable_for_now(interval.tick());
    sendable_for_now(interval.try_tick());
    sendable(timer.drain());
}

#[test]
fn everything_can_be_shown_for_debugging() {
    fn shown(value: &impl Debug) {
        assert!(!format!("{value:?}").is_empty());
        assert!(!format!("{value:#?}").is_empty());
    }
    current_thread().block_on(async {
        let timer = Timer::builder().name("shown").max_pending(8);
        shown(&timer);
        let timer = timer.start().expect("a timer");
        let shows = format!("{timer:?}");
        assert!(shows.contains("shown") && shows.contains('8'), "{shows}");
        let mut sleep = timer.sleep(ms(1));
        shown(&sleep);
        let _ = poll_once(&mut sleep);
        shown(&sleep);
        (&mut sleep).await;
        shown(&sleep);
        shown(&timer.timeout(ms(1), pending::<()>()));
        shown(&timer.interval(ms(1)));
        shown(&timer.metrics());
        shown(timer.metrics().lateness());
        let snapshot = timer.snapshot();
        shown(&snapshot);
        // Of its ten thousand slots, only the sums are shown.
        assert!(format!("{snapshot:?}").len() < 4_000);
        assert!(timer.metrics().to_string().contains("fired 1"));
        let elapsed = timer.timeout(ms(1), pending::<()>()).await;
        shown(&elapsed.expect_err("it is never ready"));
        shown(&timer.try_interval(Duration::ZERO));
        shown(&Timer::builder().shards(0).start());
        timer.shutdown();
        shown(&timer);
    });
    paused().block_on(async {
        use futures::stream::pending as silence;
        use waterwheel::ext::StreamExt;
        shown(&silence::<u8>().timeout(ms(1)));
        shown(&silence::<u8>().timeout_repeating(waterwheel::interval(ms(1))));
        shown(&silence::<u8>().throttle(ms(1)));
        shown(&silence::<u8>().chunks_timeout(1, ms(1)));
        let deadline = Deadline::after(ms(1));
        shown(&deadline);
        shown(&deadline.scope(pending::<()>()));
        let idle = IdleTimeout::new(ms(1));
        shown(&idle);
        shown(&idle.guard(pending::<()>()));
    });
    assert_eq!(format!("{:?}", format(ms(1))), "Header(\"1000000n\")");
    shown(&parse("1").expect_err("it has no unit"));
    shown(&MissedTickBehavior::Burst);
    shown(&Resolution::new(ms(3)));
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    shown(&wheel.insert(Tick::new(5), "five"));
    shown(&wheel);
}

#[test]
fn errors_are_errors_that_can_be_boxed_and_sent() {
    fn error<E: std::error::Error + Send + Sync + 'static>() {}
    error::<Elapsed>();
    error::<Error>();
    error::<BuildError>();
    error::<InvalidResolution>();
    error::<InvalidTimeout>();
}
