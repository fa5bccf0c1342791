//! Plays a schedule, and judges it.

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use fastrand::Rng;
use tempfile::TempDir;
use waterwheel_durable_sqlite::{Finding, check};

use crate::check::Summary;
use crate::copies::Made;
use crate::damage::{Damage, Fate, accept_loss, strike};
use crate::flat::judge;
use crate::gauge::{Gauge, HEADING, Minute, max_memory};
use crate::look::{Look, look_at};
use crate::parent::{Parent, Played};
use crate::place::Place;
use crate::protocol::{ChildOptions, Line};
use crate::report::{ENOUGH, end, in_words, log_of, verdict};
use crate::schedule::{Act, Child, Clock, DAY, GONE_BY, LARGEST, Limit, Schedule, Seen, interval};

/// The shortest soak that is judged: in a shorter one, a few moments and the start of a process dominate.
const JUDGED_FROM: Duration = Duration::from_secs(10 * 60);

/// The mark of damage that broke a promise.
const BROKEN: &str = "broken";

/// A schedule that is being played.
pub(crate) struct Run {
    schedule: Schedule,
    pub(crate) options: ChildOptions,
    pub(crate) parent: Parent,
    /// The disk that becomes full, if one does.
    pub(crate) place: Option<Place>,
    seed: u64,
    rng: Rng,
    folder: TempDir,
    /// The summary before the current child.
    before: Summary,
    evidence: Evidence,
}

/// The evidence that a schedule must produce to prove something.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// The number of kills in the middle of a commit, with unanswered requests.
    pub(crate) in_commit: u64,
    /// The number of lines that a kill has cut off.
    pub(crate) torn: usize,
    /// The number of requests that were answered while copies were made.
    pub(crate) beside: u64,
    /// The number of each result of each kind of damage.
    damages: BTreeMap<(Damage, &'static str), u32>,
    quarters: Vec<Vec<Minute>>,
}

impl Run {
    pub(crate) fn new(
        schedule: Schedule,
        options: ChildOptions,
        seed: u64,
        rng: Rng,
        folder: TempDir,
    ) -> Result<Run, String> {
        Ok(Run {
            parent: Parent::new(&log_of(folder.path()))?,
            schedule,
            options,
            place: None,
            seed,
            rng,
            folder,
            before: Summary::default(),
            evidence: Evidence::default(),
        })
    }

    /// Measures memory and lateness in intervals that fit into this time.
    pub(crate) fn measure(&mut self, time: Duration) {
        let length = interval(time);
        println!("a line of measurements is {length:?}");
        self.parent.gauge = Some(Gauge::new(&self.options.file, length));
    }

    /// Plays the schedule to its end, and returns whether each promise was kept and the evidence is sufficient.
    pub(crate) fn play(
        mut self,
        is_enough: impl FnOnce(&Evidence) -> bool,
    ) -> Result<ExitCode, String> {
        for act in std::mem::take(&mut self.schedule.acts) {
            if self.parent.checker.broken().len() > ENOUGH {
                break;
            }
            match act {
                Act::Child(child) => self.child(child)?,
                Act::Restore if !self.restore()? => break,
                Act::Restore => {}
                Act::Damage { damage, has_note } => self.damage(damage, has_note)?,
            }
        }
        if let Some(foreign) = self.place.as_ref().and_then(Place::foreign) {
            // The file may be missing.
            let _ = fs::remove_file(foreign);
        }
        let mut is_kept = true;
        if let Some(clock) = self.schedule.end {
            self.options.memory = 0;
            set(&mut self.options, clock, &mut self.rng);
            is_kept &= deliver_all(&mut self.parent, &mut self.options)?;
            is_kept &= verdict(&mut self.parent.checker);
        }
        self.evidence.torn = self.parent.torn;
        is_kept &= is_enough(&self.evidence);
        if let Some(place) = self.place.filter(|_| !is_kept) {
            place.keep(self.folder.path());
        }
        Ok(end(is_kept, self.seed, self.folder))
    }

    fn child(&mut self, child: Child) -> Result<(), String> {
        self.options.round += 1;
        self.options.seed = self.rng.u64(..);
        let by_chance = self.rng.bool();
        set(&mut self.options, child.clock, &mut self.rng);
        // Even the last children know the namespaces of a soak.
        self.options.soak = child.soak.map_or(0, millis);
        let mut options = ChildOptions {
            single: child.single.unwrap_or(by_chance),
            moves: child.moves,
            ..self.options.clone()
        };
        options.limit = match child.limit {
            Limit::None => 0,
            Limit::Bytes(limit) => limit,
            Limit::Growth(growth, least) => {
                // As fast as possible, and with longer payloads: after an hour, a file has many free pages.
                (options.rate, options.largest) = (0, LARGEST);
                let file = options.file.metadata().map_or(0, |data| data.len());
                least.max(file + growth)
            }
        };
        if child.is_measured
            && let Some(gauge) = &mut self.parent.gauge
        {
            println!("quarter {}\n{HEADING}", self.evidence.quarters.len() + 1);
            gauge.begin();
        }
        let foreign = self.place.as_ref().and_then(Place::foreign);
        let played = self.parent.play(&options, child.steps, foreign)?;
        if child.is_measured {
            let gauge = self.parent.gauge.as_mut();
            self.evidence.quarters.extend(gauge.map(Gauge::end));
            self.options.shift += GONE_BY;
        }
        self.print(&options, &played);
        Ok(())
    }

    fn print(&mut self, options: &ChildOptions, played: &Played) {
        let (flight, now) = (&played.flight, self.parent.checker.summary());
        let threads = if options.single { "one" } else { "several" };
        println!(
            "{:5}  {threads:7} threads  {:5} ms  {:8} requests, {:5} deliveries came again; at the end: {flight:?}",
            options.round,
            played.lived.as_millis(),
            now.requests - self.before.requests,
            now.duplicates.saturating_sub(self.before.duplicates),
        );
        let is_in_commit = flight.commit.is_some() && flight.unanswered != [0; 4];
        self.evidence.in_commit += u64::from(is_in_commit);
        self.before = now.clone();
        if options.moves {
            let hours = options.shift / 3_600_000_000;
            println!("  the clock is {hours:+} h from the machine's at the start, and was moved");
        }
        match (options.limit, played.filled) {
            (0, 0) => {}
            (0, filled) => println!("  the disk was filled by a file of {} MiB", filled >> 20),
            (limit, _) => println!("  the file has a limit of {} MiB", limit >> 20),
        }
        for (name, it) in &played.seen {
            println!(
                "  {name:24} {:6} inserted, {:6} refused, {:6} other requests answered, {:6} delivered, {:6} settled",
                it.get(Seen::Created),
                it.get(Seen::Full),
                it.get(Seen::Answered),
                it.get(Seen::Delivered),
                it.get(Seen::Settled),
            );
        }
    }

    /// Replaces the file by one of the copies. Returns whether there was one, and it is sound by itself.
    fn restore(&mut self) -> Result<bool, String> {
        let Some(copies) = self.parent.copies.as_mut().filter(|it| !it.made.is_empty()) else {
            return Ok(false);
        };
        let count = copies.made.len();
        let chosen = self.rng.usize(..count);
        let (number, took) = (copies.made[chosen].number, copies.made[chosen].took);
        let seen = |it: &Made| it.beside.get(Seen::Created) + it.beside.get(Seen::Answered);
        let answered: u64 = copies.made.iter().map(seen).sum();
        let line = copies.restore(number)?;
        let before = self.parent.checker.summary().undone;
        self.parent.note(line)?;
        let undone = self.parent.checker.summary().undone;
        // Read the copy before the service opens it.
        let timers = match look_at(&self.options.file) {
            Ok(look) => look.map_or(0, |it| it.timers()),
            Err(text) => {
                self.parent.note(Line::Wrong { text })?;
                return Ok(false);
            }
        };
        println!(
            "  copy {} of {count}, made in {} ms beside {answered} answers, is restored, with {timers} timers: {} inserts are undone, {} timers are there again",
            chosen + 1,
            took.as_millis(),
            undone.gone - before.gone,
            undone.again - before.again,
        );
        self.evidence.beside += answered;
        Ok(true)
    }

    /// Damages the WAL of the file, and checks how the store reacts. Then another file begins.
    fn damage(&mut self, how: Damage, has_note: bool) -> Result<(), String> {
        let (fate, text) = strike(&self.options.file, how, has_note, &mut self.rng)?;
        let mut seen = Vec::new();
        // The fate has a short form for the tally, and an error if a promise was broken.
        let went = match fate {
            Fate::Opened => {
                seen.push("opened");
                set(&mut self.options, Clock::OnBy(60 * DAY), &mut self.rng);
                // From here on, check the promises as after any kill.
                let mut options = self.options.clone();
                // A file that the store should not have opened may be unreadable.
                let is_empty = deliver_all(&mut self.parent, &mut options);
                match (self.parent.checker.finish().first(), is_empty) {
                    (Some(broken), _) => Err(format!("{broken:?}")),
                    (None, Ok(true)) => Ok(String::new()),
                    (None, Ok(false)) => Err("rows are left".to_owned()),
                    (None, Err(why)) => Err(why),
                }
            }
            Fate::Refused { is_needless } => {
                seen.push("refused");
                seen.extend(is_needless.then_some("refused, and had lost nothing"));
                let given = self.parent.checker.last_id();
                accept_loss(&self.options.file, given).map(|damaged| {
                    seen.extend(damaged.as_ref().map(|_| "refused, and damaged"));
                    damaged.unwrap_or_default()
                })
            }
            Fate::Failed => Err(String::new()),
        };
        let is_broken = went.is_err();
        seen.extend(is_broken.then_some(BROKEN));
        for seen in seen {
            *self.evidence.damages.entry((how, seen)).or_default() += 1;
        }
        let verdict = if is_broken { "BROKEN: " } else { "" };
        let (Ok(more) | Err(more)) = went;
        println!("{:11}  {verdict}{text}; {more}", format!("{how:?}"));
        self.begin_afresh(is_broken)
    }

    /// Gives the next child a new file. A file with a broken promise is kept.
    fn begin_afresh(&mut self, keeps: bool) -> Result<(), String> {
        let name = format!("after-{}", self.options.round);
        let place = self.folder.path().join(name);
        fs::create_dir(&place).map_err(in_words)?;
        let before = std::mem::replace(&mut self.options.file, place.join("timers.db"));
        self.parent = Parent::new(&log_of(&place))?;
        self.before = Summary::default();
        self.options.shift = 0;
        match before.parent() {
            Some(place) if !keeps && place != self.folder.path() => {
                fs::remove_dir_all(place).map_err(in_words)
            }
            _ => Ok(()),
        }
    }
}

/// Sets the clock of the next child.
fn set(options: &mut ChildOptions, clock: Clock, rng: &mut Rng) {
    match clock {
        Clock::OnUpTo(by) => options.shift += rng.i64(0..by),
        Clock::OnBy(by) => options.shift += by,
        Clock::At(shift) => options.shift = shift,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Runs children that are not killed until the file is empty.
fn deliver_all(parent: &mut Parent, options: &mut ChildOptions) -> Result<bool, String> {
    if parent.checker.broken().len() > ENOUGH {
        println!("enough is broken: what is left is not delivered");
        return Ok(false);
    }
    options.callers = 0;
    let mut left = None;
    for _ in 0..5 {
        options.round += 1;
        let last = Child::last();
        parent.play(options, last.steps, None)?;
        let now = look_at(&options.file)?.ok_or("the file has no tables")?;
        let is_over = now.timers() == 0 || left.as_ref() == Some(&now);
        left = Some(now);
        if is_over {
            break;
        }
    }
    // Run the store's own check, which covers the keys as well.
    let mut found = Vec::new();
    let mut note = |finding: Finding| found.push(finding.to_string());
    check(&options.file, &mut note).map_err(in_words)?;
    let is_empty =
        |left: &Look| left.timers() == 0 && left.moved == 0 && left.tagged == 0 && found.is_empty();
    let is_kept = left.as_ref().is_some_and(is_empty);
    let (timers, dead) = left.map_or((0, 0), |it| (it.timers(), it.dead()));
    println!("{timers} timers and {dead} dead letters are left in the file: {found:?}");
    Ok(is_kept)
}

impl Evidence {
    /// Whether no damaged WAL broke a promise.
    pub(crate) fn is_undamaged(&self) -> bool {
        for ((damage, seen), count) in &self.damages {
            println!("{damage:?}: {count} {seen}");
        }
        !self.damages.keys().any(|(_, seen)| *seen == BROKEN)
    }

    /// Whether the last quarter of a soak is like the first.
    pub(crate) fn is_flat(&self, time: Duration) -> bool {
        let is_flat = judge(&self.quarters);
        println!("the checker took {:.0} MB at most", max_memory() / 1e6);
        if !is_flat && time < JUDGED_FROM {
            println!("a run of less than {JUDGED_FROM:?} is not judged by that");
        }
        is_flat || time < JUDGED_FROM
    }
}
