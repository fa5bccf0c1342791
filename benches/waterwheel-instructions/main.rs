//! How many instructions the hot paths take, counted by callgrind: the same figure in every run,
//! so that it may gate a change where time may not.
//!
//! `ci/instructions` runs this under valgrind and compares what it counts with `baseline.txt`.
//!
//! # Method
//!
//! Valgrind counts only what happens within [`counted`], on the thread that called it: workers,
//! the watchdog thread, and what prepares and clears away, are outside. It writes the count down at each
//! return from there, and this program prints a line for each: the path's name, and how many
//! operations that was.
//!
//! Two builds of it share the paths: that of a service, and one with the feature `test-util`, whose
//! clocks can be paused.
//!
//! A path is counted in many short rounds, and the least of them is its figure. The real clock
//! runs under valgrind as well, some fifty times too fast for the code, so there are rounds that
//! see a tick pass and have the wheel's hand to move; and the first grows the slab. The least has
//! none of it, and is the same in every run.
//!
//! # What the figure is not
//!
//! It is not time. A cache miss and an atomic operation count as one instruction each, and so does
//! a system call, which is what it takes to read the clock under valgrind.

mod by_hand;
mod current_thread;
#[cfg(feature = "test-util")]
mod driver;
mod futures;
mod pausing;
mod task;
mod waker;
mod wheel;

use std::hint::black_box;
use std::rc::Rc;

fn main() {
    // After flags of ours, `cargo bench` gives its own.
    let mut arguments = std::env::args().skip_while(|argument| argument != "--count");
    if arguments.next().is_none() {
        println!("instruction counts need valgrind around this: bash ci/instructions");
        return;
    }
    let only = arguments.next().filter(|path| !path.starts_with('-'));
    let counter = Rc::new(Counter { only });
    assert_eq!(
        pausing::clocks_can_pause(),
        cfg!(feature = "test-util"),
        "another crate of this build turned tokio's feature test-util on",
    );
    if cfg!(feature = "test-util") {
        // First: from the first pause in a process on, tokio's clocks are slower to read.
        current_thread::count_all(&counter);
        #[cfg(feature = "test-util")]
        driver::count_all(&counter);
    } else {
        futures::count_all(&counter);
        current_thread::count_all(&counter);
        wheel::count_all(&counter);
    }
}

/// How often a path is counted.
const ROUNDS: usize = 20;

struct Counter {
    /// The one path to be counted; `None` for all.
    only: Option<String>,
}

impl Counter {
    /// Counts `work`, once a round, which does so many operations on what `prepare` makes for it.
    fn count<S>(
        &self,
        path: &str,
        operations: usize,
        mut prepare: impl FnMut() -> S,
        mut work: impl FnMut(&mut S),
    ) {
        if self.only.as_ref().is_some_and(|only| only != path) {
            return;
        }
        for _ in 0..ROUNDS {
            let mut state = prepare();
            counted(&mut || work(&mut state));
            println!("{path} {operations}");
        }
    }
}

/// What valgrind counts: `ci/instructions` gives it this function's name.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
    // Else the call above would be a jump, and this function have no end of its own.
    black_box(());
}
