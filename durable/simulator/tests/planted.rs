//! A simulator that finds no fault is worth nothing: each of these is planted in the engine or in the store, and found within ten thousand seeds.

use waterwheel_durable::engine::planted::{Planted, plant};
use waterwheel_simulator::{Broke, Broken, run};

const SEEDS: u64 = 10_000;

fn first_found(broken: Option<Broken>) -> Broke {
    let found = (0..SEEDS).find_map(|seed| run(seed, broken).err());
    found.unwrap_or_else(|| panic!("not found within {SEEDS} seeds"))
}

fn is_found(fault: Planted) {
    plant(Some(fault));
    let found = first_found(None);
    plant(None);
    println!("{fault:?}: {found}");
    assert_eq!(
        run(found.seed, None),
        Ok(()),
        "without the fault, the seed is fine"
    );
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
fn a_cascade_in_two_transactions_is_found() {
    let found = first_found(Some(Broken::CascadeInTwo));
    println!("{found}");
    assert_eq!(
        run(found.seed, None),
        Ok(()),
        "without the fault, the seed is fine"
    );
}
