/// How the driver of a [`Timer`](crate::Timer) of your own is woken in time. Set by [`Builder::waking`](crate::Builder::waking).
///
/// By default, tokio's clock wakes the driver when the next timer is due, as it does for tokio's own timers. A *watchdog thread*,
/// one for the whole process, steps in if that is late because a worker is blocked.
///
/// | | woken by | lateness | cost |
/// |---|---|---|---|
/// | [`Watched`](Waking::Watched) | tokio's clock; the watchdog thread if that is late | usually 1 ms, at most 2 ms; behind a blocked worker at most 55 ms, and at most 10 ms for one second after the block was noticed | the wake-ups of tokio's own timers, and about 20 of the thread per second |
/// | [`WatchedClosely`](Waking::WatchedClosely) | as for `Watched` | usually 1 ms, at most 2 ms; behind a blocked worker at most 10 ms | the wake-ups of tokio's own timers, and up to 130 of the thread per second |
/// | [`Thread`](Waking::Thread) | the watchdog thread | about 0.1 ms: the time that the system takes to wake two threads | two wake-ups per turn: the thread and a worker |
/// | [`TokioOnly`](Waking::TokioOnly) | tokio's clock alone | usually 1 ms, at most 2 ms; behind a blocked worker, until that worker is free | the wake-ups of tokio's own timers |
///
/// Rounding the deadline up to a tick ([`Builder::resolution`](crate::Builder::resolution)) and waiting for busy workers come on
/// top.
///
/// # Blocked workers
///
/// In tokio, one worker at a time waits on the clock. When a timer fires, that worker runs the woken task. If the task blocks, no
/// other worker takes over the clock until something else wakes one, and every timer of the runtime waits, including tokio's own.
/// Except with `TokioOnly`, the watchdog thread notices that the driver did not run, and wakes another worker for it.
///
/// With `Watched`, the thread checks 50 ms after a timer was due, so a service whose workers never block pays almost nothing for
/// it. Once it has found the driver late, it checks 8 ms after each timer for one second.
///
/// A runtime with a single worker has no other worker to wake, so `Watched` and `WatchedClosely` behave like `TokioOnly` there. While a
/// runtime's clock is paused, the driver always sleeps on that clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Waking {
    /// Tokio's clock wakes the driver, and the watchdog thread does if that is late. The runtime's own timer is woken this way.
    #[default]
    Watched,
    /// Like `Watched`, but the watchdog thread always checks 8 ms after each timer was due.
    WatchedClosely,
    /// The watchdog thread wakes the driver as soon as a timer is due. For timers for which being on time matters more than being
    /// cheap.
    Thread,
    /// Tokio's clock alone wakes the driver. Nothing helps if a blocked worker holds up the clock.
    TokioOnly,
}
