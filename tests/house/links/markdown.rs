//! The links of a Markdown page, and the targets in it.

/// The target of a link, and its label if the target is defined on its own line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link<'a> {
    pub(super) target: &'a str,
    pub(super) label: Option<&'a str>,
}

/// The lines of a page that are not code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The links of a page. If a label is defined more than once, the first definition counts.
pub(super) fn links(page: &str) -> Vec<Link<'_>> {
    let mut found: Vec<Link<'_>> = Vec::new();
    for line in prose(page) {
        if let Some((label, target)) = line.strip_prefix('[').and_then(|l| l.split_once("]: ")) {
            if !found.iter().any(|link| link.label == Some(label)) {
                let label = Some(label);
                found.push(Link { target, label });
            }
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
            target,
            label: None,
        }));
    }
    found
}

/// The labels of `[text][label]` that the page does not define.
pub(super) fn undefined_labels(page: &str) -> Vec<String> {
    let links = links(page);
    let defined: Vec<&str> = links.iter().filter_map(|link| link.label).collect();
    let lines: Vec<&str> = prose(page).collect();
    let mut undefined = Vec::new();
    for paragraph in lines.split(|line| line.trim().is_empty()) {
        // The text of a link may begin on one line and end on the next. Every other piece is code.
        let paragraph = paragraph.join(" ");
        let text: String = paragraph.split('`').step_by(2).collect();
        let labels = text
            .split("][")
            .skip(1)
            .filter_map(|rest| rest.split_once(']'))
            .map(|(label, _)| label);
        undefined.extend(
            labels
                .filter(|label| !defined.contains(label))
                .map(str::to_owned),
        );
    }
    undefined
}

pub(super) fn has_anchor(page: &str, wanted: &str) -> bool {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .any(|found| found == wanted)
}

/// The anchor of a heading: lower case, without punctuation, words joined.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn the_first_definition_of_a_label_counts() {
    let page = "[a]: one\n[a]: two\nSee [this](three).";
    let link = |target, label| Link { target, label };
    assert_eq!(links(page), [link("one", Some("a")), link("three", None)]);
}

#[test]
fn a_label_without_a_definition_is_seen() {
    let page = "[one][a], [two\nlines][b] and [`code`][c]; `x[0][1]` is code.\n\n```text\n[x][d]\n```\n\n[a]: file\n";
    assert_eq!(undefined_labels(page), ["b", "c"]);
    assert_eq!(undefined_labels("[one][a]\n\n[a]: file"), [""; 0]);
}
