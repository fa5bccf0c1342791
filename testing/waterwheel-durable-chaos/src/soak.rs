//! `soak`: a service in its usual life for an hour, in which this and that goes wrong. Does it stay as it was?

mod flat;

use std::process::ExitCode;
use std::time::Duration;

use fastrand::Rng;
use waterwheel_durable_chaos::arguments::Arguments;

use crate::child::{ChildOptions, GONE_BY};
use crate::disk_full::{LARGEST, at_the_limit, inserts_again};
use crate::gauge::{Gauge, HEADING, Minute, max_memory};
use crate::kill::{DAY, deliver_all};
use crate::parent::{Parent, Until};
use crate::report;
use crate::script::{Foreign, Script, Step};

/// Lives that are measured: the last one is held against the first.
const QUARTERS: u64 = 4;
/// Children that are killed before each of them.
const KILLS: u64 = 3;
/// In a shorter run, a few moments decide, and the start of a process.
const JUDGED_FROM: Duration = Duration::from_secs(10 * 60);
/// How far the file may grow before it counts as full, at least, and how long it is then.
const GROWTH: u64 = 2 << 20;
const LEAST_LIMIT: u64 = 6 << 20;

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, String> {
    let minutes: f64 = arguments.take("minutes", 60.0)?;
    let rate: u32 = arguments.take("rate", 3_000)?;
    let seed = arguments.take("seed", Rng::new().u64(..))?;
    let callers: usize = arguments.take("callers", 64)?;
    let fault: String = arguments.take("break", String::new())?;
    arguments.end()?;
    crate::fault::check(&fault)?;
    if !(0.0..=100_000.0).contains(&minutes) || rate == 0 || callers == 0 {
        return Err("--minutes, --rate and --callers are more than 0".into());
    }
    let time = Duration::from_secs_f64(minutes * 60.0);
    let folder = report::folder()?;
    let mut rng = Rng::with_seed(seed);
    let options = ChildOptions {
        rate,
        ..ChildOptions::new(folder.path(), seed, callers, fault)
    };
    let mut parent = Parent::new(&report::log_of(folder.path()))?;
    let length = Duration::from_secs(60).min(time / QUARTERS as u32 / 5);
    parent.gauge = Some(Gauge::new(&options.file, length));
    println!(
        "soak: {minutes} minutes, {rate} requests a second of {callers} callers, seed {seed}; a line is {length:?}"
    );
    let mut soak = Soak { parent, options };
    let mut quarters = Vec::new();
    for quarter in 1..=QUARTERS {
        if soak.parent.checker.broken().len() > report::ENOUGH {
            break;
        }
        // Before each, so that they are alike.
        soak.kills(&mut rng)?;
        soak.fills(&mut rng)?;
        println!("quarter {quarter}\n{HEADING}");
        quarters.push(soak.lives(time / QUARTERS as u32, quarter == QUARTERS, &mut rng)?);
    }
    let Soak {
        mut parent,
        mut options,
    } = soak;
    options.callers = 0;
    options.shift += 60 * DAY;
    let is_empty = deliver_all(&mut parent, &mut options)?;
    let is_flat = flat::judge(&quarters);
    println!("the checker took {:.0} MB at most", max_memory() / 1e6);
    let is_kept = report::verdict(&mut parent.checker) && is_empty;
    if !is_flat && time < JUDGED_FROM {
        println!("a run of less than {JUDGED_FROM:?} is not judged by that");
    }
    let is_well = is_kept && (is_flat || time < JUDGED_FROM);
    Ok(report::end(is_well, seed, folder))
}

struct Soak {
    parent: Parent,
    options: ChildOptions,
}

impl Soak {
    /// The next child is another process. The clock has gone on while there was none.
    fn next(&mut self, life: Duration, rng: &mut Rng) {
        self.options.round += 1;
        self.options.seed = rng.u64(..);
        self.options.soak = u64::try_from(life.as_millis()).unwrap_or(u64::MAX).max(1);
        self.options.shift += rng.i64(0..DAY / 24);
    }

    /// Children that do not live for long.
    fn kills(&mut self, rng: &mut Rng) -> Result<(), String> {
        for _ in 0..KILLS {
            let after = Duration::from_millis(rng.u64(300..2_500));
            // Nothing else goes wrong.
            self.next(Duration::from_secs(3_600), rng);
            let until = Until::Killed {
                after,
                in_commit: true,
            };
            self.parent.play(&self.options, until)?;
        }
        Ok(())
    }

    /// A child whose file reaches its limit.
    fn fills(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.next(Duration::from_secs(3_600), rng);
        let file = self.options.file.metadata().map_or(0, |data| data.len());
        let mut options = self.options.clone();
        options.limit = LEAST_LIMIT.max(file + GROWTH);
        // As much as they can, and longer payloads: a file of an hour has many pages that are free.
        options.rate = 0;
        options.largest = LARGEST;
        let steps = [at_the_limit(), inserts_again(), Step::Stop];
        self.parent.script = Some(Script::new(steps, &Foreign::InChild));
        self.parent.play(&options, Until::Scripted)?;
        for (name, progress) in self
            .parent
            .script
            .take()
            .into_iter()
            .flat_map(|it| it.progress)
        {
            let (created, full) = (progress.created, progress.full);
            println!(
                "{name}: {created} inserted, {full} refused, {} settled",
                progress.settled
            );
        }
        Ok(())
    }

    /// A child that is measured. In the end it is killed, but for the last one.
    fn lives(
        &mut self,
        life: Duration,
        is_last: bool,
        rng: &mut Rng,
    ) -> Result<Vec<Minute>, String> {
        self.next(life, rng);
        if let Some(gauge) = &mut self.parent.gauge {
            gauge.begin();
        }
        let until = match is_last {
            true => Until::Lived(life),
            false => Until::Killed {
                after: life,
                in_commit: true,
            },
        };
        self.parent.play(&self.options, until)?;
        self.options.shift += GONE_BY;
        Ok(self
            .parent
            .gauge
            .as_mut()
            .map(Gauge::end)
            .unwrap_or_default())
    }
}
