/// How a [`Timer`](crate::Timer) of your own is woken in time; for [`Builder::waking`](crate::Builder::waking).
///
/// | | who wakes the driver | how late a timer is | what it costs |
/// |---|---|---|---|
/// | [`Guarded`](Waking::Guarded) | tokio's clock; the wake-up thread steps in when that is late | 0 to 1 ms | the wake-ups of tokio's own timers, and a look of the thread after most of them where few timers fire |
/// | [`Precise`](Waking::Precise) | the wake-up thread, at each target | as late as the system wakes a thread | two wake-ups a turn: the thread's and a worker's |
/// | [`Frugal`](Waking::Frugal) | tokio's clock alone | 0 to 1 ms; and as long as a worker blocks that holds tokio's clock | the wake-ups of tokio's own timers |
///
/// To each lateness the rounding to a tick is added ([`Builder::resolution`](crate::Builder::resolution)).
///
/// # Blocked workers
///
/// In tokio, one worker at a time waits on the clock. When a timer fires, that worker runs the woken task. If the task blocks, no other
/// worker takes the clock over until something else wakes one, and every timer of the runtime waits, tokio's own too. With
/// `Guarded` and `Precise` the wake-up thread sees that a turn has not come, and has another worker take it: within 10 ms with `Guarded`,
/// within 2 ms with `Precise`, if a worker is free.
///
/// On a runtime of one thread there is no other worker. There `Guarded` is the same as `Frugal`. While a runtime's clock is
/// paused, the driver sleeps on that clock in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Waking {
    /// Tokio's clock wakes the driver. The wake-up thread stands behind it, and acts only if the driver is late. The runtime's timer
    /// is woken this way.
    #[default]
    Guarded,
    /// The wake-up thread wakes the driver at each target. For timers that must be on time more than they must be cheap.
    Precise,
    /// Tokio's clock alone wakes the driver. Nothing acts if a blocked worker holds the clock.
    Frugal,
}
