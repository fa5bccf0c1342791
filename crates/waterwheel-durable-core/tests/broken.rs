//! Checks that a store with a fault fails the cases that look for it.

use std::sync::Arc;

use waterwheel_durable_core::conformance::all;
use waterwheel_durable_core::store::{
    ArchiveCursor, Counts, DeadLetters, Due, Extras, Handle, HandlePage, Id, Level, MemoryStore,
    Op, Outcome, PageLimit, PendingCursor, Row, RowCursor, Scope, Store, StoreError, forward,
};

/// Faults, each with a case that finds it.
macro_rules! faults {
    ($($fault:ident: $case:ident,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum Fault {
            $($fault,)*
        }

        const FAULTS: &[(Fault, &str)] = &[$((Fault::$fault, stringify!($case)),)*];
    };
}

faults! {
    EpochsStandStill: epochs_rise,
    EpochsBeginOnce: an_epoch_begins_without_an_opening,
    CommitsAreRepeated: a_repeated_commit_is_not_done_again,
    LoadsIncludeTheFirstPosition: a_load_begins_after_a_position,
    LoadsIncludeTheLastSecond: a_load_ends_before_a_second,
    LoadsHaveOneRowMore: a_load_has_at_most_so_many_rows,
    LoadsIgnoreBytes: a_load_ends_with_the_row_that_fills_it,
    LevelsBeginAgain: rows_of_coarser_buckets_load_by_level,
    LevelsHaveOneHandler: rows_of_coarser_buckets_load_by_level,
    LevelsIgnoreBytes: rows_of_coarser_buckets_load_by_level,
    SecondsBeginOneLater: the_first_second_is_found,
    KeysAreIgnored: a_key_belongs_to_one_timer,
    SettlesAreLost: a_settled_row_is_gone,
    CancelsSeeOnlyTheFinestLevel: a_timer_is_cancelled_in_each_level,
    CancelsSayThatAllWasThere: a_cancel_of_no_timer_says_so,
    HandlesAreOfAnyHandler: a_handle_of_another_handler_finds_no_timer,
    ReschedulesLeaveNoNote: a_moved_timer_is_found_by_its_old_handle,
    InsertsLeaveNoNote: a_timer_that_has_moved_is_inserted_as_it_is,
    EpochsIgnoreTheOneBefore: an_epoch_begins_without_an_opening,
    RetriesAreNotCounted: a_retry_counts_the_failure,
    SnoozesAreCounted: a_snooze_counts_no_failure,
    BurialsKeepNoDeadLetter: a_buried_row_is_a_dead_letter,
    RedrivesKeepTheFailures: a_redriven_dead_letter_is_a_timer,
    CascadesSaySoonerThatNoneIsLeft: a_cascade_moves_the_first_rows,
    CascadesNameNoSeconds: a_cascade_names_the_first_second_of_each_handler,
    CascadesGoToSeconds: each_level_cascades_into_all_finer_ones,
    CascadesMoveOneRowMore: a_cascade_of_no_rows_moves_none,
    CascadesIgnoreBytes: a_cascade_ends_with_the_row_that_fills_it,
    StepsAreDoneLastFirst: steps_are_done_in_order,
    PayloadsEndAtZero: a_payload_may_have_any_byte_or_none_or_a_megabyte,
    HandlersAreTrimmed: handlers_may_have_strange_names,
    ArchivesKeepNothing: an_archived_row_leaves_a_record,
    ArchivesFreeTheKey: an_archived_key_stays_taken,
    ExpiriesIgnoreTheDay: what_has_expired_is_gone_with_its_keys,
    ErasuresAreOfAnyKey: dead_letters_of_a_key_are_erased,
    ErasuresLeaveTheArchive: an_erased_key_leaves_its_record_and_becomes_free,
    StartsAreNotNoted: a_start_is_noted_in_place,
    SettingsAreNotDeleted: a_setting_is_replaced_and_deleted,
    AllIsDoneLastFirst: steps_of_all_are_done_in_order,
    DeadLettersAreOfAllHandlers: dead_letters_are_listed_by_handlers,
    DeadLettersHaveOneMore: dead_letters_are_listed_in_pages,
    DeadLettersIgnoreBytes: a_page_of_dead_letters_ends_with_the_one_that_fills_it,
    DeadLettersEndTooSoon: dead_letters_are_listed_in_pages,
    DeadLettersBeginAgain: dead_letters_are_listed_in_pages,
    ReadsSeeOnlyTheFinestLevel: a_timer_is_read_by_its_handle,
    ExtrasAreForgotten: a_timer_keeps_its_extras,
    TagsAreOfAllTimers: timers_are_found_by_their_tag,
    ListsAreOfAllHandlers: timers_are_listed_in_pages,
    ListsHaveOneMore: timers_are_listed_in_pages,
    ListsEndTooSoon: timers_are_listed_in_pages,
    ListsBeginAgain: timers_are_listed_in_pages,
    ListsHaveMovedHandles: timers_are_listed_in_pages,
    ListsIgnoreTheOrder: the_longest_bucket_is_listed_first_if_starts_are_equal,
    ListsBeginWithTheFinestLevel: a_cascade_between_two_pages_hides_no_timer,
    CountsAreOfTheCommitBefore: timers_and_dead_letters_are_counted,
    CountsHaveNoDeadLetters: timers_and_dead_letters_are_counted,
    FindsSeeArchivedTimers: a_key_that_is_only_archived_finds_no_timer,
    FindsSeeOnlyTheFinestLevel: a_timer_is_found_by_its_key,
    FindsIgnoreTheHandler: a_timer_is_found_by_its_key,
    FindsRememberTheLast: a_key_that_is_free_finds_no_timer,
}

/// A store in memory with a fault.
struct Broken {
    inner: MemoryStore,
    fault: Fault,
    number: u64,
    /// The last handle that was found.
    found: Option<Handle>,
    /// The counts before the last commit.
    counts: Counts,
}

impl Broken {
    /// The step that the faulty store carries out instead of this one.
    fn bent(&self, op: &Op) -> Op {
        let mut op = op.clone();
        match (self.fault, &mut op) {
            (Fault::KeysAreIgnored, Op::Insert(row, _)) => row.key = None,
            (Fault::InsertsLeaveNoNote, Op::Insert(row, _)) => row.first_due = row.due,
            (Fault::EpochsIgnoreTheOneBefore, Op::NextEpoch(after)) => *after = 0,
            (Fault::ExtrasAreForgotten, Op::Insert(row, _)) => row.extras = None,
            (Fault::TagsAreOfAllTimers, Op::Insert(row, _)) => {
                let retries = row.extras.as_ref().and_then(|it| it.retries.clone());
                row.extras = Extras::new(Some("order 17".into()), retries);
            }
            (Fault::SnoozesAreCounted, Op::Snooze(row, due, bucket)) => {
                op = Op::Retry(row.clone(), *due, *bucket);
            }
            (Fault::SettlesAreLost, Op::Settle(row)) => row.id = Id::MAX,
            (Fault::ArchivesKeepNothing, Op::Archive(row, _)) => op = Op::Settle(row.clone()),
            (Fault::ArchivesFreeTheKey, Op::Archive(row, _)) => {
                let expire = Op::Expire {
                    handler: Arc::clone(&row.handler),
                    before: i64::MAX,
                    limit: usize::MAX,
                };
                op = Op::All(vec![op, expire]);
            }
            (Fault::ExpiriesIgnoreTheDay, Op::Expire { before, .. }) => *before = i64::MAX,
            (Fault::ErasuresAreOfAnyKey, Op::Erase { handler, .. }) => {
                let limit = PageLimit::rows(usize::MAX);
                let dead = self.inner.clone().dead(Scope::All, Id::NONE, limit);
                let dead = dead.map(|page| page.dead).unwrap_or_default();
                let own = dead.iter().filter(|it| it.row.handler == *handler);
                op = Op::All(own.map(|it| Op::Discard(it.row.id)).collect());
            }
            (Fault::ErasuresLeaveTheArchive, Op::Erase { handler, key }) => {
                let found = self.inner.clone().find(handler, key);
                if found.is_ok_and(|found| found.is_none()) {
                    *handler = "none".into();
                }
            }
            (Fault::StartsAreNotNoted, Op::Start(row)) => row.id = Id::MAX,
            (Fault::SettingsAreNotDeleted, Op::Set(name, None)) => {
                *name = "none".into();
            }
            (Fault::AllIsDoneLastFirst, Op::All(steps)) => steps.reverse(),
            (Fault::CancelsSeeOnlyTheFinestLevel, Op::Cancel(handle)) => {
                let rows = self.inner.clone().load(
                    &handle.handler,
                    RowCursor::START,
                    i64::MAX,
                    PageLimit::rows(usize::MAX),
                );
                if rows.is_ok_and(|rows| rows.iter().all(|row| row.id != handle.id)) {
                    handle.id = Id::MAX;
                }
            }
            (Fault::HandlesAreOfAnyHandler, Op::Cancel(handle) | Op::Reschedule(handle, ..)) => {
                let mut found = self.inner.clone();
                let handlers = found.handlers().unwrap_or_default();
                let of = |handler: &Arc<str>| Handle {
                    handler: Arc::clone(handler),
                    ..handle.clone()
                };
                let mut is_of = |handler: &Arc<str>| {
                    let cancelled = found.begin();
                    let cancelled =
                        cancelled.and_then(|_| found.commit(1, &[Op::Cancel(of(handler))]));
                    cancelled.is_ok_and(|it| it == [Outcome::Cancelled(true)])
                };
                if let Some(handler) = handlers.iter().find(|it| is_of(it)) {
                    handle.handler = Arc::clone(handler);
                }
            }
            (Fault::BurialsKeepNoDeadLetter, Op::Bury { row, .. }) => op = Op::Settle(row.clone()),
            (Fault::CascadesGoToSeconds, Op::Cascade { now, .. }) => {
                *now = Due::from_millis(i64::MAX);
            }
            (Fault::CascadesMoveOneRowMore, Op::Cascade { limit, .. }) => limit.rows += 1,
            (Fault::CascadesIgnoreBytes, Op::Cascade { limit, .. }) => limit.bytes = usize::MAX,
            (Fault::PayloadsEndAtZero, Op::Insert(row, _)) => {
                let mut parts = row.payload.split(|byte| *byte == 0);
                row.payload = parts.next().unwrap_or_default().into();
            }
            (Fault::HandlersAreTrimmed, Op::Insert(row, _)) => {
                row.handler = row.handler.trim().into();
            }
            _ => {}
        }
        op
    }

    fn bent_outcome(&mut self, op: &Op, outcome: &mut Outcome) {
        match (self.fault, op, outcome) {
            (Fault::EpochsBeginOnce, _, Outcome::Epoch(epoch)) => *epoch = 2,
            (Fault::CancelsSayThatAllWasThere, _, Outcome::Cancelled(was_there)) => {
                *was_there = true;
            }
            (Fault::CascadesSaySoonerThatNoneIsLeft, _, Outcome::Cascaded { is_empty, .. }) => {
                *is_empty = true;
            }
            (Fault::CascadesNameNoSeconds, _, Outcome::Cascaded { seconds, .. }) => seconds.clear(),
            (Fault::ReschedulesLeaveNoNote, _, Outcome::Rescheduled(Some(row)))
            | (Fault::RedrivesKeepTheFailures, _, Outcome::Redriven(Some(row))) => {
                self.replace(row.clone());
            }
            (Fault::RetriesAreNotCounted, Op::Retry(row, due, _), _) => {
                let mut row = row.clone();
                row.due = *due;
                self.replace(row);
            }
            _ => {}
        }
    }

    /// Settles a row and writes it again, without a note or with its failures.
    fn replace(&mut self, mut row: Row) {
        let bucket = match self.inner.first_bucket(Level::Day) {
            Ok(None) => Level::Second.bucket(row.due),
            _ => return,
        };
        if self.fault == Fault::RedrivesKeepTheFailures {
            row.failures = 3;
        }
        if self.fault == Fault::ReschedulesLeaveNoNote {
            self.number += 1;
            let settle = Op::Settle(row.clone());
            assert!(self.inner.commit(self.number, &[settle]).is_ok());
            row.first_due = row.due;
        }
        self.number += 1;
        let insert = Op::Insert(row, bucket);
        assert!(self.inner.commit(self.number, &[insert]).is_ok());
    }
}

impl Store for Broken {
    fn begin(&mut self) -> Result<u64, StoreError> {
        let epoch = self.inner.begin()?;
        Ok(match self.fault {
            Fault::EpochsStandStill => 1,
            _ => epoch,
        })
    }

    fn commit(&mut self, number: u64, steps: &[Op]) -> Result<Vec<Outcome>, StoreError> {
        // A fault may add commits, so the inner store numbers its commits independently.
        let number = match self.fault {
            Fault::CommitsAreRepeated
            | Fault::ReschedulesLeaveNoNote
            | Fault::RedrivesKeepTheFailures
            | Fault::RetriesAreNotCounted => {
                self.number += 1;
                self.number
            }
            _ => number,
        };
        let mut bent: Vec<_> = steps.iter().map(|op| self.bent(op)).collect();
        let is_reversed = self.fault == Fault::StepsAreDoneLastFirst;
        if is_reversed {
            bent.reverse();
        }
        if self.fault == Fault::CountsAreOfTheCommitBefore {
            self.counts = self.inner.counts()?;
        }
        let mut outcomes = self.inner.commit(number, &bent)?;
        if is_reversed {
            outcomes.reverse();
        }
        for (op, outcome) in steps.iter().zip(&mut outcomes) {
            self.bent_outcome(op, outcome);
        }
        Ok(outcomes)
    }

    fn load(
        &mut self,
        handler: &str,
        mut after: RowCursor,
        mut before: i64,
        mut limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError> {
        match self.fault {
            Fault::LoadsIncludeTheFirstPosition if after.id > Id::NONE => {
                after.id = Id::from_stored(after.id.get() - 1);
            }
            Fault::LoadsIncludeTheLastSecond => before = before.saturating_add(1),
            Fault::LoadsHaveOneRowMore => limit.rows = limit.rows.saturating_add(1),
            Fault::LoadsIgnoreBytes => limit.bytes = usize::MAX,
            _ => {}
        }
        self.inner.load(handler, after, before, limit)
    }

    fn load_level(
        &mut self,
        mut after: PendingCursor,
        mut limit: PageLimit,
    ) -> Result<Vec<Row>, StoreError> {
        match self.fault {
            Fault::LevelsBeginAgain => after = PendingCursor::after_in(after.bucket.level, None),
            Fault::LevelsIgnoreBytes => limit.bytes = usize::MAX,
            _ => {}
        }
        let mut rows = self.inner.load_level(after, limit)?;
        if self.fault == Fault::LevelsHaveOneHandler {
            rows.retain(|row| &*row.handler == "mail");
        }
        Ok(rows)
    }

    fn first_second(&mut self, handler: &str, mut from: i64) -> Result<Option<i64>, StoreError> {
        if self.fault == Fault::SecondsBeginOneLater {
            from = from.saturating_add(1);
        }
        self.inner.first_second(handler, from)
    }

    fn dead(
        &mut self,
        mut scope: Scope<'_>,
        after: Id,
        mut limit: PageLimit,
    ) -> Result<DeadLetters, StoreError> {
        match self.fault {
            Fault::DeadLettersAreOfAllHandlers => scope = Scope::All,
            Fault::DeadLettersHaveOneMore => limit.rows = limit.rows.saturating_add(1),
            Fault::DeadLettersIgnoreBytes => limit.bytes = usize::MAX,
            _ => {}
        }
        let mut page = self.inner.dead(scope, after, limit)?;
        match self.fault {
            Fault::DeadLettersEndTooSoon => page.next = None,
            Fault::DeadLettersBeginAgain if page.next.is_some() => page.next = Some(after),
            _ => {}
        }
        Ok(page)
    }

    fn find(&mut self, handler: &str, key: &[u8]) -> Result<Option<Handle>, StoreError> {
        let mut found = self.inner.find(handler, key)?;
        match self.fault {
            Fault::FindsSeeArchivedTimers => {
                let all =
                    self.inner
                        .archived(handler, ArchiveCursor::START, i64::MAX, usize::MAX)?;
                let kept = all
                    .into_iter()
                    .find(|(_, it)| it.key.as_deref() == Some(key));
                found = found.or(kept.map(|(_, it)| Handle {
                    id: it.id,
                    due: it.due,
                    handler: handler.into(),
                }));
            }
            Fault::FindsSeeOnlyTheFinestLevel => {
                let limit = PageLimit::rows(usize::MAX);
                let rows = self
                    .inner
                    .load(handler, RowCursor::START, i64::MAX, limit)?;
                found = found.filter(|found| rows.iter().any(|row| row.id == found.id));
            }
            Fault::FindsIgnoreTheHandler => {
                for other in self.inner.handlers()? {
                    found = found.or(self.inner.find(&other, key)?);
                }
            }
            Fault::FindsRememberTheLast => {
                self.found = found.or(self.found.take());
                found = self.found.clone();
            }
            _ => {}
        }
        Ok(found)
    }

    fn get(&mut self, handle: &Handle) -> Result<Option<Row>, StoreError> {
        let found = self.inner.get(handle)?;
        match self.fault {
            Fault::ReadsSeeOnlyTheFinestLevel => {
                let limit = PageLimit::rows(usize::MAX);
                let rows = self
                    .inner
                    .load(&handle.handler, RowCursor::START, i64::MAX, limit)?;
                Ok(found.filter(|found| rows.contains(found)))
            }
            _ => Ok(found),
        }
    }

    fn handles(
        &mut self,
        mut scope: Scope<'_>,
        after: Option<PendingCursor>,
        mut limit: usize,
    ) -> Result<HandlePage, StoreError> {
        match self.fault {
            Fault::ListsAreOfAllHandlers => scope = Scope::All,
            Fault::ListsHaveOneMore => limit = limit.saturating_add(1),
            Fault::ListsBeginWithTheFinestLevel => {
                let mut all = self.inner.handles(scope, None, usize::MAX)?.handles;
                let order = |it: &PendingCursor| (it.bucket, it.id);
                all.retain(|(it, _)| after.is_none_or(|after| order(it) > order(&after)));
                all.sort_by_key(|(it, _)| order(it));
                let is_more = all.len() > limit;
                all.truncate(limit);
                let next = all.last().map(|(it, _)| *it).filter(|_| is_more);
                return Ok(HandlePage { handles: all, next });
            }
            _ => {}
        }
        let mut page = self.inner.handles(scope, after, limit)?;
        match self.fault {
            Fault::ListsEndTooSoon => page.next = None,
            Fault::ListsBeginAgain if page.next.is_some() => page.next = after,
            Fault::ListsIgnoreTheOrder => page.handles.reverse(),
            Fault::ListsHaveMovedHandles => {
                for (_, handle) in &mut page.handles {
                    let row = self.inner.get(handle)?;
                    handle.due = row.map_or(handle.due, |row| row.due);
                }
            }
            _ => {}
        }
        Ok(page)
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        let mut counts = self.inner.counts()?;
        match self.fault {
            Fault::CountsAreOfTheCommitBefore => counts = self.counts.clone(),
            Fault::CountsHaveNoDeadLetters => counts.dead.clear(),
            _ => {}
        }
        Ok(counts)
    }

    forward!(this => this.inner; first_bucket handlers commands rest);
}

#[test]
fn each_fault_of_a_store_fails_the_case_that_looks_for_it() {
    let mut failed = Vec::new();
    for &(fault, case) in FAULTS {
        let report = all(|| {
            Box::new(Broken {
                inner: MemoryStore::new(),
                fault,
                number: 1_000,
                found: None,
                counts: Counts::default(),
            })
        });
        let found: Vec<_> = report.failed().collect();
        assert!(found.contains(&case), "{fault:?} failed only {found:?}");
        assert!(found.len() < report.verdicts().len(), "{fault:?}");
        println!("{fault:?}: {} cases", found.len());
        // Without a rising epoch, every case that reopens the store fails.
        if fault != Fault::EpochsStandStill {
            failed.extend(found);
        }
    }
    failed.sort_unstable();
    failed.dedup();
    assert!(failed.len() >= 30, "{failed:?}");
}

#[test]
#[should_panic(expected = "FAILED  a_settled_row_is_gone: ")]
fn a_report_names_the_cases_that_failed() {
    let make = || -> Box<dyn Store> {
        Box::new(Broken {
            inner: MemoryStore::new(),
            fault: Fault::SettlesAreLost,
            number: 0,
            found: None,
            counts: Counts::default(),
        })
    };
    all(make).expect_all();
}
