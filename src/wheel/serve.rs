//! Serving a queue: asking the judge about each timer, and doing what it says.

use super::{Key, Progress, Tick, Verdict, Wheel};

/// How many timers may cascade for each timer that may be served. Filing one again costs about a
/// tenth of waking a task.
pub(crate) const CASCADES_PER_TIMER: usize = 8;

/// Where a judge meets a timer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met {
    /// Where the hand stands. A timer whose deadline is at or before it is due.
    pub(crate) hand: Tick,
    /// Whether the walk took the timer from the back of its queue.
    pub(crate) at_back: bool,
}

/// From which end of a queue the timers are taken.
///
/// From both ends is faster where no order is promised. Each entry names the next one, so on the way from
/// one end a processor waits for one entry after the other to come from memory; from both ends it waits for
/// two at once. (`benches/LOG.md` has the figures.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    Front,
    /// Alternately from both ends, from the front first.
    FrontAndBack,
    /// Alternately from both ends, from the back first.
    BackAndFront,
}

impl<T> Wheel<T> {
    /// Serves up to `budget` timers of a queue, and returns how many it served.
    #[inline]
    pub(super) fn serve(
        &mut self,
        queue: u32,
        walk: Walk,
        budget: usize,
        judge: &mut impl FnMut(Met, Key, Tick, &mut T) -> Verdict,
        due: &mut impl FnMut(Tick, T),
        progress: &mut Progress,
    ) -> usize {
        let list = self.queue(queue);
        for served in 0..budget {
            let at_back = match walk {
                Walk::Front => false,
                Walk::FrontAndBack => served % 2 == 1,
                Walk::BackAndFront => served % 2 == 0,
            };
            let next = match at_back {
                true => self.lists.last(list),
                false => self.lists.first(list),
            };
            let Some(node) = next else {
                return served;
            };
            let index = self.lists.index(node);
            let entry = &mut self.lists.entries[index];
            let key = Key {
                index: index as u32,
                generation: entry.generation,
            };
            let deadline = entry.deadline;
            let link = entry.link;
            // The entry is still in its list here, so a judge that panics loses nothing.
            let hand = self.dials.hand();
            let verdict = judge(Met { hand, at_back }, key, deadline, &mut entry.payload);
            match verdict {
                Verdict::Postpone(later) if later > self.dials.hand() => {
                    entry.deadline = later;
                    self.lists.join(link);
                    self.file(node, later);
                    progress.postponed += 1;
                }
                Verdict::Disarm => {
                    self.unfile(node);
                    progress.expired += 1;
                }
                Verdict::Due | Verdict::Postpone(_) => {
                    self.lists.join(link);
                    self.pending -= 1;
                    progress.expired += 1;
                    let entry = self.lists.entries.remove(index);
                    due(deadline, entry.payload);
                }
            }
        }
        budget
    }
}
