//! tokio's alternative timer: the suite once more, built with the cfg that it needs.
//!
//! `Builder::enable_alt_timer` exists only under `--cfg tokio_unstable`, and the default timer must be measured in a build
//! without. So there are two programs. The second has a cfg of our own as well, `waterwheel_alt_timer`, under which
//! [`Stage`](crate::stage::Stage) enables the alternative timer; the contestant `tokio` of that program is this timer.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use waterwheel_suite::build_dir;

/// Its name among the contestants.
pub(crate) const NAME: &str = "tokio, alt timer";

const CFGS: &str = "--cfg tokio_unstable --cfg waterwheel_alt_timer";

/// Builds it and returns its path. It has a target folder of its own: in one folder, each build would replace the other.
pub(crate) fn build() -> Result<PathBuf, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    let build = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "build",
            "--locked",
            "--profile",
            "bench",
            "--bench",
            "suite",
        ])
        .args(["--message-format", "json-render-diagnostics"])
        .arg("--target-dir")
        .arg(build_dir().join("alt-timer"))
        // Cargo would take it instead of `RUSTFLAGS`.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", format!("{flags} {CFGS}"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if !build.status.success() {
        return Err(format!(
            "the build of it failed, see standard error ({})",
            build.status
        ));
    }
    let messages = String::from_utf8_lossy(&build.stdout);
    let program = messages.lines().find_map(executable);
    program.ok_or_else(|| "cargo names no executable".to_owned())
}

/// The path of the suite, if this message of cargo's has it.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_suite = message["target"]["name"] == "suite";
    let path = message["executable"].as_str().filter(|_| is_suite)?;
    Some(path.into())
}
