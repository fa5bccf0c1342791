//! Whether tokio's clocks can be paused in this build, which any crate in it can enable for all.

use tokio::runtime::Builder;

/// With the feature `test-util`, tokio's `Builder` has an inherent method `start_paused`, and a method call
/// prefers inherent methods to those of traits.
pub(crate) fn clocks_can_pause() -> bool {
    // This distinguishes a type with the method from one without.
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
