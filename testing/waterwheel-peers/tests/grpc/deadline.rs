//! The client's deadline goes through the chain, and ends the handlers of both servers.

use std::future::{Future, poll_fn};

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout_at;
use tonic::{Code, Request};
use waterwheel::rpc::Deadline;
use waterwheel::{Duration, Instant};

use crate::chain::Chain;
use crate::link::Ask;
use crate::rounds::{Limit, is_cut_within};
use crate::support::{HOUR, eventually, ms};

const TIMEOUT: Duration = ms(300);
/// The maximum lateness.
const LATE: Duration = ms(50);

// Only the header of the request tells the deadline: the client goes on waiting.
#[test]
fn the_clients_deadline_ends_both_handlers_in_time() {
    let runtime = runtime();
    let mut chain = runtime.block_on(Chain::start());
    is_cut_within(LATE, || {
        let limit = Limit::at(Instant::now() + TIMEOUT);
        let mut ask = Request::new(Ask { forever: true });
        ask.set_timeout(TIMEOUT);
        // Limited by tokio's timer, so that a lost deadline fails the test.
        let asked = async { timeout_at(limit.patience(), chain.client.ask(ask)).await };
        let status = runtime.block_on(asked).expect("it is cut");
        let answered = Instant::now();
        let status = status.expect_err("no answer");
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        eventually("both handlers are dropped", || chain.running() == (0, 0));
        let ends = [Some(answered), chain.a.last_end(), chain.b.last_end()];
        let last = ends.map(|end| limit.was_kept(end)).into_iter().max();
        limit.round(last.expect("three of them"), true)
    });
}

// As in an application: the client's own call is cut too.
#[test]
fn a_scope_of_the_client_ends_both_handlers_in_time() {
    let runtime = runtime();
    let mut chain = runtime.block_on(Chain::start());
    is_cut_within(LATE, || {
        let deadline = Instant::now() + TIMEOUT;
        let limit = Limit::at(deadline);
        let asked = runtime.block_on(async {
            let ask = chain.client.ask(Ask { forever: true });
            Deadline::at(deadline).scope(ask).await
        });
        let given_up = Instant::now();
        if let Ok(answer) = asked {
            // The first server's answer may arrive just as early.
            let status = answer.expect_err("no answer");
            assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
        }
        eventually("both handlers are dropped", || chain.running() == (0, 0));
        let ends = [Some(given_up), chain.a.last_end(), chain.b.last_end()];
        limit.round(ends.into_iter().flatten().max().expect("an end"), true)
    });
}

// No scope ends the call, so the client's layer does, and tonic must learn the reason.
#[test]
fn a_call_that_comes_too_late_has_exceeded_its_deadline() {
    let runtime = runtime();
    let mut chain = runtime.block_on(Chain::start());
    let passed = Deadline::at(Instant::now());
    let mut asked = Box::pin(chain.client.ask(Ask { forever: false }));
    let asked = poll_fn(|context| passed.sync_scope(|| asked.as_mut().poll(context)));
    let status = runtime.block_on(asked).expect_err("no answer");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
}

#[test]
fn each_server_has_less_left_than_the_one_before() {
    let runtime = runtime();
    let mut chain = runtime.block_on(Chain::start());
    let asked = runtime.block_on(async {
        let ask = chain.client.ask(Ask { forever: false });
        Deadline::after(HOUR).scope(ask).await
    });
    let answer = asked.expect("in time").expect("an answer");
    let left: Vec<_> = answer.left.into_iter().map(Duration::from_micros).collect();
    assert_eq!(left.len(), 2);
    assert!(HOUR > left[0] && left[0] > left[1], "{left:?}");
    assert!(left[1] > HOUR - ms(10_000), "{left:?}");
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
}
