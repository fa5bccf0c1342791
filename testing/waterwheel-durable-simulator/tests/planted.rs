//! A simulator that finds no fault is worth nothing: each of these is planted in the engine or in the store, and found by several of ten thousand seeds.

use waterwheel_durable_core::engine::planted::{Planted, plant};
use waterwheel_durable_simulator::{Broke, Broken, Life, Shrunk, run, shrink};

const SEEDS: u64 = 10_000;
/// How many of them find each fault, at least.
const FIND: usize = 5;
/// How many steps are left of the shortest of these lives, at most, once they are shrunk.
const LEFT: usize = 20;

/// The first seeds that find it. All of them with `RATES=1`, to see how often it is found.
fn found(broken: Option<Broken>) -> Vec<Broke> {
    let found = (0..SEEDS).filter_map(|seed| run(seed, broken).err());
    let counts_all = std::env::var_os("RATES").is_some();
    found
        .take(if counts_all { usize::MAX } else { FIND })
        .collect()
}

fn check(what: &str, found: &[Broke]) {
    let seeds: Vec<_> = found.iter().map(|broke| broke.seed).collect();
    println!(
        "{what}: {} {:?}, first {:?}",
        seeds.len(),
        seeds.last(),
        found.first()
    );
    assert!(
        found.len() >= FIND,
        "of {SEEDS} seeds, only {seeds:?} find {what}"
    );
    for seed in seeds {
        assert_eq!(
            run(seed, None),
            Ok(()),
            "without the fault, the seed is fine"
        );
    }
}

/// The lives that find a fault are shrunk to a few steps each, which find it as well. Returns the shortest.
fn shortest(found: &[Broke], broken: Option<Broken>) -> Option<Shrunk> {
    let shrunk = found.iter().take(FIND).map(|broke| {
        let shrunk = shrink(broke.seed, broken).expect("the seed finds it again");
        let (life, _) = Life::record(broke.seed, broken);
        assert_eq!(life.replay(&shrunk.steps, None).unwrap_err(), shrunk.broke);
        println!("{} of {} steps", shrunk.steps.len(), life.len());
        shrunk
    });
    shrunk.min_by_key(|it| it.steps.len())
}

fn check_steps(shrunk: Option<Shrunk>) {
    let shrunk = shrunk.expect("a seed finds it");
    println!("shortest {}: {shrunk:#?}", shrunk.steps.len());
    assert!(shrunk.steps.len() <= LEFT);
    assert_eq!(shrunk.told.len(), shrunk.steps.len());
}

fn is_found(fault: Planted) {
    plant(Some(fault));
    let found = found(None);
    let shrunk = shortest(&found, None);
    plant(None);
    check(&format!("{fault:?}"), &found);
    check_steps(shrunk);
}

#[test]
fn a_bound_published_after_the_read_is_found() {
    is_found(Planted::BoundAfterRead);
}

#[test]
fn what_is_known_and_taken_again_is_found() {
    is_found(Planted::KnownTakenAgain);
}

#[test]
fn an_answer_before_its_commit_is_found() {
    is_found(Planted::AnswerBeforeCommit);
}

#[test]
fn a_time_rounded_down_is_found() {
    is_found(Planted::RoundedDown);
}

#[test]
fn a_cursor_that_passes_over_what_was_not_delivered_is_found() {
    is_found(Planted::CursorOverUndelivered);
}

#[test]
fn a_timer_forgotten_before_it_is_settled_is_found() {
    is_found(Planted::ForgottenBeforeSettled);
}

#[test]
fn a_count_that_leaks_is_found() {
    is_found(Planted::ReadyCountedForEver);
}

#[test]
fn a_timer_passed_over_by_a_refused_request_is_found() {
    is_found(Planted::PassedOverWhenRefused);
}

#[test]
fn a_request_that_waits_for_what_was_given_up_is_found() {
    is_found(Planted::GivenUpComesBack);
}

#[test]
fn a_timer_kept_out_by_those_due_later_is_found() {
    is_found(Planted::LaterKeepsOutSooner);
}

#[test]
fn a_pause_that_is_forgotten_is_found() {
    is_found(Planted::PauseForgotten);
}

#[test]
fn a_rate_that_is_ignored_is_found() {
    is_found(Planted::RateIgnored);
}

#[test]
fn a_quantum_that_is_forgotten_is_found() {
    is_found(Planted::QuantumForgotten);
}

#[test]
fn an_occurrence_without_its_cursor_is_found() {
    is_found(Planted::CursorNotWritten);
}

#[test]
fn an_archive_that_never_expires_is_found() {
    is_found(Planted::ExpiresNothing);
}

#[test]
fn starts_of_an_older_series_that_count_are_found() {
    is_found(Planted::OldStartsCount);
}

#[test]
fn what_waits_though_it_is_not_accused_is_found() {
    is_found(Planted::AccusedHoldAll);
}

#[test]
fn a_withdrawn_delivery_that_is_forgotten_is_found() {
    is_found(Planted::WithdrawnForgotten);
}

#[test]
fn a_command_that_is_carried_out_each_time_it_is_read_is_found() {
    is_found(Planted::CommandAgain);
}

#[test]
fn wheel_entries_that_are_left_behind_are_found() {
    is_found(Planted::WheelEntriesLeft);
}

fn is_found_in_the_store(broken: Broken) {
    let found = found(Some(broken));
    check(&format!("{broken:?}"), &found);
    check_steps(shortest(&found, Some(broken)));
}

#[test]
fn a_cascade_in_two_transactions_is_found() {
    is_found_in_the_store(Broken::CascadeInTwo);
}

#[test]
fn two_timers_of_one_key_are_found() {
    is_found_in_the_store(Broken::KeysIgnored);
}

#[test]
fn a_key_that_stays_taken_is_found() {
    is_found_in_the_store(Broken::KeysKept);
}

#[test]
fn a_wrong_handle_for_a_key_is_found() {
    is_found_in_the_store(Broken::KeyOfAnother);
}

#[test]
fn a_dead_letter_that_is_lost_is_found() {
    is_found_in_the_store(Broken::DeadLettersLost);
}

#[test]
fn failures_that_are_not_counted_are_found() {
    is_found_in_the_store(Broken::FailuresForgotten);
}

#[test]
fn starts_that_are_not_counted_are_found() {
    is_found_in_the_store(Broken::StartsForgotten);
}

#[test]
fn an_insert_that_is_refused_and_written_is_found() {
    is_found_in_the_store(Broken::FullAndWritten);
}

#[test]
fn a_payload_of_another_timer_is_found() {
    is_found_in_the_store(Broken::PayloadsSwapped);
}

#[test]
fn what_is_not_archived_is_found() {
    is_found_in_the_store(Broken::ArchiveLost);
}

#[test]
fn what_expires_too_early_is_found() {
    is_found_in_the_store(Broken::ExpiresAll);
}

#[test]
fn a_setting_that_is_lost_is_found() {
    is_found_in_the_store(Broken::SettingsLost);
}
