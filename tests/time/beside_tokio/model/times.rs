//! The common interface of tokio's timers and ours, so that one script can play with either.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use waterwheel::{Duration, Instant};

use super::Missed;

pub(crate) trait Times: 'static {
    type Sleep: Future<Output = ()> + Send;
    type Interval: Send;
    type Elapsed: Send;
    type Timeout<F: Future + Send>: Future<Output = Result<F::Output, Self::Elapsed>> + Send;

    fn sleep(delay: Duration) -> Self::Sleep;
    fn sleep_until(deadline: Instant) -> Self::Sleep;
    fn deadline(sleep: &Self::Sleep) -> Instant;
    fn is_elapsed(sleep: &Self::Sleep) -> bool;
    fn reset(sleep: Pin<&mut Self::Sleep>, deadline: Instant);

    fn interval_at(start: Instant, period: Duration, missed: Missed) -> Self::Interval;
    fn poll_tick(interval: &mut Self::Interval, context: &mut Context<'_>) -> Poll<Instant>;
    fn restart(interval: &mut Self::Interval);
    fn restart_now(interval: &mut Self::Interval);
    fn restart_after(interval: &mut Self::Interval, delay: Duration);
    fn restart_at(interval: &mut Self::Interval, deadline: Instant);

    fn timeout<F: Future + Send>(delay: Duration, future: F) -> Self::Timeout<F>;
    fn timeout_at<F: Future + Send>(deadline: Instant, future: F) -> Self::Timeout<F>;
}

/// Both have the same names, which makes switching possible.
macro_rules! times {
    ($who:ident, $($time:ident)::+) => {
        pub(crate) struct $who;

        impl Times for $who {
            type Sleep = $($time)::+::Sleep;
            type Interval = $($time)::+::Interval;
            type Elapsed = $($time)::+::error::Elapsed;
            type Timeout<F: Future + Send> = $($time)::+::Timeout<F>;

            fn sleep(delay: Duration) -> Self::Sleep {
                $($time)::+::sleep(delay)
            }
            fn sleep_until(deadline: Instant) -> Self::Sleep {
                $($time)::+::sleep_until(deadline)
            }
            fn deadline(sleep: &Self::Sleep) -> Instant {
                sleep.deadline()
            }
            fn is_elapsed(sleep: &Self::Sleep) -> bool {
                sleep.is_elapsed()
            }
            fn reset(sleep: Pin<&mut Self::Sleep>, deadline: Instant) {
                sleep.reset(deadline);
            }
            fn interval_at(start: Instant, period: Duration, missed: Missed) -> Self::Interval {
                use $($time)::+::MissedTickBehavior;
                let mut interval = $($time)::+::interval_at(start, period);
                interval.set_missed_tick_behavior(match missed {
                    Missed::Burst => MissedTickBehavior::Burst,
                    Missed::Delay => MissedTickBehavior::Delay,
                    Missed::Skip => MissedTickBehavior::Skip,
                });
                interval
            }
            fn poll_tick(interval: &mut Self::Interval, context: &mut Context<'_>) -> Poll<Instant> {
                interval.poll_tick(context)
            }
            fn restart(interval: &mut Self::Interval) {
                interval.reset();
            }
            fn restart_now(interval: &mut Self::Interval) {
                interval.reset_immediately();
            }
            fn restart_after(interval: &mut Self::Interval, delay: Duration) {
                interval.reset_after(delay);
            }
            fn restart_at(interval: &mut Self::Interval, deadline: Instant) {
                interval.reset_at(deadline);
            }
            fn timeout<F: Future + Send>(delay: Duration, future: F) -> Self::Timeout<F> {
                $($time)::+::timeout(delay, future)
            }
            fn timeout_at<F: Future + Send>(deadline: Instant, future: F) -> Self::Timeout<F> {
                $($time)::+::timeout_at(deadline, future)
            }
        }
    };
}

times!(Tokio, tokio::time);
times!(Ours, waterwheel);
