//! openraft 0.10: an `AsyncRuntime` with our sleeps and timeouts, and tokio's tasks and channels.

use std::future::Future;

use openraft_rt::testing::Suite;
use openraft_rt::{AsyncRuntime, OptionalSend};
use openraft_rt_tokio::TokioRuntime;
use waterwheel::error::Elapsed;
use waterwheel::{Duration, Sleep, Timeout};

/// For `declare_raft_types!`: `AsyncRuntime = Waterwheel`.
#[derive(Debug)]
pub(crate) struct Waterwheel(TokioRuntime);

impl AsyncRuntime for Waterwheel {
    type Sleep = Sleep;
    type Instant = std::time::Instant;
    type TimeoutError = Elapsed;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = Timeout<T>;

    fn sleep(duration: Duration) -> Sleep {
        waterwheel::sleep(duration)
    }

    fn sleep_until(deadline: std::time::Instant) -> Sleep {
        waterwheel::sleep_until(deadline.into())
    }

    fn timeout<R, F>(duration: Duration, future: F) -> Timeout<F>
    where
        F: Future<Output = R> + OptionalSend,
    {
        waterwheel::timeout(duration, future)
    }

    fn timeout_at<R, F>(deadline: std::time::Instant, future: F) -> Timeout<F>
    where
        F: Future<Output = R> + OptionalSend,
    {
        waterwheel::timeout_at(deadline.into(), future)
    }

    type JoinError = <TokioRuntime as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::JoinHandle<T>;
    type ThreadLocalRng = <TokioRuntime as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <TokioRuntime as AsyncRuntime>::Mpsc;
    type Watch = <TokioRuntime as AsyncRuntime>::Watch;
    type Oneshot = <TokioRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        TokioRuntime::spawn(future)
    }

    fn is_panic(error: &Self::JoinError) -> bool {
        TokioRuntime::is_panic(error)
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        TokioRuntime::thread_rng()
    }

    fn new(threads: usize) -> Self {
        Waterwheel(TokioRuntime::new(threads))
    }

    fn block_on<F: Future<Output = T>, T>(&mut self, future: F) -> T {
        self.0.block_on(future)
    }
}

#[test]
fn openrafts_suite_passes_on_our_sleeps_and_timeouts() {
    Suite::<Waterwheel>::test_all();
}

#[test]
fn the_sleeps_of_the_suite_are_ours() {
    let mut runtime = Waterwheel::new(1);
    Suite::test_all_on(&mut runtime);
    let metrics = runtime.block_on(async { waterwheel::Timer::current().metrics() });
    assert!(metrics.armed() > 0, "{metrics}");
}
