//! The commands in short, and with faults: a harness that finds no fault is worth nothing.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> (bool, String) {
    let Output { status, stdout, .. } =
        Command::new(env!("CARGO_BIN_EXE_waterwheel-durable-chaos"))
            .args(arguments)
            .output()
            .unwrap();
    let text = String::from_utf8(stdout).unwrap();
    println!("{text}");
    (status.success(), text)
}

#[test]
fn kills_in_the_middle_of_commits_break_no_promise() {
    let (is_kept, text) = run(&["kill", "--rounds", "5", "--seed", "5"]);
    assert!(is_kept && text.contains("every promise was kept"));
    assert!(text.contains("lost 0, early 0, delivered after Done 0, delivered twice"));
}

#[test]
fn a_clock_that_is_moved_breaks_no_promise() {
    let (is_kept, text) = run(&["clocks", "--rounds", "1", "--seed", "5"]);
    assert!(is_kept && text.contains("every promise was kept"));
}

#[test]
fn a_full_disk_refuses_inserts_and_breaks_no_promise() {
    for place in ["false", "true"] {
        let arguments = [
            "disk-full",
            "--rounds",
            "2",
            "--seed",
            "5",
            "--memory",
            place,
        ];
        let (is_kept, text) = run(&arguments);
        assert!(is_kept && text.contains("every promise was kept"));
        for step in [
            "on a full disk",
            "at the limit",
            "with space again",
            "inserts were refused: full",
        ] {
            assert!(text.contains(step), "{step}");
        }
        // It says where it was. Not every machine can mount something.
        let first = text.lines().next().unwrap();
        assert!(
            first.contains("A DISK IN MEMORY") || place == "false" && first.contains("on a tmpfs")
        );
    }
}

#[test]
fn a_store_without_a_reserve_is_found() {
    let fault = ["--break", "without-reserve"];
    let (is_kept, text) =
        run(&[&["disk-full", "--rounds", "1", "--seed", "5"], &fault[..]].concat());
    assert!(!is_kept, "not found");
    assert!(text.contains("the store refused the request, and nothing was written"));
    let (_, folder) = text.rsplit_once(" are in ").unwrap();
    std::fs::remove_dir_all(folder.trim()).unwrap();
}

#[test]
fn a_damaged_wal_is_refused_or_all_is_there() {
    let (is_kept, text) = run(&["damaged-wal", "--rounds", "1", "--seed", "5"]);
    assert!(is_kept && text.contains("every promise was kept"));
    assert!(text.contains("acknowledged work is gone"));
}

#[test]
fn a_log_that_is_deleted_with_its_note_is_found() {
    let fault = ["--break", "without-note"];
    // On a busy machine, a kill can come while the log has nothing that is not in the file as well.
    let found = ["5", "6", "7", "8"].into_iter().find_map(|seed| {
        let arguments = [
            &["damaged-wal", "--rounds", "1", "--seed", seed],
            &fault[..],
        ]
        .concat();
        let (is_kept, text) = run(&arguments);
        (!is_kept && text.contains("BROKEN: opened")).then_some(text)
    });
    let text = found.expect("not found");
    let (_, folder) = text.rsplit_once(" are in ").unwrap();
    std::fs::remove_dir_all(folder.trim()).unwrap();
}

/// The count of a rule, in what a command has printed of broken promises.
#[track_caller]
fn count_of<'a>(text: &'a str, word: &str) -> &'a str {
    let counts = text.lines().find(|line| line.starts_with("lost "));
    let counts = counts.unwrap().split(", ");
    let (_, count) = counts
        .filter_map(|it| it.rsplit_once(' '))
        .find(|(name, _)| name.ends_with(word))
        .unwrap();
    count
}

#[test]
fn a_copy_made_under_load_keeps_all_promises_as_it_is_restored() {
    let (is_kept, text) = run(&["backup", "--rounds", "2", "--seed", "5"]);
    assert!(is_kept && text.contains("every promise was kept"));
    // Something was undone, so it is the copy that went on.
    let undone = text
        .lines()
        .find(|line| line.starts_with("restores undid "));
    let mut counts = undone.unwrap().split(' ').filter_map(|it| it.parse().ok());
    let (gone, again): (u64, u64) = (counts.next().unwrap(), counts.next().unwrap());
    assert!(gone >= 200 && again > 0, "{gone} {again}");
}

#[test]
fn a_copy_without_its_log_and_one_that_gives_ids_again_are_found() {
    for (fault, word) in [("without-wal", "lost"), ("same-ids", "another id")] {
        // On a busy machine, a copy may lack too little for it to be seen.
        let is_found = (5..10).any(|seed| {
            let seed = seed.to_string();
            let (is_kept, text) =
                run(&["backup", "--rounds", "1", "--seed", &seed, "--break", fault]);
            if is_kept {
                return false;
            }
            let (_, folder) = text.rsplit_once(" are in ").unwrap();
            std::fs::remove_dir_all(folder.trim()).unwrap();
            count_of(&text, word) != "0"
        });
        assert!(is_found, "{fault} is not found as {word}");
    }
}

#[cfg(feature = "planted")]
mod planted {
    use super::{count_of, run};

    #[track_caller]
    fn is_found(command: &str, fault: &str, word: &str) {
        let length = match command {
            "soak" => ["--minutes", "0.2"],
            _ => ["--rounds", "4"],
        };
        let rest = ["--seed", "5", "--break", fault];
        let arguments = [&[command], &length[..], &rest].concat();
        let (is_kept, text) = run(&arguments);
        assert!(!is_kept, "not found");
        assert!(text.contains("A PROMISE WAS BROKEN. Seed 5"));
        assert_ne!(count_of(&text, word), "0", "found, and not as {word}");
        let (_, folder) = text.rsplit_once(" are in ").unwrap();
        std::fs::remove_dir_all(folder.trim()).unwrap();
    }

    #[test]
    fn an_answer_before_its_commit_is_found() {
        is_found("kill", "ack-before-commit", "lost");
    }

    #[test]
    fn a_timer_that_is_never_settled_is_found() {
        is_found("kill", "never-settled", "not in flight");
    }

    #[test]
    fn a_soak_finds_a_timer_that_is_never_settled() {
        is_found("soak", "never-settled", "not in flight");
    }

    #[test]
    fn a_time_rounded_down_is_found() {
        is_found("kill", "rounded-down", "early");
        is_found("clocks", "rounded-down", "early");
    }

    #[test]
    fn a_handler_that_is_called_after_the_clock_was_set_back_is_found() {
        is_found("clocks", "called-though-early", "early");
    }
}
