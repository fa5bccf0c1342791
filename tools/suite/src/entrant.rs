//! Who takes part in a workload, and how.

use waterwheel_suite::Sample;

/// A contestant and how to take one sample of it. Making one costs nothing: what a sample needs is prepared when it is
/// taken.
pub(crate) struct Entrant {
    pub(crate) name: &'static str,
    sample: Box<dyn FnOnce() -> Sample>,
}

impl Entrant {
    /// Says how `name` is measured.
    pub(crate) fn new(name: &'static str, sample: impl FnOnce() -> Sample + 'static) -> Self {
        Self {
            name,
            sample: Box::new(sample),
        }
    }

    /// Takes one.
    pub(crate) fn sample(self) -> Sample {
        (self.sample)()
    }
}
