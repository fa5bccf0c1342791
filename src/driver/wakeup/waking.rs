/// How a [`Timer`](crate::Timer) of your own is woken in time; for [`Builder::waking`](crate::Builder::waking).
///
/// | | who wakes the driver | how late a timer is | what it costs |
/// |---|---|---|---|
/// | [`Guarded`](Waking::Guarded) | tokio's clock; the wake-up thread, if that is late | 1 ms as a rule, 2 at most; behind a blocked worker at most 55 ms; once the thread has noticed the block, at most 10 ms for one second | the wake-ups of tokio's own timers, and some 20 of the thread a second |
/// | [`Strict`](Waking::Strict) | as for `Guarded` | 1 ms as a rule, 2 at most; behind a blocked worker at most 10 ms | the wake-ups of tokio's own timers, and up to 130 of the thread a second |
/// | [`Precise`](Waking::Precise) | the wake-up thread, at each target | some 0.1 ms: what the system takes to wake two threads | two wake-ups a turn: the thread's and a worker's |
/// | [`Frugal`](Waking::Frugal) | tokio's clock alone | 1 ms as a rule, 2 at most; behind a blocked worker, until that worker is free | the wake-ups of tokio's own timers |
///
/// The rounding of the deadline to a tick comes on top ([`Builder::resolution`](crate::Builder::resolution)), and the time that the
/// workers are busy.
///
/// # Blocked workers
///
/// In tokio, one worker at a time waits on the clock. When a timer fires, that worker runs the woken task. If the task blocks, no other
/// worker takes the clock over until something else wakes one, and every timer of the runtime waits, tokio's own too. With all but
/// `Frugal`, the wake-up thread sees that a turn has not come, and wakes another worker for it. With `Guarded` it looks 50 ms after a
/// timer was due, so that a service whose workers never block hardly pays for it; once it has found the driver late, it looks 8 ms after
/// each timer for a second.
///
/// On a runtime of one worker there is no other. There `Guarded` and `Strict` are the same as `Frugal`. While a runtime's clock is
/// paused, the driver sleeps on that clock in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Waking {
    /// Tokio's clock wakes the driver, and the wake-up thread does if that is late. The runtime's timer is woken this way.
    #[default]
    Guarded,
    /// Like `Guarded`, but the wake-up thread always checks 8 ms after each target.
    Strict,
    /// The wake-up thread wakes the driver at each target. For timers that must be on time more than they must be cheap.
    Precise,
    /// Tokio's clock alone wakes the driver. Nothing acts if a blocked worker holds the clock.
    Frugal,
}
