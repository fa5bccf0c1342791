//! Does the command find a store that does not sync, and does it say so?

use std::process::{Command, Output};

fn power_cut(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_waterwheel-durable-chaos"))
        .arg("power-cut")
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn a_store_that_does_not_sync_is_found_and_the_seed_repeats_it() {
    for synchronous in ["off", "normal"] {
        let found = power_cut(&["--seeds", "30", "--synchronous", synchronous]);
        let said = String::from_utf8(found.stderr).unwrap();
        assert_eq!(found.status.code(), Some(1), "{synchronous}: {said}");
        assert!(said.starts_with("seed "), "{said}");
        let line = said.lines().find(|line| line.starts_with("repeat it: "));
        let (_, arguments) = line.unwrap().split_once(" power-cut ").unwrap();
        let arguments: Vec<_> = arguments.split(' ').collect();
        let again = power_cut(&arguments);
        assert_eq!(again.status.code(), Some(1));
        let again = String::from_utf8(again.stderr).unwrap();
        assert_eq!(again.lines().next(), said.lines().next());
    }
}

#[test]
fn a_store_that_syncs_keeps_what_it_has_answered() {
    let kept = power_cut(&["--seeds", "30"]);
    let said = String::from_utf8_lossy(&kept.stdout);
    assert_eq!(kept.status.code(), Some(0), "{kept:?}");
    assert!(said.starts_with("120 power cuts, "), "{said}");
}

#[test]
fn an_argument_that_is_not_known_is_refused() {
    for arguments in [
        &["--seed", "3"][..],
        &["--seeds", "many"],
        &["--synchronous", "maybe"],
    ] {
        let refused = power_cut(arguments);
        assert_eq!(refused.status.code(), Some(2));
        assert!(
            String::from_utf8(refused.stderr)
                .unwrap()
                .contains("--help")
        );
    }
}
