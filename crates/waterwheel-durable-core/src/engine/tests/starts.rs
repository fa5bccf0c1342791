//! Timers whose start is noted before they are delivered.

use crate::store::RowCursor;

use super::poison::subject;
use super::*;

/// An engine after three ends, with a timer whose start has to be noted, and the request for that sent to the store.
pub(super) fn about_to_note() -> Subject {
    let mut it = subject(Some(9));
    it.insert_many("mail", 1, 0);
    for _ in 0..3 {
        it.advance(1_000);
        it.start_again();
    }
    if it.delivered.is_empty() {
        it.advance(1_000);
    }
    let now = it.engine.now();
    it.begin_without_turn(now);
    it.run_until_noting();
    it
}

impl Subject {
    /// Lets the store carry out everything before the note of a start, which is then requested.
    pub(super) fn run_until_noting(&mut self) {
        while !is_noting(self) {
            self.carry_out_next();
            self.pass(1_000);
        }
    }

    /// The number of starts that the store has noted for the first timer.
    pub(super) fn starts(&mut self) -> u64 {
        let limit = crate::store::PageLimit {
            rows: 1,
            bytes: usize::MAX,
        };
        let rows = self.store.load("mail", RowCursor::START, i64::MAX, limit);
        rows.unwrap()[0].starts
    }
}

fn is_noting(it: &Subject) -> bool {
    let first = it.requests.front().and_then(ops_of);
    matches!(first, Some([.., Op::Start(_)]))
}

#[test]
fn a_start_that_the_store_refuses_is_noted_later() {
    let mut it = about_to_note();
    for _ in 0..3 {
        assert!(is_noting(&it) && it.delivered.is_empty());
        it.reply(refused());
        it.pass(SECOND);
    }
    it.settle();
    assert_eq!(it.delivered.len(), 1);
    it.end_all(&Ended::Well);
    assert!(it.store.is_empty() && it.engine.is_idle());
}

#[test]
fn a_stop_before_a_start_is_noted_delivers_nothing() {
    for is_refused in [false, true] {
        let mut it = about_to_note();
        it.engine.handle_stop();
        it.follow();
        assert!(!it.engine.is_idle());
        if is_refused {
            it.reply(refused());
            // It does not delay the shutdown, even if the store never accepts it.
            assert!(it.engine.is_written() && it.engine.stats().running == 0);
            it.pass(SECOND);
        }
        it.settle();
        assert!(it.delivered.is_empty() && it.engine.is_idle());
        it.start_again();
        it.advance(1_000);
        assert_eq!(it.end_all(&Ended::Well).len(), 1);
        assert!(it.store.is_empty());
    }
}

#[test]
fn a_start_that_the_store_refuses_holds_up_no_stop() {
    let mut it = about_to_note();
    it.reply(refused());
    assert_eq!(it.engine.stats().running, 1);
    it.engine.handle_stop();
    it.follow();
    assert!(it.engine.is_written() && it.engine.stats().running == 0);
}

#[test]
fn a_pause_before_a_start_is_noted_delivers_nothing() {
    let mut it = about_to_note();
    it.reply(refused());
    it.engine.handle_pause(1, &DEFAULT.into(), true);
    it.follow();
    it.advance(SECOND);
    assert_eq!(it.answers.pop(), Some(Answer::Done));
    for _ in 0..10 {
        it.advance(SECOND);
    }
    assert!(it.delivered.is_empty() && it.engine.stats().running == 0);
    let noted = it.starts();
    it.pause(DEFAULT, false);
    it.run_until(it.engine.now().boot_micros + SECOND);
    // It is noted once, however often the start was attempted.
    assert_eq!((it.starts(), it.delivered[0].starts), (noted, noted));
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    assert!(it.store.is_empty() && it.engine.is_idle());
}

#[test]
fn a_move_forgets_a_start_that_was_given_back() {
    let mut it = about_to_note();
    let handle = it.created().remove(0);
    // The store applies the pause first.
    it.reply(refused());
    it.engine.handle_pause(1, &DEFAULT.into(), true);
    it.follow();
    it.advance(SECOND);
    assert_eq!(it.answers.pop(), Some(Answer::Done));
    assert!(it.delivered.is_empty() && it.starts() > 1);
    let sooner = Due::from_millis(NOW - 1_000);
    it.engine.handle_reschedule(1, handle, sooner);
    it.settle();
    assert_eq!(it.answers.pop(), Some(Answer::Done));
    it.pause(DEFAULT, false);
    it.run_until(it.engine.now().boot_micros + SECOND);
    assert_eq!((it.starts(), it.delivered[0].starts), (1, 1));
}

#[test]
fn a_clock_set_back_while_a_start_is_noted_makes_no_early_delivery() {
    let mut it = about_to_note();
    let hour = 3_600 * SECOND.cast_signed();
    it.jump(-hour);
    assert!(it.delivered.is_empty() && it.engine.stats().running == 0);
    it.jump(hour);
    it.run_until(it.engine.now().boot_micros + SECOND);
    assert_eq!(it.end_all(&Ended::Well).len(), 1);
    assert!(it.store.is_empty() && it.engine.is_idle());
}

/// An engine after two ends, so that starts are noted, with this rate and this many earlier timers.
fn limited(rate: Option<Rate>, timers: usize) -> Subject {
    let mut it = subject(None);
    it.set_policy(DEFAULT, &Policy::default().rate(rate));
    it.insert_many("mail", timers, 0);
    it.start_again();
    let now = it.later(SECOND);
    it.begin_without_turn(now);
    it.answers.clear();
    it
}

/// When handlers are called within a minute, in tenths of a second. The store replies to commits after the delays that `commit` returns; each delivery ends at once.
fn calls(it: &mut Subject, limit: usize, commit: impl Fn(u64) -> (u64, bool)) -> Vec<u64> {
    let (mut calls, mut count, mut since) = (Vec::new(), 0, 0);
    for tenth in 0..600 {
        it.pass(SECOND / 10);
        // No more deliveries begin than may be called, and no turn is asked for at which none could begin.
        let now = it.engine.now().boot_micros;
        assert!(it.engine.stats().running <= limit);
        assert!(it.engine.poll_timeout().is_none_or(|next| next > now));
        loop {
            for row in std::mem::take(&mut it.delivered) {
                calls.push(tenth);
                it.engine.handle_ended(row.id, Ended::Well);
                it.follow();
            }
            let Some(request) = it.requests.front() else {
                since = tenth + 1;
                break;
            };
            if ops_of(request).is_some() {
                let (after, is_refused) = commit(count);
                if tenth < since + after {
                    break;
                }
                count += 1;
                if is_refused {
                    it.reply(refused());
                    continue;
                }
            }
            since = tenth;
            it.carry_out_next();
        }
    }
    calls
}

#[test]
fn a_rate_counts_calls_and_not_the_notes_of_starts() {
    for burst in [1, 5] {
        // A disk that is full for ten seconds, and one that is occasionally slow.
        for is_slow in [false, true] {
            let mut it = limited(Some(Rate::per_second(1).burst(burst)), 40);
            // Timers of this run are not noted. A full disk refuses them.
            for _ in 0..3 {
                it.insert_to("mail", 0);
            }
            let calls = calls(&mut it, burst as usize, |count| match is_slow {
                true => ([0, 9, 0, 3, 25, 1, 0][count as usize % 7], false),
                false => (0, count < 50),
            });
            for (first, from) in calls.iter().enumerate() {
                for (more, to) in calls[first..].iter().enumerate() {
                    let limit = u64::from(burst) + (to - from) / 10;
                    assert!((more as u64) < limit, "{} from {from} to {to}", more + 1);
                }
            }
            // Deliveries continue, and those delayed by a full disk come all at once.
            assert!(calls.len() >= if is_slow { 20 } else { 40 }, "{calls:?}");
            let at_once = calls.chunk_by(|a, b| a == b).map(<[u64]>::len).max();
            let expected = if is_slow {
                at_once
            } else {
                Some(burst as usize)
            };
            assert_eq!(at_once, expected, "{calls:?}");
        }
    }
}

#[test]
fn a_rate_holds_for_starts_that_were_on_their_way() {
    let mut it = limited(None, 20);
    it.run_until_noting();
    it.reply(refused());
    let rate = Policy::default().rate(Rate::per_second(1).burst(1));
    it.engine.handle_policy(1, &DEFAULT.into(), &rate, false);
    it.pass(SECOND);
    let steps = it.next_commit();
    let starts = steps.iter().filter(|op| matches!(op, Op::Start(_))).count();
    assert!((1..19).contains(&starts), "{starts}");
    // The others were about to begin too, without a limit. Now one does, by the new rate.
    it.settle();
    assert_eq!(it.delivered.len(), starts + 1);
    let mut left = 20 - it.end_all(&Ended::Well).len();
    while left > 0 {
        it.run_until(it.engine.now().boot_micros + SECOND);
        assert_eq!(it.end_all(&Ended::Well).len(), 1);
        left -= 1;
    }
    assert!(it.store.is_empty() && it.engine.is_idle());
}
