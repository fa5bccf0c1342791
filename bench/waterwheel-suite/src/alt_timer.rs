//! tokio's alternative timer: a second build of the suite, with the cfg that it needs.
//!
//! `Builder::enable_alt_timer` exists only under `--cfg tokio_unstable`, and the default timer must be measured in a build
//! without it. So there are two programs. The second also has our own cfg, `waterwheel_alt_timer`, under which
//! [`Stage`](crate::stage::Stage) enables the alternative timer; the contestant `tokio` of that program is this timer.

use std::env;
use std::path::PathBuf;

use serde_json::Value;

use crate::cargo;

/// Its name among the contestants.
pub(crate) const NAME: &str = "tokio, alt timer";

const CFGS: &str = "--cfg tokio_unstable --cfg waterwheel_alt_timer";

/// Builds the program and returns its path. It has its own target folder: in one folder, each build would replace the other.
pub(crate) fn build() -> Result<PathBuf, String> {
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    let suite = ["--profile", "bench", "--bench", "suite"];
    let messages = ["--message-format", "json-render-diagnostics"];
    let mut build = cargo::command("alt-timer", &[&suite[..], &messages].concat());
    // Cargo would prefer it to `RUSTFLAGS`.
    build.env_remove("CARGO_ENCODED_RUSTFLAGS");
    build.env("RUSTFLAGS", format!("{flags} {CFGS}"));
    let messages = cargo::output(&mut build)?;
    let program = messages.lines().find_map(executable);
    program.ok_or_else(|| "cargo names no executable".to_owned())
}

/// The path of the suite, if this message from cargo contains it.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_suite = message["target"]["name"] == "suite";
    let path = message["executable"].as_str().filter(|_| is_suite)?;
    Some(path.into())
}
