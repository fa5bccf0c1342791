//! The number of instructions on the hot paths, counted by callgrind: the same in every run, so
//! that it can gate a change, unlike time.
//!
//! `ci/instructions` runs this under valgrind and compares the counts with `baseline.txt`.
//!
//! # Method
//!
//! Valgrind counts only within [`counted`], on the thread that called it: workers, the watchdog thread,
//! preparation and clean-up are excluded. It writes the count down at each return from there, and this
//! program prints a line for each: the path's name, and the number of operations.
//!
//! Two builds of it share the paths: that of a service, and one with the feature `test-util`, whose
//! clocks can be paused.
//!
//! A path is counted in many short rounds, and its figure is the lowest count. The real clock
//! runs under valgrind as well, some fifty times too fast for the code, so in some rounds a tick
//! passes and the wheel's hand moves; and the first round grows the slab. The lowest count has
//! none of it, and is the same in every run.
//!
//! # Limitations
//!
//! The figure is not time. A cache miss and an atomic operation count as one instruction each, and
//! so does a system call, which valgrind needs to read the clock.

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
    // `cargo bench` appends its own flags to ours.
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
        // This comes first: after the first pause in a process, tokio's clocks are slower to read.
        current_thread::count_all(&counter);
        #[cfg(feature = "test-util")]
        driver::count_all(&counter);
    } else {
        futures::count_all(&counter);
        current_thread::count_all(&counter);
        wheel::count_all(&counter);
    }
}

/// The number of times that a path is counted.
const ROUNDS: usize = 20;

struct Counter {
    /// The only path to be counted; `None` for all.
    only: Option<String>,
}

impl Counter {
    /// Counts `work`, once a round, which performs this many operations on the result of `prepare`.
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

/// The function that valgrind counts: `ci/instructions` passes its name.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
    // Otherwise the call above would become a jump, and this function would have no return of its own.
    black_box(());
}
