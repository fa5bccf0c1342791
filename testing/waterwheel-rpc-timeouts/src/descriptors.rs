//! File descriptors: how many the load takes, and the remedy if this process may not open as many.

use std::fs;
use std::io;

use waterwheel_bench_kit::text::grouped;

use crate::plan::{Plan, silent_beside};

/// For the files that are not connections: standard streams, listeners, the runtimes' pollers.
const SPARE: u64 = 64;

/// Both ends of a connection are in this process.
const ENDS: u64 = 2;

/// `EMFILE` of every Unix.
const TOO_MANY: i32 = 24;

/// The number of files that this process may have open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    now: u64,
    /// The most that `ulimit` may raise it to.
    hard: u64,
}

/// The size of the load, from which the number of descriptors follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    connections: u32,
    clocks: u32,
}

impl Demand {
    pub(crate) fn of(plan: &Plan) -> Demand {
        Demand {
            connections: plan.connections,
            clocks: plan.clocks,
        }
    }

    fn descriptors(self) -> u64 {
        let connections = self.connections + silent_beside(self.connections);
        u64::from(self.clocks) * ENDS * u64::from(connections) + SPARE
    }

    /// An error that names the remedy, if the limit is known and too low.
    pub(crate) fn check(self, limit: Option<Limit>) -> io::Result<()> {
        match limit {
            Some(limit) if limit.now < self.descriptors() => {
                let why = format!("this process may open {} files", grouped(limit.now));
                Err(io::Error::other(self.refusal(&why, limit)))
            }
            _ => Ok(()),
        }
    }

    /// Adds the remedy to an error that met the limit, for systems on which [`limit`] is `None`. Returns any other error as it is.
    pub(crate) fn explain(self, error: io::Error) -> io::Error {
        if error.raw_os_error() != Some(TOO_MANY) {
            return error;
        }
        let unknown = Limit {
            now: 0,
            hard: u64::MAX,
        };
        io::Error::new(error.kind(), self.refusal(&error.to_string(), unknown))
    }

    fn refusal(self, why: &str, limit: Limit) -> String {
        let needed = self.descriptors();
        let mut text = format!(
            "{why}, and {} connections take {}: raise the limit with `ulimit -n {needed}`",
            grouped(self.connections.into()),
            grouped(needed),
        );
        if limit.hard < needed {
            text += &format!(" (as root: the hard limit is {})", grouped(limit.hard));
        }
        let fitting = self.fitting(limit);
        if fitting > 0 {
            text += &format!(", or use --connections {fitting}");
        }
        text
    }

    /// The most connections that the limit has room for.
    fn fitting(self, limit: Limit) -> u64 {
        let room = limit.now.saturating_sub(SPARE) / (u64::from(self.clocks) * ENDS);
        // Twenty connections come with one silent connection.
        room * 20 / 21
    }
}

/// `None` if the system does not report it.
pub(crate) fn limit() -> Option<Limit> {
    parse(&fs::read_to_string("/proc/self/limits").ok()?)
}

fn parse(limits: &str) -> Option<Limit> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    let mut numbers = line.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some(Limit {
        now: numbers.next()??,
        hard: numbers.next()??,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(connections: u32, clocks: u32) -> Demand {
        Demand {
            connections,
            clocks,
        }
    }

    fn limit_of(now: u64) -> Option<Limit> {
        Some(Limit {
            now,
            hard: u64::MAX,
        })
    }

    #[test]
    fn too_low_a_limit_is_refused_with_the_one_that_suffices() {
        let usual = u64::MAX;
        for (clocks, now, hard, why) in [
            (
                2,
                1_024,
                usual,
                "1 024 files, and 10 000 connections take 42 064: raise the limit with `ulimit -n 42064`, or use --connections 228",
            ),
            (
                1,
                10,
                4_096,
                "10 files, and 10 000 connections take 21 064: raise the limit with `ulimit -n 21064` (as root: the hard limit is 4 096)",
            ),
        ] {
            let error = demand(10_000, clocks).check(Some(Limit { now, hard }));
            let said = error.expect_err("too low").to_string();
            assert_eq!(said, format!("this process may open {why}"));
        }
        for (clocks, limit, is_ok) in [
            (2, Some(42_063), false),
            (2, Some(42_064), true),
            (2, Some(u64::MAX), true),
            (2, None, true),
            (1, Some(21_064), true),
        ] {
            let checked = demand(10_000, clocks).check(limit.and_then(limit_of));
            assert_eq!(checked.is_ok(), is_ok, "{limit:?}");
        }
        let plan = Plan::new(&crate::flags::Flags::default());
        assert!(
            Demand::of(&plan).check(limit_of(1_024)).is_ok(),
            "by default"
        );
    }

    #[test]
    fn the_connections_that_are_offered_fit_and_one_more_does_not() {
        for limit in 100..5_000 {
            for clocks in [1, 2] {
                let of = limit_of(limit);
                let fitting = demand(10_000, clocks).fitting(of.expect("a limit")) as u32;
                let fits = |connections| demand(connections, clocks).check(of).is_ok();
                assert!(fits(fitting) && !fits(fitting + 1), "{limit}");
            }
        }
    }

    #[test]
    fn an_error_of_the_system_is_explained_if_the_limit_is_its_cause() {
        let met = demand(10_000, 2).explain(io::Error::from_raw_os_error(TOO_MANY));
        assert!(met.to_string().contains("`ulimit -n 42064`"), "{met}");
        let other = demand(10_000, 2).explain(io::ErrorKind::ConnectionRefused.into());
        assert_eq!(other.kind(), io::ErrorKind::ConnectionRefused);
        assert!(!other.to_string().contains("ulimit"), "{other}");
    }

    #[test]
    fn the_limits_of_a_process_are_read() {
        let text = "\
Limit                     Soft Limit           Hard Limit           Units
Max processes             96365                96365                processes
Max open files            1024                 unlimited            files
";
        assert_eq!(parse(text), limit_of(1_024));
        assert_eq!(parse("Max open files            many 7 files"), None);
        assert_eq!(parse(""), None);
    }
}
