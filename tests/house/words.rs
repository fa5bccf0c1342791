//! One word a thing: the table in CONTRIBUTING.md, held against the sources and the pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The terms of the table, and the words that are not used.
struct Words {
    terms: Vec<String>,
    retired: Vec<String>,
    /// Retired words, each with its term.
    instead: Vec<(String, String)>,
}

#[test]
fn each_term_of_the_table_occurs_in_the_sources() {
    let sources = plain(&read_all(&["src"]));
    let words = Words::read();
    assert!(words.terms.len() > 30, "{:?}", words.terms);
    for term in words.terms {
        assert!(
            sources.contains(&format!(" {term}")),
            "no file in `src` says {term}"
        );
    }
}

/// A name of tokio's, which is not ours to choose.
const TOKIOS: &str = "worker_park_count";

#[test]
fn no_retired_word_is_used() {
    let words = Words::read();
    assert!(words.retired.len() > 30, "{:?}", words.retired);
    let places = [
        "src",
        "tests",
        "examples",
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "BENCHMARKS.md",
        "COMPARISON.md",
        "docs/switching.md",
        "benches/README.md",
        "crates",
        "durable",
        "tools/meter",
        "tools/peers",
        "tools/suite/README.md",
    ];
    let mut found = BTreeSet::new();
    for file in places.iter().flat_map(|place| files(&root().join(place))) {
        for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
            if is_in_the_table(&file, line) {
                continue;
            }
            let line = plain(&line.replace(TOKIOS, ""));
            for word in words.retired.iter().filter(|it| says(&line, it)) {
                let file = file.strip_prefix(root()).unwrap().display();
                let (number, instead) = (number + 1, words.instead_of(word));
                found.insert(format!("{file}:{number}: {word}{instead}"));
            }
        }
    }
    let list: Vec<_> = found.into_iter().collect();
    assert!(
        list.is_empty(),
        "retired words, see CONTRIBUTING.md, \"Words\":\n{}",
        list.join("\n")
    );
}

#[test]
fn a_retired_word_is_found_within_a_name() {
    for line in [
        "let has_bell = 1;",
        "struct FirstBell;",
        "A bell, or two.",
        "BELL",
    ] {
        assert!(says(&plain(line), "bell"), "{line}");
    }
    assert!(!says(&plain("belly"), "bell"));
    assert!(says(&plain("fn all_the_same()"), "all the same"));
}

#[test]
fn a_tests_name_has_at_most_60_characters() {
    let mut count = 0;
    for file in ["src", "tests", "tools/meter", "tools/peers"]
        .iter()
        .flat_map(|it| files(&root().join(it)))
    {
        let text = fs::read_to_string(&file).unwrap();
        let mut lines = text.lines().map(str::trim).peekable();
        while let Some(line) = lines.next() {
            if !line.ends_with("#[test]") && !line.starts_with("#[tokio::test") {
                continue;
            }
            let function = lines.find(|it| it.contains("fn ")).unwrap();
            let name = function.split("fn ").nth(1).unwrap();
            let name = name.split('(').next().unwrap();
            count += 1;
            assert!(name.len() <= 60, "{}: {name}", file.display());
        }
    }
    assert!(count > 300, "{count} tests");
}

impl Words {
    fn read() -> Words {
        let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
        let section = page
            .split("\n## ")
            .find(|it| it.starts_with("Words"))
            .unwrap();
        let mut words = Words {
            terms: Vec::new(),
            retired: Vec::new(),
            instead: Vec::new(),
        };
        let rows = section.lines().filter(|line| line.starts_with("| "));
        for row in rows.skip(1) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            words
                .terms
                .extend(cells[1].split(", ").map(|it| plain(it).trim().to_owned()));
            let retired = cells[3].split(", ").filter(|it| !it.is_empty());
            let retired: Vec<String> = retired.map(str::to_owned).collect();
            let term = |word: &String| (word.clone(), cells[1].to_owned());
            words.instead.extend(retired.iter().map(term));
            words.retired.extend(retired);
        }
        let quoted = section.lines().filter_map(|line| line.strip_prefix("> "));
        let quoted = quoted.flat_map(|line| line.split('·')).map(str::trim);
        words
            .retired
            .extend(quoted.filter(|it| !it.is_empty()).map(str::to_owned));
        words
    }

    /// The term to use, if the table has one.
    fn instead_of(&self, word: &str) -> String {
        let known = self.instead.iter().find(|(retired, _)| retired == word);
        known.map_or_else(String::new, |(_, term)| format!(": say \"{term}\""))
    }
}

/// The lines of CONTRIBUTING.md that list the words.
fn is_in_the_table(file: &Path, line: &str) -> bool {
    file.ends_with("CONTRIBUTING.md") && (line.starts_with("| ") || line.starts_with("> "))
}

/// Whether a plain text says a word, or a phrase, by itself.
fn says(plain: &str, word: &str) -> bool {
    format!(" {plain} ").contains(&format!(" {word} "))
}

/// Lower-case words with one space between, and around. `FirstTurn` and `first_turn` are two words each.
fn plain(text: &str) -> String {
    let mut plain = String::from(" ");
    let mut before = ' ';
    for letter in text.chars() {
        let begins = letter.is_uppercase() && before.is_lowercase();
        if (begins || !letter.is_alphabetic()) && !plain.ends_with(' ') {
            plain.push(' ');
        }
        if letter.is_alphabetic() {
            plain.extend(letter.to_lowercase());
        }
        before = letter;
    }
    plain.push(' ');
    plain
}

fn read_all(places: &[&str]) -> String {
    let files = places.iter().flat_map(|place| files(&root().join(place)));
    files
        .map(|file| fs::read_to_string(file).unwrap())
        .collect()
}

/// The sources and pages in a folder, or the file itself. This file plants retired words, so it is left out.
fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_dir() {
        let entries = fs::read_dir(place).unwrap().map(|it| it.unwrap().path());
        return entries.flat_map(|it| files(&it)).collect();
    }
    let is_text = place.extension().is_some_and(|it| it == "rs" || it == "md");
    let is_this = place.ends_with("house/words.rs");
    Vec::from_iter((is_text && !is_this).then(|| place.to_owned()))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
