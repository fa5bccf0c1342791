//! When timers are retried.

use crate::store::Extras;

use super::*;

/// The delays after each failure of the first timer of a namespace, in milliseconds, until it is given up.
fn delays(it: &mut Subject, handler: &str) -> Vec<u64> {
    it.insert_many(handler, 1, 0);
    it.created();
    it.run_until(it.engine.now().boot_micros + 1);
    let mut delays = Vec::new();
    loop {
        let failed_at = it.engine.now().boot_micros;
        it.end_all(&failed());
        let Some(next) = it.engine.poll_timeout() else {
            return delays;
        };
        it.run_until(next);
        while it.delivered.is_empty() {
            it.run_until(it.engine.poll_timeout().unwrap());
        }
        assert_eq!(it.delivered[0].failures as usize, delays.len() + 1);
        delays.push((it.engine.now().boot_micros - failed_at).div_ceil(1_000));
    }
}

#[test]
fn each_namespace_has_retry_delays_of_its_own() {
    let mut it = Subject::with(|config| config.retry_delays = vec![seconds(7)]).handles(1);
    it.namespace(
        "a",
        &Policy::default().retry_delays([seconds(15), seconds(180)]),
    );
    it.namespace("b", &Policy::default());
    it.namespace("c", &Policy::default().retry_delays([]));
    for (handler, expected) in [
        ("mail", &[7_000][..]),
        ("a/mail", &[15_000, 180_000]),
        ("b/mail", &[7_000]),
        ("c/mail", &[]),
    ] {
        let delays = delays(&mut it, handler);
        assert_eq!(delays.len(), expected.len(), "{handler}: {delays:?}");
        for (delay, expected) in delays.iter().zip(expected) {
            assert!(delay.abs_diff(*expected) <= 1, "{handler}: {delays:?}");
        }
    }
    assert_eq!((it.dead.len(), it.store.len()), (4, 0));
}

#[test]
fn retries_of_a_timer_precede_those_of_its_handler_and_namespace() {
    let delays = |delays: &[u64]| {
        let delays = delays.iter().map(|it| seconds(*it));
        Retries::RetryDelays(delays.collect())
    };
    let mut it = Subject::new(Config::default());
    it.namespace("a", &Policy::default().retry_delays([seconds(1)]));
    it.engine
        .add_handler(&"a/mail".into(), 1, Some(delays(&[2, 2])));
    let newer: &[u8] = b"{\"fibonacci\":1}";
    for (own, expected) in [
        (None, 3),
        (Some(delays(&[])), 1),
        (Some(delays(&[3, 3, 3, 3])), 5),
    ] {
        let mut row = new_row("a/mail".into(), Due::from_millis(NOW), None, [].into());
        let own = own.map(|it| it.to_stored().into());
        row.extras = Extras::new(None, own);
        assert_eq!(attempts(&mut it, row), expected);
    }
    // Those of a newer version cannot be read, and may allow no other attempt.
    let mut row = new_row("a/mail".into(), Due::from_millis(NOW), None, [].into());
    row.extras = Extras::new(None, Some(newer.into()));
    assert_eq!(attempts(&mut it, row), 1);
    let (_, error) = it.dead.pop().unwrap();
    assert!(
        error.starts_with("no (its own retries cannot be read"),
        "{error}"
    );
    it.engine.add_handler(&"a/mail".into(), 1, None);
    let row = new_row("a/mail".into(), Due::from_millis(NOW), None, [].into());
    assert_eq!(attempts(&mut it, row), 2);
}

/// The number of attempts of a timer that always fails.
fn attempts(it: &mut Subject, row: Row) -> usize {
    it.engine.handle_insert(0, row);
    it.settle();
    let mut attempts = 0;
    while !it.store.is_empty() {
        while it.delivered.is_empty() {
            it.run_until(it.engine.poll_timeout().unwrap());
        }
        it.end_all(&failed());
        attempts += 1;
    }
    attempts
}

#[test]
fn a_delay_that_is_asked_for_replaces_the_retry_delay() {
    let year = seconds(366 * 86_400);
    let mut it = Subject::with(|config| config.retry_delays = vec![seconds(7); 4]).handles(1);
    it.insert_many("mail", 1, 0);
    it.created();
    it.run_until(it.engine.now().boot_micros + 1);
    let later = |delay| Ended::Later("busy".into(), delay);
    for (ended, expected) in [
        (later(seconds(3)), seconds(3)),
        (later(seconds(90_000)), seconds(90_000)),
        (failed(), seconds(7)),
        (later(Duration::MAX), year),
    ] {
        let failed_at = it.engine.now().boot_micros;
        it.end_all(&ended);
        while it.delivered.is_empty() {
            it.run_until(it.engine.poll_timeout().unwrap());
        }
        let delay = it.engine.now().boot_micros - failed_at;
        let expected = u64::try_from(expected.as_micros()).unwrap();
        assert!(delay.abs_diff(expected) <= 1_000, "{ended:?}: {delay} µs");
    }
    // There are no more retry delays.
    it.end_all(&later(seconds(3)));
    assert_eq!((it.dead.len(), it.store.len()), (1, 0));
}

#[test]
fn a_snooze_delays_its_timer_and_uses_no_attempt() {
    let mut it = Subject::with(|config| config.retry_delays = vec![seconds(7)]).handles(1);
    it.insert_many("mail", 1, 0);
    it.created();
    it.run_until(it.engine.now().boot_micros + 1);
    for (ended, expected, failures) in [
        (Ended::Snoozed(seconds(3)), 3, 0),
        (failed(), 7, 1),
        (Ended::Snoozed(seconds(90_000)), 90_000, 1),
        (Ended::Snoozed(Duration::MAX), 366 * 86_400, 1),
        (Ended::Snoozed(Duration::ZERO), 0, 1),
    ] {
        let ended_at = it.engine.now().boot_micros;
        it.end_all(&ended);
        while it.delivered.is_empty() {
            it.run_until(it.engine.poll_timeout().unwrap());
        }
        let delay = it.engine.now().boot_micros - ended_at;
        assert!(
            delay.abs_diff(expected * SECOND) <= 1_000,
            "{ended:?}: {delay} µs"
        );
        assert_eq!(it.delivered[0].failures, failures, "{ended:?}");
    }
    let counts = it.engine.namespaces().get(DEFAULT).unwrap().counts;
    assert_eq!((counts.snoozed, counts.retried), (4, 1));
    // There are no more retry delays.
    it.end_all(&failed());
    assert_eq!((it.dead.len(), it.store.len()), (1, 0));
}

#[test]
fn a_backoff_doubles_and_scatters() {
    let mut it = Subject::new(Config::default());
    let backoff = Backoff::new(seconds(10), seconds(60)).max_attempts(7);
    it.namespace("a", &Policy::default().backoff(backoff));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let delays = delays(&mut it, "a/mail");
        assert_eq!(delays.len(), 6);
        for (delay, whole) in delays
            .iter()
            .zip([10_000, 20_000, 40_000, 60_000, 60_000, 60_000])
        {
            assert!((whole / 2..=whole + 1).contains(delay), "{delays:?}");
        }
        assert_ne!(delays[4], delays[5], "{delays:?}");
        // Timers that fail together are not retried together.
        seen.insert(delays[5]);
    }
    assert!(seen.len() > 40, "{seen:?}");
    let (min, max) = (seen.first().unwrap(), seen.last().unwrap());
    assert!(*min < 34_000 && *max > 56_000, "{min} to {max}");
    assert_eq!(it.dead.len(), 50);
}

#[test]
fn a_failure_says_whether_it_is_tried_again() {
    let mut it = Subject::new(Config::default());
    it.namespace("a", &Policy::default().retry_delays([seconds(1); 3]));
    it.insert_many("a/mail", 1, 0);
    for is_retried in [true, true, true, false] {
        while it.delivered.is_empty() {
            it.run_until(it.engine.now().boot_micros + SECOND);
        }
        let row = it.delivered.remove(0);
        assert_eq!(it.engine.handle_ended(row.id, failed()), is_retried);
        it.settle();
    }
    it.insert_many("a/mail", 1, 0);
    it.pass(SECOND);
    let row = it.delivered.remove(0);
    assert!(!it.engine.handle_ended(row.id, Ended::Well));
    assert!(!it.engine.handle_ended(row.id, failed()), "it has ended");
}

#[test]
fn other_retry_delays_count_from_the_failures_there_are() {
    let mut it = Subject::new(Config::default());
    it.namespace("a", &Policy::default().retry_delays([seconds(1); 9]));
    it.insert_many("a/mail", 2, 0);
    for _ in 0..3 {
        while it.delivered.len() < 2 {
            it.run_until(it.engine.now().boot_micros + SECOND);
        }
        it.end_all(&failed());
    }
    // They wait for their fourth attempt. The delay that was written stays; later delays follow the new schedule.
    let longer = [seconds(1), seconds(2), seconds(3), seconds(60)];
    it.set_policy("a", &Policy::default().retry_delays(longer));
    it.run_until(it.engine.now().boot_micros + SECOND + 1_000);
    it.end_first(&failed());
    it.set_policy("a", &Policy::default().retry_delays([seconds(1); 2]));
    it.end_first(&failed());
    assert_eq!(it.dead.len(), 1);
    let failed_at = it.engine.now().boot_micros;
    while it.delivered.is_empty() {
        it.run_until(it.engine.poll_timeout().unwrap());
    }
    let waited = it.engine.now().boot_micros - failed_at;
    assert!(waited.abs_diff(60 * SECOND) <= 1_000, "{waited}");
    assert_eq!(it.delivered[0].failures, 4);
}
