//! The self-check: what must hold after a run, for every clock and every load.

use crate::ledger::Tally;
use crate::load::Outcome;

/// The failures, each with the name of its clock.
pub(crate) fn failures(outcomes: &[Outcome]) -> Vec<String> {
    let of_one = |outcome: &Outcome| -> Vec<String> {
        let mut found = broken(&outcome.tally);
        let never_closed = u64::from(outcome.silent) - outcome.tally.silent_closed;
        // Ctrl-C may come before the idle deadline does.
        if never_closed > 0 && !outcome.interrupted {
            found.push(format!(
                "{never_closed} silent connections were never closed"
            ));
        }
        if let Some(books) = &outcome.books {
            // Every timer has ended exactly once, and none is pending.
            let ended = books.fired() + books.cancelled() + books.stopped();
            if books.pending() > 0 || books.armed() != ended {
                found.push(format!("the timer's own counters do not add up: {books}"));
            }
        }
        let named = |failure| format!("{}: {failure}", outcome.clock);
        found.into_iter().map(named).collect()
    };
    outcomes.iter().flat_map(of_one).collect()
}

/// The promises that the counts show to be broken.
fn broken(tally: &Tally) -> Vec<String> {
    let Tally {
        calls,
        replies,
        timeouts,
        errors,
        abandoned,
        delays_armed,
        delays_fired,
        delays_cancelled,
        replies_sent,
        late_replies,
        ..
    } = tally;
    let mut broken = Vec::new();
    let mut promise = |holds: bool, failure: String| broken.extend((!holds).then_some(failure));
    promise(
        tally.ended() == *calls && *abandoned == 0,
        format!(
            "{calls} calls, but {replies} replies, {timeouts} timeouts, {errors} errors and {abandoned} abandoned"
        ),
    );
    let other = "the calls that ended are not the calls that were made";
    promise(tally.opened_ids == tally.ended_ids, other.into());
    for (early, failure) in [
        (tally.early_timeouts, "timeouts fired before their deadline"),
        (tally.early_delays, "of the server's delays were cut short"),
        (
            tally.silent_closed_early,
            "connections were closed before their idle deadline",
        ),
    ] {
        promise(early == 0, format!("{early} {failure}"));
    }
    promise(
        *delays_armed == delays_fired + delays_cancelled,
        format!(
            "{delays_armed} delays armed by the server, but {delays_fired} fired and {delays_cancelled} cancelled"
        ),
    );
    // A connection that breaks loses the replies in flight on it, so then the counts may differ.
    promise(
        *replies_sent == replies + late_replies || tally.connections_lost > 0,
        format!(
            "{replies_sent} replies sent, but {replies} taken by their calls and {late_replies} too late"
        ),
    );
    broken
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ledger::Ledger;
    use crate::plan::CallId;

    const LATER: Duration = Duration::from_secs(9);

    #[test]
    fn calls_that_end_once_pass() {
        let ledger = Ledger::default();
        ledger.open(CallId(1), Duration::ZERO).timed_out();
        ledger.open(CallId(2), LATER).replied();
        ledger.open(CallId(3), LATER).failed();
        ledger.replies_sent.add(1);
        let tally = ledger.tally();
        assert_eq!(broken(&tally), Vec::<String>::new());
        assert_eq!((tally.armed(), tally.cancelled(), tally.fired()), (3, 2, 1));
    }

    #[test]
    fn each_broken_promise_is_named() {
        let ledger = Ledger::default();
        ledger.open(CallId(1), LATER).timed_out();
        drop(ledger.open(CallId(2), LATER));
        ledger.delays_armed.add(1);
        ledger.replies_sent.add(1);
        ledger.silent_closed_early.add(1);
        ledger.early_delays.add(1);
        assert_eq!(broken(&ledger.tally()).len(), 7);
    }

    #[test]
    fn one_call_that_ends_twice_does_not_make_up_for_another() {
        let ledger = Ledger::default();
        let (never_ends, ends_twice) = (CallId(1), CallId(2));
        std::mem::forget(ledger.open(never_ends, Duration::ZERO));
        ledger.open(ends_twice, Duration::ZERO).timed_out();
        let opened_once = ledger.tally();
        ledger.open(ends_twice, Duration::ZERO).timed_out();
        let tally = Tally {
            calls: opened_once.calls,
            opened_ids: opened_once.opened_ids,
            ..ledger.tally()
        };
        assert_eq!(tally.ended(), tally.calls);
        let broken = broken(&tally);
        assert_eq!(
            broken,
            ["the calls that ended are not the calls that were made"]
        );
    }
}
