//! What the suite's cards ask of a chart's source.

/// What went wrong, a sentence for each.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(crate) faults: Vec<String>,
}
