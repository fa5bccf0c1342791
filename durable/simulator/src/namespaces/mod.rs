//! What was promised of namespaces, and was it kept?
//!
//! | file | question |
//! |---|---|
//! | `terms` | what is a namespace served by? |
//! | `windows` | does any window have more than a rate gives? |
//! | `shares` | does each get its share where places are short? |

mod shares;
mod terms;
mod windows;

use std::collections::HashMap;

use waterwheel_durable::engine::{Answer, Token};
use waterwheel_store::{Op, Row, Setting};

use crate::model::{Kept, Settled};
pub use shares::Shares;
pub use terms::{Retries, Terms};
pub use windows::{Limit, Windows};

/// Those that there are. The first is always there.
pub const NAMES: [&str; 3] = ["default", "shop", "bank"];

/// How many unclean ends a timer may be with its handler at, and at how many of them that is not noted.
const STARTS: u32 = 5;
const NOT_NOTED: u32 = 2;

/// So long after a start and a jump nothing expires, in microseconds.
const CALM: u64 = 600_000_000;

const DAY: i64 = 86_400_000_000;

/// Tokens of namespaces, apart from those of timers and of calendars.
const TOKENS: Token = 1 << 39;

/// What is known of namespaces from outside.
#[derive(Debug)]
pub struct Namespaces {
    all: [Namespace; NAMES.len()],
    asked: HashMap<Token, Asked>,
    tokens: Token,
    /// The first day that is certainly kept of a handler: what is older was to expire.
    kept_from: HashMap<String, i64>,
    cleared: HashMap<String, u64>,
    /// Since then, in microseconds since boot, the clock has not jumped.
    calm_since: u64,
    /// Before which day what is archived may expire.
    may_expire: [i64; NAMES.len()],
}

#[derive(Debug)]
struct Namespace {
    /// What it may be served by. The last one is what was answered last.
    terms: Vec<Terms>,
    /// Whether it is paused, as far as it is known.
    is_paused: Option<bool>,
    is_drained: bool,
    /// When deliveries have begun, and timers were inserted, since the process has begun or the rate has changed.
    begun: Windows,
    inserted: Windows,
}

#[derive(Debug)]
enum Asked {
    Policy(usize, Terms),
    Pause(usize, bool),
}

/// Which namespace a handler is of.
#[must_use]
pub fn of(handler: &str) -> usize {
    let name = handler.split_once('/').map_or(NAMES[0], |(name, _)| name);
    let at = NAMES.iter().position(|it| *it == name);
    at.unwrap_or_default()
}

impl Namespaces {
    /// Namespaces that are served by this.
    #[must_use]
    pub fn new(terms: [Terms; NAMES.len()], boot: u64) -> Namespaces {
        Namespaces {
            all: terms.map(|terms| Namespace {
                terms: vec![terms],
                is_paused: Some(false),
                is_drained: false,
                begun: Windows::default(),
                inserted: Windows::default(),
            }),
            asked: HashMap::new(),
            tokens: 0,
            kept_from: HashMap::new(),
            cleared: HashMap::new(),
            calm_since: boot,
            may_expire: [i64::MIN; NAMES.len()],
        }
    }

    /// Whether an answer is to be checked here.
    #[must_use]
    pub fn is_asked(token: Token) -> bool {
        (TOKENS..2 * TOKENS).contains(&token)
    }

    fn note(&mut self, asked: Asked) -> Token {
        self.tokens += 1;
        let token = TOKENS + self.tokens;
        self.asked.insert(token, asked);
        token
    }

    /// Notes a request for another policy, and names it.
    pub fn asks_for(&mut self, at: usize, terms: Terms) -> Token {
        self.note(Asked::Policy(at, terms))
    }

    /// Notes a request to pause or to resume, and names it.
    pub fn pauses(&mut self, at: usize, is_paused: bool) -> Token {
        self.note(Asked::Pause(at, is_paused))
    }

    /// Nothing begins any more in this process, or does again.
    pub fn drains(&mut self, at: usize, is_drained: bool) {
        self.all[at].is_drained = is_drained;
    }

    /// Checks an answer.
    ///
    /// # Errors
    ///
    /// What it says is not so.
    pub fn answered(&mut self, token: Token, answer: &Answer) -> Kept {
        let Some(asked) = self.asked.remove(&token) else {
            return Err(format!("request {token} was answered twice: {answer:?}"));
        };
        match (asked, answer) {
            (Asked::Policy(at, terms), Answer::Done) => {
                let namespace = &mut self.all[at];
                let is_same = |of: fn(&Terms) -> Option<Limit>| {
                    namespace.terms.iter().all(|it| of(it) == of(&terms))
                };
                let (same_rate, same_quota) = (is_same(|it| it.rate), is_same(|it| it.quota));
                if !same_rate {
                    namespace.begun.clear();
                }
                if !same_quota {
                    namespace.inserted.clear();
                }
                namespace.terms = vec![terms];
                Ok(())
            }
            (Asked::Pause(at, is_paused), Answer::Done) => {
                self.all[at].is_paused = Some(is_paused);
                self.all[at].is_drained &= is_paused;
                Ok(())
            }
            (asked, Answer::Unknown(_)) => {
                self.unknown(asked);
                Ok(())
            }
            (_, Answer::Refused(_) | Answer::Failed(_) | Answer::ShuttingDown) => Ok(()),
            (asked, answer) => Err(format!("{answer:?} is no answer to {asked:?}")),
        }
    }

    fn unknown(&mut self, asked: Asked) {
        match asked {
            Asked::Policy(at, terms) => self.all[at].terms.push(terms),
            Asked::Pause(at, _) => self.all[at].is_paused = None,
        }
    }

    /// The process ends. What was not answered may have been done.
    pub fn crashed(&mut self) {
        for asked in std::mem::take(&mut self.asked).into_values() {
            self.unknown(asked);
        }
    }

    /// Checks that all requests were answered.
    ///
    /// # Errors
    ///
    /// One was not.
    pub fn is_answered(&self) -> Kept {
        match self.asked.iter().next() {
            None => Ok(()),
            Some(asked) => Err(format!("a namespace's request was not answered: {asked:?}")),
        }
    }

    /// A process begins, with these settings.
    ///
    /// # Errors
    ///
    /// They are not what was answered.
    pub fn begins(&mut self, settings: &[Setting], boot: u64) -> Kept {
        let value = |prefix: &str, name: &str| {
            let mut settings = settings.iter();
            let is_it = |it: &&Setting| it.name.strip_prefix(prefix) == Some(name);
            settings.find(is_it).map(|it| it.value.to_vec())
        };
        for (namespace, name) in self.all.iter_mut().zip(NAMES) {
            let stored = value("namespace/", name);
            let is_stored = |terms: &mut Terms| match &stored {
                Some(stored) => terms.stored() == *stored,
                None => *terms == Terms::default(),
            };
            let known = namespace.terms.clone();
            namespace.terms.retain_mut(is_stored);
            namespace.terms.truncate(1);
            if namespace.terms.is_empty() {
                return Err(format!("{name} has {stored:?}, and not {known:?}"));
            }
            let is_paused = value("paused/", name).is_some();
            if namespace.is_paused.is_some_and(|known| known != is_paused) {
                return Err(format!(
                    "{name} is paused: {is_paused}, which was not asked"
                ));
            }
            namespace.is_paused = Some(is_paused);
            namespace.is_drained = false;
            namespace.begun.clear();
            namespace.inserted.clear();
        }
        self.calm_since = boot;
        self.may_expire = [i64::MIN; NAMES.len()];
        Ok(())
    }

    /// The clock was set, by more than a second.
    pub fn clock_was_set(&mut self, boot: u64) {
        self.calm_since = boot;
    }

    fn is_changing(&self, at: usize) -> bool {
        self.asked
            .values()
            .any(|asked| matches!(asked, Asked::Policy(of, _) if *of == at))
    }

    /// What a namespace is served by, if that is certain.
    #[must_use]
    pub fn terms(&self, at: usize) -> Option<&Terms> {
        match &self.all[at].terms[..] {
            [terms] if !self.is_changing(at) => Some(terms),
            _ => None,
        }
    }

    /// Whether deliveries begin, if that is certain.
    #[must_use]
    pub fn is_open(&self, at: usize) -> Option<bool> {
        let namespace = &self.all[at];
        let is_asked = |pause| {
            let mut asked = self.asked.values();
            asked.any(|it| matches!(it, Asked::Pause(of, to) if (*of, *to) == (at, pause)))
        };
        let is_resumed = is_asked(false);
        match namespace.is_paused {
            _ if namespace.is_drained && is_resumed => None,
            _ if namespace.is_drained => Some(false),
            Some(true) if !is_resumed => Some(false),
            Some(false) if !is_asked(true) => Some(true),
            _ => None,
        }
    }

    /// Whether one more delivery would begin at once, certainly, beside so many.
    #[must_use]
    pub fn has_place(&self, at: usize, running: usize, boot: u64) -> bool {
        let Some(terms) = self.terms(at).filter(|_| self.is_open(at) == Some(true)) else {
            return false;
        };
        let has_rate = terms
            .rate
            .is_none_or(|rate| self.all[at].begun.has_one(boot, rate));
        has_rate && terms.concurrency.is_none_or(|most| running < most)
    }

    /// Checks that a delivery may begin, after which so many of its namespace go on. If its start was noted first, it had its place and its turn then.
    ///
    /// # Errors
    ///
    /// It is paused, or beyond a limit.
    pub fn delivered(&mut self, row: &Row, was_noted: bool, running: usize, boot: u64) -> Kept {
        let at = of(&row.handler);
        if self.is_open(at) == Some(false) {
            return Err(format!("{} is closed: {row:?}", NAMES[at]));
        }
        if was_noted {
            return Ok(());
        }
        let Some(terms) = self.terms(at).cloned() else {
            self.all[at].begun.restart(boot);
            return Ok(());
        };
        if terms.concurrency.is_some_and(|most| running > most) {
            return Err(format!("{running} of {} go on: {terms:?}", NAMES[at]));
        }
        match terms.rate {
            Some(rate) if !self.all[at].begun.note(boot, rate) => {
                Err(format!("{} exceeds its rate, {rate:?}", NAMES[at]))
            }
            _ => Ok(()),
        }
    }

    /// The start of a timer is noted: it takes its turn now, and is delivered later.
    pub fn starts(&mut self, row: &Row, boot: u64) {
        self.all[of(&row.handler)].begun.restart(boot);
    }

    /// Checks that an insert was within the quota, or was not and is refused.
    ///
    /// # Errors
    ///
    /// It was not.
    pub fn inserts(&mut self, handler: &str, boot: u64, is_refused: bool) -> Kept {
        let at = of(handler);
        let Some(terms) = self.terms(at).cloned() else {
            self.all[at].inserted.restart(boot);
            return Ok(());
        };
        let inserted = &mut self.all[at].inserted;
        let kept = match (terms.quota, is_refused) {
            (None, is_refused) => !is_refused,
            (Some(quota), true) => !inserted.has_one(boot, quota),
            (Some(quota), false) => inserted.note(boot, quota),
        };
        match kept {
            true => Ok(()),
            false => Err(format!(
                "an insert was refused: {is_refused}, {terms:?} {inserted:?}"
            )),
        }
    }

    /// For how many days is kept what was delivered, if that is certain.
    #[must_use]
    pub fn retention(&self, handler: &str) -> Option<u32> {
        let terms = self.terms(of(handler))?;
        Some(terms.retention.unwrap_or_default())
    }

    /// How many starts may be noted of a timer before it is given up, at least.
    #[must_use]
    pub fn starts_noted(&self, handler: &str) -> u32 {
        let at = of(handler);
        let asked = self.asked.values().filter_map(|asked| match asked {
            Asked::Policy(of, terms) if *of == at => Some(terms),
            _ => None,
        });
        let terms = self.all[at].terms.iter().chain(asked);
        let starts = terms.map(|terms| terms.starts.unwrap_or(STARTS)).min();
        starts.unwrap_or(STARTS) - NOT_NOTED
    }

    /// What may expire now may be asked for by a later commit. `is_written`: there is nothing that was to be asked for before.
    pub fn look(&mut self, boot: u64, wall: i64, is_written: bool) {
        let today = wall.div_euclid(DAY);
        let is_calm = boot >= self.calm_since + CALM;
        for at in 0..NAMES.len() {
            let from = match self.terms(at).map(|it| it.retention.unwrap_or_default()) {
                None => i64::MAX,
                Some(_) if !is_calm => i64::MIN,
                Some(0) => i64::MAX,
                Some(days) => today - i64::from(days),
            };
            let may_expire = &mut self.may_expire[at];
            *may_expire = if is_written {
                from
            } else {
                from.max(*may_expire)
            };
        }
    }

    /// Checks and notes what a commit lets expire.
    ///
    /// # Errors
    ///
    /// It is too early.
    pub fn expires(&mut self, steps: &[Op]) -> Kept {
        for op in steps {
            let Op::Expire {
                handler, before, ..
            } = op
            else {
                continue;
            };
            let most = self.may_expire[of(handler)];
            if *before > most {
                return Err(format!(
                    "{handler} expires before day {before}, and not {most}"
                ));
            }
            let name = handler.to_string();
            if *before == i64::MAX {
                *self.cleared.entry(name).or_default() += 1;
                continue;
            }
            let kept_from = self.kept_from.entry(name).or_insert(i64::MIN);
            *kept_from = (*kept_from).max(*before);
        }
        Ok(())
    }

    /// How often all that was archived of a handler was to expire.
    #[must_use]
    pub fn cleared(&self, handler: &str) -> u64 {
        self.cleared.get(handler).copied().unwrap_or_default()
    }

    /// Whether what was archived of a handler is certainly there.
    #[must_use]
    pub fn is_kept(&self, handler: &str, archived: Settled) -> bool {
        let kept_from = self.kept_from.get(handler).copied();
        let is_young = kept_from.is_none_or(|from| archived.wall.div_euclid(DAY) >= from);
        is_young && archived.cleared == self.cleared(handler)
    }
}
