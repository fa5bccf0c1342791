//! hyper's time: a [`Timer`] is a `hyper::rt::Timer`, and its [`Sleep`] a `hyper::rt::Sleep`.

use std::pin::Pin;

use hyper::rt;
use tokio::time::{Duration, Instant};

use crate::{Sleep, Timer};

/// What hyper and hyper-util ask for by `timer(…)`: the server's header-read timeout, HTTP/2 keep-alive, the client's pool.
///
/// hyper times its own limits with it. Its calls are those of [`Timer::sleep`] and [`Timer::sleep_until`], so they panic if the timer was
/// stopped or has reached its `max_pending`: give hyper a timer without a bound, and end its connections before the timer.
///
/// A limit needs a timer. Without `timer(…)`, hyper panics in `serve_connection` if `header_read_timeout` was set, and after the HTTP/2
/// handshake if `keep_alive_interval` was. With one, it also applies its own default: 30 s for the header of an HTTP/1 request. The
/// header-read timeout also ends idle keep-alive connections: it begins anew after each response.
///
/// A reset moves the deadline in place. It takes no lock if that is later, as for a keep-alive that each packet pushes back. A sleep
/// of another kind is replaced. `now` is [`Timer::now`]: on a [`ManualClock`](crate::ManualClock) hyper's limits are virtual too.
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
        Box::pin(self.sleep(duration))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(self.sleep_until(Instant::from_std(deadline)))
    }

    fn now(&self) -> std::time::Instant {
        self.now().into_std()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn rt::Sleep>>, new_deadline: std::time::Instant) {
        match sleep.as_mut().downcast_mut_pin::<Sleep>() {
            Some(ours) => ours.reset(Instant::from_std(new_deadline)),
            None => *sleep = rt::Timer::sleep_until(self, new_deadline),
        }
    }
}

impl rt::Sleep for Sleep {}
