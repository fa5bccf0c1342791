//! A store is handed over while handlers run, and taken over from such a process.

use super::*;

impl Subject {
    fn handing_over() -> Subject {
        Subject::with(|config| config.hands_over = true).handles(2)
    }

    /// Stops with this many deliveries. Their rows are in `delivered`.
    fn stopping(deliveries: usize) -> Subject {
        let mut it = Subject::handing_over();
        it.insert_many("mail", deliveries, 0);
        it.advance(1_000);
        it.engine.handle_stop();
        it.follow();
        it
    }

    /// The steps of the next commit, which is in flight afterwards.
    fn in_flight(&self) -> Vec<Op> {
        let request = self.requests.front().unwrap();
        ops_of(request).unwrap().to_vec()
    }

    /// Begins with a delivery in each place, in another process that has handed over. Returns their rows.
    fn taking_over(ready: usize) -> (Subject, Vec<Row>) {
        let mut it = Subject::new(Config::default()).handles(2);
        it.insert_many("mail", 2 + ready, 0);
        it.advance(1_000);
        it.created();
        let rows = std::mem::take(&mut it.delivered);
        let now = it.later(SECOND);
        it.begin_without_turn(now);
        it.engine.restore_handed_over(rows.clone());
        it.settle();
        it.run_until(now.boot_micros + 20 * SECOND);
        (it, rows)
    }

    fn ends(&mut self, ends: &[(Id, Option<Ended>)]) {
        self.engine.handle_ends(ends.to_vec());
        self.settle();
    }
}

fn hands_over(rows: &[Row]) -> Op {
    Op::HandOver(rows.iter().map(|row| row.id).collect())
}

#[test]
fn a_stopping_engine_hands_over_what_runs_and_reports_how_it_ends() {
    let mut it = Subject::stopping(3);
    let rows = it.delivered.clone();
    let steps = it.in_flight();
    assert!(matches!(&steps[..], [Op::Set(..), hand_over] if *hand_over == hands_over(&rows)));
    it.settle();
    assert_eq!(it.engine.stats().running, 2);
    assert!(!it.engine.is_idle());
    // The number of the attempt decides whether it is reported as one that is retried.
    assert!(it.engine.handle_ended(rows[0].id, failed()));
    it.follow();
    assert_eq!(it.in_flight(), [Op::Report(rows[0].id, Some(failed()))]);
    assert_eq!(it.engine.unsettled(), 1);
    it.settle();
    assert!(!it.engine.handle_ended(rows[1].id, Ended::Well));
    it.follow();
    assert_eq!(it.in_flight(), [Op::Report(rows[1].id, Some(Ended::Well))]);
    it.settle();
    assert!(it.engine.is_idle() && it.engine.is_written());
    // Nothing else was written, and the third one is still in memory.
    assert_eq!((it.store.len(), it.requests.len()), (3, 0));
    assert_eq!(it.engine.stats().held, 1);
}

/// A report of a timer that was not handed over would be lost.
#[test]
fn a_delivery_that_ends_during_the_hand_over_is_reported_afterwards() {
    let mut it = Subject::stopping(2);
    let (rows, deliveries) = (it.delivered.clone(), it.on_their_way.clone());
    it.engine.handle_ended(rows[0].id, Ended::Well);
    it.engine.handle_withdrawn(&deliveries[1]);
    it.follow();
    assert_eq!(it.requests.len(), 1);
    it.carry_out_next();
    for (row, end) in rows.iter().zip([Some(Ended::Well), None]) {
        assert_eq!(it.next_commit(), [Op::Report(row.id, end)]);
    }
    assert!(it.engine.is_idle() && it.engine.is_written());
}

#[test]
fn a_refused_hand_over_is_repeated_with_what_still_runs() {
    let mut it = Subject::stopping(2);
    let rows = it.delivered.clone();
    it.engine.handle_ended(rows[0].id, Ended::Well);
    it.reply(refused());
    it.advance(SECOND);
    // It was settled before the next attempt.
    assert_eq!(it.store.len(), 1);
    it.engine.handle_ended(rows[1].id, Ended::Well);
    it.settle();
    let (len, is_idle) = (it.store.len(), it.engine.is_idle());
    assert_eq!((len, is_idle), (1, true), "the last one was handed over");
}

#[test]
fn an_engine_without_running_handlers_or_with_abandoned_ones_does_not_hand_over() {
    let it = Subject::stopping(0);
    assert!(matches!(&it.in_flight()[..], [Op::Set(..)]));
    let mut it = Subject::handing_over();
    it.insert_many("mail", 1, 0);
    it.advance(1_000);
    it.engine.handle_abandon();
    it.engine.handle_stop();
    it.follow();
    assert!(matches!(&it.in_flight()[..], [Op::Set(..)]));
}

#[test]
fn a_command_during_a_hand_over_is_left_to_the_next_owner() {
    let mut it = Subject::handing_over();
    it.insert_many("mail", 1, 0);
    it.advance(1_000);
    it.engine.handle_stop();
    it.engine.handle_command(1, Command::Pause("shop".into()));
    it.settle();
    it.engine.handle_command(2, Command::Pause("shop".into()));
    it.follow();
    assert_eq!(it.requests.len(), 0);
}

#[test]
fn deliveries_in_another_process_take_places_until_they_end() {
    let (mut it, rows) = Subject::taking_over(2);
    assert_eq!((it.delivered.len(), it.of(DEFAULT).remote), (0, 2));
    // No handler is running in this process.
    assert_eq!((it.engine.stats().running, it.of(DEFAULT).running), (0, 0));
    it.cancel(rows[0].handle());
    assert_eq!(it.answers.pop(), Some(Answer::AlreadyFired));
    let running = |at: usize| (rows[at].id, None);
    it.ends(&[running(0), running(1)]);
    assert_eq!(it.delivered.len(), 0);
    it.ends(&[(rows[0].id, Some(Ended::Well)), running(1)]);
    // Its place is free.
    assert_eq!((it.delivered.len(), it.store.len()), (1, 3));
    // It is returned until its end is carried out.
    it.ends(&[(rows[0].id, Some(Ended::Well)), running(1)]);
    assert!(it.engine.waits_for_ends());
    it.ends(&[(rows[1].id, Some(failed()))]);
    assert!(!it.engine.waits_for_ends());
    assert_eq!((it.delivered.len(), it.of(DEFAULT).counts.retried), (2, 1));
    it.end_all(&Ended::Well);
    assert_eq!(it.store.len(), 1);
    it.run_until(it.later(20 * SECOND).boot_micros);
    assert_eq!(it.delivered[0].failures, 1);
    it.end_all(&Ended::Well);
    assert!(it.store.is_empty() && it.engine.is_idle());
}

#[test]
fn timers_of_a_process_that_has_ended_are_delivered_again() {
    let (mut it, rows) = Subject::taking_over(0);
    for (left, delivered) in [(vec![(rows[1].id, None)], 1), (Vec::new(), 2)] {
        it.ends(&left);
        it.advance(1_000);
        assert_eq!(it.delivered, rows[..delivered]);
    }
    it.end_all(&Ended::Well);
    assert!(it.store.is_empty() && it.engine.is_idle());
}

/// With three processes, one after the other.
#[test]
fn an_engine_hands_over_its_own_deliveries_only() {
    let (mut it, rows) = Subject::taking_over(1);
    it.ends(&[(rows[0].id, Some(Ended::Well)), (rows[1].id, None)]);
    it.config.hands_over = true;
    let now = it.later(SECOND);
    it.begin_without_turn(now);
    it.engine.restore_handed_over(vec![rows[1].clone()]);
    it.settle();
    it.advance(1_000);
    let own = it.delivered.clone();
    assert_eq!(own.len(), 1);
    it.engine.handle_stop();
    it.follow();
    assert_eq!(it.in_flight().pop(), Some(hands_over(&own)));
    // The next owner reads what ends now.
    it.settle();
    it.ends(&[(rows[1].id, Some(Ended::Well)), (own[0].id, None)]);
    it.engine.handle_ended(own[0].id, Ended::Well);
    it.follow();
    let report = Op::Report(own[0].id, Some(Ended::Well));
    assert_eq!(it.in_flight(), [report]);
    it.settle();
    assert_eq!((it.store.len(), it.engine.is_idle()), (2, true));
}

/// Otherwise a handler that ends during each commit would put it off for ever.
#[test]
fn a_hand_over_does_not_wait_until_everything_is_settled() {
    let mut it = Subject::handing_over();
    it.insert_many("mail", 2, 0);
    it.advance(1_000);
    let rows = it.delivered.clone();
    it.engine
        .handle_policy(7, &"shop".into(), &Policy::default(), false);
    it.follow();
    it.engine.handle_stop();
    it.engine.handle_ended(rows[0].id, Ended::Well);
    assert!(matches!(&it.next_commit()[..], [Op::Set(..)]));
    let hand_over = hands_over(&rows[1..]);
    assert!(
        matches!(&it.next_commit()[..], [Op::Settle(_), Op::Set(..), last] if *last == hand_over)
    );
}

#[test]
fn a_hand_over_that_was_refused_alone_is_tried_again() {
    let mut it = Subject::handing_over();
    it.config.max_in_commit = 1;
    it.begin(it.later(SECOND));
    it.insert_many("mail", 1, 0);
    it.advance(1_000);
    it.engine.handle_stop();
    it.follow();
    assert!(matches!(&it.next_commit()[..], [Op::Set(..)]));
    assert!(matches!(&it.in_flight()[..], [Op::HandOver(_)]));
    it.reply(refused());
    let at = it.engine.poll_timeout().unwrap();
    it.pass(at - it.engine.now().boot_micros);
    assert!(matches!(&it.in_flight()[..], [Op::HandOver(_)]));
}

/// A step that a refused commit leaves to be written again must not follow it.
#[test]
fn a_hand_over_is_not_written_before_other_steps() {
    let mut it = Subject::handing_over();
    it.config.max_in_commit = 2;
    it.begin(it.later(SECOND));
    it.insert_many("mail", 2, 0);
    it.insert_many("close", 2, 0);
    it.handle("close", 2);
    it.advance(1_000);
    let rows = it.delivered.clone();
    it.engine.handle_pause(7, &"default".into(), true);
    it.follow();
    it.engine.handle_stop();
    for row in &rows[..3] {
        it.engine.handle_ended(row.id, Ended::Well);
    }
    assert_eq!(it.next_commit().len(), 1);
    // Two of the settles; the other steps are in the next commit.
    assert!(matches!(
        &it.in_flight()[..],
        [Op::Settle(_), Op::Settle(_)]
    ));
    it.reply(refused());
    it.pass(SECOND);
    let mut steps = Vec::new();
    while !it.requests.is_empty() {
        steps.extend(it.next_commit());
    }
    let last = steps.pop();
    assert_eq!(last, Some(hands_over(&rows[3..])));
    assert_eq!((steps.len(), it.store.len()), (4, 1));
    it.engine.handle_ended(rows[3].id, Ended::Well);
    it.follow();
    assert_eq!(it.in_flight(), [Op::Report(rows[3].id, Some(Ended::Well))]);
}

#[test]
fn an_end_that_is_deferred_is_unsettled_and_no_longer_running() {
    let mut it = Subject::stopping(2);
    let rows = it.delivered.clone();
    assert!(it.engine.handle_ended(rows[0].id, failed()));
    assert!(!it.engine.handle_ended(rows[1].id, Ended::Well));
    assert_eq!((it.engine.stats().running, it.engine.unsettled()), (0, 2));
}

/// They depend on its retries.
#[test]
fn failures_wait_until_the_handler_is_added() {
    let mut it = Subject::new(Config {
        retry_delays: Vec::new(),
        ..Config::default()
    })
    .handles(2);
    it.insert_many("mail", 2, 0);
    it.advance(1_000);
    let rows = std::mem::take(&mut it.delivered);
    it.handled.clear();
    it.begin_without_turn(it.later(SECOND));
    it.engine.restore_handed_over(rows.clone());
    let ends = [
        (rows[0].id, Some(failed())),
        (rows[1].id, Some(Ended::Well)),
    ];
    it.ends(&ends);
    assert_eq!((it.store.len(), it.dead.len()), (1, 0));
    assert!(it.engine.waits_for_ends());
    let retries = Retries::RetryDelays(vec![seconds(1)]);
    it.engine.add_handler(&"mail".into(), 2, Some(retries));
    it.ends(&ends[..1]);
    assert_eq!((it.store.len(), it.dead.len()), (1, 0));
    assert!(!it.engine.waits_for_ends());
}

#[test]
fn the_limit_of_a_process_does_not_include_other_processes() {
    let mut it = Subject::with(|config| config.concurrency = Some(2)).handles(2);
    it.insert_many("mail", 2, 0);
    it.insert_many("close", 2, 0);
    it.advance(1_000);
    let rows = std::mem::take(&mut it.delivered);
    it.begin_without_turn(it.later(SECOND));
    it.engine.restore_handed_over(rows);
    it.settle();
    it.handle("close", 2);
    it.advance(SECOND);
    it.advance(SECOND);
    assert_eq!(it.delivered.len(), 2);
}

/// Its handlers end with it.
#[test]
fn an_engine_without_a_runtime_does_not_hand_over() {
    let mut it = Subject::handing_over();
    it.insert_many("mail", 1, 0);
    it.advance(1_000);
    it.engine.handle_end_of_handlers();
    it.engine.handle_stop();
    it.follow();
    assert_eq!(it.requests.len(), 0);
}

#[test]
fn a_stopping_engine_no_longer_reads_ends() {
    let (mut it, _) = Subject::taking_over(0);
    assert!(it.engine.waits_for_ends());
    it.engine.handle_stop();
    assert!(!it.engine.waits_for_ends());
}
