//! Switches published crates from `tokio::time` to waterwheel, exactly as the README says, and runs their tests before and after.
//!
//! ```text
//! cargo run --release -p waterwheel-ports             # all crates of the table: ten minutes, or more where nothing is compiled yet
//! cargo run --release -p waterwheel-ports -- tower    # some crates; the results of the others stay
//! ```
//!
//! It takes the crates' sources from the registry (`fetch`), copies each (`prepare`), applies the README's command to one copy
//! (`switch`), splits the imports that the README leaves to be split by hand (`split`), and runs the tests of both (`run`,
//! `outcome`) to compare them (`compare`). It writes `testing/waterwheel-ports/results.json` and the table in `COMPARISON.md` (`table`). A test
//! compares that table to that file.
//!
//! "As before": each test that passed before passes after, none is missing, and no program hangs. A test that failed before is named,
//! but not counted. A test that fails only after is repeated alone, three times before and after, and named with the result; the exit
//! code is then 1.
//!
//! A test program hangs if it has not ended after half an hour. It is then killed, and the remaining programs are not run. After the
//! switch this is a difference: the row names the program, its log names the test, and the next crate follows. Before the switch it is
//! an error that ends the run: there is nothing to compare with, and the crate's line in `crates` or this machine is at fault.
//!
//! Apart from cargo it needs the programs that the README's command calls: `grep`, `xargs` and `perl`. If one is missing, it names
//! the package to install before it fetches or builds anything.
//!
//! The builds, and the output of cargo and the tests, are in `ports` under the target folder.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it says what it does")]

mod compare;
mod crates;
mod fetch;
mod outcome;
mod prepare;
mod program;
mod results;
mod run;
mod split;
mod switch;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use anyhow::{Context as _, anyhow, bail};
use clap::Parser;
use waterwheel_bench_kit::{filled, machine, target_dir};

use crate::compare::compare;
use crate::crates::{CRATES, Published};
use crate::prepare::{Copies, copies};
use crate::program::file;
use crate::results::Port;
use crate::run::Tested;

/// The path of the results from the root of the repository.
const RESULTS: &str = "testing/waterwheel-ports/results.json";
const PAGE: &str = "COMPARISON.md";
/// The name of the table's block.
const BLOCK: &str = "ports";

/// Switches published crates to waterwheel, and runs their tests before and after.
#[derive(Parser)]
struct Flags {
    /// The crates, by name; the results of the others stay [default: all]
    crates: Vec<String>,
}

fn main() -> ExitCode {
    match wanted(&Flags::parse().crates).and_then(|crates| publish(&crates)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ports: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

/// The crates of these names, or all if there are none.
fn wanted(names: &[String]) -> anyhow::Result<Vec<Published>> {
    if names.is_empty() {
        return Ok(CRATES.to_vec());
    }
    let found = names.iter().map(|name| {
        let mut crates = CRATES.iter().copied();
        crates
            .find(|published| published.name == name)
            .with_context(|| {
                format!(
                    "no crate {name:?} is in the table of `testing/waterwheel-ports/src/crates.rs`"
                )
            })
    });
    found.collect()
}

fn publish(crates: &[Published]) -> anyhow::Result<()> {
    let root = root();
    let readme = root.join("README.md");
    let readme = fs::read_to_string(&readme).map_err(file(readme))?;
    let command = switch::command(&readme)?;
    // Checked before anything is built.
    switch::is_installed(&env::var_os("PATH").unwrap_or_default())?;
    let target = target_dir().unwrap_or_else(|| root.join("target"));
    let folder = target.join("ports");
    // Fetch all of them, so that cargo chooses the same versions whichever are wanted.
    let sources = fetch::sources(&folder.join("sources"), CRATES)?;
    let results = root.join(RESULTS);
    let mut ports = results::read(&results)?;
    let mut differ = Vec::new();
    for published in crates {
        let name = published.name;
        println!("{name} {}", published.version);
        let port = port(published, &sources[name], &folder, &root, command)?;
        if !port.compared.is_as_before() {
            differ.push(name);
        }
        ports.retain(|other| other.name != name);
        ports.push(port);
        // Write after each crate, so that later failures lose nothing.
        ports.sort_by_key(|port| CRATES.iter().position(|it| it.name == port.name));
        results::write(&results, &ports)?;
    }
    let page = root.join(PAGE);
    let text = page_with(&ports, &page)?;
    fs::write(&page, text).map_err(file(&page))?;
    println!("{RESULTS}\n{PAGE}");
    if differ.is_empty() {
        Ok(())
    } else {
        bail!(
            "not as before: {}; the table in COMPARISON.md says in what. Mend waterwheel, or add the reason to \
             `src/time/differences.md`",
            differ.join(", ")
        )
    }
}

/// Switches a crate, and runs its tests before and after.
fn port(
    published: &Published,
    source: &Path,
    folder: &Path,
    root: &Path,
    command: &str,
) -> anyhow::Result<Port> {
    let Published {
        name,
        version,
        flags,
    } = *published;
    let target = folder.join("target");
    let Copies {
        before,
        after,
        tokio,
    } = copies(source, &folder.join(format!("{name}-{version}")), root)?;
    let changed = switch::switch(&after, command)?;
    println!(
        "  {} lines changed, {} imports split",
        changed.lines, changed.imports
    );
    let [before, after] = [&before, &after].map(|folder| Tested {
        folder,
        flags,
        target: &target,
        is_hung: run::is_hung,
    });
    Ok(Port {
        name: name.to_owned(),
        version: version.to_owned(),
        date: machine::date(),
        tokio,
        rustc: machine::rustc(),
        lines: changed.lines,
        imports: changed.imports,
        compared: compare(&before, &after)?,
    })
}

/// The page with the table of these results.
fn page_with(ports: &[Port], page: &Path) -> anyhow::Result<String> {
    let before = fs::read_to_string(page).map_err(file(page))?;
    let block = |name: &str| match name {
        BLOCK => Ok(table::table(ports)),
        _ => Err(format!("there are no figures {name:?}")),
    };
    filled(&before, block).map_err(|why| anyhow!("{}: {why}", page.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_the_committed_results() {
        let page = root().join(PAGE);
        let ports = results::read(&root().join(RESULTS)).unwrap();
        let committed = fs::read_to_string(&page).unwrap();
        assert!(committed.contains("<!-- figures: ports -->"));
        assert!(
            page_with(&ports, &page).unwrap() == committed,
            "{PAGE} has another table: `cargo run --release -p waterwheel-ports` writes it"
        );
    }

    #[test]
    fn the_committed_results_are_of_the_crates_of_the_table() {
        let ports = results::read(&root().join(RESULTS)).unwrap();
        let found = ports.iter().map(|port| (&*port.name, &*port.version));
        let expected = CRATES.iter().map(|it| (it.name, it.version));
        assert!(found.eq(expected));
    }

    #[test]
    fn a_crate_is_chosen_by_its_name() {
        let names =
            |names: &[&str]| wanted(&names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&[]).unwrap().len(), CRATES.len());
        assert_eq!(names(&["tower"]).unwrap()[0].name, "tower");
        let why = names(&["towre"]).unwrap_err().to_string();
        assert!(why.contains("towre"), "{why}");
    }
}
