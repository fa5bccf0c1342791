//! `timeout/pending`: a timeout of 30 s around a future that is pending once and then ready. `timeout/ready`: around one
//! that is ready at once.
//!
//! The first is like a call over the network. The second measures laziness: a timeout that reads no clock and touches no
//! timer before its future is pending has next to nothing to do.
//!
//! The rows *scope* have `rpc::Deadline` instead of a timeout: the deadline is computed from the clock, applies to
//! everything that the call awaits, and ends it. No peer has one, so they have no targets.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use waterwheel_suite::{Absent, Target};

use crate::contestant::{
    AsyncIo, Current, Floor, FuturesTimer, Own, Scoped, Sleeps, Start, TimesOut, Tokio, Watched,
    pingora,
};
use crate::engine::{self, Load};
use crate::entrant::Entrant;
use crate::operation::{LONG, Operation, TIME};
use crate::stage::BATCH;
use crate::targets::both_beat;
use crate::workload::Workload;

/// The batch size for calls that are ready at once. They leave a driver nothing to do, and yielding costs as much as fifty of them.
const READY_BATCH: usize = 32 * BATCH;

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    vec![
        workload::<true>(1, quick),
        workload::<true>(2, quick),
        workload::<false>(1, quick),
    ]
}

pub(crate) fn targets() -> Vec<Target> {
    let beat = |title: String, times| both_beat(Tokio::NAME, &title, TIME, times);
    [
        beat(title(true, 2), [5.0, 3.0]),
        beat(title(false, 1), [0.95, 1.3]),
    ]
    .concat()
}

fn title(pending: bool, threads: usize) -> String {
    let kind = if pending { "pending" } else { "ready" };
    format!("timeout/{kind}, {}", engine::threads(threads))
}

fn workload<const PENDING: bool>(threads: usize, quick: bool) -> Workload {
    let load = Load::new(threads, 0, quick);
    let entrants = vec![
        entrant::<_, PENDING>(load, || Tokio),
        entrant::<_, PENDING>(load, Own::<Watched>::start),
        entrant::<_, PENDING>(load, || Current),
        entrant::<_, PENDING>(load, || Scoped(Own::<Watched>::start())),
        entrant::<_, PENDING>(load, || Scoped(Current)),
        entrant::<_, PENDING>(load, pingora),
        entrant::<_, PENDING>(load, Floor::<false>::start),
        entrant::<_, PENDING>(load, Floor::<true>::start),
    ];
    let why = "has no timeout";
    Workload {
        absent: [AsyncIo::NAME, FuturesTimer::NAME]
            .map(|name| Absent::new(name, why))
            .into(),
        ..load.workload(title(PENDING, threads), entrants)
    }
}

fn entrant<T: TimesOut, const PENDING: bool>(load: Load, start: impl Start<T>) -> Entrant {
    let operation = |timer, _| Call::<T, PENDING>(timer);
    engine::entrant(T::NAME, load, start, operation)
}

pub(super) struct Call<T, const PENDING: bool>(pub(super) T);

impl<T: TimesOut, const PENDING: bool> Operation for Call<T, PENDING> {
    const STEPS: usize = if PENDING { BATCH } else { READY_BATCH };

    fn once(&mut self, context: &mut Context<'_>) {
        let mut call = pin!(self.0.timeout(LONG, Reply { awaited: !PENDING }));
        if PENDING {
            assert!(call.as_mut().poll(context).is_pending(), "no reply as yet");
        }
        assert_eq!(call.poll(context), Poll::Ready(true), "the reply is there");
    }
}

/// A future that is ready once it was awaited before.
struct Reply {
    awaited: bool,
}

impl Future for Reply {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.awaited {
            return Poll::Ready(());
        }
        self.awaited = true;
        Poll::Pending
    }
}
