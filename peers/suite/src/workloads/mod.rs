//! What is measured: one file a workload, each at the sizes that BENCH asks for.

pub(crate) mod cancel;
pub(crate) mod fire;
pub(crate) mod herd;

use crate::report::Table;

/// One workload at one size.
pub(crate) struct Workload {
    pub(crate) title: String,
    run: Box<dyn Fn(String, usize) -> Table>,
}

impl Workload {
    /// A workload that takes its samples in so many rounds when it is run.
    pub(crate) fn new(title: String, run: impl Fn(String, usize) -> Table + 'static) -> Workload {
        Workload {
            title,
            run: Box::new(run),
        }
    }

    pub(crate) fn run(&self, rounds: usize) -> Table {
        (self.run)(self.title.clone(), rounds)
    }
}

/// Every workload at every size, in the order of the report; smaller and fewer if `quick`.
pub(crate) fn all(quick: bool) -> Vec<Workload> {
    [cancel::all(quick), herd::all(quick), fire::all(quick)]
        .into_iter()
        .flatten()
        .collect()
}
