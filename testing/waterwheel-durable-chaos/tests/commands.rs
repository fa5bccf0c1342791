//! Runs short commands, with and without faults: a harness that finds no fault is worthless.

use std::process::{Command, Output};

fn output(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_waterwheel-durable-chaos"))
        .args(arguments.split(' '))
        .output()
        .unwrap()
}

fn run(arguments: &str) -> (bool, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = output(arguments);
    let text = String::from_utf8(stdout).unwrap();
    println!("{text}{}", String::from_utf8_lossy(&stderr));
    (status.success(), text)
}

#[track_caller]
fn is_kept(arguments: &str) -> String {
    let (is_kept, text) = run(arguments);
    assert!(is_kept && text.contains("every promise was kept"));
    text
}

/// Whether a fault is found. Deletes the files that the command has kept.
fn is_found(arguments: &str, is_it: impl Fn(&str) -> bool) -> bool {
    let (is_kept, text) = run(arguments);
    if is_kept {
        return false;
    }
    assert!(text.contains("A PROMISE WAS BROKEN. Seed "));
    let (_, folder) = text.rsplit_once(" are in ").unwrap();
    std::fs::remove_dir_all(folder.trim()).unwrap();
    is_it(&text)
}

/// Whether a command's printed list of broken promises counts a rule.
fn has(text: &str, rule: &str) -> bool {
    let counts = text.lines().find(|line| line.starts_with("lost "));
    let counts = counts.unwrap().split(", ");
    let mut counts = counts.filter_map(|it| it.rsplit_once(' '));
    let (_, count) = counts.find(|(name, _)| name.ends_with(rule)).unwrap();
    count != "0"
}

#[test]
fn kills_in_the_middle_of_commits_break_no_promise() {
    let text = is_kept("kill --rounds 15 --seed 5");
    assert!(text.contains("lost 0, early 0, delivered after Done 0, delivered twice"));
}

#[test]
fn a_clock_that_is_moved_breaks_no_promise() {
    is_kept("clocks --rounds 1 --seed 5");
}

#[test]
fn a_full_disk_refuses_inserts_and_breaks_no_promise() {
    for place in ["false", "true"] {
        let text = is_kept(&format!("disk-full --rounds 2 --seed 5 --memory {place}"));
        for step in [
            "on a full disk",
            "at the limit",
            "with space again",
            "inserts were refused: full",
        ] {
            assert!(text.contains(step), "{step}");
        }
        // The command tells where it ran. Not every machine can mount a file system.
        let first = text.lines().next().unwrap();
        let is_mounted = place == "false" && first.contains("on a tmpfs");
        assert!(first.contains("A DISK IN MEMORY") || is_mounted);
    }
}

#[test]
fn a_damaged_wal_is_refused_or_all_is_there() {
    let text = is_kept("damaged-wal --rounds 1 --seed 5");
    assert!(text.contains("acknowledged work is gone"));
}

#[test]
fn a_copy_made_under_load_keeps_all_promises_as_it_is_restored() {
    let text = is_kept("backup --rounds 2 --seed 5");
    // Something was undone, so the copy was used.
    let count = |name: &str| -> u64 {
        let (_, count) = text.split_once(name).unwrap();
        count.split(',').next().unwrap().parse().unwrap()
    };
    let (gone, again) = (count(" gone: "), count(" again: "));
    assert!(gone >= 200 && again > 0, "{gone} {again}");
}

#[test]
fn a_store_without_a_reserve_is_found() {
    let refused = "the store refused the request, and nothing was written";
    let command = "disk-full --rounds 1 --seed 5 --break without-reserve";
    assert!(is_found(command, |text| text.contains(refused)));
}

#[test]
fn a_fault_of_copies_and_of_damaged_wals_is_found() {
    type Sign = fn(&str) -> bool;
    // On a busy machine, a copy may lack too little to be noticed, and a WAL may hold nothing that is not in the file as well.
    for (command, is_it) in [
        ("backup --break without-wal", (|it| has(it, "lost")) as Sign),
        ("backup --break same-ids", |it| has(it, "another id")),
        ("damaged-wal --break without-note", |it| {
            it.contains("BROKEN: opened")
        }),
    ] {
        let found = |seed| is_found(&format!("{command} --rounds 1 --seed {seed}"), is_it);
        assert!((5..10).any(found), "{command}");
    }
}

#[test]
fn a_store_that_does_not_sync_is_found_and_the_seed_repeats_it() {
    for synchronous in ["off", "normal"] {
        let found = output(&format!("power-cut --seeds 30 --synchronous {synchronous}"));
        let said = String::from_utf8(found.stderr).unwrap();
        assert_eq!(found.status.code(), Some(1), "{synchronous}: {said}");
        assert!(said.starts_with("seed "), "{said}");
        let line = said.lines().find(|line| line.starts_with("repeat it: "));
        let (_, arguments) = line.unwrap().split_once(" -- ").unwrap();
        let again = output(arguments);
        assert_eq!(again.status.code(), Some(1));
        let again = String::from_utf8(again.stderr).unwrap();
        assert_eq!(again.lines().next(), said.lines().next());
    }
}

#[test]
fn a_store_that_syncs_keeps_what_it_has_answered() {
    let (is_kept, said) = run("power-cut --seeds 30");
    assert!(is_kept && said.starts_with("120 power cuts, "));
}

#[test]
fn an_argument_that_is_not_known_is_refused() {
    for arguments in ["--seed 3", "--seeds many", "--synchronous maybe"] {
        let refused = output(&format!("power-cut {arguments}"));
        assert_eq!(refused.status.code(), Some(2));
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("--help"));
    }
}

#[test]
#[cfg(feature = "planted")]
fn planted_faults_are_found() {
    for (command, fault, rule) in [
        ("kill --rounds 4", "ack-before-commit", "lost"),
        ("kill --rounds 4", "never-settled", "not in flight"),
        ("soak --minutes 0.2", "never-settled", "not in flight"),
        ("kill --rounds 4", "rounded-down", "early"),
        ("clocks --rounds 4", "rounded-down", "early"),
        ("clocks --rounds 4", "called-though-early", "early"),
    ] {
        let command = format!("{command} --seed 5 --break {fault}");
        assert!(is_found(&command, |text| has(text, rule)), "{command}");
    }
}
