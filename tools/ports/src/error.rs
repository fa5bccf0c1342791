//! What can go wrong, and what to do then.

use std::fmt;
use std::io;
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) enum Error {
    /// An argument names no crate of the table.
    NoSuchCrate(String),
    /// A file or folder.
    File { path: PathBuf, error: io::Error },
    /// A file of results that this program cannot read.
    Results {
        path: PathBuf,
        error: serde_json::Error,
    },
    /// A program that does not start.
    Start {
        program: &'static str,
        error: io::Error,
    },
    /// What the README's command calls, and this machine does not have.
    NotInstalled {
        program: &'static str,
        package: &'static str,
    },
    /// A program that did not do its work.
    Failed {
        program: &'static str,
        message: String,
    },
    /// The registry's packages do not have the crate in this version.
    NoSources { name: String, version: String },
    /// No line of the README begins like this, and so none switches a crate.
    NoCommand(&'static str),
    /// An import that is not understood.
    Import { path: PathBuf, line: usize },
    /// The tests of a crate do not compile.
    Build { log: PathBuf },
    /// The build of a crate, or cargo before the first test program, took longer than it may.
    Late { log: PathBuf },
    /// A test program that hangs before the switch.
    HangsBefore { log: PathBuf, program: String },
    /// What the tests printed is not understood.
    Unclear { log: PathBuf, why: String },
    /// Crates whose tests are not as before, which is in the table.
    Differ(Vec<&'static str>),
    /// The page has no place for the table.
    Page { path: PathBuf, why: String },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchCrate(name) => {
                write!(
                    f,
                    "no crate {name:?} is in the table of `tools/ports/src/crates.rs`"
                )
            }
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Results { path, error } => write!(
                f,
                "{}: {error}. Delete the file and run all crates",
                path.display()
            ),
            Self::Start { program, error } => {
                write!(
                    f,
                    "{program} does not start: {error}. It must be in the PATH"
                )
            }
            Self::NotInstalled { program, package } => write!(
                f,
                "the README's command needs {program}, which is in no folder of the PATH. Install the package `{package}` \
                 (`apt-get install {package}`, or as your system does it)"
            ),
            Self::Failed { program, message } => write!(f, "{program} failed:\n{message}"),
            Self::NoSources { name, version } => write!(
                f,
                "cargo metadata names no {name} {version}: mend its line in `tools/ports/src/crates.rs`"
            ),
            Self::NoCommand(begins) => write!(
                f,
                "README.md has no line that begins with `{begins}`: name the new command in `tools/ports/src/switch.rs`"
            ),
            Self::Import { path, line } => write!(
                f,
                "{}:{line}: an import of tokio without an end: teach it to `tools/ports/src/split.rs`",
                path.display()
            ),
            Self::Build { log } => write!(
                f,
                "its tests do not compile, see {}. If this is before the switch, look at its flags in \
                 `tools/ports/src/crates.rs`; if after, it is a difference to report",
                log.display()
            ),
            Self::Late { log } => write!(
                f,
                "no end in the time that `tools/ports/src/run.rs` gives it, see {}",
                log.display()
            ),
            Self::HangsBefore { log, program } => write!(
                f,
                "{program} hangs before the switch, so there is nothing to compare with: see {} for the test, and look at its \
                 line in `tools/ports/src/crates.rs`. To go on without this crate, name the others",
                log.display()
            ),
            Self::Unclear { log, why } => write!(f, "{}: {why}", log.display()),
            Self::Differ(names) => write!(
                f,
                "not as before: {}; the table in COMPARISON.md says in what. Mend waterwheel, or add the reason to \
                 `src/time/differences.md`",
                names.join(", ")
            ),
            Self::Page { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

/// For `map_err`.
pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
    let path = path.into();
    |error| Error::File { path, error }
}
