//! Many pending sleeps that no task waits for: one task on each worker arms its half of them, and ends.

use std::future::{Future, poll_fn};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use tokio::task::yield_now;

use waterwheel_bench_kit::random;

use crate::contestant::Sleeps;
use crate::crew::Crew;
use crate::operation::arm;
use crate::stage::{BATCH, Stage, WORKERS};

/// Dropping it cancels them.
pub(crate) struct Crowd<S> {
    shares: [Vec<Pin<Box<S>>>; WORKERS],
}

impl<S: Future<Output = ()> + Send + 'static> Crowd<S> {
    /// Reserves room for this many, so that arming them allocates only the memory of the sleeps.
    pub(crate) fn room_for(sleeps: usize) -> Self {
        Self {
            shares: [0, 1].map(|worker| Vec::with_capacity((sleeps + worker) / WORKERS)),
        }
    }

    /// Fills the room with sleeps whose delays are spread evenly at random.
    pub(crate) fn arm<T: Sleeps<Sleep = S>>(
        &mut self,
        stage: &Stage,
        sleeps: &T,
        delays: &Range<Duration>,
    ) {
        let crew = Arc::new(Crew::new(WORKERS));
        let mut seed = 0;
        let tasks = self.shares.each_mut().map(|share| {
            seed += 1;
            let arming = Arming {
                sleeps: sleeps.clone(),
                delays: delays.clone(),
                random: Rng::with_seed(seed),
            };
            stage.spawn(arming.fill(std::mem::take(share), crew.clone()))
        });
        self.shares = tasks.map(|task| stage.wait(task));
    }
}

struct Arming<S> {
    sleeps: S,
    delays: Range<Duration>,
    random: Rng,
}

impl<S: Sleeps> Arming<S> {
    async fn fill(
        mut self,
        mut share: Vec<Pin<Box<S::Sleep>>>,
        crew: Arc<Crew>,
    ) -> Vec<Pin<Box<S::Sleep>>> {
        crew.take_a_worker();
        while share.len() < share.capacity() {
            let end = share.capacity().min(share.len() + BATCH);
            poll_fn(|context| {
                while share.len() < end {
                    let delay = random::duration(&mut self.random, self.delays.clone());
                    let mut sleep = Box::pin(self.sleeps.sleep(delay));
                    arm(sleep.as_mut(), context);
                    share.push(sleep);
                }
                Poll::Ready(())
            })
            .await;
            yield_now().await;
        }
        share
    }
}
