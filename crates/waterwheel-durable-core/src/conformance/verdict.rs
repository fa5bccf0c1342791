use std::fmt;

/// The result of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    name: &'static str,
    failure: Option<String>,
}

impl Verdict {
    pub(crate) fn new(name: &'static str, failure: Option<String>) -> Verdict {
        Verdict { name, failure }
    }

    /// The claim of the case about the store: a sentence in `snake_case`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The store's actual behaviour. `None` if the case has passed.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// The results of all cases. Displayed as one line per case.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Report {
    verdicts: Vec<Verdict>,
}

impl Report {
    pub(crate) fn new(verdicts: Vec<Verdict>) -> Report {
        Report { verdicts }
    }

    /// All cases, in the order in which they ran.
    #[must_use]
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    /// The names of the cases that the store has failed.
    pub fn failed(&self) -> impl Iterator<Item = &'static str> {
        let failed = self.verdicts.iter().filter(|it| it.failure.is_some());
        failed.map(Verdict::name)
    }

    /// Asserts that the store passes all cases. For tests.
    ///
    /// # Panics
    ///
    /// If a case has failed. The message names it, and says what the store did.
    #[track_caller]
    pub fn expect_all(&self) {
        assert!(self.failed().next().is_none(), "\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for verdict in &self.verdicts {
            match &verdict.failure {
                None => writeln!(f, "passed  {}", verdict.name)?,
                Some(why) => writeln!(f, "FAILED  {}: {why}", verdict.name)?,
            }
        }
        Ok(())
    }
}
