//! Which children live, and what happens to them and to their file, in which order? Each command is such a schedule.

use std::time::Duration;

use fastrand::Rng;

use crate::damage::Damage;
use crate::protocol::{Answer, Line, SUSPENDED_HOURS, SUSPENSIONS};

const HOUR: i64 = 3_600_000_000;
pub(crate) const DAY: i64 = 24 * HOUR;
/// After a kill, the wall clock goes on by so much at most: far timers come nearer.
const LONGEST_OFF: i64 = 3 * HOUR;

/// The acts of a run, one after the other.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) acts: Vec<Act>,
    /// By how much the wall clock is ahead, or goes on, at the end, so that all is delivered. `None` if each file has come to its end before.
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
    /// One of the copies is put in the place of the file.
    Restore,
    /// The WAL of the file is damaged, which is that file's end.
    Damage {
        damage: Damage,
        has_note: bool,
    },
}

/// A process: what it is to do, and what is done to it.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) steps: Vec<Step>,
    /// The clock, when it starts.
    pub(crate) clock: Clock,
    /// The clock is moved while it runs.
    pub(crate) moves: bool,
    /// A runtime with one thread. By chance, if it is not said.
    pub(crate) single: Option<bool>,
    /// How many bytes the file may have; or how many more than it has, and at least so many.
    pub(crate) limit: Limit,
    /// A service with namespaces, in whose life of this length this and that goes wrong.
    pub(crate) soak: Option<Duration>,
    /// Its memory and lateness are measured.
    pub(crate) is_measured: bool,
}

/// By how many microseconds the wall clock is ahead of the machine's.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Clock {
    /// So much more than before, at most, by chance.
    OnUpTo(i64),
    OnBy(i64),
    At(i64),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    None,
    Bytes(u64),
    /// So far may the file grow, and the limit is at least the second number.
    Growth(u64, u64),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// At least so much more is seen. The name is of the step in words.
    Until(&'static str, Progress),
    /// So much time passes.
    Pass(Duration),
    /// The store is busy with a commit, and a request waits for its answer.
    Commit,
    /// All timers that are due were delivered.
    Delivered,
    /// Another's file takes all space that is left.
    Fill,
    /// It is gone.
    Free,
    /// A copy of the child's file is begun.
    Copy,
    Kill,
    Stop,
}

/// How often each of these was seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress([u64; 7]);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Seen {
    /// Inserts that were answered with a new timer.
    Created,
    /// Inserts that were refused for want of space.
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
                Answer::Existing(_) | Answer::Unknown => return,
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

    /// Whether each of these is at least as much.
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

    /// One that is killed after so long: as soon as it is busy with a commit then, or at once.
    fn killed(after: Duration, in_commit: bool, clock: Clock) -> Child {
        let commit = in_commit.then_some(Step::Commit);
        let steps = [Step::Pass(after)].into_iter().chain(commit);
        Child::new(steps.chain([Step::Kill]).collect(), clock)
    }

    /// One without callers, that only delivers what is there. Its clock is as it was.
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

/// Children that are killed, one after the other, on one file.
pub(crate) fn kills(rounds: u64, rng: &mut Rng) -> Schedule {
    let kill = |_| {
        let (after, in_commit) = (lifetime(rng), rng.u8(..20) > 0);
        Act::Child(Child::killed(after, in_commit, Clock::OnUpTo(LONGEST_OFF)))
    };
    Schedule::with_end((0..rounds).map(kill).collect())
}

/// A service whose clock is moved while it runs, and was set while it was down: forward, and then back.
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
        // The clock was ahead by more than two years, and timers were made then.
        end: Some(Clock::At(1_200 * DAY)),
    }
}

/// How long payloads are at most, where a disk is to be full.
pub(crate) const LARGEST: usize = 1_500;
/// How long the file may be, where that is what makes it full.
const LIMIT: u64 = 6 << 20;

/// By turns: another's file, and a limit.
pub(crate) fn full_disks(rounds: u64, is_real: bool) -> Schedule {
    let mut acts = Vec::new();
    // What was far is near.
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
        // The disk is filled and freed twice, under one child; or the child is killed while it is full for the second time.
        let ends_full = round % 4 == 3 && is_real;
        // A service without a reserve may go on for a while, in the space that its WAL has. It has written over that several times by then.
        let goes_on = seen("on a full disk", [0, 500, 3_000, 300, 300]);
        let loads = seen("with space", [3_000, 0, 0, 0, 500]);
        let mut steps = vec![loads, Step::Fill, goes_on, Step::Free];
        // Timers that come due while the disk is full once more. Most of those before have come due by then.
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

/// At least so many inserts, refused inserts, other answers, deliveries, and settled ones.
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

/// Copies that are made in each life, of which one is restored.
const COPIES: usize = 2;

/// A service under load is copied some times, and goes on after each copy. Then another one goes on, and one of the copies is restored.
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
        // Another opening of the file gives ids, which a copy must not give.
        acts.extend([
            killed(steps),
            killed(vec![load("in another life")]),
            Act::Restore,
        ]);
    }
    acts.push(killed(vec![load("in another life")]));
    Schedule::with_end(acts)
}

/// Kills under load, after which the WAL is damaged: each time with a file of its own.
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

/// Lives of a soak that are measured: the last one is held against the first.
const QUARTERS: u32 = 4;
/// Children that are killed before each of them.
const KILLS: u64 = 3;
/// How far the file may grow before it counts as full, at least, and how long it is then.
const GROWTH: u64 = 2 << 20;
const LEAST_LIMIT: u64 = 6 << 20;

/// How long a line of the table of a soak is.
pub(crate) fn interval(time: Duration) -> Duration {
    Duration::from_secs(60).min(time / QUARTERS / 5)
}

/// A service in its usual life, in which this and that goes wrong. Kills and a limit come before each quarter, so that the quarters are alike.
pub(crate) fn soak(time: Duration, rng: &mut Rng) -> Schedule {
    // In these, nothing else goes wrong.
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

/// By how many microseconds the wall clock goes on in a measured life beside its own time.
pub(crate) const GONE_BY: i64 = SUSPENSIONS * SUSPENDED_HOURS * HOUR;
