//! Which few steps are enough to break a promise?

use crate::life::{Broke, Fault, Life, Step};

/// A life that is reduced to as few steps as still break the same promise.
#[derive(Debug)]
pub struct Shrunk {
    /// The promise that these steps break.
    pub broke: Broke,
    /// The steps that remain.
    pub steps: Vec<Step>,
    /// Each step in words.
    pub told: Vec<String>,
}

/// Shrinks the life of a seed that breaks a promise: leaves out halves of its steps, quarters, and so on to single ones and pairs, as long as the rest
/// breaks the same promise. Afterwards, each step is needed. If the promise is still broken when the store comes to rest after a step, it does so, and
/// the steps that did its work are not needed. `None` if the life of the seed breaks no promise.
#[must_use]
pub fn shrink<F: Fault>(seed: u64, broken: Option<F>) -> Option<Shrunk> {
    let (life, lived) = Life::record(seed, broken);
    let broke = lived.err()?;
    let shortest = [true, false].into_iter().filter_map(|rests| {
        let mut search = Search::new(&life, &broke, rests)?;
        search.shorten();
        Some(search)
    });
    let Search { broke, steps, .. } = shortest.min_by_key(|it| it.steps.len())?;
    let mut told = Vec::new();
    let mut tell = |step: Step, text: &str| told.push(format!("{step}: {text}"));
    // This is known to fail in the same way.
    let _ = life.replay(&steps, Some(&mut tell));
    Some(Shrunk { broke, steps, told })
}

struct Search<'a, F> {
    life: &'a Life<F>,
    promise: String,
    broke: Broke,
    steps: Vec<Step>,
}

impl<F: Fault> Search<'_, F> {
    /// Begins with all steps, if they break the promise.
    fn new<'a>(life: &'a Life<F>, broke: &Broke, rests: bool) -> Option<Search<'a, F>> {
        let mut search = Search {
            life,
            promise: promise(&broke.what),
            broke: broke.clone(),
            steps: Vec::new(),
        };
        let steps = (0..life.len()).map(|number| Step { number, rests });
        search.is_enough(steps.collect()).then_some(search)
    }

    /// Whether these steps break the promise. If so, they replace the current ones.
    fn is_enough(&mut self, steps: Vec<Step>) -> bool {
        match self.life.replay(&steps, None) {
            Err(broke) if promise(&broke.what) == self.promise => {
                (self.steps, self.broke) = (steps, broke);
                true
            }
            _ => false,
        }
    }

    fn shorten(&mut self) {
        let mut size = self.steps.len();
        while size > 1 {
            self.leave_out(size);
            size /= 2;
        }
        // A step may be superfluous once a later one is gone, or another one with it, or the store rests.
        while self.leave_out(1) || self.leave_out_pair() || self.let_rest() {}
    }

    /// Lets the store rest after one more step. Returns whether that was possible.
    fn let_rest(&mut self) -> bool {
        let busy = (0..self.steps.len()).filter(|at| !self.steps[*at].rests);
        let busy: Vec<usize> = busy.collect();
        busy.into_iter().any(|at| {
            let mut steps = self.steps.clone();
            steps[at].rests = true;
            self.is_enough(steps)
        })
    }

    /// Leaves out runs of this many steps. Returns whether that was possible.
    fn leave_out(&mut self, size: usize) -> bool {
        let (mut at, before) = (0, self.steps.len());
        while at < self.steps.len() {
            let end = self.steps.len().min(at + size);
            let rest = [&self.steps[..at], &self.steps[end..]].concat();
            if !self.is_enough(rest) {
                at = end;
            }
        }
        self.steps.len() < before
    }

    fn leave_out_pair(&mut self) -> bool {
        let count = self.steps.len();
        (0..count).any(|one| {
            (one + 1..count).any(|other| {
                let mut rest = self.steps.clone();
                rest.remove(other);
                rest.remove(one);
                self.is_enough(rest)
            })
        })
    }
}

/// The broken promise: the words before its details, without numbers.
fn promise(what: &str) -> String {
    let words = what.split([':', '{', '(', '[']).next().unwrap_or_default();
    words.chars().filter(|it| !it.is_ascii_digit()).collect()
}
