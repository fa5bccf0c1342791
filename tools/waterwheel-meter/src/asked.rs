//! Limits how often a program is asked for its jobs.

use std::fmt;
use std::time::Duration;

use crate::job::{Job, JobList};

/// How long the program is not asked again, in multiples of the time that the list took: at most one hundredth of the time goes into it.
const REST: u32 = 99;

type Jobs = dyn FnMut(usize) -> JobList + Send;

/// The jobs that a program provides.
///
/// They are requested at each frame, as long as that costs little. A scheduler with a million jobs takes 0.1 s for its list. It takes its lock for a
/// portion of them at a time, but a concurrent submit may wait for several portions: 1 in 100 waited for 16 ms.
pub(crate) struct Asked {
    jobs: Box<Jobs>,
    last: Option<Last>,
}

struct Last {
    list: JobList,
    /// The number of jobs that were requested.
    most: usize,
    /// When the list was returned, and when to ask again.
    at: Duration,
    next: Duration,
}

impl Asked {
    pub(crate) fn new(jobs: Box<Jobs>) -> Asked {
        Asked { jobs, last: None }
    }

    /// Returns at most `most` jobs; those of the last time, if that is recent and no more fit on the screen.
    pub(crate) fn list(&mut self, most: usize, clock: impl Fn() -> Duration) -> JobList {
        let before = clock();
        if let Some(last) = self.last.as_ref().filter(|last| last.serves(most, before)) {
            return last.list.after(before - last.at);
        }
        let list = (self.jobs)(most);
        let at = clock();
        let next = at + (at - before) * REST;
        self.last = Some(Last {
            list: list.clone(),
            most,
            at,
            next,
        });
        list
    }
}

impl Last {
    /// Whether a screen with this many rows shows this list again.
    fn serves(&self, most: usize, now: Duration) -> bool {
        now < self.next && most <= self.most
    }
}

impl JobList {
    /// The jobs after this time.
    fn after(&self, time: Duration) -> JobList {
        let later = |job: &Job| Job {
            next_run: job.next_run.map(|left| left.saturating_sub(time)),
            ..job.clone()
        };
        JobList {
            total: self.total,
            shown: self.shown.iter().map(later).collect(),
        }
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::Asked;
    use crate::job::{Job, JobList};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// How often the jobs were requested by each time, if the list takes `millis`. The next run is 10 s after each time.
    fn asked(millis: u64, frames: impl IntoIterator<Item = u64>) -> Vec<(u64, Duration)> {
        let now = Arc::new(AtomicU64::new(0));
        let (inside, mut times) = (Arc::clone(&now), 0);
        let mut asked = Asked::new(Box::new(move |most| {
            inside.fetch_add(millis, Ordering::Relaxed);
            times += 1;
            let job = Job {
                next_run: Some(seconds(10)),
                runs: times,
                ..Job::default()
            };
            JobList {
                total: 1_000,
                shown: vec![job; most],
            }
        }));
        let shown = frames.into_iter().map(|frame| {
            now.store(frame, Ordering::Relaxed);
            let list = asked.list(1, || Duration::from_millis(now.load(Ordering::Relaxed)));
            assert_eq!(list.total, 1_000);
            (list.shown[0].runs, list.shown[0].next_run.unwrap())
        });
        shown.collect()
    }

    #[test]
    fn a_screen_that_has_grown_is_filled_at_once() {
        let mut asked = Asked::new(Box::new(|most| JobList {
            total: 1_000,
            shown: vec![Job::default(); most],
        }));
        let now = Cell::new(seconds(0));
        let mut rows = |most| {
            // Each reading of the clock is a second later, so the list is expensive.
            let later = || now.replace(now.get() + seconds(1));
            asked.list(most, later).shown.len()
        };
        assert_eq!([7, 7, 20, 20].map(&mut rows), [7, 7, 20, 20]);
        // The screen cuts surplus rows.
        assert_eq!(rows(3), 20);
    }

    #[test]
    fn a_cheap_list_is_asked_for_at_each_frame() {
        let frames = asked(2, [0, 250, 500]);
        assert_eq!(frames, [1, 2, 3].map(|times| (times, seconds(10))));
        assert_eq!(asked(0, [7, 7]), [1, 2].map(|times| (times, seconds(10))));
    }

    #[test]
    fn a_dear_list_takes_a_hundredth_of_the_time() {
        // From 80 ms on, for 7 920 ms.
        let frames = asked(80, [0, 1_080, 7_999, 8_000, 8_250]);
        let expected = [
            (1, seconds(10)),
            (1, seconds(9)),
            (1, Duration::from_millis(2_081)),
            (2, seconds(10)),
            (2, Duration::from_millis(9_830)),
        ];
        assert_eq!(frames, expected);
    }
}
