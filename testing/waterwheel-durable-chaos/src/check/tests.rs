//! Each rule passes a log, and fails it when one line is doctored.

use serde_json::{Value, json};

use super::Checker;
use crate::protocol::{Line, WORKERS};

/// The rules that a log breaks, which begins in a first round and has its lines in short form; and the numbers of repeated and of in-flight deliveries.
///
/// | short form | meaning |
/// |---|---|
/// | `new plain 1 a 2` | a timer is inserted by request 1, as `a`, for 2 ms |
/// | `well plain a 1 1 3000 2000` | a whole delivery of that timer, at 3 000 us by the wall clock, due at 2 000 |
/// | `tick 4` | an occurrence of a calendar in the fourth second |
/// | `forget 2` | timers that are over are forgotten, which are two by then |
const CASES: &str = include_str!("cases.txt");

/// A dead letter, followed by another round.
const DEAD: &str = "new fails 1 a 2; dead fails a 1 1 3000 2000; stopped; dead-letter a 1; round 2";
/// The first attempt is settled by the answer to request 2.
const ATTEMPTS: &str = "new fails 1 a 2; failed fails a 1 1 3000 2000; insert 2 0 plain 2000 -; full 2; copies 1;
    failed fails a 1 2 40000 39000; begin 30 a 1 3 150000 149000 fails -; copied 1; end 0 a 3 failed 150100;
    well fails a 1 4 500000 499000; restore";
/// A timer that is certainly settled, since the thread of its end got an answer later, and a cancelled one.
const SETTLED: &str =
    "insert 1 0 plain 2000 key; created 1 a 2 plain; begin 10 a 1 1 3000 2000 plain key;
    end 0 a 1 well 3100; insert 2 0 plain 9000 -; created 2 b 9 plain; cancel 3 0 b; done 3";

fn expanded(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["new", handler, request, id, due] => vec![
            format!("insert {request} 0 {handler} {due}000 -"),
            format!("created {request} {id} {due} {handler}"),
        ],
        [
            how @ ("well" | "failed" | "dead" | "dropped"),
            handler,
            id,
            insert,
            attempt,
            wall,
            due,
        ] => {
            vec![
                format!("begin 10 {id} {insert} {attempt} {wall} {due} {handler} -"),
                format!("end 0 {id} {attempt} {how} {wall}"),
            ]
        }
        ["tick", second] => vec![format!(
            "occurred {second}000000 {second}000010 {second}000000"
        )],
        ["killed"] => vec!["over false".to_owned()],
        ["stopped"] => vec!["over true".to_owned()],
        ["restore"] => ["over false", "restored 1", "round 2"]
            .map(str::to_owned)
            .into(),
        _ => vec![text.trim().to_owned()],
    }
}

/// Parses a line of the log from its short form.
fn line(text: &str) -> Option<Line> {
    let mut words = text.split_whitespace();
    let name = words.next()?;
    let value = |word: &str| match (word, word.len()) {
        ("-", _) => Value::Null,
        (word, 1) if let Ok(id) = u64::from_str_radix(word, 16) => id.into(),
        ("true" | "false", _) => (word == "true").into(),
        _ => word.parse().map_or(word.into(), |it: i64| it.into()),
    };
    let fields: Vec<Value> = words.map(value).collect();
    let line = match (name, &fields[..]) {
        ("insert" | "cancel" | "reschedule" | "redrive", [request, thread, what @ ..]) => {
            json!({"asked": [request, thread, {name: what}]})
        }
        ("created" | "existing", [request, timer @ ..]) => {
            json!({"answered": [request, {name: timer}]})
        }
        (
            "full" | "shutting-down" | "unknown" | "done" | "already-fired" | "not-found",
            [request],
        ) => {
            json!({"answered": [request, name]})
        }
        (_, []) => json!(name),
        _ => json!({name: fields}),
    };
    serde_json::from_str(&line.to_string()).ok()
}

fn checked(log: &str) -> Checker {
    let mut checker = Checker::default();
    let log = log.replace("DEAD", DEAD).replace("ATTEMPTS", ATTEMPTS);
    let log = log.replace("settled", SETTLED);
    let lines = log.split(';').flat_map(expanded);
    for text in ["round 1".to_owned()].into_iter().chain(lines) {
        match (text.strip_prefix("forget "), line(&text)) {
            (Some(count), _) => {
                checker.forget(checker.line() + 1);
                assert_eq!(checker.forgotten().to_string(), count, "{log}");
            }
            (None, Some(line)) => {
                // A line reads back as it is written, unless it is cut off.
                let text = line.to_string();
                assert_eq!(text.parse::<Line>().unwrap(), line);
                let _ = text[..text.len() - 1].parse::<Line>().unwrap_err();
                checker.feed(line);
            }
            (None, None) => checker.unreadable(&text),
        }
    }
    checker.finish();
    checker
}

fn broken(log: &str) -> String {
    let checker = checked(log);
    let mut rules: Vec<_> = checker.broken().iter().map(|(rule, _)| *rule).collect();
    rules.dedup();
    let rules: Vec<_> = rules.iter().map(|rule| format!("{rule:?}")).collect();
    rules.join("+")
}

#[test]
fn each_log_keeps_or_breaks_its_rules() {
    let (mut case, mut wrong, mut count) = ("", Vec::new(), 0);
    for row in CASES.lines().filter(|row| !row.is_empty()) {
        if let Some(name) = row.strip_prefix("# ") {
            case = name;
            continue;
        }
        let (expected, log) = row.split_once(": ").unwrap();
        let broken = broken(log);
        count += 1;
        if broken != expected.replace("ok", "") {
            wrong.push(format!("{case}: {broken:?} in {row}"));
        }
    }
    assert!(count > 100 && wrong.is_empty(), "{count} {wrong:#?}");
}

#[test]
fn what_was_in_flight_at_a_kill_is_counted() {
    let log =
        "new plain 1 a 2; well plain a 1 1 3000 2000; killed; round 2; well plain a 1 1 3000 2000";
    let checker = checked(log);
    let summary = checker.summary();
    assert_eq!((summary.in_flight, summary.duplicates), (1, 1));
}

#[test]
fn a_clock_that_is_set_back_excuses_one_delivery_of_each_thread() {
    for (count, expected) in [(WORKERS, ""), (WORKERS + 1, "Early")] {
        let new = (1..=count).map(|id| format!("new plain {id} {id} 5;"));
        let comes = (1..=count).map(|id| format!("well plain {id} {id} 1 2000 5000;"));
        let (new, comes) = (new.collect::<String>(), comes.collect::<String>());
        let log = format!("{new} clock-moves 5 6000; clock-moved 6; {comes} stopped");
        assert_eq!(broken(&log), expected);
    }
}
