use std::error::Error;
use std::fmt;

/// A store could not carry out a request. The message says whether something was written, and contains the cause.
#[derive(Debug)]
pub struct StoreError {
    is_definite: bool,
    is_earlier: bool,
    source: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    /// Creates an error for a request of which nothing was done. It may be retried.
    pub fn definite(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError {
            is_definite: true,
            is_earlier: false,
            source: source.into(),
        }
    }

    /// Creates an error after which it is not known whether the request was carried out, or will turn out to be after a
    /// restart: a failed `fsync`, an I/O error, a lost connection. For a read, it means that the data cannot be read
    /// and that a retry would not help, for example because of damage or an I/O error.
    ///
    /// Nothing is retried on this store: after a failed `fsync`, a second one may wrongly report success
    /// ([fsyncgate](https://wiki.postgresql.org/wiki/Fsync_Errors)).
    pub fn indeterminate(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError {
            is_definite: false,
            is_earlier: false,
            source: source.into(),
        }
    }

    /// Creates an error for a request to a store that an earlier [indeterminate](StoreError::indeterminate) error has
    /// ended, with the cause of that error. Nothing was done for this request. It counts as indeterminate, since a
    /// retry would not help.
    pub fn failed_earlier(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
        StoreError {
            is_definite: false,
            is_earlier: true,
            source: source.into(),
        }
    }

    /// Returns whether it is certain that nothing was done.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        self.is_definite
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_earlier {
            return write!(
                f,
                "the store failed earlier, and this request wrote nothing: open it again ({})",
                self.source
            );
        }
        let what = match self.is_definite {
            true => "the store refused the request, and nothing was written",
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
