//! Sizes, auto traits and `Debug` of the public types.

use std::cell::Cell;
use std::fmt::Debug;
use std::marker::PhantomPinned;
use std::panic::{RefUnwindSafe, UnwindSafe};

use waterwheel::DelayQueue;
use waterwheel::delay_queue::{Closed, Expired, Handle, Key};

use crate::support::ms;

fn send<T: Send>() {}
fn sync<T: Sync>() {}
fn unpin<T: Unpin>() {}

#[test]
fn a_queue_is_sent_and_shared_if_its_values_are_sent() {
    send::<DelayQueue<Cell<u8>>>();
    sync::<DelayQueue<u8>>();
    unpin::<DelayQueue<PhantomPinned>>();
    send::<Handle<Cell<u8>>>();
    sync::<Handle<Cell<u8>>>();
    unpin::<Handle<PhantomPinned>>();
    send::<Expired<Cell<u8>>>();
    sync::<Expired<u8>>();
    unpin::<Expired<u8>>();
    send::<Key>();
    sync::<Key>();
    send::<Closed<Cell<u8>>>();
    fn panics<T: UnwindSafe + RefUnwindSafe>() {}
    panics::<Key>();
    fn error<E: std::error::Error + Send + Sync + 'static>() {}
    error::<Closed<u8>>();
    fn sendable<T: Send>(_: T) {}
    sendable(DelayQueue::<u8>::new().expired_many(&mut Vec::new(), 1));
}

#[test]
fn a_queue_and_its_keys_are_small() {
    assert_eq!((size_of::<Key>(), size_of::<Option<Key>>()), (8, 8));
    assert_eq!(size_of::<Handle<u64>>(), size_of::<usize>());
    assert!(
        size_of::<DelayQueue<u64>>() <= 80,
        "{}",
        size_of::<DelayQueue<u64>>()
    );
    assert!(
        size_of::<Expired<u64>>() <= 48,
        "{}",
        size_of::<Expired<u64>>()
    );
}

#[tokio::test(start_paused = true)]
async fn everything_can_be_shown_for_debugging() {
    fn shown(value: &impl Debug) -> String {
        assert!(!format!("{value:#?}").is_empty());
        format!("{value:?}")
    }
    struct Hidden;
    assert!(shown(&DelayQueue::<Hidden>::new()).contains("len: 0"));
    let mut queue = DelayQueue::new();
    let handle = queue.handle();
    let key = queue.insert("shown", ms(1));
    assert!(shown(&queue).contains("len: 1") && shown(&handle).contains("len: 1"));
    assert_eq!(shown(&key), "Key(0#1)");
    assert!(shown(&queue.remove(&key)).contains("shown"));
    assert!(shown(&Closed(Hidden)).contains("Closed"));
}
