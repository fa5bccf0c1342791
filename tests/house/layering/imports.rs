//! The imports of the sources: which file takes a name from which.
//!
//! A path is followed to the file that defines the name. `pub use` in a `mod.rs` is a sign on the door: it leads on to the
//! file behind it, and is no import of the room. Nor is `mod file;`. What stands under `#[cfg(test)]`, and the models, are
//! left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The sources of the crate.
pub(crate) struct Sources {
    root: PathBuf,
    /// By module path, such as `driver::shard`.
    modules: BTreeMap<String, Module>,
}

struct Module {
    /// From the crate's root, such as `driver/shard/mod.rs`.
    file: String,
    uses: Vec<Use>,
    /// The code without comments, tests and models.
    code: String,
}

/// One name that a `use` brings in.
struct Use {
    /// From the crate's root, without the name.
    path: Vec<String>,
    name: String,
    /// The name that it goes by here.
    alias: String,
    is_reexport: bool,
}

/// An import: from which file to which, and the name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) name: String,
}

impl Sources {
    pub(crate) fn read(root: &Path) -> Sources {
        let mut files = Vec::new();
        collect(root, &mut files);
        assert!(!files.is_empty(), "nothing in {}", root.display());
        let mut modules = BTreeMap::new();
        for path in files {
            let inside = path.strip_prefix(root).unwrap().to_str().unwrap();
            let module = module_of(inside);
            let code = code_of(&fs::read_to_string(&path).unwrap());
            let uses = uses_of(&code, &module);
            let file = inside.to_owned();
            modules.insert(module.join("::"), Module { file, uses, code });
        }
        let root = root.to_owned();
        Sources { root, modules }
    }

    /// The code of each file, without comments, tests and models.
    pub(crate) fn code(&self) -> impl Iterator<Item = (&str, &str)> {
        self.modules.values().map(|it| (&*it.file, &*it.code))
    }

    pub(crate) fn imports(&self) -> BTreeSet<Import> {
        let mut imports = BTreeSet::new();
        for module in self.modules.values() {
            let is_index = module.file.ends_with("mod.rs") || module.file == "lib.rs";
            for name in &module.uses {
                let leads_on = name.is_reexport && is_index;
                if !leads_on && self.is_ours(&name.path) {
                    let target = self.home_of(&name.path[1..], &name.name, 0);
                    self.add(module, target, &name.name, &mut imports);
                }
            }
            // Paths in the code: `crate::room::name`, `super::name`, and `file::name` of a file of this room.
            let at = module_of(&module.file);
            let is_own = |part: &str| {
                let child = [&at[..], &[part.to_owned()]].concat();
                self.modules.contains_key(&child.join("::"))
            };
            for (path, name) in paths_in(&module.code, &at, is_own) {
                let target = self.home_of(&path, &name, 0);
                self.add(module, target, &name, &mut imports);
            }
        }
        imports
    }

    fn add(&self, from: &Module, to: Option<&Module>, name: &str, into: &mut BTreeSet<Import>) {
        if let Some(to) = to.filter(|to| to.file != from.file) {
            into.insert(Import {
                from: from.file.clone(),
                to: to.file.clone(),
                name: name.to_owned(),
            });
        }
    }

    /// The module that defines `path::name`, through all re-exports.
    fn home_of(&self, path: &[String], name: &str, depth: usize) -> Option<&Module> {
        assert!(depth < 20, "re-exports in a circle: {path:?} {name}");
        let mut whole = path.to_vec();
        whole.push(name.to_owned());
        if let Some(module) = self.modules.get(&whole.join("::")) {
            return Some(module);
        }
        let Some(module) = self.modules.get(&path.join("::")) else {
            // A path through a type, or a name that an index brings in: `error::Kind::A`.
            let (last, before) = path.split_last()?;
            return self.home_of(before, last, depth + 1);
        };
        let found = module.uses.iter().find(|it| it.alias == name);
        match found {
            // A macro of this file: `pub(crate) use name`.
            Some(found) if found.path[1..] == *path && found.name == name => Some(module),
            Some(found) if self.is_ours(&found.path) => {
                self.home_of(&found.path[1..], &found.name, depth + 1)
            }
            // Of another crate.
            Some(_) => None,
            None => Some(module),
        }
    }

    /// Whether an absolute path leads into this crate. `tokio::time` looks like a path within the module that names it.
    fn is_ours(&self, path: &[String]) -> bool {
        let path = &path[1..];
        (0..=path.len()).rev().any(|length| {
            let is_module = self.modules.contains_key(&path[..length].join("::"));
            // All of it, or all but a type.
            is_module
                && path[length..]
                    .iter()
                    .all(|it| it.starts_with(char::is_uppercase))
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}

/// Groups of more than one file in which each file imports each other, be it through others.
pub(crate) fn circles(imports: &BTreeSet<Import>) -> Vec<BTreeSet<&str>> {
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for import in imports {
        reach.entry(&import.from).or_default().insert(&import.to);
    }
    loop {
        let mut grown = reach.clone();
        for (from, to) in &reach {
            for next in to {
                let more = reach.get(next).cloned().unwrap_or_default();
                grown.get_mut(from).unwrap().extend(more);
            }
        }
        if grown == reach {
            break;
        }
        reach = grown;
    }
    let in_circle = reach.iter().filter(|(from, to)| to.contains(*from));
    let mut circles: Vec<BTreeSet<&str>> = in_circle
        .map(|(from, to)| {
            let back = |it: &&&str| reach.get(**it).is_some_and(|back| back.contains(from));
            to.iter().filter(back).copied().collect()
        })
        .collect();
    circles.sort();
    circles.dedup();
    circles
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "models") {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
}

/// The module path of a file: none for the root.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|it| it == "mod" || it == "lib") {
        parts.pop();
    }
    parts
}

/// The lines that are no comments. What is for tests or for the models alone is left out.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" || line == "#[cfg(waterwheel_loom)]" {
            // The item that it stands before: to its semicolon, or to the brace that closes it.
            let mut depth = 0;
            for line in lines.by_ref() {
                depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
                if depth == 0 && (line.ends_with(';') || line.ends_with('}')) {
                    break;
                }
            }
        } else if !line.starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// The names that the `use` items of a module bring in.
fn uses_of(code: &str, module: &[String]) -> Vec<Use> {
    let mut uses = Vec::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let Some((visibility, rest)) = line.split_once("use ") else {
            continue;
        };
        let visibility = visibility.trim_end();
        if !visibility.is_empty() && !visibility.starts_with("pub") {
            continue;
        }
        let mut item = rest.to_owned();
        while !item.contains(';') {
            item.push_str(lines.next().expect("a `use` ends"));
        }
        let item = item.split(';').next().unwrap();
        let is_reexport = visibility.starts_with("pub");
        expand(item, &[], module, is_reexport, &mut uses);
    }
    uses
}

/// Adds each name of a tree of imports: `a::{b, c::d as e}`.
fn expand(
    tree: &str,
    prefix: &[String],
    module: &[String],
    is_reexport: bool,
    uses: &mut Vec<Use>,
) {
    let tree = tree.trim();
    let (path, list) = match tree.split_once('{') {
        Some((path, list)) => (path, list.trim_end().strip_suffix('}')),
        None => (tree, None),
    };
    let mut parts = prefix.to_vec();
    parts.extend(
        path.split("::")
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .map(str::to_owned),
    );
    if let Some(list) = list {
        for branch in branches(list) {
            expand(branch, &parts, module, is_reexport, uses);
        }
        return;
    }
    let Some(last) = parts.pop() else {
        return;
    };
    let (name, alias) = last.split_once(" as ").unwrap_or((&last, &last));
    let (path, name) = match name {
        // `a::{self}` is `a`.
        "self" => {
            let name = parts.pop().expect("a path before `self`");
            (parts, name)
        }
        _ => (parts, name.to_owned()),
    };
    let alias = if alias == "self" {
        name.clone()
    } else {
        alias.to_owned()
    };
    let path = absolute(&path, module);
    uses.push(Use {
        path,
        name,
        alias,
        is_reexport,
    });
}

/// Splits at the commas outside of braces.
fn branches(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let mut branches: Vec<&str> = list
        .split(|it: char| {
            depth += i32::from(it == '{') - i32::from(it == '}');
            it == ',' && depth == 0
        })
        .collect();
    branches.retain(|it| !it.trim().is_empty());
    branches
}

/// `crate::…` for a path that begins with `crate`, `self`, `super` or a module of this one; others stay.
fn absolute(path: &[String], module: &[String]) -> Vec<String> {
    let mut at = module.to_vec();
    let mut rest = path;
    match path.first().map(String::as_str) {
        Some("crate") => return path.to_vec(),
        Some("self") => rest = &path[1..],
        Some("super") => {
            while rest.first().is_some_and(|it| it == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        _ => {}
    }
    let mut absolute = vec!["crate".to_owned()];
    absolute.extend(at);
    absolute.extend_from_slice(rest);
    absolute
}

/// The paths in a module's code outside of `use`: those that begin with `crate`, `super` or a file of the module's own.
fn paths_in(
    code: &str,
    module: &[String],
    is_own: impl Fn(&str) -> bool,
) -> Vec<(Vec<String>, String)> {
    let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
    let mut paths = Vec::new();
    for line in code.lines().filter(|line| !line.contains("use ")) {
        let line = line.replace("pub(in crate::driver)", "pub");
        for word in line.split(|it| !is_part(it)) {
            let Some((first, _)) = word.split_once("::") else {
                continue;
            };
            if first == "crate" || first == "super" || is_own(first) {
                let mut parts: Vec<String> = word.split("::").map(str::to_owned).collect();
                parts.retain(|it| !it.is_empty());
                let name = parts.pop().unwrap();
                let path = absolute(&parts, module);
                paths.push((path[1..].to_vec(), name));
            }
        }
    }
    paths
}
