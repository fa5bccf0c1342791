//! The crates that are switched.

/// A version of a crate whose package contains its tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// The features that its tests need, as flags for `cargo test`.
    pub(crate) flags: &'static [&'static str],
}

/// All crates, in the order of the table.
pub(crate) const CRATES: &[Published] = &[
    published("tokio-stream", "0.1.19", &["--all-features"]),
    published("tokio-util", "0.7.20", &["--all-features"]),
    published("tower", "0.5.3", &["--all-features"]),
    // One feature that `full` omits has a test that needs its own network interfaces.
    published("hyper-util", "0.1.21", &["--features", "full"]),
    published("turmoil", "0.7.2", &["--all-features"]),
    published("deadpool", "0.13.1", &["--all-features"]),
];

const fn published(
    name: &'static str,
    version: &'static str,
    flags: &'static [&'static str],
) -> Published {
    Published {
        name,
        version,
        flags,
    }
}
