//! The order of children, and what happens to them and to their file. Each command is such a schedule.

use std::time::Duration;

use fastrand::Rng;

use crate::damage::Damage;
use crate::protocol::{Answer, Line, SUSPENDED_HOURS, SUSPENSIONS};

const HOUR: i64 = 3_600_000_000;
pub(crate) const DAY: i64 = 24 * HOUR;
/// The most that the wall clock advances after a kill, so that far timers come nearer.
const LONGEST_OFF: i64 = 3 * HOUR;

/// The acts of a run, one after the other.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) acts: Vec<Act>,
    /// The clock at the end, so that everything is delivered. `None` if each file has come to its end before.
    pub(crate) end: Option<Clock>,
}

impl Schedule {
    fn with_end(acts: Vec<Act>) -> Schedule {
        let end = Some(Clock::OnBy(60 * DAY));
        Schedule { acts, end }
    }
}

#[derive(Debug)]
pub(crate) enum Act {
    Child(Child),
    /// Replaces the file by one of the copies.
    Restore,
    /// Damages the WAL of the file, which ends that file.
    Damage {
        damage: Damage,
        has_note: bool,
    },
}

/// A process: its work, and what is done to it.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) steps: Vec<Step>,
    /// The clock when it starts.
    pub(crate) clock: Clock,
    /// Whether the clock is moved while it runs.
    pub(crate) moves: bool,
    /// Whether its runtime has one thread. `None` decides by chance.
    pub(crate) single: Option<bool>,
    /// The maximum size of the file.
    pub(crate) limit: Limit,
    /// The length of a soak's life: a service with namespaces and faults.
    pub(crate) soak: Option<Duration>,
    /// Whether its memory and lateness are measured.
    pub(crate) is_measured: bool,
}

/// How many microseconds the wall clock is ahead of the machine's.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clock {
    /// A random amount further ahead than before, at most this one.
    OnUpTo(i64),
    OnBy(i64),
    At(i64),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    None,
    Bytes(u64),
    /// The most that the file may grow, and the lowest limit.
    Growth(u64, u64),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// Waits for at least this progress. The name describes the step.
    Until(&'static str, Progress),
    /// Waits for this time.
    Pass(Duration),
    /// Waits until the store is busy with a commit while a request waits for its answer.
    Commit,
    /// Waits until all due timers were delivered.
    Delivered,
    /// Lets a foreign file take up all free space.
    Fill,
    /// Deletes the foreign file.
    Free,
    /// Begins a copy of the child's file.
    Copy,
    Kill,
    Stop,
}

/// How often each of these was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress([u64; 7]);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Seen {
    /// Inserts that were answered with a new timer.
    Created,
    /// Inserts that were refused for lack of space.
    Full,
    /// Cancels, reschedules and redrives that were answered.
    Answered,
    Delivered,
    /// Deliveries whose end was committed.
    Settled,
    /// Copies of the file that were made.
    Copies,
    /// All moves of the clock were played.
    ClockDone,
}

impl Progress {
    fn once(seen: Seen) -> Progress {
        let mut once = Progress::default();
        once.0[seen as usize] = 1;
        once
    }

    pub(crate) fn get(&self, seen: Seen) -> u64 {
        self.0[seen as usize]
    }

    pub(crate) fn note(&mut self, line: &Line) {
        let (seen, count) = match line {
            Line::Answered { answer, .. } => match answer {
                Answer::Created(_) => (Seen::Created, 1),
                Answer::Full => (Seen::Full, 1),
                Answer::Done | Answer::AlreadyFired | Answer::NotFound => (Seen::Answered, 1),
                Answer::Existing(_) | Answer::ShuttingDown | Answer::Unknown => return,
            },
            Line::Begin(_) => (Seen::Delivered, 1),
            Line::CommitReturned { settled } => (Seen::Settled, *settled),
            Line::Copied { .. } => (Seen::Copies, 1),
            Line::ClockDone => (Seen::ClockDone, 1),
            _ => return,
        };
        self.0[seen as usize] += count;
    }

    pub(crate) fn since(&self, before: &Progress) -> Progress {
        Progress(std::array::from_fn(|at| self.0[at] - before.0[at]))
    }

    /// Whether each of these is at least the minimum.
    pub(crate) fn has(&self, min: &Progress) -> bool {
        self.0.iter().zip(min.0).all(|(it, min)| *it >= min)
    }
}

impl Child {
    fn new(steps: Vec<Step>, clock: Clock) -> Child {
        Child {
            steps,
            clock,
            moves: false,
            single: None,
            limit: Limit::None,
            soak: None,
            is_measured: false,
        }
    }

    /// A child that is killed after this time: as soon as it is busy with a commit then, or at once.
    fn killed(after: Duration, in_commit: bool, clock: Clock) -> Child {
        let commit = in_commit.then_some(Step::Commit);
        let steps = [Step::Pass(after)].into_iter().chain(commit);
        Child::new(steps.chain([Step::Kill]).collect(), clock)
    }

    /// A child without callers, which only delivers existing timers. Its clock is unchanged.
    pub(crate) fn last() -> Child {
        Child {
            single: Some(false),
            ..Child::new(vec![Step::Delivered, Step::Stop], Clock::OnBy(0))
        }
    }
}

/// Some children do not get beyond their opening; most live for a second.
fn lifetime(rng: &mut Rng) -> Duration {
    let millis = match rng.u8(..20) {
        0 => rng.u64(5..60),
        1 => rng.u64(2_500..4_000),
        _ => rng.u64(150..1_800),
    };
    Duration::from_millis(millis)
}

/// Children that are killed one after the other, on one file.
pub(crate) fn kills(rounds: u64, rng: &mut Rng) -> Schedule {
    let kill = |_| {
        let (after, in_commit) = (lifetime(rng), rng.u8(..20) > 0);
        Act::Child(Child::killed(after, in_commit, Clock::OnUpTo(LONGEST_OFF)))
    };
    Schedule::with_end((0..rounds).map(kill).collect())
}

/// A service whose clock is moved while it runs, and was set while it was down: first forward, then back.
pub(crate) fn clocks(rounds: u64) -> Schedule {
    let moved = |round| {
        let all = Step::Until("all moves of the clock", Progress::once(Seen::ClockDone));
        let steps = vec![all, Step::Stop];
        let clock = match round % 4 {
            1 => 0,
            2 => 3 * DAY,
            3 => -HOUR,
            _ => 400 * DAY,
        };
        Act::Child(Child {
            moves: true,
            single: Some(round % 2 == 0),
            ..Child::new(steps, Clock::At(clock))
        })
    };
    Schedule {
        acts: (1..=rounds).map(moved).collect(),
        // The clock was ahead by more than two years, and timers were inserted then.
        end: Some(Clock::At(1_200 * DAY)),
    }
}

/// The maximum length of payloads where a disk is to be full.
pub(crate) const LARGEST: usize = 1_500;
/// The maximum size of the file where that makes it full.
const LIMIT: u64 = 6 << 20;

/// Alternates between a foreign file and a limit.
pub(crate) fn full_disks(rounds: u64, is_real: bool) -> Schedule {
    let mut acts = Vec::new();
    // By then, far timers are near.
    let mut add = |steps, limit| {
        acts.push(Act::Child(Child {
            limit,
            ..Child::new(steps, Clock::OnUpTo(HOUR))
        }));
    };
    for round in 1..=rounds {
        if round % 2 == 0 {
            // The file is full, and has space again as timers are settled and cancelled, three times.
            let mut steps = [at_the_limit(), inserts_again()].repeat(3);
            steps.push(Step::Stop);
            add(steps, Limit::Bytes(LIMIT));
            continue;
        }
        // The disk is filled and freed twice under one child, or the child is killed while it is full for the second time.
        let ends_full = round % 4 == 3 && is_real;
        // A service without a reserve can continue for a while in the space of its WAL. By this time it has overwritten that several times.
        let goes_on = seen("on a full disk", [0, 500, 3_000, 300, 300]);
        let loads = seen("with space", [3_000, 0, 0, 0, 500]);
        let mut steps = vec![loads, Step::Fill, goes_on, Step::Free];
        // Load timers that come due while the disk is full again. Most of the earlier ones have come due by then.
        let loads_again = seen("with space again", [3_000, 0, 0, 0, 0]);
        steps.extend([loads_again, Step::Fill, goes_on]);
        match ends_full {
            true => steps.push(Step::Kill),
            false => steps.extend([Step::Free, inserts_again(), Step::Stop]),
        }
        add(steps, Limit::None);
        if ends_full {
            let opens = seen("opened on a full disk", [0, 200, 500, 100, 100]);
            let steps = vec![opens, Step::Free, inserts_again(), Step::Stop];
            add(steps, Limit::None);
        }
    }
    Schedule::with_end(acts)
}

/// Waits for at least this many inserts, refused inserts, other answers, deliveries, and settled deliveries.
fn seen(name: &'static str, [created, full, answered, delivered, settled]: [u64; 5]) -> Step {
    let min = [created, full, answered, delivered, settled, 0, 0];
    Step::Until(name, Progress(min))
}

fn at_the_limit() -> Step {
    seen("at the limit", [0, 200, 0, 0, 50])
}

fn inserts_again() -> Step {
    seen("with space again", [300, 0, 0, 0, 50])
}

/// The number of copies in each life, one of which is restored.
const COPIES: usize = 2;

/// A service under load is copied several times, and goes on after each copy. Then another one goes on, and one of the copies is restored.
pub(crate) fn copies(rounds: u64) -> Schedule {
    let load = |name| seen(name, [300, 0, 300, 0, 200]);
    let killed = |mut steps: Vec<Step>| {
        steps.push(Step::Kill);
        Act::Child(Child::new(steps, Clock::OnUpTo(LONGEST_OFF)))
    };
    let mut acts = Vec::new();
    for _ in 0..rounds {
        let mut steps = vec![load("before a copy")];
        for _ in 0..COPIES {
            let copied = Step::Until("a copy", Progress::once(Seen::Copies));
            steps.extend([Step::Copy, copied, load("after a copy")]);
        }
        // Another opening of the file assigns ids, which a copy must not assign again.
        acts.extend([
            killed(steps),
            killed(vec![load("in another life")]),
            Act::Restore,
        ]);
    }
    acts.push(killed(vec![load("in another life")]));
    Schedule::with_end(acts)
}

/// Kills under load, after each of which the WAL is damaged: each time with a new file.
pub(crate) fn damaged_wals(rounds: u64, has_note: bool, rng: &mut Rng) -> Schedule {
    let mut acts = Vec::new();
    for damage in Damage::ALL {
        for _ in 0..rounds {
            for _ in 0..rng.u32(1..=2) {
                let (after, in_commit) = (lifetime(rng), rng.bool());
                let child = Child::killed(after, in_commit, Clock::OnUpTo(LONGEST_OFF));
                acts.push(Act::Child(child));
            }
            acts.push(Act::Damage { damage, has_note });
        }
    }
    Schedule { acts, end: None }
}

/// The number of measured lives of a soak: the last one is compared to the first.
const QUARTERS: u32 = 4;
/// The number of children that are killed before each measured life.
const KILLS: u64 = 3;
/// The least that the file may grow before it counts as full, and its length then.
const GROWTH: u64 = 2 << 20;
const LEAST_LIMIT: u64 = 6 << 20;

/// The interval of a line in the table of a soak.
pub(crate) fn interval(time: Duration) -> Duration {
    Duration::from_secs(60).min(time / QUARTERS / 5)
}

/// A service in its ordinary life, with faults. Kills and a limit come before each quarter, so that the quarters are alike.
pub(crate) fn soak(time: Duration, rng: &mut Rng) -> Schedule {
    // These have no other faults.
    let calm = Duration::from_secs(3_600);
    let clock = Clock::OnUpTo(HOUR);
    let life = time / QUARTERS;
    let mut acts = Vec::new();
    let mut add = |life, child| {
        acts.push(Act::Child(Child {
            soak: Some(life),
            single: Some(false),
            ..child
        }));
    };
    for quarter in 1..=QUARTERS {
        for _ in 0..KILLS {
            let after = Duration::from_millis(rng.u64(300..2_500));
            add(calm, Child::killed(after, true, clock));
        }
        let mut full = Child::new(vec![at_the_limit(), inserts_again(), Step::Stop], clock);
        full.limit = Limit::Growth(GROWTH, LEAST_LIMIT);
        add(calm, full);
        let mut measured = match quarter == QUARTERS {
            true => Child::new(vec![Step::Pass(life), Step::Stop], clock),
            false => Child::killed(life, true, clock),
        };
        measured.is_measured = true;
        add(life.max(Duration::from_millis(1)), measured);
    }
    Schedule::with_end(acts)
}

/// How many microseconds the wall clock advances in a measured life on top of the elapsed time.
pub(crate) const GONE_BY: i64 = SUSPENSIONS * SUSPENDED_HOURS * HOUR;
