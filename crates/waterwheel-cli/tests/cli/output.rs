//! The exit codes, and how output is handled.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use waterwheel_durable_core::store::{Op, Row};

use crate::support::*;

#[test]
fn what_is_not_understood_has_the_exit_code_2() {
    let file = TimersFile::filled();
    for line in [
        "dance",
        "stats --json --json",
        "list --limit 0",
        "list --limit x",
        "list --limit 100001",
        "list --handler a --namespace b",
        "list --after 7",
        "list --after x@7",
        "dead --after 0",
        "show",
        "show x",
        "show 7@x@y",
        "show 0",
        "cancel",
        "cancel 7 x",
        "cancel 7 --handler a",
        "cancel 7@7@mail --namespace shop",
        "cancel --handler a --namespace b",
        "cancel --handler",
        "cancel --all",
        "redrive",
        "redrive 7 --all",
        "redrive --handler a --namespace b",
        "redrive 7@7@mail",
        "discard",
        "discard --all --namespace shop",
        "pause",
        "pause shop --wait -1",
        "pause shop --wait 1e9",
        "pause shop --wait nan",
        "cancel 7 --dry-run",
        "discard 7 --dry-run",
        "cancel --tag order-17",
        "cancel --handler a --tag order-17",
        "reschedule 7",
        "reschedule --in 5m",
        "reschedule 7 --in 5m --at 2027-01-15T08:00Z",
        "reschedule 7 --in -5m",
        "reschedule 7 --at tomorrow",
        "reschedule 7 --at 2027-01-15T08:00",
        "run-now",
        "run-now 7 --calendar a",
        "calendars --next -1",
        "policy show",
        "policy set shop",
        "policy set shop --rate 100",
        "policy set shop --rate 100/1s,20,7",
        "policy set shop --rate x/1s",
        "policy set shop --backoff 5s",
        "policy set shop --backoff none",
        "policy set shop --retry-delays 5s,,1h",
        "policy set shop --backoff 5s,1h --retry-delays 5s",
        "policy set shop --retention -1",
        "policy set shop --concurrency many",
        "backup",
        "stats more",
    ] {
        let said = file.cli(line);
        assert_eq!((said.code, &*said.out), (2, ""), "{line}: {said:?}");
        assert!(said.err.starts_with("error: "), "{line}: {said:?}");
        assert!(!said.err.contains("panicked"), "{said:?}");
    }
    assert_eq!(run(command()).code, 2);
    assert_eq!(file.cli("").code, 2);
    for line in ["--help", "--version", "stats --help", "help list"] {
        let said = file.cli(line);
        assert_eq!((said.code, &*said.err), (0, ""), "{line}");
        assert!(said.out.len() > 10);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    // More than fits into a pipe.
    let file = TimersFile::with(&inserts(&rows(3_000, "mail", 5_000)));
    for line in ["list --limit 100000", "list --limit 100000 --json"] {
        let said = unread(&file, line);
        assert_eq!((said.code, &*said.err), (0, ""), "{line}");
    }
}

/// Runs the command with an output whose reader has gone.
fn unread(file: &Path, line: &str) -> Said {
    let mut command = command();
    command.arg(file).args(words(line));
    let (reader, output) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(output).stderr(Stdio::piped());
    let ended = command.spawn().unwrap().wait_with_output().unwrap();
    Said {
        code: ended.status.code().unwrap_or(-1),
        out: String::new(),
        err: String::from_utf8(ended.stderr).unwrap(),
    }
}

#[test]
fn commands_that_an_output_cut_off_are_no_success() {
    // More than one commit contains.
    let mut steps = dead_mail(1_200);
    steps.extend((2_000..3_200).map(|it| insert(&row(it, "close", 60_000))));
    steps.push(set("namespace/shop", "{}"));
    let file = TimersFile::with(&steps);
    let said = unread(&file, "redrive --all").failure();
    assert!(said.contains("may or may not have been made"), "{said}");
    let stats = file.json("stats --json");
    assert!(stats["dead"].as_i64() > Some(0), "{stats}");
    let said = unread(&file, "cancel --handler close").failure();
    assert!(said.contains("may or may not have been made"), "{said}");
    let left = file.json("list --handler close --json");
    assert!(!left["timers"].as_array().unwrap().is_empty());
    // Everything is done, but cannot be reported.
    let said = unread(&file, "pause shop").failure();
    assert!(said.contains("may or may not have been made"), "{said}");
    // Dead letters that are only listed stay.
    assert_eq!(unread(&file, "dead").code, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_is_a_failure() {
    let file = TimersFile::filled();
    for line in ["stats", "list --json", "pause default"] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut command = command();
        command.arg(&*file).args(words(line)).stdout(full);
        let said = run(command).failure();
        assert!(
            said.contains("cannot write to the standard output"),
            "{said}"
        );
        let may_be_changed = said.contains("may or may not have been made");
        assert_eq!(may_be_changed, line == "pause default", "{said}");
    }
}

/// Names, payloads and errors that would affect a terminal, or make a line too wide.
fn hostile() -> Vec<Op> {
    let payloads: [Vec<u8>; 6] = [
        b"\x1b[2J\x1b]0;gone\x07 \r\n\x08".to_vec(),
        "\u{202e}\u{2066}turned".into(),
        vec![0xff; 5_000],
        "é".repeat(5_000).into_bytes(),
        vec![],
        b"one\ntwo".to_vec(),
    ];
    let handlers = [
        "mail".to_owned(),
        "h".repeat(255),
        "\x1b[31m/red".to_owned(),
        format!("{}/{}", "n".repeat(120), "ü".repeat(60)),
    ];
    let mut steps = Vec::new();
    for (number, payload) in payloads.iter().enumerate() {
        for (at, handler) in handlers.iter().enumerate() {
            let number = (number * 10 + at) as u64;
            let payload = payload.as_slice().into();
            let key = Some(format!("\x1b[1m\n{number}").into_bytes().into());
            let timer = Row {
                payload,
                key,
                ..row(number, handler, -40_000_000_000)
            };
            steps.push(insert(&timer));
            let timer = Row {
                id: row(500 + number, "", 0).id,
                key: None,
                ..timer
            };
            steps.extend(dead(&timer, &format!("\x1b[5m{}\n", "no ".repeat(100))));
        }
    }
    let long = format!(
        "{{\"retry_delays\":[{}]}}",
        vec!["{\"secs\":1,\"nanos\":0}"; 90].join(",")
    );
    steps.push(set("namespace/\x1b[7m\n", &long));
    steps.push(set(
        &format!("namespace/{}", "x".repeat(255)),
        "{\"rate\":\"\x1b[7m\"}",
    ));
    steps.push(set("calendar/\x1b[7m\n", "\x1b[7m"));
    steps
}

#[test]
fn each_table_fits_and_no_terminal_is_harmed() {
    let file = TimersFile::with(&hostile());
    let mut lines = 0;
    for line in ["stats", "list", "dead", "namespaces", "list --overdue"] {
        let text = file.well(line);
        for line in text.lines() {
            // The path of the file may be long.
            let is_path = line.ends_with("timers.db");
            assert!(is_path || line.chars().count() <= 100, "{line}");
            assert_eq!(line.trim_end(), line);
            lines += 1;
        }
        is_harmless(&text);
    }
    assert!(lines > 80, "{lines} lines");
    let all = file.json("list --json");
    let show = |it: &Value| file.well(format!("show {}", it["id"].as_str().unwrap()));
    for timer in all["timers"].as_array().unwrap() {
        is_harmless(&show(timer));
    }
    let dead_letters = file.json("dead --json");
    is_harmless(&show(&dead_letters["dead"][0]));
    is_harmless(&cli(&file.sibling("\x1b[2J\n.db"), "stats").failure());
    is_harmless(&file.failure("pause \x1b[7m"));
    is_harmless(&file.failure("cancel 7@7@\x1b[7m"));
}

#[track_caller]
fn is_harmless(text: &str) {
    let harms = |it: char| it != '\n' && (it.is_control() || matches!(it, '\u{202e}' | '\u{2066}'));
    assert!(!text.contains(harms), "{text:?}");
}

#[test]
fn a_payload_is_text_or_hexadecimal_as_a_whole_in_json() {
    let payloads = [
        b"plain".to_vec(),
        vec![0xff; 5_000],
        "é".repeat(5_000).into(),
    ];
    let rows = [0, 1, 2].map(|at| {
        let mut row = row(at as u64, "mail", at as i64);
        row.payload = payloads[at].as_slice().into();
        row.key = Some([0xfe, at as u8].as_slice().into());
        row
    });
    let file = TimersFile::with(&rows.map(|row| insert(&row)));
    let all = file.json("list --json");
    let payload = |at: usize| {
        let timer = &all["timers"][at];
        assert_eq!(timer["payload_bytes"], payloads[at].len());
        assert_eq!(
            (timer["key"].as_str(), timer["key_encoding"].as_str()),
            (Some(&*format!("fe0{at}")), Some("hex"))
        );
        (
            timer["payload"].as_str().unwrap(),
            timer["payload_encoding"].as_str().unwrap(),
        )
    };
    assert_eq!(payload(0), ("plain", "utf-8"));
    assert_eq!(payload(1), (&*"ff".repeat(5_000), "hex"));
    assert_eq!(payload(2), (&*"é".repeat(5_000), "utf-8"));
    let text = file.well("show 10000000001");
    assert!(text.contains("key       0xfe01"), "{text}");
    assert!(text.contains("ffff… (5000 bytes)"), "{text}");
}
