//! Checks that the alert rules and the dashboard in `crates/waterwheel-durable/deploy` name only published metrics with their labels, and all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use waterwheel_durable::store::MemoryStore;
use waterwheel_durable::{Drain, Durable};

use super::published;

const ALERTS: &str = include_str!("../../deploy/alerts.yaml");
const DASHBOARD: &str = include_str!("../../deploy/dashboard.json");
const GUIDE: &str = include_str!("../../docs/operators.md");

/// Prometheus adds these labels to each series that it scrapes.
const OF_TARGETS: [&str; 2] = ["instance", "job"];

/// The words after which labels follow in parentheses.
const GROUPINGS: [&str; 6] = [
    "by",
    "group_left",
    "group_right",
    "ignoring",
    "on",
    "without",
];

const OPERATORS: [&str; 5] = ["and", "bool", "offset", "or", "unless"];

/// The labels of each metric that a service passes to a recorder. The namespace `default` always exists.
fn of_the_code() -> BTreeMap<String, BTreeSet<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let metrics = runtime.block_on(async {
        let builder = Durable::builder();
        let timers = builder.store(MemoryStore::new()).open().await.unwrap();
        let metrics = timers.metrics();
        let drain = Drain::within(Duration::from_secs(60));
        timers.shutdown(drain).await.unwrap();
        metrics
    });
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, name, labels) in published(&metrics).into_keys() {
        let labels = labels.into_iter().map(|(label, _)| label);
        all.entry(name).or_default().extend(labels);
    }
    all
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Sign(char),
}

fn is_in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == ':'
}

/// The length of the word at the beginning of a text.
fn word(text: &str) -> usize {
    text.find(|c: char| !is_in_word(c)).unwrap_or(text.len())
}

/// The words and symbols of an expression, without strings, ranges, numbers and Grafana variables, which name no metric or label.
fn tokens(expression: &str) -> Vec<Token<'_>> {
    let mut all = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let up_to = |end: char| {
            let found = rest[1..].find(end);
            2 + found.unwrap_or_else(|| panic!("{end} is missing: {expression}"))
        };
        let length = match first {
            '"' => up_to('"'),
            '[' => up_to(']'),
            '$' => 1 + word(&rest[1..]),
            '0'..='9' => {
                let is_in_number = |c: char| is_in_word(c) || c == '.';
                rest.find(|c: char| !is_in_number(c)).unwrap_or(rest.len())
            }
            _ if is_in_word(first) => {
                let length = word(rest);
                all.push(Token::Word(&rest[..length]));
                length
            }
            _ => {
                if !first.is_whitespace() {
                    all.push(Token::Sign(first));
                }
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    all
}

/// Reads the words of a list, if one begins at this token, and advances past it.
fn list(tokens: &[Token<'_>], at: &mut usize, begin: char, end: char) -> Vec<String> {
    let mut words = Vec::new();
    if tokens.get(*at) == Some(&Token::Sign(begin)) {
        while tokens[*at] != Token::Sign(end) {
            if let Token::Word(word) = tokens[*at] {
                words.push(word.to_owned());
            }
            *at += 1;
        }
        *at += 1;
    }
    words
}

/// The names that occur in expressions and legends.
#[derive(Debug, Default)]
struct Named {
    /// The metrics, each with the labels in its braces.
    metrics: Vec<(String, Vec<String>)>,
    /// The labels that are grouped by, matched on, or shown.
    labels: Vec<String>,
}

impl Named {
    fn add_expression(&mut self, expression: &str) {
        let tokens = tokens(expression);
        let mut at = 0;
        while at < tokens.len() {
            let token = tokens[at];
            at += 1;
            // A function, or an aggregation whose labels precede its operand.
            let is_call = match tokens.get(at) {
                Some(Token::Sign(sign)) => *sign == '(',
                Some(Token::Word(next)) => *next == "by" || *next == "without",
                None => false,
            };
            match token {
                Token::Word(word) if GROUPINGS.contains(&word) => {
                    self.labels.extend(list(&tokens, &mut at, '(', ')'));
                }
                Token::Word(word) if is_call || OPERATORS.contains(&word) => {}
                Token::Word(metric) => {
                    let labels = list(&tokens, &mut at, '{', '}');
                    self.metrics.push((metric.to_owned(), labels));
                }
                Token::Sign('{') => panic!("a selector without a metric: {expression}"),
                Token::Sign(_) => {}
            }
        }
    }

    /// Adds each label that Grafana shows as `{{label}}`, or Prometheus as `{{ $labels.label }}`.
    fn add_text(&mut self, text: &str) {
        for part in text.split("{{").skip(1) {
            let (shown, _) = part.split_once("}}").unwrap();
            let shown = shown.trim();
            if !shown.starts_with("$value") {
                let label = shown.strip_prefix("$labels.").unwrap_or(shown);
                self.labels.push(label.to_owned());
            }
        }
    }

    /// Adds the query of a variable of a dashboard: `label_values(metric, label)`.
    fn add_variable(&mut self, query: &str) {
        let inner = query.strip_prefix("label_values(").unwrap();
        let inner = inner.strip_suffix(')').unwrap();
        let (expression, label) = inner.rsplit_once(", ").unwrap();
        self.add_expression(expression);
        self.labels.push(label.to_owned());
    }
}

/// The names in the alert rules. Each rule has its expression on one line.
fn of_the_alerts() -> Named {
    let mut named = Named::default();
    let (mut rules, mut expressions) = (0, 0);
    let lines = ALERTS.lines().map(str::trim);
    for line in lines.filter(|line| !line.starts_with('#')) {
        rules += usize::from(line.starts_with("- alert: "));
        if let Some(expression) = line.strip_prefix("expr:") {
            let before = named.metrics.len();
            named.add_expression(expression);
            assert!(named.metrics.len() > before, "no metric: {line}");
            expressions += 1;
        } else {
            named.add_text(line);
        }
        if let Some(runbook) = line.strip_prefix("runbook: ") {
            let anchor = runbook.strip_prefix("crates/waterwheel-durable/docs/operators.md#");
            assert!(anchor.is_some_and(is_in_guide), "{line}");
        }
    }
    assert!(rules > 0 && rules == expressions, "{rules}, {expressions}");
    named
}

/// Whether the guide has a heading with this anchor.
fn is_in_guide(anchor: &str) -> bool {
    let headings = GUIDE.lines().filter(|line| line.starts_with("##"));
    let mut anchors = headings.map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let is_kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let kept: String = heading.chars().filter(is_kept).collect();
        kept.replace(' ', "-")
    });
    anchors.any(|it| it == anchor)
}

/// The names in the panels and variables of the dashboard.
fn of_the_dashboard() -> Named {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut named = Named::default();
    for panel in dashboard["panels"].as_array().unwrap() {
        if panel["type"] == "row" {
            // Panels in a collapsed row would be missed.
            assert!(panel["panels"].as_array().unwrap().is_empty(), "{panel}");
            continue;
        }
        for target in panel["targets"].as_array().unwrap() {
            named.add_expression(target["expr"].as_str().unwrap());
            named.add_text(target["legendFormat"].as_str().unwrap());
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if variable["type"] == "query" {
            named.add_variable(variable["definition"].as_str().unwrap());
            assert_eq!(variable["query"]["query"], variable["definition"]);
        }
    }
    named
}

#[test]
fn rules_and_dashboard_name_what_is_published() {
    let code = of_the_code();
    let mut unused: BTreeSet<&str> = code.keys().map(String::as_str).collect();
    let files = [
        ("alerts.yaml", of_the_alerts()),
        ("dashboard.json", of_the_dashboard()),
    ];
    for (file, named) in &files {
        assert!(!named.metrics.is_empty() && !named.labels.is_empty());
        for (metric, labels) in &named.metrics {
            let Some(own) = code.get(metric) else {
                panic!("{file}: {metric} is not published");
            };
            for label in labels {
                let is_known = own.contains(label) || OF_TARGETS.contains(&label.as_str());
                assert!(is_known, "{file}: {metric} has no label {label}");
            }
            unused.remove(metric.as_str());
        }
        for label in &named.labels {
            let is_published = code.values().any(|own| own.contains(label));
            let is_known = is_published || OF_TARGETS.contains(&label.as_str());
            assert!(is_known, "{file}: no metric has a label {label}");
        }
    }
    assert!(unused.is_empty(), "in neither file: {unused:?}");
}

#[test]
fn the_names_in_an_expression_are_found() {
    let mut named = Named::default();
    named.add_expression(
        r#"histogram_quantile(0.99, sum by (space, le) (rate(a_bucket{job=~"$job", of!="b{"}[$__rate_interval]))) > 1e3 unless b == 1"#,
    );
    named.add_expression("x:y / on (job) group_left avg_over_time(x[1d] offset 1w) or c");
    named.add_text("{{space}}: {{ $labels.shown }} {{ $value | humanizeDuration }}");
    named.add_variable(r#"label_values(d{job="a"}, e)"#);
    let metrics: Vec<_> = named
        .metrics
        .iter()
        .map(|(name, labels)| format!("{name} {}", labels.join(" ")))
        .collect();
    assert_eq!(
        metrics,
        ["a_bucket job of", "b ", "x:y ", "x ", "c ", "d job"]
    );
    assert_eq!(named.labels, ["space", "le", "job", "space", "shown", "e"]);
}
