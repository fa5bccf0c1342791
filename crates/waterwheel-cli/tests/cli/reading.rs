//! The output of the reading commands.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use waterwheel_durable_core::store::{Level, Op, Store};
use waterwheel_durable_sqlite::SqliteStore;

use crate::support::*;

/// The names of the fields of a JSON object.
fn fields(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// The fields that README.md documents for an object: the words in code font in its row.
fn documented(of: &str) -> BTreeSet<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let page = fs::read_to_string(page).unwrap();
    let row = page
        .lines()
        .find(|line| line.starts_with(&format!("| {of} |")));
    let row = row.unwrap_or_else(|| panic!("README.md has no row for {of}"));
    let fields = row.split('|').nth(2).unwrap();
    fields
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_json_document_has_the_fields_that_are_documented() {
    let file = TimersFile::filled();
    let run = |line: &str| file.json(line);
    let stats = run("stats --json");
    assert_eq!(fields(&stats), documented("`stats`"));
    assert_eq!(fields(&stats["handlers"][0]), documented("a handler"));
    assert_eq!(fields(&stats["holder"]), documented("`holder`"));
    assert_eq!(fields(&stats["levels"]), documented("`levels`"));
    let list = run("list --json");
    assert_eq!(fields(&list), documented("`list`"));
    assert_eq!(fields(&list["timers"][0]), documented("a timer"));
    let dead = run("dead --json");
    assert_eq!(fields(&dead), documented("`dead`"));
    assert_eq!(fields(&dead["dead"][0]), documented("a dead letter"));
    let state = |mut fields: BTreeSet<String>| {
        fields.insert("state".to_owned());
        fields
    };
    let id = list["timers"][3]["id"].as_str().unwrap();
    let shown = run(&format!("show {id} --json"));
    assert_eq!(fields(&shown), state(documented("a timer")));
    assert_eq!(shown["state"], "pending");
    let id = dead["dead"][3]["id"].as_str().unwrap();
    let shown = run(&format!("show {id} --json"));
    assert_eq!(fields(&shown), state(documented("a dead letter")));
    assert_eq!(shown["state"], "dead");
    let namespaces = run("namespaces --json");
    assert_eq!(fields(&namespaces), documented("`namespaces`"));
    assert_eq!(
        fields(&namespaces["namespaces"][0]),
        documented("a namespace")
    );
    assert_eq!(
        fields(&namespaces["calendars"][0]),
        documented("a calendar")
    );
    let calendars = run("calendars --json");
    assert_eq!(fields(&calendars), documented("`calendars`"));
    assert_eq!(
        fields(&calendars["calendars"][0]),
        documented("a calendar with its next occurrences")
    );
    let policy = run("policy show shop --json");
    assert_eq!(fields(&policy), documented("`policy show`"));
    let dry_run = run("discard --all --dry-run --json");
    assert_eq!(fields(&dry_run), documented("a dry run"));
    let change = file.cli("discard 77 --json");
    let change = serde_json::from_str(&change.out).unwrap();
    assert_eq!(fields(&change), documented("a change"));
    let copy = file.sibling("copy.db");
    let copied = run(&format!("backup {} --json", copy.display()));
    assert_eq!(fields(&copied), documented("`backup`"));
}

#[test]
fn stats_count_what_there_is() {
    let file = TimersFile::new();
    let rows = filled(&file);
    let stats = file.json("stats --json");
    assert_eq!(stats["pending"], 60);
    assert_eq!(stats["overdue"], 12);
    assert_eq!(stats["failed"], 45);
    assert_eq!(stats["dead"], 10);
    assert_eq!(stats["epoch"], 1);
    assert_eq!(stats["holder"]["state"], "none");
    assert_eq!(stats["first_due"], stats["oldest_overdue"]);
    let levels = stats["levels"].as_object().unwrap();
    assert_eq!(
        levels.values().map(|it| it.as_u64().unwrap()).sum::<u64>(),
        60
    );
    assert!(levels["month"].as_u64().unwrap() == 12, "{levels:?}");
    let handlers = stats["handlers"].as_array().unwrap();
    let names: Vec<_> = handlers.iter().map(|it| &it["handler"]).collect();
    assert_eq!(names, ["mail", "shop/close", "shop/notify"]);
    assert_eq!(handlers[0]["namespace"], "default");
    for handler in handlers {
        let own = rows
            .iter()
            .filter(|row| *row.handler == *handler["handler"].as_str().unwrap());
        assert_eq!(handler["pending"], own.count());
    }
    let text = file.well("stats");
    assert!(
        text.contains("60 pending, 12 overdue, 45 failed before, 10 dead"),
        "{text}"
    );
    assert!(text.contains("held by no process"), "{text}");
    assert!(text.contains("ago"), "{text}");
}

#[test]
fn a_service_that_holds_the_file_is_named() {
    let file = TimersFile::filled();
    // This process has the file open.
    let store = SqliteStore::open(&*file).unwrap();
    let text = file.well("stats");
    let expected = format!("held by process {}", std::process::id());
    assert!(text.contains(&expected), "{text}");
    let holder = &file.json("stats --json")["holder"];
    assert_eq!(holder["state"], "process");
    assert_eq!(holder["process"], std::process::id());
    drop(store);
    let text = file.well("stats");
    assert!(text.contains("held by no process"), "{text}");
}

/// All entries that a command lists, page by page.
fn listed(file: &TimersFile, line: &str, of: &str) -> Vec<Value> {
    let (mut listed, mut after) = (Vec::new(), String::new());
    loop {
        let page = file.json(format!("{line}{after}"));
        listed.extend(page[of].as_array().unwrap().iter().cloned());
        assert!(listed.len() <= 60, "it begins again");
        match page["next"].as_str() {
            Some(next) => after = format!(" --after {next}"),
            None => return listed,
        }
    }
}

#[test]
fn timers_are_listed_page_by_page() {
    let file = TimersFile::new();
    let rows = filled(&file);
    for (of, is_meant) in [
        ("", (|_| true) as fn(&str) -> bool),
        (" --namespace shop", |handler| handler.starts_with("shop/")),
        (" --namespace default", |handler| handler == "mail"),
        (" --handler shop/close", |handler| handler == "shop/close"),
        // The namespace was created, and has no timer.
        (" --namespace idle", |_| false),
    ] {
        let meant = rows.iter().filter(|row| is_meant(&row.handler));
        let meant: Vec<_> = meant.map(|row| row.handle().to_string()).collect();
        let line = format!("list --json --limit 7{of}");
        let listed = listed(&file, &line, "timers");
        let listed: Vec<_> = listed.iter().map(|it| it["handle"].clone()).collect();
        assert_eq!(listed, meant, "{of}");
    }
    // The output for people has the same cursor.
    let text = file.well("list --limit 7");
    assert_eq!(text.lines().count(), 9, "{text}");
    let more = text.lines().last().unwrap();
    let more = more.strip_prefix("there may be more: ").unwrap();
    let text = file.well(format!("list --limit 7 {more}"));
    assert!(text.contains(&rows[7].id.to_string()), "{text}");
    assert!(!text.contains(&rows[6].id.to_string()), "{text}");
    let overdue = file.json("list --overdue --json");
    assert_eq!(overdue["timers"].as_array().unwrap().len(), 12);
    assert!(overdue["timers"][11]["is_overdue"].as_bool().unwrap());
    let text = file.well("list --overdue --namespace idle");
    assert_eq!(text, "no timer is overdue\n");
}

#[test]
fn dead_letters_are_listed_page_by_page() {
    let file = TimersFile::filled();
    let listed = listed(&file, "dead --json --limit 2 --namespace shop", "dead");
    let error = "the server said 500";
    assert!(listed.iter().all(|it| it["error"] == error), "{listed:?}");
    let listed: Vec<_> = listed.iter().map(|it| it["id"].clone()).collect();
    let expected = [101, 103, 105, 107, 109].map(|it| format!("{:x}", (1_u64 << 40) + it));
    assert_eq!(listed, expected);
    let text = file.well("dead --limit 2");
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("the server said 500"), "{text}");
}

#[test]
fn a_page_of_large_payloads_ends_before_memory_does() {
    let steps = (0..4).flat_map(|number| {
        let mut row = row(number, "mail", -9_000);
        row.payload = vec![b'x'; 12 << 20].into();
        dead(&row, "it said no")
    });
    let file = TimersFile::with(&steps.collect::<Vec<_>>());
    let pages = |line: &str| {
        let first = file.well(line);
        let more = first.lines().last().unwrap();
        let more = more.strip_prefix("there may be more: ").unwrap();
        let second = file.well(format!("{line} {more}"));
        (first.lines().count(), second.lines().count())
    };
    // Three are more than 32 MiB. Each page has a header, and the first one says how to continue.
    assert_eq!(pages("dead --limit 100000"), (5, 2));
    let said = file.well("redrive --all");
    assert_eq!(said.lines().count(), 4, "{said}");
    assert_eq!(pages("list --limit 100000"), (5, 2));
}

#[test]
fn a_name_that_the_file_does_not_know_is_an_error() {
    let file = TimersFile::filled();
    for line in [
        "list",
        "list --overdue --json",
        "dead",
        "cancel",
        "redrive",
        "discard",
    ] {
        let said = file.failure(format!("{line} --namespace shpo"));
        let what = "there is no namespace \"shpo\"; known: default, idle, shop\n";
        assert!(said.ends_with(what), "{line}: {said}");
        let said = file.failure(format!("{line} --handler close"));
        let what = "no timer was ever inserted for the handler \"close\"; known: mail, shop/close, shop/notify\n";
        assert!(said.ends_with(what), "{line}: {said}");
    }
    assert_eq!(file.counts(), (60, 10));
}

#[test]
fn a_list_of_timers_reads_no_calendar() {
    let file = TimersFile::filled();
    // A value that cannot be read.
    let connection = rusqlite::Connection::open(&*file).unwrap();
    let spoil = "UPDATE settings SET value = 17 WHERE name = 'calendar/nightly'";
    assert_eq!(connection.execute(spoil, []).unwrap(), 1);
    file.failure("namespaces");
    for scope in ["", "--handler mail", "--namespace idle", "--namespace shop"] {
        for command in ["list", "dead"] {
            file.well(format!("{command} {scope}").trim_end());
        }
    }
}

#[test]
fn a_handler_is_no_error_before_the_first_timer() {
    let file = TimersFile::with(&[]);
    let said = file.json("list --handler mail --json");
    assert_eq!(said["timers"].as_array().unwrap().len(), 0);
    for command in ["dead", "redrive", "discard"] {
        assert_eq!(file.cli(format!("{command} --handler mail")).code, 0);
    }
    file.failure("list --namespace shpo");
}

#[test]
fn a_timer_is_shown_by_its_handle_and_by_its_id() {
    let file = TimersFile::new();
    let rows = filled(&file);
    for row in [&rows[0], &rows[59], &rows[30]] {
        let by_handle = file.well(format!("show {}", row.handle()));
        let by_id = file.well(format!("show {}", row.id));
        assert_eq!(by_id.lines().next(), by_handle.lines().next());
        let payload = format!("payload   {}", String::from_utf8_lossy(&row.payload));
        assert!(by_id.contains(&payload), "{by_id}");
        assert!(by_id.contains(&row.handle().to_string()), "{by_id}");
    }
    let text = file.well("show 10000000064");
    assert!(text.contains("state     a dead letter"), "{text}");
    assert!(text.contains("error     the server said 500"), "{text}");
    let missing = file.failure("show 77");
    assert!(
        missing.contains("there is no timer or dead letter 77"),
        "{missing}"
    );
    let missing = file.failure("show 77@5@mail");
    assert!(
        missing.contains("there is no timer or dead letter 77"),
        "{missing}"
    );
}

#[test]
fn starts_are_shown_without_their_series() {
    let mut noted = row(1, "mail", 0);
    noted.starts = 7 << 32 | 3;
    let file = TimersFile::with(&[insert(&noted)]);
    let text = file.well("show 10000000001");
    assert!(text.contains("starts    3\n"), "{text}");
    assert_eq!(file.json("show 10000000001 --json")["starts"], 3);
}

#[test]
fn a_timer_is_shown_by_its_handler_and_key() {
    let file = TimersFile::new();
    let rows = filled(&file);
    let show = |line: &str| file.cli(format!("show {line}"));
    let keyed: Vec<_> = rows.iter().filter(|row| row.key.is_some()).collect();
    assert_eq!(keyed.len(), 9);
    for row in keyed {
        let key = String::from_utf8_lossy(row.key.as_deref().unwrap());
        // This uses JSON: the text contains the elapsed seconds.
        let by_key = show(&format!("--handler {} --key {key} --json", row.handler)).json();
        assert_eq!(by_key, show(&format!("{} --json", row.handle())).json());
    }
    let json = show("--handler mail --key key-0 --json").json();
    assert_eq!(
        (&json["state"], &json["key"]),
        (&"pending".into(), &"key-0".into())
    );
    let hex = show("--handler mail --key-hex 6b65792d30 --json").json();
    assert_eq!(hex, json);

    // A key of another handler, an unused one, and one of an archived timer.
    let missing = show("--handler shop/close --key key-0").failure();
    let what = "no timer of shop/close has the key \"key-0\": it was delivered";
    assert!(missing.contains(what), "{missing}");
    let unknown = show("--handler close --key key-0").failure();
    assert!(unknown.contains("known: mail, shop/close"), "{unknown}");
    let mut row = row(200, "mail", -5_000);
    row.key = Some([0xff, 0].into());
    let mut store = reopened(&file);
    let near = Op::Insert(row.clone(), Level::Second.bucket(row.due));
    store.commit(1, &[near, Op::Archive(row, now())]).unwrap();
    drop(store);
    let kept = show("--handler mail --key-hex ff00").failure();
    let what = "the timer 100000000c8 of mail with the key \"0xff00\" was delivered; its key";
    assert!(kept.contains(what), "{kept}");

    for wrong in [
        "",
        "--handler mail",
        "--key key-0",
        "--key-hex ff",
        "77 --handler mail --key key-0",
        "--handler mail --key key-0 --key-hex ff",
        "--handler mail --key-hex f",
        "--handler mail --key-hex fg",
    ] {
        let line = format!("show {wrong}");
        let said = file.cli(line.trim());
        assert_eq!(said.code, 2, "{line}: {said:?}");
    }
}

#[test]
fn namespaces_are_listed_with_their_counts_and_policies() {
    let file = TimersFile::filled();
    let all = file.json("namespaces --json");
    let all = all["namespaces"].as_array().unwrap();
    let names: Vec<_> = all.iter().map(|it| &it["namespace"]).collect();
    assert_eq!(names, ["default", "idle", "shop"]);
    let [default, idle, shop] = &all[..] else {
        unreachable!();
    };
    let own = json!([default["pending"], default["is_paused"]]);
    assert_eq!(own, json!([20, false]));
    let own = json!([idle["pending"], idle["is_created"]]);
    assert_eq!(own, json!([0, true]));
    let own = json!([shop["pending"], shop["dead"], shop["is_paused"]]);
    assert_eq!(own, json!([40, 5, true]));
    assert_eq!(shop["policy"]["concurrency"], 3);
    assert_eq!(shop["handlers"], json!(["shop/close", "shop/notify"]));
    let text = file.well("namespaces");
    let shop = text.lines().find(|line| line.starts_with("shop")).unwrap();
    assert!(
        shop.contains("yes") && shop.ends_with("concurrency 3"),
        "{shop}"
    );
    let nightly = text
        .lines()
        .find(|line| line.starts_with("nightly"))
        .unwrap();
    assert!(
        nightly.contains("0 2 * * *") && nightly.contains("Europe/Berlin"),
        "{nightly}"
    );
    assert!(nightly.ends_with("1970-01-01T00:00:00.000Z"), "{nightly}");
}

#[test]
fn a_copy_is_made_beside_a_service_and_is_whole() {
    let file = TimersFile::filled();
    let copy = file.sibling("copy.db");
    let store = SqliteStore::open(&*file).unwrap();
    let line = format!("backup {}", copy.display());
    let text = file.well(&line);
    assert!(text.contains("copy.db: "), "{text}");
    let count = |file| cli(file, "stats --json").json()["handlers"].clone();
    assert_eq!(count(&file), count(&copy));
    drop(store);
    let again = file.failure(line);
    assert!(again.contains("already exists"), "{again}");
    SqliteStore::open(&copy).unwrap();
}
