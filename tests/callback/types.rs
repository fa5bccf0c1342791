//! Sizes, auto traits and `Debug` of the public types.

use std::cell::Cell;
use std::fmt::Debug;

use waterwheel::callback::{TimeoutHandle, Unrun};

use crate::support::{HOUR, own_timer};

#[test]
fn handles_are_sent_and_shared() {
    fn all<T: Send + Sync + Unpin + 'static>() {}
    all::<TimeoutHandle>();
    all::<Unrun>();
}

#[test]
fn a_handle_is_two_words() {
    assert_eq!(size_of::<TimeoutHandle>(), 2 * size_of::<usize>());
    assert_eq!(size_of::<Option<TimeoutHandle>>(), 2 * size_of::<usize>());
    assert_eq!(size_of::<Unrun>(), 2 * size_of::<usize>());
}

#[tokio::test(start_paused = true)]
async fn a_closure_need_not_be_shared() {
    let timer = own_timer();
    let (cell, text) = (Cell::new(1), String::from("moved"));
    let handle = timer.call_after(HOUR, move || {
        cell.set(2);
        drop(text);
    });
    fn shared<T: Sync>(_: &T) {}
    shared(&handle);
    assert!(handle.cancel());
}

#[tokio::test(start_paused = true)]
async fn everything_can_be_shown_for_debugging() {
    fn shown(value: &impl Debug) -> String {
        assert!(!format!("{value:#?}").is_empty());
        format!("{value:?}")
    }
    let timer = own_timer();
    let handle = timer.call_after(HOUR, || ());
    let said = shown(&handle);
    assert!(said.contains("deadline") && said.contains("is_cancelled: false"));
    for unrun in timer.shutdown_now() {
        assert!(shown(&unrun).contains("deadline"));
    }
    assert!(shown(&handle).contains("is_cancelled: true"));
}
