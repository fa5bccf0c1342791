//! Whether tokio has the feature `test-util` here. If it had, the tests of `testing/waterwheel-without-test-util` would prove nothing.
//!
//! The method `start_paused` comes with the feature, and a type's inherent methods take precedence over those of a trait (as in `src/clock/mod.rs`). The
//! test finds it at run time, not the compiler: a check of the whole workspace enables the features of all packages.

use std::any::TypeId;

use tokio::runtime::Builder;

struct Other;

struct Missing;

trait WithoutTestUtil {
    fn start_paused(&mut self, _: bool) -> Missing {
        Missing
    }
}

impl WithoutTestUtil for Builder {}
impl WithoutTestUtil for Other {}

/// Whether such a call resolves to the inherent method. The call is never made.
fn is_own<B: 'static, R: 'static>(_: impl FnOnce(&'static mut B) -> R) -> bool {
    TypeId::of::<R>() != TypeId::of::<Missing>()
}

#[test]
fn tokio_has_test_util_where_it_is_meant_to() {
    let has_test_util = is_own(|builder: &'static mut Builder| builder.start_paused(false));
    assert_eq!(has_test_util, !cfg!(without_test_util));
    assert!(!is_own(|other: &mut Other| other.start_paused(false)));
}
