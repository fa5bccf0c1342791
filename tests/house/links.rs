//! No link of a page leads nowhere, in the repository or in the documentation.

use std::fs;
use std::path::{Path, PathBuf};

/// The pages that are a part of the documentation as well, and the source that includes each. There the source says where a link
/// to a file leads.
const INCLUDED: [(&str, &str); 5] = [
    ("README.md", "src/lib.rs"),
    ("ARCHITECTURE.md", "src/_documentation.rs"),
    ("CHANGELOG.md", "src/_documentation.rs"),
    ("COMPARISON.md", "src/_documentation.rs"),
    ("docs/switching.md", "src/_documentation.rs"),
];

/// Where a link leads, and its label if its target stands in a line of its own.
struct Link {
    target: String,
    label: Option<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The lines of a page that are neither code nor a comment.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn links(page: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for line in prose(page) {
        if let Some((label, target)) = line.strip_prefix('[').and_then(|l| l.split_once("]: ")) {
            found.push(Link {
                target: target.to_owned(),
                label: Some(label.to_owned()),
            });
            continue;
        }
        let inline = line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'));
        let images = line
            .split("src=\"")
            .skip(1)
            .filter_map(|rest| rest.split_once('"'));
        found.extend(inline.chain(images).map(|(target, _)| Link {
            target: target.to_owned(),
            label: None,
        }));
    }
    found
}

/// The name by which a page's heading is found: lower case, without signs, words joined.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn has_anchor(page: &str, wanted: &str) -> bool {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .any(|found| found == wanted)
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    const LEFT_OUT: [&str; 3] = ["target", ".git", "corpus"];
    let entries = fs::read_dir(folder).expect("a folder of this repository");
    for path in entries.map(|entry| entry.expect("an entry of it").path()) {
        let is_left_out = path
            .file_name()
            .is_some_and(|name| LEFT_OUT.iter().any(|out| name == *out));
        if path.is_dir() && !is_left_out {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

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
    let mut found = Vec::new();
    pages(root(), &mut found);
    let mut checked = 0;
    let mut dead = Vec::new();
    for page in &found {
        let text = fs::read_to_string(page).expect("a page of this repository");
        for link in links(&text)
            .iter()
            .filter(|link| !link.target.contains("://"))
        {
            checked += 1;
            if !leads_somewhere(page, &text, &link.target) {
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
fn links_to_files_lead_elsewhere_in_the_documentation() {
    for (page, source) in INCLUDED {
        let text = fs::read_to_string(root().join(page)).expect(page);
        let source_text = fs::read_to_string(root().join(source)).expect(source);
        for Link { target, label } in links(&text) {
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            let label = label.unwrap_or_else(|| {
                panic!(
                    "{page}: put the link to {target} on a line of its own, as `[label]: {target}`"
                )
            });
            let is_defined = source_text.lines().any(|line| {
                line.trim_start_matches(['/', '!', ' '])
                    .starts_with(&format!("[{label}]: "))
            });
            assert!(
                is_defined,
                "{source} does not say where [{label}] of {page} leads"
            );
        }
    }
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
