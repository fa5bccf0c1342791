//! hyper's time: a [`Timer`] is a `hyper::rt::Timer`, and its [`Sleep`] a `hyper::rt::Sleep`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt;
use tokio::time::{Duration, Instant};

use crate::{Sleep, Timer};

/// Makes a [`Timer`] usable as hyper's timer. Requires the feature `hyper`.
///
/// Pass it to the `timer(…)` methods of hyper and hyper-util, for the server's header-read timeout and HTTP/2 keep-alive, and to
/// hyper-util's `pool_timer(…)` for the client's pool.
///
/// hyper runs its own limits on this timer, and its `now` is [`Timer::now`]: on a [`ManualClock`](crate::ManualClock), hyper's
/// limits are virtual too.
///
/// hyper's limits need a timer. Without `timer(…)`, hyper panics in `serve_connection` if `header_read_timeout` was set, and
/// after the HTTP/2 handshake if `keep_alive_interval` was set. With a timer, hyper also applies its own default of 30 s for the
/// header of an HTTP/1 request. The header-read timeout also ends idle keep-alive connections, since it starts anew after each
/// response.
///
/// A reset moves the deadline in place. It takes no lock if the new deadline is later, as for a keep-alive that each packet
/// pushes back. This applies to the sleeps that this timer gave to hyper, and to a boxed [`Sleep`] of this timer. Sleeps of
/// another timer or type are replaced.
///
/// # When the timer is stopped or full
///
/// hyper has no error for a sleep that is rejected. These methods therefore never panic, and differ from [`Timer::sleep`]:
///
/// - Once [`shutdown`](Timer::shutdown) or [`drain`](Timer::drain) was called, a new sleep is never ready. Nor is a sleep whose
///   timer is stopped while it waits. **hyper's limits therefore no longer apply once the timer is stopped**, and its connections
///   go on without them: end the connections first. (If the sleeps were ready instead, idle connections would end with a timeout
///   that has not passed, as would HTTP/2 connections that still carry requests, and hyper-util would sweep its pool in a busy
///   loop.)
/// - When [`max_pending`](crate::Builder::max_pending) is reached, a sleep is accepted nevertheless, and counts. The limits hold,
///   but all other requests to the timer are rejected. Limit the number of connections.
///
/// When the timer's runtime [ends](crate::time#when-a-runtime-ends), a sleep that is polled elsewhere panics, like that of
/// hyper-util's `TokioTimer`.
///
/// A drain waits for hyper's pending sleeps, and hyper keeps pushing back the same sleep for as long as a connection or a pool
/// lives.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use waterwheel::{Duration, Timer};
///
/// // As in `hyper::server::conn::http1::Builder::new().timer(Timer::current())`.
/// let timer: Box<dyn hyper::rt::Timer> = Box::new(Timer::current());
/// let mut sleep = timer.sleep(Duration::from_secs(3600));
/// timer.reset(&mut sleep, timer.now() + Duration::from_millis(5));
/// sleep.await;
/// # }
/// ```
impl rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Limit(self.sleep_unless_closed(duration)))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn rt::Sleep>> {
        let deadline = Instant::from_std(deadline);
        Box::pin(Limit(self.sleep_until_unless_closed(deadline)))
    }

    fn now(&self) -> std::time::Instant {
        self.now().into_std()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, new_deadline: std::time::Instant) {
        let ours = match sleep.as_mut().downcast_mut_pin::<Limit>() {
            Some(limit) => limit.get_mut().0.as_mut(),
            None => sleep.as_mut().downcast_mut_pin().map(Pin::get_mut),
        };
        match ours.filter(|ours| ours.is_of(self)) {
            Some(ours) => ours.set_deadline(Instant::from_std(new_deadline)),
            None => *sleep = rt::Timer::sleep_until(self, new_deadline),
        }
    }
}

/// Makes a [`Sleep`] usable as hyper's sleep. Requires the feature `hyper`.
impl rt::Sleep for Sleep {}

/// The sleep that hyper holds. `None` once the timer takes nothing: never ready.
struct Limit(Option<Sleep>);

impl Future for Limit {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let limit = self.get_mut();
        let Some(sleep) = &mut limit.0 else {
            return Poll::Pending;
        };
        ready!(Pin::new(&mut *sleep).poll(context));
        if sleep.was_stopped() {
            limit.0 = None;
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

impl rt::Sleep for Limit {}
