use std::error::Error;
use std::fmt;

/// A store could not do what it was asked to. Its text says whether something was written, and the cause.
#[derive(Debug)]
pub struct StoreError {
    is_definite: bool,
    source: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    /// Nothing of it was done: it may be tried again.
    pub fn definite(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError {
            is_definite: true,
            source: source.into(),
        }
    }

    /// It is not known whether it was done, or will be found to be done after a restart: a failed `fsync`, an I/O error, a lost connection. Of a read: what is
    /// there cannot be read, and will not be if it is read again, as with damage or an I/O error.
    ///
    /// Nothing is tried again on this store: after a failed `fsync`, a second one may say that all is well and be wrong
    /// ([fsyncgate](https://wiki.postgresql.org/wiki/Fsync_Errors)).
    pub fn indeterminate(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError {
            is_definite: false,
            source: source.into(),
        }
    }

    /// Whether it is certain that nothing was done.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        self.is_definite
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.is_definite {
            true => "the store refused, and nothing was written",
            false => "the store failed, and it is not known what was written",
        };
        write!(f, "{what}: {}", self.source)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
