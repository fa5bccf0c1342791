//! Futures polled by hand, and the operations that are counted.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;
use waterwheel::{Duration, Sleep, Timer, sleep};

/// A delay like that of most timeouts.
pub(crate) const DELAY: Duration = Duration::from_secs(30);

pub(crate) fn own_timer(runtime: &Handle) -> Timer {
    let timer = Timer::builder().start_on(runtime);
    timer.expect("the settings are in range")
}

// The counted code is not inlined into the loops that call it: otherwise a change of a loop could
// change the code that the compiler generates for the library.

#[inline(never)]
pub(crate) fn own(timer: &Timer) -> Sleep {
    timer.sleep(DELAY)
}

#[inline(never)]
pub(crate) fn current() -> Sleep {
    sleep(DELAY)
}

#[inline(never)]
pub(crate) fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

pub(crate) fn arm(sleep: &mut Sleep, waker: &Waker) {
    assert!(poll(sleep, waker).is_pending());
}

/// A call whose answer is not available at once.
pub(crate) fn pending_once() -> impl Future<Output = ()> + Unpin {
    let mut asked = false;
    poll_fn(move |_| {
        if std::mem::replace(&mut asked, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

pub(crate) fn complete_at_second_poll<F: Future + Unpin>(mut future: F, waker: &Waker) {
    assert!(poll(&mut future, waker).is_pending());
    assert!(poll(&mut future, waker).is_ready());
}
