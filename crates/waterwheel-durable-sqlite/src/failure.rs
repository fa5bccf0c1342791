//! Is it certain that nothing was written?

use rusqlite::ErrorCode;
use waterwheel_durable_core::store::StoreError;

use super::words::boxed;

/// The error of a read, or of a step of a commit that was rolled back.
///
/// That step has left nothing, whatever its error is: no commit was tried. But only what goes away by itself is asked again: another connection, no space, no
/// memory. Anything else would be refused for ever, and the store would stand still without a word: an I/O error, a page or a row that makes no sense, a file
/// that has become read-only, a value that is too large.
pub(crate) fn rolled_back(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::DiskFull
            | ErrorCode::OutOfMemory,
        ) => StoreError::definite(boxed(error)),
        _ => StoreError::indeterminate(boxed(error)),
    }
}

/// The error of a write that has found no space, and was rolled back.
pub(crate) fn no_space(error: &rusqlite::Error) -> StoreError {
    StoreError::definite(format!(
        "no space is left: free space on the disk, or raise the quota, the limit of the file or `ulimit -f` ({error})"
    ))
}

/// The error of a `COMMIT` that was rolled back.
///
/// A full disk shows in a write to the WAL. The last frame, which makes the rest of them a commit, is the last one that is written: it is not there, unless
/// the [wal](super::WAL) had it, and the next commit begins where this one has begun. A full disk that shows in the sync is an I/O error to SQLite.
pub(crate) fn of_commit(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DiskFull) => StoreError::definite(boxed(error)),
        _ => StoreError::indeterminate(boxed(error)),
    }
}
