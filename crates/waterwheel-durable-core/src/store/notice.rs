use std::sync::Arc;

/// Something that the operator of a store should know, and that does not stop the store: see
/// [`Store::notices`](crate::store::Store::notices).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The file has a second name, a hard link. Locking and the WAL depend on the name, so a process that opens the
    /// file by the other name damages it.
    #[non_exhaustive]
    HardLinked {
        /// The name by which the file was opened.
        file: Arc<str>,
        /// The number of names that the file has.
        links: u64,
    },
    /// Acknowledged work is missing, and the file was opened without it, as requested.
    #[non_exhaustive]
    AcknowledgedLost {
        /// The file.
        file: Arc<str>,
        /// What is missing.
        loss: Arc<str>,
    },
    /// The store cannot record which commits it has acknowledged. The commits are in the file and its WAL nevertheless.
    /// But if the WAL is lost after a crash, the next open does not detect it.
    #[non_exhaustive]
    NoteFailed {
        /// The file that cannot be written.
        note: Arc<str>,
        /// The error of the operating system.
        error: Arc<str>,
    },
}

impl Notice {
    /// Creates a notice that a file has several names.
    #[must_use]
    pub fn hard_linked(file: &str, links: u64) -> Notice {
        let file = file.into();
        Notice::HardLinked { file, links }
    }

    /// Creates a notice that a file was opened although acknowledged work is missing.
    #[must_use]
    pub fn acknowledged_lost(file: &str, loss: &str) -> Notice {
        Notice::AcknowledgedLost {
            file: file.into(),
            loss: loss.into(),
        }
    }

    /// Creates a notice that acknowledged commits cannot be recorded.
    #[must_use]
    pub fn note_failed(note: &str, error: &str) -> Notice {
        Notice::NoteFailed {
            note: note.into(),
            error: error.into(),
        }
    }
}
