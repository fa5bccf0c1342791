//! Sizes, and which types are `Send` and `Sync`.

use std::fmt::Debug;

use waterwheel_schedule::{
    Backoff, Builder, Context, Counts, Event, Group, JobControl, JobError, JobHandle, JobId,
    JobInfo, JobStatus, Misfire, OnError, Once, Panic, Repeat, Retry, Scheduler, SubmitError,
};

fn everything<T: Send + Sync + Unpin + Debug + 'static>() {}
fn borrowed<T: Send + Sync + Unpin + Debug>() {}

#[test]
fn public_types_go_between_threads_and_print() {
    everything::<Scheduler>();
    everything::<Builder>();
    everything::<Group>();
    everything::<JobHandle<String>>();
    // The value need not be `Sync`, like that of tokio's `JoinHandle`.
    everything::<JobHandle<std::cell::Cell<u8>>>();
    everything::<JobControl>();
    everything::<Context>();
    everything::<JobError>();
    everything::<SubmitError>();
    everything::<Panic>();
    everything::<(Counts, Event, JobId, JobInfo, JobStatus)>();
    everything::<(Misfire, OnError, Backoff)>();
    borrowed::<(Once<'_>, Repeat<'_>, Retry<'_>)>();
}

#[test]
fn futures_of_controls_and_contexts_go_between_threads() {
    fn waits<T: Future<Output = ()> + Send + Sync + 'static>(_: fn(&JobControl, &Context) -> T) {}
    // The futures borrow nothing.
    waits(|control, _| control.ended());
    waits(|_, context| context.cancelled());
}

#[test]
fn an_id_is_a_value_to_copy_compare_and_hash() {
    fn value<T: Copy + Ord + std::hash::Hash + std::fmt::Display + From<u64> + Into<u64>>() {}
    value::<JobId>();
    assert_eq!(size_of::<JobId>(), 8);
}

#[test]
fn handles_are_small() {
    assert_eq!(size_of::<JobHandle<String>>(), 32);
    assert_eq!(size_of::<JobControl>(), 32);
    assert_eq!(size_of::<Scheduler>(), 8);
    assert_eq!(size_of::<JobError>(), 24);
}

#[test]
fn every_error_says_what_to_do_or_what_happened() {
    for error in [JobError::Cancelled, JobError::TimedOut, JobError::Shutdown] {
        assert!(error.to_string().len() > 15 && !format!("{error:?}").is_empty());
    }
}
