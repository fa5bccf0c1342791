use std::sync::Arc;

/// Something that the operator of a store should know, and that keeps it from nothing: see [`Store::notices`](crate::Store::notices).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The file has another name, by a hard link. Its lock and its log go by its name, so a process that opens it by the other one damages it.
    #[non_exhaustive]
    HardLinked {
        /// The name that it was opened by.
        file: Arc<str>,
        /// How many names it has.
        links: u64,
    },
    /// Work that was acknowledged is gone, and the file was opened without it, as it was asked to be.
    #[non_exhaustive]
    AcknowledgedLost {
        /// The file.
        file: Arc<str>,
        /// What is gone.
        loss: Arc<str>,
    },
    /// The store cannot note which commits it has acknowledged. They are in the file and its log all the same; but if a crash and something else took the log, the
    /// next opening would not notice it.
    #[non_exhaustive]
    NoteFailed {
        /// The file that cannot be written.
        note: Arc<str>,
        /// What the operating system says.
        error: Arc<str>,
    },
}

impl Notice {
    /// Notes that a file has so many names.
    #[must_use]
    pub fn hard_linked(file: &str, links: u64) -> Notice {
        let file = file.into();
        Notice::HardLinked { file, links }
    }

    /// Notes that a file was opened without work that was acknowledged.
    #[must_use]
    pub fn acknowledged_lost(file: &str, loss: &str) -> Notice {
        Notice::AcknowledgedLost {
            file: file.into(),
            loss: loss.into(),
        }
    }

    /// Notes that what was acknowledged cannot be noted.
    #[must_use]
    pub fn note_failed(note: &str, error: &str) -> Notice {
        Notice::NoteFailed {
            note: note.into(),
            error: error.into(),
        }
    }
}
