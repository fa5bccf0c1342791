//! hyper's time: a [`Timer`] is a `hyper::rt::Timer`, and its [`Sleep`] a `hyper::rt::Sleep`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt;
use tokio::time::{Duration, Instant};

use crate::{Sleep, Timer};

/// What hyper and hyper-util ask for by `timer(…)`: the server's header-read timeout, HTTP/2 keep-alive, the client's pool.
///
/// hyper times its own limits with it, and `now` is [`Timer::now`]: on a [`ManualClock`](crate::ManualClock) hyper's limits are virtual
/// too.
///
/// A limit needs a timer. Without `timer(…)`, hyper panics in `serve_connection` if `header_read_timeout` was set, and after the HTTP/2
/// handshake if `keep_alive_interval` was. With one, it also applies its own default: 30 s for the header of an HTTP/1 request. The
/// header-read timeout also ends idle keep-alive connections: it begins anew after each response.
///
/// A reset moves the deadline in place. It takes no lock if that is later, as for a keep-alive that each packet pushes back. It takes
/// what this timer gave to hyper, and a [`Sleep`] of this timer in a box. What is of another timer or another kind is replaced.
///
/// # Refusals
///
/// hyper has no error for a sleep that is refused. So these calls never panic, and differ from [`Timer::sleep`]:
///
/// - Once the timer takes nothing new, by [`shutdown`](Timer::shutdown) or by [`drain`](Timer::drain), a new sleep is
///   never ready. Nor is one whose timer is stopped while it waits. So **hyper's limits fall away with the timer**, and its
///   connections go on without them: end the connections first. (If the sleeps were ready instead, idle connections would end with a timeout
///   that has not passed, HTTP/2 connections as well if they carry requests, and the sweeps of hyper-util's pool would follow
///   one another without a pause.)
/// - Where [`max_pending`](crate::Builder::max_pending) is reached, a sleep is taken nevertheless, and counts. The limits hold, and what else
///   the timer is asked for is refused. Bound the connections.
///
/// When the timer's runtime [ends](crate::time#when-a-runtime-ends), a sleep that is polled elsewhere panics, as that of hyper-util's `TokioTimer` does.
///
/// A drain waits for the sleeps that hyper has pending, and hyper pushes the same sleep back as long as a connection or a pool lives.
///
/// # Example
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

impl rt::Sleep for Sleep {}

/// What hyper holds. `None` once the timer takes nothing: never ready.
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
