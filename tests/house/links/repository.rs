//! The pages as they are read next to the code: a link leads to a file, and to a heading in it.

use std::fs;
use std::path::Path;

use super::markdown::{has_anchor, links, undefined_labels};
use super::{files, read, root};

fn leads_somewhere(page: &Path, text: &str, target: &str) -> bool {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let there = if file.is_empty() {
        text.to_owned()
    } else {
        let path = page.parent().expect("a page is in a folder").join(file);
        match fs::read_to_string(&path) {
            Ok(there) => there,
            Err(_) => return path.is_dir() && anchor.is_empty(),
        }
    };
    anchor.is_empty() || has_anchor(&there, anchor)
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut checked = 0;
    let mut dead = Vec::new();
    for page in files(root(), "md") {
        let text = read(&page);
        for link in links(&text)
            .iter()
            .filter(|link| !link.target.contains("://"))
        {
            checked += 1;
            if !leads_somewhere(&page, &text, link.target) {
                dead.push(format!("{}: {}", page.display(), link.target));
            }
        }
    }
    assert!(
        dead.is_empty(),
        "links that lead nowhere:\n{}",
        dead.join("\n")
    );
    assert!(checked > 40, "{checked} links, or this test shows nothing");
}

#[test]
fn every_label_of_a_page_is_defined_in_it() {
    let mut undefined = Vec::new();
    for page in files(root(), "md") {
        for label in undefined_labels(&read(&page)) {
            undefined.push(format!("{}: [{label}]", page.display()));
        }
    }
    assert!(
        undefined.is_empty(),
        "labels without a definition:\n{}",
        undefined.join("\n")
    );
}

#[test]
fn dead_links_and_anchors_are_seen() {
    let page = root().join("README.md");
    let text = "# One thing: `two`\n\n```text\n# no heading\n[x](no/file)\n```\n[a](#one-thing-two) [b](Cargo.toml)\n";
    let targets: Vec<_> = links(text).into_iter().map(|link| link.target).collect();
    assert_eq!(targets, ["#one-thing-two", "Cargo.toml"]);
    assert!(
        targets
            .iter()
            .all(|target| leads_somewhere(&page, text, target))
    );
    for dead in ["#no-heading", "no/file", "ARCHITECTURE.md#no-such-part"] {
        assert!(!leads_somewhere(&page, text, dead), "{dead}");
    }
}
