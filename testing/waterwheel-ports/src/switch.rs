//! Carries out the README: its command, exactly as it is there, and then in code the steps that it leaves to be done by hand.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, anyhow, bail};

use crate::program::{file, output};
use crate::split;

/// The beginning of the command, on a line of the README.
const BEGINS: &str = "grep -rl tokio::time ";

/// The programs that the command calls, each with the package that contains it.
const CALLS: &[(&str, &str)] = &[("grep", "grep"), ("xargs", "findutils"), ("perl", "perl")];

/// The changes of a crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The number of lines that the command changed.
    pub(crate) lines: usize,
    /// The number of imports of `tokio::{…}` that were split by hand.
    pub(crate) imports: usize,
}

/// The command that switches a crate.
pub(crate) fn command(readme: &str) -> anyhow::Result<&str> {
    let mut lines = readme.lines();
    lines
        .find(|line| line.starts_with(BEGINS))
        .with_context(|| format!("README.md has no line that begins with `{BEGINS}`: name the new command in `testing/waterwheel-ports/src/switch.rs`"))
}

/// Checks that all programs that the command calls are in a folder of this `PATH`.
pub(crate) fn is_installed(path: &OsStr) -> anyhow::Result<()> {
    for &(program, package) in CALLS {
        if !env::split_paths(path).any(|folder| folder.join(program).is_file()) {
            bail!(
                "the README's command needs {program}, which is in no folder of the PATH. Install the package `{package}` \
                 (`apt-get install {package}`, or as your system does it)"
            );
        }
    }
    Ok(())
}

/// Switches the crate in a folder.
pub(crate) fn switch(folder: &Path, command: &str) -> anyhow::Result<Changed> {
    let sources = sources(folder)?;
    let before = read_all(&sources)?;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder);
    output("the README's command", &mut shell)?;
    let after = read_all(&sources)?;
    let lines = before
        .iter()
        .zip(&after)
        .map(|(before, after)| changed_lines(before, after))
        .sum();
    let mut imports = 0;
    for (path, text) in sources.into_iter().zip(after) {
        let (text, count) = split::split(&text).map_err(|line| anyhow!("{}:{line}: an import of tokio without an end: teach it to `testing/waterwheel-ports/src/split.rs`", path.display()))?;
        if count > 0 {
            fs::write(&path, text).map_err(file(&path))?;
            imports += count;
        }
    }
    Ok(Changed { lines, imports })
}

fn changed_lines(before: &str, after: &str) -> usize {
    let pairs = before.lines().zip(after.lines());
    pairs.filter(|(before, after)| before != after).count()
}

fn read_all(paths: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let texts = paths
        .iter()
        .map(|path| fs::read_to_string(path).map_err(file(path)));
    texts.collect()
}

/// The source files that the command reads.
fn sources(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for part in ["src", "tests"] {
        collect(&folder.join(part), &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(file(folder))? {
        let path = entry.map_err(file(folder))?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = include_str!("../../../README.md");

    #[test]
    fn what_the_command_calls_and_is_missing_is_named() {
        let command = command(README).unwrap();
        let folder = env::temp_dir().join(format!("ports-path-{}", std::process::id()));
        let (empty, full) = (folder.join("empty"), folder.join("full"));
        fs::create_dir_all(&empty).unwrap();
        fs::create_dir_all(&full).unwrap();
        let path = env::join_paths([&empty, &full]).unwrap();
        let mut errors = Vec::new();
        for (program, _) in CALLS {
            assert!(command.contains(program), "{command}");
            errors.push(is_installed(&path).unwrap_err().to_string());
            fs::write(full.join(program), "").unwrap();
        }
        let complete = is_installed(&path);
        fs::remove_dir_all(&folder).unwrap();
        complete.unwrap();
        assert!(errors[1].contains("needs xargs"), "{errors:?}");
        assert!(errors[1].contains("`findutils`"), "{errors:?}");
        assert!(errors[2].contains("needs perl"), "{errors:?}");
    }

    #[test]
    fn the_readme_has_a_command_and_the_page_for_a_fleet_the_same() {
        let command = command(README).unwrap();
        let page = include_str!("../../../docs/switching.md");
        assert!(page.lines().any(|line| line == command), "{command}");
        assert!(super::command("no command").is_err());
    }

    #[test]
    fn a_crate_is_switched_as_the_readme_says() {
        is_installed(&env::var_os("PATH").unwrap()).unwrap();
        let folder = env::temp_dir().join(format!("ports-switch-{}", std::process::id()));
        fs::create_dir_all(folder.join("src/inner")).unwrap();
        fs::create_dir_all(folder.join("tests")).unwrap();
        fs::create_dir_all(folder.join("examples")).unwrap();
        let write = |path: &str, text: &str| fs::write(folder.join(path), text).unwrap();
        write("src/lib.rs", "use tokio::time;\nuse tokio::sync::mpsc;\n");
        write(
            "src/inner/mod.rs",
            "use tokio::{net::TcpStream, time::sleep};\n",
        );
        write(
            "tests/all.rs",
            "tokio::time::sleep(tokio::time::Duration::ZERO)\n",
        );
        write("examples/one.rs", "use tokio::time;\n");

        let changed = switch(&folder, command(README).unwrap()).unwrap();
        let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
        let texts = [
            "src/lib.rs",
            "src/inner/mod.rs",
            "tests/all.rs",
            "examples/one.rs",
        ]
        .map(read);
        fs::remove_dir_all(&folder).unwrap();
        let expected = [
            "use waterwheel::time;\nuse tokio::sync::mpsc;\n",
            "use tokio::{net::TcpStream}; use waterwheel::time::sleep;\n",
            "waterwheel::time::sleep(waterwheel::time::Duration::ZERO)\n",
            "use tokio::time;\n",
        ];
        assert_eq!(texts, expected);
        let expected = Changed {
            lines: 2,
            imports: 1,
        };
        assert_eq!(changed, expected);
    }
}
