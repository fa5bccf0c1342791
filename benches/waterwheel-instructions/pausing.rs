//! Whether tokio's clocks can be paused in this build, which one crate of it decides for all.

use tokio::runtime::Builder;

/// With the feature `test-util`, tokio's `Builder` has a method `start_paused` of its own, and a method call
/// prefers the type's own methods to those of traits.
pub(crate) fn clocks_can_pause() -> bool {
    // It tells a type that has the method from one that has not.
    assert!(!WithoutMethod.start_paused(false).is_tokios());
    Builder::new_current_thread()
        .start_paused(false)
        .is_tokios()
}

struct WithoutMethod;

trait Fallback {
    fn start_paused(&mut self, _: bool) -> Missing {
        Missing
    }
}

impl Fallback for Builder {}
impl Fallback for WithoutMethod {}

struct Missing;

trait Given {
    fn is_tokios(&self) -> bool;
}

impl Given for Builder {
    fn is_tokios(&self) -> bool {
        true
    }
}

impl Given for Missing {
    fn is_tokios(&self) -> bool {
        false
    }
}
