//! The test cases, by subject.

mod archive;
mod cascade;
mod commit;
mod dead;
mod extras;
mod keys;
mod lists;
mod load;
mod moves;
mod settings;
mod values;

use super::subject::{Done, Subject};

pub(crate) type Case = fn(&mut Subject<'_>) -> Done;

/// Pairs of a function's name and the function.
macro_rules! named {
    ($($file:ident: $($case:ident,)*;)*) => {
        &[$($((stringify!($case), $file::$case),)*)*]
    };
}

pub(crate) const ALL: &[(&str, Case)] = named! {
    load:
        an_empty_store_has_nothing,
        rows_load_as_they_were_inserted,
        rows_load_in_order_of_their_cursors,
        a_load_begins_after_a_position,
        a_load_ends_before_a_second,
        a_load_has_at_most_so_many_rows,
        a_load_ends_with_the_row_that_fills_it,
        pages_of_a_load_join,
        rows_of_coarser_buckets_do_not_load,
        rows_of_coarser_buckets_load_by_level,
        handlers_load_apart,
        the_first_second_is_found,
        the_first_bucket_of_each_level_is_found,
        handlers_are_known_by_name,
    ;
    commit:
        epochs_rise,
        an_epoch_begins_without_an_opening,
        a_row_inserted_twice_is_there_once,
        a_settled_row_is_gone,
        a_settle_of_a_moved_row_does_nothing,
        a_repeated_commit_is_not_done_again,
        the_next_epoch_begins_its_own_commits,
        steps_are_done_in_order,
        an_empty_commit_does_nothing,
        a_large_commit_is_whole,
    ;
    keys:
        a_key_belongs_to_one_timer,
        a_key_of_a_moved_timer_names_its_first_handle,
        a_key_may_be_empty,
        a_key_may_be_long,
        steps_with_a_key_are_done_in_order,
        a_key_is_of_one_handler,
        a_settle_frees_the_key,
        a_cancel_frees_the_key,
        a_retry_keeps_the_key,
        a_key_survives_a_cascade,
        the_same_timer_may_insert_its_key_again,
        a_timer_is_found_by_its_key,
        a_key_that_is_only_archived_finds_no_timer,
        a_key_that_is_free_finds_no_timer,
    ;
    moves:
        a_timer_is_cancelled_in_each_level,
        a_cancel_of_no_timer_says_so,
        a_cancel_leaves_its_neighbours,
        a_timer_moves_between_all_levels,
        a_moved_timer_is_found_by_its_old_handle,
        a_timer_that_has_moved_is_inserted_as_it_is,
        a_timer_is_read_by_its_handle,
        a_timer_moves_to_its_own_second,
        a_reschedule_of_no_timer_says_so,
        a_settled_timer_is_not_found,
        a_handle_of_another_handler_finds_no_timer,
        a_retry_counts_the_failure,
        a_snooze_counts_no_failure,
        a_retry_to_a_coarser_level_is_found_by_its_handle,
        a_retry_of_a_gone_row_does_nothing,
    ;
    dead:
        a_buried_row_is_a_dead_letter,
        a_burial_frees_the_key,
        a_burial_of_a_gone_row_does_nothing,
        dead_letters_are_listed_in_pages,
        dead_letters_are_listed_by_handlers,
        a_page_of_dead_letters_ends_with_the_one_that_fills_it,
        a_redriven_dead_letter_is_a_timer,
        a_redriven_dead_letter_is_found_by_its_old_handle,
        a_redrive_of_no_dead_letter_says_so,
        a_dead_letter_is_not_cancelled,
        a_discarded_dead_letter_is_gone,
        dead_letters_of_a_key_are_erased,
    ;
    extras:
        a_timer_keeps_its_extras,
        extras_count_as_bytes,
        timers_are_found_by_their_tag,
    ;
    lists:
        timers_are_listed_in_pages,
        the_longest_bucket_is_listed_first_if_starts_are_equal,
        a_cascade_between_two_pages_hides_no_timer,
        timers_and_dead_letters_are_counted,
    ;
    archive:
        an_archived_row_leaves_a_record,
        an_archived_key_stays_taken,
        an_archive_of_a_gone_row_keeps_nothing,
        what_is_archived_is_listed_in_pages,
        what_is_archived_is_of_one_handler,
        what_has_expired_is_gone_with_its_keys,
        what_expires_is_some_at_a_time,
        a_key_of_another_timer_does_not_expire,
        an_erased_key_leaves_its_record_and_becomes_free,
    ;
    settings:
        settings_are_kept_in_order,
        a_setting_is_replaced_and_deleted,
        steps_of_all_are_done_in_order,
        a_start_is_noted_in_place,
        a_start_of_a_gone_row_does_nothing,
        a_move_forgets_the_starts,
        starts_survive_a_burial_and_a_cascade,
    ;
    cascade:
        each_level_cascades_into_all_finer_ones,
        a_cascade_moves_the_first_rows,
        a_cascade_ends_with_the_row_that_fills_it,
        a_cascade_of_no_rows_moves_none,
        an_empty_bucket_cascades_to_nothing,
        a_cascade_leaves_other_buckets,
        a_cascade_names_the_first_second_of_each_handler,
        a_cascaded_timer_is_found_by_its_handle,
        a_moved_timer_cascades_as_such,
        a_cascade_before_1970_goes_where_it_should,
        a_late_cascade_goes_to_seconds,
    ;
    values:
        a_payload_may_have_any_byte_or_none_or_a_megabyte,
        handlers_may_have_strange_names,
        due_times_before_1970_are_in_order,
        due_times_may_be_as_far_as_they_go,
        failures_may_be_many,
        the_last_id_may_be_used,
    ;
};
