//! Is it certain that nothing was written?

use rusqlite::ErrorCode;
use waterwheel_store::StoreError;

/// The error of a read, or of a step of a commit that was rolled back.
pub(crate) fn rolled_back(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::indeterminate(error)
        }
        _ => StoreError::definite(error),
    }
}

/// The error of a `COMMIT` that was rolled back.
///
/// A full disk shows in a write to the log. The last frame, which makes the rest of them a commit, is the last one that is written: it
/// is not there, and the next commit begins where this one has begun.
pub(crate) fn of_commit(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DiskFull | ErrorCode::ConstraintViolation) => {
            StoreError::definite(error)
        }
        _ => StoreError::indeterminate(error),
    }
}
