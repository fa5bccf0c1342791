//! Is the file that is open still the one that its path names, and has it other names?

use std::path::Path;

/// Which file it is. `None` where the system does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(Option<(u64, u64)>);

impl Identity {
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> std::io::Result<Identity> {
        use std::os::unix::fs::MetadataExt;

        let file = std::fs::metadata(path)?;
        Ok(Identity(Some((file.dev(), file.ino()))))
    }

    /// How many names a file has, by hard links.
    #[cfg(unix)]
    pub(crate) fn links(path: &Path) -> u64 {
        use std::os::unix::fs::MetadataExt;

        std::fs::metadata(path).map_or(1, |file| file.nlink())
    }

    #[cfg(not(unix))]
    pub(crate) fn links(_: &Path) -> u64 {
        1
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_: &Path) -> std::io::Result<Identity> {
        // There, a file that is open is not removed.
        Ok(Identity(None))
    }
}
