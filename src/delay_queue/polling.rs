//! Taking items out: by polls, by the async form, and as a stream.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::task::coop;

use super::items::Ticking;
use super::items::{Items, Step};
use super::queue::Bound;
use super::{DelayQueue, Expired};
use crate::clock::Clock;
use crate::wheel::Tick;

/// The maximum number of items that `poll_expired` looks for with the lock held; eight may cascade for each of them.
const BATCH: usize = 128;

/// The maximum number of items that `poll_expired_many` takes with the lock held: some 0.1 ms. Handles get the lock in between.
const PORTION: usize = 1024;

/// The number of looks after which a poll gives way to other tasks while items cascade: after 16 000 cascades, which take up to a millisecond.
const MOST_LOOKS: usize = 16;

impl<T> DelayQueue<T> {
    /// Polls for the next item that is due.
    ///
    /// - `Ready(Some(item))`: the item's tick has come. Items come in order of their ticks, and equal ticks first in, first out.
    ///   Items inserted or reset to a tick that polls had already passed come first in, first out as well
    ///   ([order](crate::delay_queue#order)). A poll past an item's tick returns it, however late the driver is.
    /// - `Ready(None)`: the queue is empty and has no [handle](DelayQueue::handle), or its timer
    ///   [was stopped](DelayQueue::was_stopped) and nothing is due. An insertion still wakes the task.
    /// - `Pending`: the task is woken when an item is due, when an item is inserted before the next one or reset to before it,
    ///   and when the last item is removed. Only the waker of the last poll that returned no item is woken.
    ///
    /// The clock is read once for all items that are due by then. An item uses up one unit of the task's
    /// [budget](tokio::task::coop), so a loop over many items yields to other tasks.
    ///
    /// # Cancel safety
    ///
    /// A poll holds on to nothing: an item is either in the queue or with the caller.
    ///
    /// # Panics
    ///
    /// Panics as the first [`insert`](DelayQueue::insert) does.
    #[track_caller]
    pub fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        let bound = self.bind();
        let ticks = bound.place.ticks;
        bound.poll(cx, |clock, items| {
            // An item that was due when the clock was last read needs no further look at it.
            let mut due = items.wheel.expire_one(items.now, BATCH);
            if due.is_none() && !items.wheel.has_backlog() {
                items.read(clock);
                due = items.wheel.expire_one(items.now, BATCH);
            }
            Some(Expired::new(due?, ticks))
        })
    }

    /// Appends the items that are due to `buffer`, at most `most`, and returns their number.
    ///
    /// This is like [`poll_expired`](DelayQueue::poll_expired), but locks once per thousand items and uses one unit of the task's
    /// budget for all of them. `Ready(0)` means what `Ready(None)` means there, or that `most` is 0. The buffer grows as needed,
    /// as in `tokio::sync::mpsc::Receiver::poll_recv_many`.
    ///
    /// # Panics
    ///
    /// Panics as the first [`insert`](DelayQueue::insert) does.
    #[track_caller]
    pub fn poll_expired_many(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<Expired<T>>,
        most: usize,
    ) -> Poll<usize> {
        if most == 0 {
            return Poll::Ready(0);
        }
        let bound = self.bind();
        let ticks = bound.place.ticks;
        let first = ready!(bound.poll(cx, |clock, items| {
            items.read(clock);
            let taken = items.take_portion(buffer, most, ticks);
            (taken > 0).then_some(taken)
        }));
        let Some(mut taken) = first else {
            return Poll::Ready(0);
        };
        // As many more portions as it needs if none ends early because of what cascades.
        for _ in 1..most.div_ceil(PORTION) {
            let left = most - taken;
            if left == 0 || !bound.place.items().has_more_due() {
                break;
            }
            // Without the lock: to grow a large buffer takes long.
            buffer.reserve(left.min(PORTION));
            taken += bound.place.items().take_portion(buffer, left, ticks);
        }
        Poll::Ready(taken)
    }

    /// Waits until an item is due, and appends the items that are due to `buffer`, at most `most`. Returns their number.
    ///
    /// Returns 0 if the queue has ended, or if `most` is 0 (see [`poll_expired_many`](DelayQueue::poll_expired_many)).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no item: items are appended only when it completes.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use waterwheel::{DelayQueue, Duration};
    ///
    /// let mut queue = DelayQueue::new();
    /// for n in 0..100 {
    ///     queue.insert(n, Duration::from_millis(5));
    /// }
    /// let mut batch = Vec::new();
    /// let mut done = 0;
    /// while queue.expired_many(&mut batch, 64).await > 0 {
    ///     done += batch.drain(..).count();
    /// }
    /// assert_eq!(done, 100);
    /// # }
    /// ```
    pub fn expired_many(
        &mut self,
        buffer: &mut Vec<Expired<T>>,
        most: usize,
    ) -> impl Future<Output = usize> {
        poll_fn(move |cx| self.poll_expired_many(cx, buffer, most))
    }
}

impl<T> Items<T> {
    /// Appends what was due when the clock was last read to the buffer: at most `most` items, and at most a portion. Returns how many these are.
    fn take_portion(&mut self, buffer: &mut Vec<Expired<T>>, most: usize, ticks: Ticking) -> usize {
        let most = most.min(PORTION);
        let before = buffer.len();
        let due = self.wheel.expire(self.now, most.max(BATCH)).take(most);
        buffer.extend(due.map(|due| Expired::new(due, ticks)));
        buffer.len() - before
    }

    /// Whether more was due when the clock was last read, or is to cascade.
    fn has_more_due(&self) -> bool {
        self.wheel
            .next_expiration()
            .is_some_and(|next| next <= self.now)
    }
}

impl<T> Bound<T> {
    /// Takes what is due, or waits for it.
    #[inline]
    fn poll<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&Clock, &mut Items<T>) -> Option<R>,
    ) -> Poll<Option<R>> {
        let budget = ready!(coop::poll_proceed(cx));
        let (mut is_stored, mut looks) = (false, 0);
        loop {
            let (clock, mut guard) = self.place.clock_and_items();
            let items = &mut *guard;
            let taken = take(clock, items);
            if taken.is_some() {
                drop(guard);
                budget.made_progress();
                return Poll::Ready(taken);
            }
            let step = items.next_step(clock, cx.waker(), is_stored);
            drop(guard);
            match step {
                Step::Again => {
                    looks += 1;
                    if looks == MOST_LOOKS {
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                }
                Step::StoreWaker => {
                    // The clone may insert, and so may a handle: then the next round sees it.
                    let waker = cx.waker().clone();
                    let before = self.place.items().waker.replace(waker);
                    drop(before);
                    is_stored = true;
                }
                Step::Wait(next) => {
                    ready!(self.poll_sleep(next, cx));
                    if self.sleep.has_no_timer() {
                        ready!(self.sleep.poll_found_end());
                        budget.made_progress();
                        return Poll::Ready(None);
                    }
                }
                Step::WaitForHandles => {
                    ready!(self.poll_stop(cx));
                    ready!(self.sleep.poll_found_end());
                    budget.made_progress();
                    return Poll::Ready(None);
                }
                Step::Over => {
                    self.retire_sleep();
                    budget.made_progress();
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// Sleeps towards a tick.
    fn poll_sleep(&mut self, tick: Tick, cx: &mut Context<'_>) -> Poll<()> {
        if self.target != Some(tick) {
            let Some(until) = self.place.clock.instant_of(tick) else {
                // Never.
                return self.poll_stop(cx);
            };
            self.sleep.set_deadline(until);
            self.target = Some(tick);
        }
        ready!(self.sleep.poll_or_end(cx));
        self.target = None;
        Poll::Ready(())
    }

    /// Sleeps until the timer ends.
    fn poll_stop(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.target = None;
        self.sleep.poll_stop(cx)
    }

    /// Nothing is waited for. On a clock that is paused, a sleep that is left would make it jump. And it would hold its permit.
    fn retire_sleep(&mut self) {
        self.target = None;
        self.sleep.retire();
    }
}

impl<T> Stream for DelayQueue<T> {
    type Item = Expired<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.get_mut().poll_expired(cx)
    }
}

// No value is ever pinned.
impl<T> Unpin for DelayQueue<T> {}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use tokio::time::{Duration, Instant};

    use super::PORTION;
    use crate::DelayQueue;
    use crate::tests::current_thread;

    #[test]
    fn many_items_are_taken_in_portions() {
        let runtime = current_thread();
        runtime.block_on(async {
            let mut queue = DelayQueue::new();
            let past = Instant::now() - Duration::from_secs(1);
            for n in 0..3 * PORTION {
                queue.insert_at(n, past);
            }
            let mut buffer = Vec::new();
            let bound = queue.bind();
            let ticks = bound.place.ticks;
            let mut items = bound.place.items();
            assert_eq!(items.take_portion(&mut buffer, usize::MAX, ticks), PORTION);
            assert_eq!(items.take_portion(&mut buffer, 7, ticks), 7);
            assert!(items.has_more_due());
            drop(items);
            let mut context = Context::from_waker(Waker::noop());
            let rest = 2 * PORTION - 7;
            let most = rest - 1;
            let poll = queue.poll_expired_many(&mut context, &mut buffer, most);
            assert_eq!(poll, Poll::Ready(most));
            let poll = queue.poll_expired_many(&mut context, &mut buffer, usize::MAX);
            assert_eq!(poll, Poll::Ready(1));
            let values = buffer.into_iter().map(|expired| expired.into_inner());
            assert!(values.eq(0..3 * PORTION));
        });
    }
}
