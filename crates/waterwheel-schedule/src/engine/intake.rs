//! What is taken, and what is refused?

use waterwheel::wheel::Key;

use super::entry::Entry;
use super::table::{Phase, Table, wake};
use crate::error::{Refusal, SubmitError};
use crate::info::{Event, JobId};

impl Table {
    /// Files a job, and gives it its id. From then on it runs or is ended: never lost. One that is over ends at once, well.
    pub(crate) fn submit(
        &self,
        mut entry: Entry,
        is_over: bool,
    ) -> Result<(Key, JobId), SubmitError> {
        let tick = self.timer.tick_after(entry.deadline);
        let wall = entry.wall();
        let mut state = self.state();
        let refusal = if state.phase != Phase::Running {
            Some(Refusal::Shutdown)
        } else if self.max_pending.is_some_and(|most| state.jobs >= most) {
            Some(Refusal::AtCapacity)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            state.counts.refused += 1;
            drop(state);
            let name = entry.name().cloned();
            // The closure is foreign code.
            drop(entry);
            self.report(|| Event::Refused { name });
            return Err(SubmitError(refusal));
        }
        state.counts.submitted += 1;
        let id = JobId::from(state.counts.submitted);
        entry.id = id;
        let key = state.wheel.insert(tick, entry);
        if is_over {
            state.counts.ended += 1;
            let removed = state.wheel.cancel(key);
            drop(state);
            if let Some(entry) = removed {
                entry.job.end_well();
            }
            return Ok((key, id));
        }
        state.jobs += 1;
        let waker = self.waker_of_new_wait(&mut state, key, tick, wall);
        drop(state);
        wake(waker);
        Ok((key, id))
    }
}
