//! The thread that calls the store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use waterwheel_durable_core::store::{Hint, Store, StoreError};

use super::shared::Shared;
use super::store_queue::{Job, Read};
use super::task::{guarded, unwound};
use crate::event::Event;

/// Returns how soon to read the ends of deliveries in other processes, given for how long they have been waited for. Until one is read, its slot stays taken.
fn reads_ends_after(waited: Duration) -> Duration {
    (waited / 64).clamp(Duration::from_millis(50), Duration::from_secs(1))
}

/// Calls the store until it is closed. Nothing more is asked of it after an indeterminate error.
pub(crate) fn run(mut store: Box<dyn Store>, shared: &Arc<Shared>) {
    let begun = Instant::now();
    let mut has_failed = false;
    let mut is_given_up = false;
    // Whether there was a commit since the last job for commands.
    let mut has_committed = false;
    if let Some(every) = store.commands_every() {
        shared.queue.take_commands(every);
        if shared.waits_for_ends() {
            shared.queue.ask_within(reads_ends_after(Duration::ZERO));
        }
        let shared = Arc::downgrade(shared);
        store.set_hint(Hint::new(move || {
            if let Some(shared) = shared.upgrade() {
                shared.queue.hint();
            }
        }));
    }
    report(&mut *store, shared);
    loop {
        if !is_given_up && (has_failed || shared.has_failed()) {
            is_given_up = true;
            unwound(|| store.give_up());
        }
        match shared.queue.next() {
            Job::Commit {
                request,
                number,
                ops,
            } if !has_failed => {
                has_committed = true;
                let outcomes = guarded(|| store.commit(number, &ops));
                has_failed = outcomes.as_ref().is_err_and(|it| !it.is_definite());
                // If the engine panics, it counts as failed, and callers are answered.
                unwound(|| shared.committed(request, outcomes));
                if !has_failed {
                    has_failed = maintain(&mut *store, shared);
                }
            }
            Job::Query(number, query) if !has_failed => {
                let reply = guarded(|| query.execute(&mut *store));
                has_failed = reply.as_ref().is_err_and(|it| !it.is_definite());
                unwound(|| shared.replied(number, reply));
            }
            // The engine has failed as well.
            Job::Commit { .. } | Job::Query(..) => {}
            Job::Read(Read(read)) if has_failed => {
                let why = shared.inspect(|it| it.failure()).unwrap_or_default();
                let error = StoreError::failed_earlier(why.to_string());
                unwound(|| drop(read(Err(error))));
            }
            Job::Read(Read(read)) => {
                let mut result = Ok(());
                // The caller's waker may panic.
                unwound(|| result = read(Ok(&mut *store)));
                if let Err(error) = result
                    && !error.is_definite()
                {
                    has_failed = true;
                    unwound(|| shared.failed(&error));
                }
            }
            Job::Commands if has_failed => {}
            Job::Commands => {
                let handle = |commands: Vec<_>| match commands.is_empty() {
                    true => {}
                    false => shared.handle_commands(commands),
                };
                has_failed = read(|| store.commands(), handle, shared);
                if !has_failed && shared.waits_for_ends() {
                    has_failed = read(|| store.ends(), |ends| shared.handle_ends(ends), shared);
                    shared.queue.ask_within(reads_ends_after(begun.elapsed()));
                }
                if !std::mem::take(&mut has_committed) && !has_failed {
                    has_failed = maintain(&mut *store, shared);
                }
                unwound(|| shared.look_at_lease());
            }
            Job::Abandon => unwound(|| shared.abandon()),
            Job::Close => break,
        }
    }
    // A store that panics while it is dropped has nothing left to write.
    unwound(|| drop(store));
    shared.closed();
}

/// Passes on what the store returns. Returns whether it has failed.
fn read<T>(
    read: impl FnOnce() -> Result<T, StoreError>,
    handle: impl FnOnce(T),
    shared: &Arc<Shared>,
) -> bool {
    match guarded(read) {
        Ok(found) => unwound(|| handle(found)),
        Err(error) if error.is_definite() => {}
        Err(error) => {
            unwound(|| shared.failed(&error));
            return true;
        }
    }
    false
}

/// Reports the store's notices.
fn report(store: &mut dyn Store, shared: &Arc<Shared>) {
    let notices = guarded(|| Ok(store.notices())).unwrap_or_default();
    for event in notices.into_iter().filter_map(Event::of_notice) {
        shared.report(event);
    }
}

/// Maintains the store. Returns whether it has failed.
fn maintain(store: &mut dyn Store, shared: &Arc<Shared>) -> bool {
    let maintained = guarded(|| store.maintain());
    report(store, shared);
    match maintained {
        Err(error) if !error.is_definite() => {
            unwound(|| shared.failed(&error));
            true
        }
        _ => false,
    }
}
