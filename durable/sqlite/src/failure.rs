//! Is it certain that nothing was written?

use rusqlite::ErrorCode;
use waterwheel_store::StoreError;

/// The error of a read, or of a step of a commit that was rolled back.
///
/// That step has left nothing, whatever its error is: no commit was tried. But a disk that fails, or a file that is damaged, is not asked again: an I/O
/// error, a page or a row that makes no sense, a table that is not there.
pub(crate) fn rolled_back(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::Unknown,
        )
        | None => StoreError::indeterminate(error),
        Some(_) => StoreError::definite(error),
    }
}

/// The error of a `COMMIT` that was rolled back.
///
/// A full disk shows in a write to the log. The last frame, which makes the rest of them a commit, is the last one that is written: it is not there, unless
/// the [log](super::log) had it, and the next commit begins where this one has begun. A full disk that shows in the sync is an I/O error to SQLite.
pub(crate) fn of_commit(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DiskFull | ErrorCode::ConstraintViolation) => {
            StoreError::definite(error)
        }
        _ => StoreError::indeterminate(error),
    }
}
