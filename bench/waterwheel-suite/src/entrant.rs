//! The participants of a workload.

use waterwheel_suite::Sample;

/// A contestant and how to take one sample of it. An entrant is cheap to make: `sample` does all preparation.
pub(crate) struct Entrant {
    pub(crate) name: &'static str,
    sample: Box<dyn FnOnce() -> Sample>,
}

impl Entrant {
    /// An entrant for the contestant of this name, which `sample` measures.
    pub(crate) fn new(name: &'static str, sample: impl FnOnce() -> Sample + 'static) -> Self {
        Self {
            name,
            sample: Box::new(sample),
        }
    }

    /// Takes one sample.
    pub(crate) fn sample(self) -> Sample {
        (self.sample)()
    }
}
