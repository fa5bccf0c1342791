//! The documentation, and the pages that it includes: a link in them leads to a place in the documentation, not to a file.
//! rustdoc checks the path of each link, but neither its anchor nor a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::markdown::{has_anchor, links};
use super::{files, read, root};

/// The text of one comment, or of an item's consecutive comments and attributes, in the documentation.
struct Block {
    source: PathBuf,
    /// The path of the module that it describes.
    module: Option<String>,
    /// The pages that it includes.
    pages: Vec<PathBuf>,
    text: String,
}

/// The blocks of a source.
fn blocks(source: &Path, code: &str) -> Vec<Block> {
    let start = |module| Block {
        source: source.to_owned(),
        module,
        pages: Vec::new(),
        text: String::new(),
    };
    let mut inner = start(Some(module_of(source)));
    let mut outer = start(None);
    let mut found = Vec::new();
    for line in code.lines().map(str::trim_start) {
        if let Some(said) = line.strip_prefix("//!") {
            inner.say(said.strip_prefix(' ').unwrap_or(said));
        } else if let Some(page) = included(line, "#![doc") {
            inner.include(page);
        } else if let Some(said) = line.strip_prefix("///") {
            outer.say(said.strip_prefix(' ').unwrap_or(said));
        } else if let Some(page) = included(line, "#[doc") {
            outer.include(page);
        } else if !line.starts_with("#[") && !outer.text.is_empty() {
            let name = line.strip_prefix("pub mod ").unwrap_or_default();
            let name = name.trim_end_matches([' ', '{', '}', ';']);
            let module = (!name.is_empty()).then(|| format!("{}::{name}", module_of(source)));
            outer.module = module;
            found.push(std::mem::replace(&mut outer, start(None)));
        }
    }
    found.push(inner);
    found
}

impl Block {
    fn say(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn include(&mut self, page: &str) {
        let page = self.source.parent().expect("it is in a folder").join(page);
        self.say(&read(&page));
        self.pages.push(page);
    }

    /// The links that lead nowhere in the documentation, each with the reason.
    fn dead_links(&self, modules: &BTreeMap<&str, &str>) -> Vec<String> {
        let mut dead = Vec::new();
        for link in links(&self.text) {
            let (path, anchor) = link.target.split_once('#').unwrap_or((link.target, ""));
            let reason = if link.target.contains("://") {
                continue;
            } else if path.contains(['/', '.']) {
                "leads to a file: define it before the page, as `[label]: path::of::an::item`"
            } else if anchor.is_empty() {
                continue;
            } else if path.is_empty() {
                if has_anchor(&self.text, anchor) {
                    continue;
                }
                "has no such heading"
            } else {
                match modules.get(path) {
                    Some(text) if has_anchor(text, anchor) => continue,
                    Some(_) => "has no such heading",
                    None => "is no module, and its headings are not known",
                }
            };
            dead.push(format!("{}: {reason}", link.target));
        }
        dead
    }
}

/// The page that a line includes by an attribute that begins like this.
fn included<'a>(line: &'a str, attribute: &str) -> Option<&'a str> {
    let (_, rest) = line
        .strip_prefix(attribute)?
        .split_once("include_str!(\"")?;
    let (page, _) = rest.split_once('"')?;
    page.ends_with(".md").then_some(page)
}

/// The path of the module whose source this is.
fn module_of(source: &Path) -> String {
    let source = source.strip_prefix(root().join("src")).unwrap_or(source);
    let source = source.with_extension("");
    let names = source.iter().map(|name| name.to_string_lossy());
    let names = names.filter(|name| name != "lib" && name != "mod");
    ["crate".into()]
        .into_iter()
        .chain(names)
        .collect::<Vec<_>>()
        .join("::")
}

fn documentation() -> Vec<Block> {
    let sources = files(&root().join("src"), "rs");
    sources
        .iter()
        .flat_map(|source| blocks(source, &read(source)))
        .collect()
}

fn modules(blocks: &[Block]) -> BTreeMap<&str, &str> {
    let described = blocks
        .iter()
        .filter_map(|block| Some((block.module.as_deref()?, &*block.text)));
    described.collect()
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let blocks = documentation();
    let modules = modules(&blocks);
    let mut dead = Vec::new();
    for block in &blocks {
        for link in block.dead_links(&modules) {
            let pages = &block.pages;
            dead.push(format!("{} {pages:?}: {link}", block.source.display()));
        }
    }
    assert!(
        dead.is_empty(),
        "links that lead nowhere in the documentation:\n{}",
        dead.join("\n")
    );
}

// Otherwise the test above would prove nothing about the pages.
#[test]
fn each_page_that_a_source_includes_is_found() {
    let named = files(&root().join("src"), "rs")
        .iter()
        .map(|source| read(source).matches(".md\")").count())
        .sum::<usize>();
    let blocks = documentation();
    let pages: Vec<_> = blocks.iter().flat_map(|block| &block.pages).collect();
    assert_eq!(pages.len(), named, "{pages:?}");
    for page in ["README.md", "switching.md", "differences.md"] {
        assert!(pages.iter().any(|it| it.ends_with(page)), "{page}");
    }
}

#[test]
fn dead_links_of_a_source_are_seen() {
    let code = "\
//! # The head
//! [a]: crate::inside#a-part
//! [b]: crate::inside#no-part
//! [a]: of/a/file
//! [c](#the-head) [d](#no-head)

/// ## A part
/// See [e](Cargo.toml) and [f](crate::outside#part).
#[rustfmt::skip]
pub mod inside {}
";
    let blocks = blocks(&root().join("src/lib.rs"), code);
    let modules = modules(&blocks);
    let names: Vec<_> = modules.keys().copied().collect();
    assert_eq!(names, ["crate", "crate::inside"]);
    let dead: Vec<_> = blocks
        .iter()
        .flat_map(|block| block.dead_links(&modules))
        .map(|link| link.split_once(": ").expect("a reason").0.to_owned())
        .collect();
    let expected = [
        "Cargo.toml",
        "crate::outside#part",
        "crate::inside#no-part",
        "#no-head",
    ];
    assert_eq!(dead, expected);
}
