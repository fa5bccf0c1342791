//! A queue of items that come out when their deadlines have passed: tokio-util's `DelayQueue`, on a [`Wheel`](crate::wheel::Wheel).
//!
//! Names, signatures and meaning are those of `tokio_util::time::{DelayQueue, delay_queue}` 0.7.20, so the import is all that
//! changes. For example, the sessions of a server, each to be closed unless it is used:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use futures::StreamExt;
//! use waterwheel::{DelayQueue, Duration};
//!
//! let idle = Duration::from_millis(20);
//! let mut sessions = DelayQueue::new();
//! let alice = sessions.insert("alice", idle);
//! let bob = sessions.insert("bob", idle);
//!
//! // Alice sends something, and Bob leaves.
//! sessions.reset(&alice, idle * 2);
//! sessions.remove(&bob);
//!
//! while let Some(expired) = sessions.next().await {
//!     println!("{} was idle", expired.get_ref());
//! }
//! # }
//! ```
//!
//! # When an item is due
//!
//! When its tick has come: its deadline, rounded up to a tick of the queue's timer, is not after now, rounded down
//! ([as of every timer](crate::time#when-a-timer-is-due)). So no item is early, and a poll past its tick hands it out, however late the driver is. The
//! queue holds one [`Sleep`](crate::Sleep) on its timer, towards its next expiration. What is due stays in the queue until a poll hands it out, and can
//! still be removed or reset by its key.
//!
//! # Order
//!
//! Items come out in order of their ticks, and items of one tick first in, first out, as they were inserted or reset. This order is
//! for what is inserted before the queue gets there: the queue stands at the tick of the item that it handed out last, or, if the last poll
//! found nothing due, at the time of that poll. An item whose tick is that one or an earlier one counts as due there. So
//! items whose ticks have passed come first in, first out, whatever their deadlines, before the items of all later ticks.
//!
//! # Handles
//!
//! [`DelayQueue::handle`] gives a [`Handle`], by which other tasks and threads insert, remove and reset. While a queue has a
//! handle, an empty queue waits for the next item, as a channel does. With the last handle gone and no item left, it is at its end.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use futures::StreamExt;
//! use waterwheel::{DelayQueue, Duration};
//!
//! let mut queue = DelayQueue::new();
//! let handle = queue.handle();
//! let producer = tokio::spawn(async move {
//!     for n in 1..=3 {
//!         handle.insert(n, Duration::from_millis(n)).expect("the queue is there");
//!         tokio::task::yield_now().await;
//!     }
//! });
//! let mut sum = 0;
//! while let Some(expired) = queue.next().await {
//!     sum += expired.into_inner();
//! }
//! assert_eq!(sum, 6);
//! # producer.await.unwrap();
//! # }
//! ```
//!
//! # If the timer is stopped
//!
//! Then polls of a queue with items hand out what is due, and `None` if nothing is. The other items stay:
//! [`is_empty`](DelayQueue::is_empty) is false and [`was_stopped`](DelayQueue::was_stopped) is true. They can be
//! removed or [drained](DelayQueue::drain), and each still comes out of a poll past its tick. Once the timer's runtime [has ended](crate::time#when-a-runtime-ends) nothing waits any more.
//! An empty queue that waits for its handles is woken as well, and gives `None`.
//!
//! [`Timer::drain`](crate::Timer::drain) waits for the queue's one sleep and not for its items: it ends when the queue has been woken next.
//! If it waited for the items, a task that keeps a queue and awaits the drain would wait for ever: an item leaves only by a poll.
//!
//! # Beside tokio-util's
//!
//! | | here | tokio-util |
//! |---|---|---|
//! | the key of an item that is gone | names nothing: `try_remove` gives `None`, `remove` panics | may name a later item at the same place |
//! | the longest deadline | none | panics from about two years on |
//! | items of one tick | first in, first out | no promised order |
//! | ticks | the timer's: 100 µs, or a millisecond on a clock that can be paused | a millisecond |
//! | a reset to later, or a removal of the first, while a task waits | wakes the task once at the old deadline | may wake it at once |
//! | an item that is further away than a second | wakes the task once a dial on its way, such as at its minute; a poll finds nothing then, and waits on. Not so on a clock that was paused or is [manual](crate::ManualClock): that does not stop on the way | once a slot |
//! | the runtime | that of the first call, from then on | that of each poll |
//! | a runtime or timer that has ended | `None` with items left: ask [`was_stopped`](DelayQueue::was_stopped) | a panic |
//! | `compact` | gives back the places behind the last item; keys are places | moves items, and maps keys from then on |
//! | many at a time; insertions from other tasks | [`expired_many`](DelayQueue::expired_many); [`Handle`] | no |
//! | an item a poll, of many that are due | uses one unit of the task's budget | the same, for most of them |
//!
//! # Costs
//!
//! | | |
//! |---|---|
//! | `insert`, `remove`, `reset` | O(1). No lock if the queue never had a handle, else one |
//! | `poll_expired`, of an item that is due | O(1) and what cascades. The clock is read once for all that is due |
//! | `peek` | as [`Wheel::peek`](crate::wheel::Wheel::peek) |
//! | memory | up to 24 bytes and the value for each item, rounded up to the value's alignment, and an eighth of it for growth; for the queue itself [the dials](crate::Builder::resolution) |
//!
//! So a queue for each connection is a waste. For one deadline, use a [`Sleep`](crate::Sleep).
//!
//! # Where the idea is from
//!
//! tokio-util's `DelayQueue`, and `java.util.concurrent.DelayQueue` before it. Generational keys are those of the crate
//! `slotmap`. An end when no handle is left is that of channels.

mod expired;
mod handle;
mod items;
mod key;
#[cfg(all(test, waterwheel_loom))]
mod models;
mod polling;
mod queue;
mod ticking;

pub use expired::Expired;
pub use handle::{Closed, Handle};
pub use key::Key;
pub use queue::DelayQueue;
