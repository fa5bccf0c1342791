//! The imports of the sources: which file imports which name from which file.
//!
//! A path is followed to the file that defines the name. `pub use` in a `mod.rs` is a re-export: it leads on to the
//! file behind it, and is no import of the room. Nor is `mod file;`. Code under `#[cfg(test)]` and the models are left
//! out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

/// The sources of the crate.
pub(crate) struct Sources {
    /// The modules, by path, such as `driver::shard`.
    modules: BTreeMap<String, Module>,
}

struct Module {
    /// The path from the crate's root, such as `driver/shard/mod.rs`.
    file: String,
    uses: Vec<Use>,
    /// The code without comments, tests and models.
    code: String,
}

/// One name that a `use` brings in.
struct Use {
    /// The path from the crate's root, without the name.
    path: Vec<String>,
    name: String,
    /// The name that it has in this file.
    alias: String,
    is_reexport: bool,
}

/// An import: the importing file, the file that it imports from, and the name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) name: String,
}

impl Sources {
    pub(crate) fn read(root: &Path) -> Sources {
        let mut paths = Vec::new();
        collect(root, &mut paths);
        let texts = paths.iter().map(|path| {
            let inside = path.strip_prefix(root).unwrap().to_str().unwrap();
            // The root of a program without a library.
            let is_root = inside == "main.rs" && !root.join("lib.rs").exists();
            let name = if is_root { "lib.rs" } else { inside };
            (name.to_owned(), fs::read_to_string(path).unwrap())
        });
        Sources::of(texts)
    }

    /// The sources of these files and texts.
    pub(crate) fn of(texts: impl IntoIterator<Item = (String, String)>) -> Sources {
        let mut modules = BTreeMap::new();
        for (file, text) in texts {
            let module = module_of(&file);
            let code = code_of(&text);
            let uses = uses_of(&code, &module);
            modules.insert(module.join("::"), Module { file, uses, code });
        }
        assert!(!modules.is_empty(), "no sources");
        Sources { modules }
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
                // A re-export leads to a file of the same room, and the index does not use the name.
                let at = module_of(&module.file);
                let stays_here = name.path[1..].starts_with(&at);
                let is_sign = name.is_reexport && is_index && (stays_here || at.is_empty());
                let leads_on = is_sign && !uses_word(&module.code, &name.alias);
                if !leads_on && self.is_ours(&name.path) {
                    let target = self.home_of(&name.path[1..], &name.name, 0);
                    self.add(module, target, &name.name, &mut imports);
                }
            }
            let at = module_of(&module.file);
            for (path, name) in
                paths_in(&module.code, &at, |first| self.module_called(module, first))
            {
                let target = self.home_of(&path, &name, 0);
                self.add(module, target, &name, &mut imports);
            }
        }
        imports
    }

    /// The module that a file calls by this name: a file of its own, or one that it has imported.
    fn module_called(&self, module: &Module, name: &str) -> Option<Vec<String>> {
        let own = [&module_of(&module.file)[..], &[name.to_owned()]].concat();
        let import = module.uses.iter().find(|it| it.alias == name);
        let imported = import.map(|it| [&it.path[1..], slice::from_ref(&it.name)].concat());
        let candidates = [Some(own), imported].into_iter().flatten();
        candidates
            .into_iter()
            .find(|it| self.modules.contains_key(&it.join("::")))
    }

    /// The names that a room imports from other crates, by path, each with the file.
    pub(crate) fn foreign(&self, room: &str) -> Vec<(&str, String)> {
        let modules = self.modules.values().filter(|it| it.file.starts_with(room));
        let uses = modules.flat_map(|module| module.uses.iter().map(move |name| (module, name)));
        let foreign = uses.filter(|(_, name)| !self.is_ours(&name.path));
        foreign
            .map(|(module, name)| {
                let own = module_of(&module.file).len();
                let path = [&name.path[1 + own..], slice::from_ref(&name.name)].concat();
                (&*module.file, path.join("::"))
            })
            .collect()
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
            // A name of another crate.
            Some(_) => None,
            None => Some(module),
        }
    }

    /// Whether an absolute path leads into this crate. `tokio::time` looks like a path within the module that names it.
    fn is_ours(&self, path: &[String]) -> bool {
        let path = &path[1..];
        (0..=path.len()).rev().any(|length| {
            let is_module = self.modules.contains_key(&path[..length].join("::"));
            // The path is a module, or it is a module except for a type.
            is_module
                && path[length..]
                    .iter()
                    .all(|it| it.starts_with(char::is_uppercase))
        })
    }
}

/// Groups of more than one file in which each file imports each other one, directly or indirectly.
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

/// The module path of a file: empty for the root.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|it| it == "mod" || it == "lib") {
        parts.pop();
    }
    parts
}

/// The lines that are not comments. Code for tests or models alone is left out.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" || line == "#[cfg(waterwheel_loom)]" {
            // Skip the item that follows: to its semicolon, or to its closing brace.
            let mut depth = 0;
            for line in lines.by_ref() {
                depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
                if depth == 0 && (line.ends_with(';') || line.ends_with('}')) {
                    break;
                }
            }
        } else if !line.starts_with("//") {
            let line = line.split(" // ").next().unwrap_or(line);
            assert!(
                !line.contains("crate as "),
                "`crate` has one name, so that this test can follow it: {line}"
            );
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

/// Returns `crate::…` for a path that begins with `crate`, `self`, `super` or a module of this one; others are unchanged.
fn absolute(path: &[String], module: &[String]) -> Vec<String> {
    let mut at = module.to_vec();
    let mut rest = path;
    match path.first().map(String::as_str) {
        Some("crate") => return path.to_vec(),
        Some("self" | "super") => {
            if rest[0] == "self" {
                rest = &rest[1..];
            }
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

/// The lines of code that are neither part of a `use` nor declare a file.
fn body(code: &str) -> impl Iterator<Item = &str> {
    let mut is_in_use = false;
    code.lines().filter(move |line| {
        let begins =
            line.starts_with("use ") || (line.starts_with("pub") && line.contains(") use "));
        is_in_use |= begins || line.starts_with("pub use ");
        let is_index = is_in_use || line.starts_with("mod ") || line.starts_with("pub mod ");
        is_in_use &= !line.contains(';');
        !is_index
    })
}

/// Whether the code itself contains this word. A feature may have the name of a module.
fn uses_word(code: &str, word: &str) -> bool {
    body(code)
        .filter(|line| !line.starts_with("#[cfg("))
        .flat_map(|line| line.split(|it: char| !it.is_alphanumeric() && it != '_'))
        .any(|it| it == word)
}

/// The paths in a module's code outside of `use`: those that begin with `crate`, `super` or a module that the file can name.
fn paths_in(
    code: &str,
    module: &[String],
    called: impl Fn(&str) -> Option<Vec<String>>,
) -> Vec<(Vec<String>, String)> {
    let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
    let mut paths = Vec::new();
    for line in body(code) {
        let line = line.replace("pub(in crate::driver)", "pub");
        for word in line.split(|it| !is_part(it)) {
            let Some((first, _)) = word.split_once("::") else {
                continue;
            };
            let mut parts: Vec<String> = word.split("::").map(str::to_owned).collect();
            parts.retain(|it| !it.is_empty());
            let (Some(name), false) = (parts.pop(), parts.is_empty()) else {
                continue;
            };
            if first == "crate" || first == "super" {
                paths.push((absolute(&parts, module)[1..].to_vec(), name));
            } else if let Some(base) = called(first) {
                paths.push(([&base[..], &parts[1..]].concat(), name));
            }
        }
    }
    paths
}
