//! A queue of items that come out when their deadlines have passed: tokio-util's `DelayQueue`, on a
//! [`Wheel`](crate::wheel::Wheel).
//!
//! Names, signatures and behavior are those of `tokio_util::time::{DelayQueue, delay_queue}` 0.7.20, apart from the
//! [differences](#differences-from-tokio-util) below, so only the import changes. For example, the sessions of a server, each of
//! which is closed unless it is used:
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
//! An item is due when its tick has come, [like every timer](crate::time#when-a-timer-is-due): its deadline, rounded up to a tick
//! of the queue's timer, is not after the current time, rounded down. So no item is early, and a poll past an item's tick returns
//! it, however late the driver is.
//!
//! The queue holds one [`Sleep`](crate::Sleep) on its timer, for its next expiration. Items that are due stay in the queue until
//! a poll returns them, and can still be removed or reset by their key.
//!
//! # Order
//!
//! Items come out in order of their ticks. Items with the same tick come out first in, first out, in the order in which they were
//! inserted or reset.
//!
//! This holds for items that are inserted before the queue reaches their tick. The queue stands at the tick of the item that it
//! returned last, or, if the last poll found nothing due, at the time of that poll. An item whose tick is that one or an earlier
//! one counts as due at that tick. So items whose ticks have already passed come out first in, first out, whatever their
//! deadlines, and before the items of all later ticks.
//!
//! # Handles
//!
//! [`DelayQueue::handle`] returns a [`Handle`], with which other tasks and threads insert, remove and reset items. While there is
//! a handle, an empty queue waits for the next item, as a channel does. Once the last handle is gone and no item is left, the
//! queue ends.
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
//! Once the timer is stopped, polls of a queue with items return what is due, and `None` if nothing is. The other items stay in
//! the queue: [`is_empty`](DelayQueue::is_empty) returns `false` and [`was_stopped`](DelayQueue::was_stopped) returns `true`.
//! They can be removed or [drained](DelayQueue::drain), and each is still returned by a poll past its tick. An empty queue that
//! waits for its handles is woken as well, and returns `None`. The same holds once the timer's runtime
//! [has ended](crate::time#when-a-runtime-ends).
//!
//! [`Timer::drain`](crate::Timer::drain) waits for the queue's one sleep and not for its items: it completes when the queue is
//! next woken. Only a poll takes an item out, so a task that owns a queue and awaits the drain would otherwise wait forever.
//!
//! # Differences from tokio-util
//!
//! | | waterwheel | tokio-util |
//! |---|---|---|
//! | the key of an item that is gone | names nothing: `try_remove` returns `None`, `remove` panics | may name a later item at the same place |
//! | the longest deadline | unlimited | panics from about two years on |
//! | items with the same tick | first in, first out | no promised order |
//! | tick | the timer's: 100 µs, or a millisecond on a clock that can be paused | a millisecond |
//! | a reset to later, or removal of the first item, while a task waits | wakes the task once at the old deadline | may wake it at once |
//! | an item more than a second away | wakes the task once per dial on its way (see below) | once per slot |
//! | runtime | that of the first call, from then on | that of each poll |
//! | a runtime or timer that has ended | `None` with items left: see [`was_stopped`](DelayQueue::was_stopped) | panics |
//! | `compact` | frees the places behind the last item; keys are places | moves items, and maps keys from then on |
//! | many items at a time; insertions from other tasks | [`expired_many`](DelayQueue::expired_many); [`Handle`] | none |
//! | returning one of many items that are due | uses one unit of the task's budget | does so for most of them |
//!
//! An item that is more than a second away wakes the task once per dial on its way, for example at the start of its minute. A
//! poll then finds nothing due and keeps waiting. On a clock that was paused or is [manual](crate::ManualClock), there are no
//! such stops.
//!
//! # Costs
//!
//! | | cost |
//! |---|---|
//! | `insert`, `remove`, `reset` | O(1). No lock if the queue never had a handle, otherwise one |
//! | `poll_expired` that returns an item | O(1), plus what cascades. The clock is read once for everything that is due |
//! | `peek` | as for [`Wheel::peek`](crate::wheel::Wheel::peek) |
//! | memory per item | up to 24 bytes and the value, rounded up to the value's alignment, plus an eighth for growth |
//! | memory per queue | [the dials](crate::Builder::resolution) |
//!
//! A queue per connection would therefore be a waste. For a single deadline, use a [`Sleep`](crate::Sleep).
//!
//! # Prior art
//!
//! tokio-util's `DelayQueue`, and `java.util.concurrent.DelayQueue` before it. Generational keys come from the crate `slotmap`,
//! and ending when no handle is left comes from channels.

mod handle;
mod items;
#[cfg(all(test, waterwheel_loom))]
mod models;
mod polling;
mod queue;

pub use handle::{Closed, Handle};
pub use items::{Expired, Key};
pub use queue::DelayQueue;
