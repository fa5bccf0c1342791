//! The cell of an idle timeout under loom: touches and a look, in every order.
//!
//! Broken by hand, each seen to fail: a store for the `fetch_max`, both with the look at the cell before it and without.

use std::sync::Arc;

use loom::thread;

use super::idle_timeout::LastTouch;
use crate::wheel::Tick;

#[test]
fn the_later_of_two_touches_stays_in_every_order() {
    loom::model(|| {
        let last = Arc::new(LastTouch::new(Tick::new(1)));
        let touch = |tick| {
            let last = Arc::clone(&last);
            thread::spawn(move || last.touch(Tick::new(tick)))
        };
        let touches = [touch(2), touch(3)];
        let looks = [last.tick(), last.tick()];
        assert!(looks[0] <= looks[1], "a touch was moved back: {looks:?}");
        for touch in touches {
            touch.join().unwrap();
        }
        assert_eq!(last.tick(), Tick::new(3));
    });
}

#[test]
fn a_look_finds_a_touch_that_came_before_it() {
    loom::model(|| {
        let last = Arc::new(LastTouch::new(Tick::new(1)));
        let other = Arc::clone(&last);
        let other = thread::spawn(move || other.touch(Tick::new(2)));
        // This timer may find the tick of the other thread there already.
        last.touch(Tick::new(2));
        assert_eq!(last.tick(), Tick::new(2));
        other.join().unwrap();
    });
}
