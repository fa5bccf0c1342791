//! The life of a seed, and of some of its steps.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// The course of a life, step by step.
pub trait Lives: Sized {
    type Fault: Fault<World = Self>;

    fn new(seed: u64, broken: Option<Self::Fault>) -> Result<Self, String>;

    /// The number of steps before the final phase.
    fn length(&mut self) -> usize;

    /// The random state, which determines everything that follows: a step with the same state has the same outcome.
    fn chance(&self) -> u64;

    fn set_chance(&mut self, state: u64);

    fn step(&mut self) -> Result<(), String>;

    /// Lets everything that is in progress come to an end, without faults.
    fn rest(&mut self) -> Result<(), String>;

    /// Plays the final phase, in which everything that is left comes due.
    fn come_to_an_end(&mut self) -> Result<(), String>;

    /// Tells steps in words from now on.
    fn tells(&mut self);

    /// The last step in words.
    fn told(&self) -> &str;

    /// Prints the configuration of the life, if it is traced.
    fn trace_terms(&self) {}
}

/// A kind of faults that can be planted, and with it a kind of lives.
pub trait Fault: Copy {
    #[doc(hidden)]
    type World: Lives<Fault = Self>;
}

/// A promise that was broken in the life of a seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broke {
    /// The seed that repeats it.
    pub seed: u64,
    /// The number of steps before it was broken.
    pub step: usize,
    /// The broken promise, in words.
    pub what: String,
}

impl fmt::Display for Broke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broke { seed, step, what } = self;
        write!(f, "seed {seed}, step {step}: {what}")
    }
}

impl std::error::Error for Broke {}

/// Runs the life of a seed.
///
/// # Errors
///
/// The promise that was broken.
pub fn run<F: Fault>(seed: u64, broken: Option<F>) -> Result<(), Broke> {
    Life::record(seed, broken).1
}

/// The steps of the life of a seed. Each is identified by the random state before it, so it has the same outcome whichever steps
/// came before: a life may be repeated without some of them.
#[derive(Debug)]
pub struct Life<F> {
    seed: u64,
    broken: Option<F>,
    steps: Vec<u64>,
    /// The random state before the final phase, if the life reached it.
    end: Option<u64>,
}

/// A step that remains of a life. Its text form is its number, followed by `+` if the store comes to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its number in the life.
    pub number: usize,
    /// Whether the store handles and answers all pending requests after this step, in place of the steps of the life that did so.
    pub rests: bool,
}

/// Receives each replayed step, in words.
pub type Tell<'a> = &'a mut dyn FnMut(Step, &str);

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, if self.rests { "+" } else { "" })
    }
}

impl FromStr for Step {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Step, ParseIntError> {
        let number = text.strip_suffix('+');
        Ok(Step {
            number: number.unwrap_or(text).parse()?,
            rests: number.is_some(),
        })
    }
}

impl<F: Fault> Life<F> {
    /// Runs the life of a seed, and returns its steps and the outcome.
    pub fn record(seed: u64, broken: Option<F>) -> (Life<F>, Result<(), Broke>) {
        let mut life = Life {
            seed,
            broken,
            steps: Vec::new(),
            end: None,
        };
        let lived = F::World::new(seed, broken).and_then(|mut world| {
            let lived = life.live(&mut world);
            world.trace_terms();
            lived
        });
        // Include the failing step.
        let failed = usize::from(life.end.is_none());
        let step = life.steps.len().saturating_sub(failed);
        (life, lived.map_err(|what| Broke { seed, step, what }))
    }

    fn live(&mut self, world: &mut F::World) -> Result<(), String> {
        for _ in 0..world.length() {
            self.steps.push(world.chance());
            world.step()?;
        }
        self.end = Some(world.chance());
        world.come_to_an_end()
    }

    /// The number of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are no steps.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Replays the life with only these of its steps, and its final phase. `told` receives each step in words.
    ///
    /// # Errors
    ///
    /// The promise that was broken.
    pub fn replay(&self, steps: &[Step], mut told: Option<Tell<'_>>) -> Result<(), Broke> {
        let mut step = 0;
        let mut live = || {
            let mut world = F::World::new(self.seed, self.broken)?;
            world.length();
            if told.is_some() {
                world.tells();
            }
            for kept in steps {
                step = kept.number;
                world.set_chance(self.steps[step]);
                let stepped = world.step();
                if let Some(told) = &mut told {
                    told(*kept, world.told());
                }
                stepped?;
                if kept.rests {
                    world.rest()?;
                }
            }
            step = self.steps.len();
            if let Some(end) = self.end {
                world.set_chance(end);
            }
            let ended = world.come_to_an_end();
            world.trace_terms();
            ended
        };
        let lived: Result<(), String> = live();
        let seed = self.seed;
        lived.map_err(|what| Broke { seed, step, what })
    }
}
