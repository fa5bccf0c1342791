//! Whether tokio's clocks can be paused in this build.
//!
//! They can if a crate of the build enables tokio's feature `test-util`, which services do not. A clock that can be paused
//! costs more: each read of the clock looks up the runtime, and each drop of the last pending timer checks whether the clock
//! was paused. Services do not pay for this.
//!
//! A crate cannot see which features another crate has. But with this feature tokio's `Builder` has a method `start_paused`, and
//! a method call prefers the type's own methods to those of a trait. So the type of the call below depends on the feature. The
//! call itself is never made.

use tokio::runtime::Builder;

/// Whether tokio has `pause`.
pub(crate) const CLOCKS_CAN_PAUSE: bool = {
    // What it is without the feature.
    assert!(!gives(
        &|other: &'static mut Other| other.start_paused(false)
    ));
    gives(&|builder: &'static mut Builder| builder.start_paused(false))
};

struct Other;

trait WithoutTestUtil {
    fn start_paused(&mut self, _: bool) -> Missing {
        Missing
    }
}

impl WithoutTestUtil for Builder {}
impl WithoutTestUtil for Other {}

struct Missing;

trait Given {
    const IS_TOKIOS: bool;
}

impl Given for &mut Builder {
    const IS_TOKIOS: bool = true;
}

impl Given for Missing {
    const IS_TOKIOS: bool = false;
}

const fn gives<B, G: Given>(_: &impl FnOnce(B) -> G) -> bool {
    G::IS_TOKIOS
}

#[cfg(test)]
mod tests {
    // The tests' own tokio has the feature.
    #[test]
    fn a_build_with_test_util_can_pause_clocks() {
        const { assert!(super::CLOCKS_CAN_PAUSE) }
    }
}
