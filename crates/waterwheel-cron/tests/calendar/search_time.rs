//! No search takes more than a millisecond.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use waterwheel_cron::{Schedule, ScheduleError};

use crate::random::{a_zone, expression, instant};
use crate::support::{schedule, utc, with_years};

/// An unoptimised search takes seven times as long, so its limit is the stricter one.
const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 4 } else { 1 });

/// The CPU time of this thread, which does not depend on what else the machine does.
#[cfg(target_os = "linux")]
fn cpu_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(not(target_os = "linux"))]
fn cpu_time() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

/// Each kind of search.
const SEARCHES: [fn(&Schedule, Timestamp); 3] = [
    |schedule, at| {
        let _ = schedule.next_after(at);
    },
    |schedule, at| {
        let _ = schedule.previous_before(at);
    },
    |schedule, at| {
        let _ = schedule.matches(at);
    },
];

/// The longest of the searches, each the least of several tries: the CPU time includes interrupts and cold caches.
fn time_of(schedule: &Schedule, at: Timestamp) -> Duration {
    let times = SEARCHES.map(|search| {
        let mut least = Duration::MAX;
        for _ in 0..20 {
            let start = cpu_time();
            search(schedule, at);
            least = least.min(cpu_time() - start);
            if least < LIMIT {
                break;
            }
        }
        least
    });
    times.into_iter().max().unwrap()
}

#[track_caller]
fn is_quick(schedule: &Schedule, at: Timestamp) {
    let taken = time_of(schedule, at);
    assert!(
        taken < LIMIT,
        "{schedule} in {:?} from {at}: {taken:?}",
        schedule.zone()
    );
}

#[test]
fn a_search_that_finds_nothing_ends_at_once() {
    // All of its times fall into gaps.
    let schedule = schedule("*/30 2 8-14 3 +SUN", "America/New_York");
    let start = utc("2026-06-01T00:00");
    assert_eq!(schedule.next_after(start), None);
    is_quick(&schedule, start);
    let late = utc("2060-06-01T00:00");
    assert_eq!(schedule.previous_before(late), None);
    is_quick(&schedule, late);
}

#[test]
fn a_search_across_40_years_is_quick() {
    for expression in [
        "0 0 29 2 +SUN",
        "0 0 29 2 +SUN#5",
        "* * * 29 2 +0",
        "0 0 29 1-2 +SUN,SUN#5",
    ] {
        is_quick(
            &schedule(expression, "Europe/Berlin"),
            utc("2088-03-01T00:00"),
        );
        is_quick(
            &schedule(expression, "Europe/Berlin"),
            utc("2128-02-28T00:00"),
        );
    }
}

#[test]
fn listed_years_without_such_a_day_are_not_looked_at() {
    let odd: Vec<String> = (2001..2250).step_by(2).map(|it| it.to_string()).collect();
    for years in [
        "1-5000".to_owned(),
        "1001-3999/2,4032".to_owned(),
        odd.join(",") + ",4984",
    ] {
        let schedule = with_years(&format!("0 0 0 29 2 +SUN {years}"), "UTC");
        for start in ["0001-01-01T00:00", "2026-01-01T00:00", "4990-01-01T00:00"] {
            is_quick(&schedule, utc(start));
        }
    }
}

#[test]
fn long_lists_are_quick_from_within_an_overlap() {
    for expression in ["0-59 0-59 0-23 * * *", "0-59 0-59 2 * * *", "* * 2 * * *"] {
        let schedule = schedule(expression, "Europe/Berlin");
        for start in [
            "2026-10-25T00:59:59",
            "2026-10-25T01:00:00",
            "2026-10-25T01:59:59",
            "2026-03-29T00:59:59",
            "2026-03-29T01:00:00",
        ] {
            is_quick(&schedule, utc(start));
        }
    }
}

#[test]
fn the_ends_of_the_calendar_are_quick() {
    for expression in ["* * * * * *", "0 0 29 2 +SUN", "0 9 LW * *"] {
        let schedule = schedule(expression, "America/New_York");
        is_quick(&schedule, Timestamp::MIN);
        is_quick(&schedule, Timestamp::MAX);
        is_quick(&schedule, utc("9970-01-01T00:00"));
        is_quick(&schedule, utc("-009970-01-01T00:00"));
        is_quick(&schedule, utc("0004-01-01T00:00"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn no_search_takes_longer_than_the_limit(expression in expression(), zone in a_zone(), start in instant()) {
        match Schedule::parse_in(&expression, zone) {
            Ok(schedule) => {
                let taken = time_of(&schedule, start);
                prop_assert!(taken < LIMIT, "{:?}", taken);
            }
            Err(error) => prop_assert_eq!(error, ScheduleError::Never),
        }
    }
}

#[test]
fn refusing_what_never_comes_is_quick() {
    let least = |expression: &str| {
        let tries = (0..20).map(|_| {
            let start = cpu_time();
            assert!(Schedule::parse_in(expression, TimeZone::UTC).is_err());
            cpu_time() - start
        });
        tries.min().unwrap()
    };
    for expression in ["0 0 30 2 *", "0 0 1-7 * +MONL", "0 0 LW * +SUN"] {
        let taken = least(expression);
        assert!(taken < 20 * LIMIT, "{expression}: {taken:?}");
    }
}
