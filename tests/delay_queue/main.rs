//! The delay queue: its keys, its order, the wakers that it calls, and foreign code while it is locked. `properties` compares it to an oracle.
//!
//! `ci/delay-queue-contract` runs tokio-util's own tests of its queue.

#[path = "../support/mod.rs"]
mod support;

mod auto_traits;
mod clocks;
mod ends;
mod foreign;
mod handles;
mod items;
mod keys;
mod memory;
mod order;
mod properties;
mod waking;

use std::task::{Context, Poll};

use tokio::task::unconstrained;
use waterwheel::DelayQueue;
use waterwheel::delay_queue::Expired;

use std::future::Future;

use support::Probe;

/// Polls once with the probe's waker.
fn poll<T>(queue: &mut DelayQueue<T>, probe: &Probe) -> Poll<Option<Expired<T>>> {
    let waker = probe.waker();
    let poll = std::future::poll_fn(|context| queue.poll_expired(context));
    let mut poll = std::pin::pin!(unconstrained(poll));
    poll.as_mut().poll(&mut Context::from_waker(&waker))
}

/// The value of a poll, which must be ready.
#[track_caller]
fn next<T>(queue: &mut DelayQueue<T>) -> Option<T> {
    match poll(queue, &Probe::new()) {
        Poll::Ready(expired) => expired.map(Expired::into_inner),
        Poll::Pending => panic!("nothing is due"),
    }
}

/// The values of polls, until one has none.
#[track_caller]
fn all_due<T>(queue: &mut DelayQueue<T>) -> Vec<T> {
    let mut values = Vec::new();
    while let Poll::Ready(Some(expired)) = poll(queue, &Probe::new()) {
        values.push(expired.into_inner());
    }
    values
}
