//! The conditions of a run, as told by the machine, cargo and git.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

/// The current commit of `folder`, and whether it has uncommitted changes.
pub fn commit(folder: &str) -> String {
    let described = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .current_dir(folder)
        .output();
    said("git", described)
}

/// The date, in UTC.
pub fn date() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// The compiler.
pub fn rustc() -> String {
    said("rustc", Command::new("rustc").arg("--version").output())
}

/// The kernel.
pub fn system() -> String {
    said("uname", Command::new("uname").arg("-sr").output())
}

/// The processor's model.
pub fn processor() -> String {
    let described = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let printed = |command: &mut Command| {
        let output = command.output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        (output.status.success() && !text.trim().is_empty()).then_some(text)
    };
    // Linux on other processors than x86, and macOS.
    field(&described, "model name")
        .or_else(|| field(&printed(&mut Command::new("lscpu"))?, "Model name"))
        .or_else(|| printed(Command::new("sysctl").args(["-n", "machdep.cpu.brand_string"])))
        .map_or_else(
            || "unknown processor".to_owned(),
            |name| name.trim().to_owned(),
        )
}

/// The number of processors that the run may use.
pub fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// The machine's load average of one minute.
pub fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = load.split_ascii_whitespace().next();
    first.unwrap_or("unknown").to_owned()
}

/// The version that a lock file has of a package.
pub fn locked(lock: &Path, package: &str) -> String {
    let lock = fs::read_to_string(lock).unwrap_or_default();
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    let version = lines
        .nth(1)
        .and_then(|line| line.strip_prefix("version = "));
    version.map_or("of unknown version".to_owned(), |version| {
        version.trim_matches('"').to_owned()
    })
}

fn said(program: &str, output: std::io::Result<std::process::Output>) -> String {
    let output = output.ok().filter(|output| output.status.success());
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.unwrap_or_else(|| format!("unknown ({program} does not say)"))
}

/// The resident memory of this process in bytes. 0 if the system does not report it.
pub fn resident() -> usize {
    memory("VmRSS")
}

/// The peak memory of this process, in bytes. 0 if the system does not report it.
pub fn peak_memory() -> usize {
    memory("VmHWM")
}

fn memory(name: &str) -> usize {
    // `statm` counts pages, so it would need the size of a page.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = field(&status, name);
    let kilobytes = kilobytes.and_then(|it| it.strip_suffix(" kB")?.parse::<usize>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// The value in the first line `name: value`.
pub fn field(text: &str, name: &str) -> Option<String> {
    let mut values = text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix(name)?;
        rest.trim_start().strip_prefix(':')
    });
    Some(values.next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_read_from_each_form() {
        let x86 = "processor\t: 0\nmodel name\t: AMD EPYC\nmodel\t: 1\n";
        assert_eq!(field(x86, "model name").as_deref(), Some("AMD EPYC"));
        let arm = "Architecture:   aarch64\n  Model name:   Neoverse-N1\n";
        assert_eq!(field(arm, "Model name").as_deref(), Some("Neoverse-N1"));
        assert_eq!(field(arm, "Vendor"), None);
    }

    #[test]
    fn versions_are_in_the_lock_file() {
        let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
        let version = |package| locked(&lock, package);
        assert!(version("tokio").starts_with("1."), "{}", version("tokio"));
        assert!(version("waterwheel").starts_with("0."));
        assert_eq!(version("no such package"), "of unknown version");
    }
}
