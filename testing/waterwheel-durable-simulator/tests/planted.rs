//! A simulator that finds no fault is worthless: each of these is planted in the engine or in the store, and found by several of ten thousand seeds.

use waterwheel_durable_core::engine::planted::{Planted, plant};
use waterwheel_durable_simulator::{Broke, Broken, Fault, Life, Shrunk, cluster, run, shrink};

const SEEDS: u64 = 10_000;
/// The minimum number of seeds that find each fault.
const FIND: usize = 5;
/// The maximum number of steps of the shortest of these lives, once they are shrunk.
const LEFT: usize = 20;

/// The first seeds that find the fault. All of them with `RATES=1`, to see how often it is found.
fn found<F: Fault>(broken: Option<F>) -> Vec<Broke> {
    let found = (0..SEEDS).filter_map(|seed| run(seed, broken).err());
    let counts_all = std::env::var_os("RATES").is_some();
    found
        .take(if counts_all { usize::MAX } else { FIND })
        .collect()
}

fn check<F: Fault>(what: &str, found: &[Broke]) {
    let seeds: Vec<_> = found.iter().map(|broke| broke.seed).collect();
    let (count, last) = (seeds.len(), seeds.last());
    println!("{what}: {count} {last:?}, first {:?}", found.first());
    assert!(
        count >= FIND,
        "of {SEEDS} seeds, only {seeds:?} find {what}"
    );
    for seed in seeds {
        let without = run(seed, None::<F>);
        assert_eq!(without, Ok(()), "without {what}, the seed is fine");
    }
}

/// Shrinks the lives that find a fault to a few steps each, which find it as well. Returns the shortest.
fn shortest<F: Fault>(found: &[Broke], broken: Option<F>) -> Option<Shrunk> {
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

/// Finds a fault of the code in the lives of this kind.
fn is_found_in<F: Fault>(fault: Planted) {
    plant(Some(fault));
    let found = found(None::<F>);
    let shrunk = shortest(&found, None::<F>);
    plant(None);
    check::<F>(&format!("{fault:?}"), &found);
    check_steps(shrunk);
}

fn is_found(fault: Planted) {
    is_found_in::<Broken>(fault);
}

fn is_found_in_the_protocol(fault: Planted) {
    is_found_in::<cluster::Fault>(fault);
}

/// Finds a fault of the store.
fn store_fault_is_found<F: Fault + std::fmt::Debug>(broken: F) {
    let found = found(Some(broken));
    check::<F>(&format!("{broken:?}"), &found);
    check_steps(shortest(&found, Some(broken)));
}

fn is_found_in_the_store(broken: Broken) {
    store_fault_is_found(broken);
}

fn is_found_in_the_cluster(broken: cluster::Fault) {
    store_fault_is_found(broken);
}

/// Defines a test for each fault, so that they run in parallel.
macro_rules! faults {
    ($found:ident: $($name:ident: $fault:expr,)*) => {
        $(
            #[test]
            fn $name() {
                $found($fault);
            }
        )*
    };
}

faults! { is_found:
    a_bound_published_after_the_read_is_found: Planted::BoundAfterRead,
    ids_of_an_epoch_that_are_assigned_again_are_found: Planted::EpochBeginsAgain,
    what_is_known_and_taken_again_is_found: Planted::KnownTakenAgain,
    an_answer_before_its_commit_is_found: Planted::AnswerBeforeCommit,
    a_time_rounded_down_is_found: Planted::RoundedDown,
    a_cursor_that_passes_over_what_was_not_delivered_is_found: Planted::CursorOverUndelivered,
    a_timer_forgotten_before_it_is_settled_is_found: Planted::ForgottenBeforeSettled,
    a_count_that_leaks_is_found: Planted::ReadyCountedForEver,
    a_timer_passed_over_by_a_refused_request_is_found: Planted::PassedOverWhenRefused,
    a_request_that_waits_for_what_was_given_up_is_found: Planted::GivenUpComesBack,
    a_timer_kept_out_by_those_due_later_is_found: Planted::LaterKeepsOutSooner,
    a_pause_that_is_forgotten_is_found: Planted::PauseForgotten,
    a_rate_that_is_ignored_is_found: Planted::RateIgnored,
    a_quantum_that_is_forgotten_is_found: Planted::QuantumForgotten,
    an_occurrence_without_its_cursor_is_found: Planted::CursorNotWritten,
    an_archive_that_never_expires_is_found: Planted::ExpiresNothing,
    starts_of_an_older_series_that_count_are_found: Planted::OldStartsCount,
    what_waits_though_it_is_not_accused_is_found: Planted::AccusedHoldAll,
    a_withdrawn_delivery_that_is_forgotten_is_found: Planted::WithdrawnForgotten,
    a_command_that_is_carried_out_each_time_it_is_read_is_found: Planted::CommandAgain,
    wheel_entries_that_are_left_behind_are_found: Planted::WheelEntriesLeft,
}

faults! { is_found_in_the_store:
    a_cascade_in_two_transactions_is_found: Broken::CascadeInTwo,
    two_timers_of_one_key_are_found: Broken::KeysIgnored,
    a_key_that_stays_taken_is_found: Broken::KeysKept,
    a_wrong_handle_for_a_key_is_found: Broken::KeyOfAnother,
    a_dead_letter_that_is_lost_is_found: Broken::DeadLettersLost,
    failures_that_are_not_counted_are_found: Broken::FailuresForgotten,
    starts_that_are_not_counted_are_found: Broken::StartsForgotten,
    an_insert_that_is_refused_and_written_is_found: Broken::FullAndWritten,
    a_payload_of_another_timer_is_found: Broken::PayloadsSwapped,
    what_is_not_archived_is_found: Broken::ArchiveLost,
    what_expires_too_early_is_found: Broken::ExpiresAll,
    a_setting_that_is_lost_is_found: Broken::SettingsLost,
}

faults! { is_found_in_the_protocol:
    a_lease_that_begins_with_its_receipt_is_found: Planted::TrustByReceipt,
    a_lease_extended_by_a_heartbeat_of_no_rows_is_found: Planted::HeartbeatOfNoRows,
    a_lease_that_is_trusted_for_a_whole_ttl_is_found: Planted::TrustedForTtl,
    blockers_that_are_not_terminated_are_found: Planted::BlockersStay,
    an_observation_that_goes_on_is_found: Planted::ObservationGoesOn,
    a_partition_that_was_free_before_a_failover_is_found: Planted::OldTimelineCounts,
    a_lost_reply_that_counts_as_a_refusal_is_found: Planted::DoubtIsRefusal,
    a_taken_key_that_counts_as_done_is_found: Planted::UniqueViolationIsDone,
    epochs_that_repeat_after_a_failover_are_found: Planted::EpochsRepeat,
    deliveries_that_are_not_handed_over_are_found: Planted::HandedOverForgotten,
    ends_that_are_not_read_are_found: Planted::EndsNotRead,
    timers_that_stay_with_a_dead_process_are_found: Planted::DeadNodesKept,
    a_hand_over_that_a_failover_has_lost_is_found: Planted::LostHandOverKept,
    an_observation_of_a_handler_that_goes_on_is_found: Planted::OthersStayObserved,
}

faults! { is_found_in_the_cluster:
    commits_without_a_fence_are_found: cluster::Fault::NoFence,
    a_fence_that_does_not_hold_up_a_take_over_is_found: cluster::Fault::FenceForKeyShare,
    a_fence_that_does_not_hold_up_its_own_opening_is_found: cluster::Fault::FenceForShare,
    a_fence_on_any_timeline_is_found: cluster::Fault::FenceOfAnyTimeline,
    an_owner_that_leaves_on_a_new_timeline_is_found: cluster::Fault::LeavesOnNewTimeline,
    commits_without_a_gap_check_are_found: cluster::Fault::NoGapCheck,
    a_counter_that_is_not_compared_again_is_found: cluster::Fault::CounterNotComparedAgain,
    an_end_that_is_applied_twice_is_found: cluster::Fault::EndsKept,
    a_delivery_without_a_look_at_the_lease_is_found: cluster::Fault::LeaseNotLookedAt,
}
