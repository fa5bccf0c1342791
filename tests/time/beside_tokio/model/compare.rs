//! Which results must be equal, and the exceptions.

use std::fmt::{self, Display, Formatter};

use super::play::{Seen, Woken};

/// One step after which tokio's timers and ours differ.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The kind of difference, in a few words, by which differences are counted.
    pub(crate) what: &'static str,
    pub(crate) step: usize,
    pub(crate) detail: String,
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} after step {}: {}", self.what, self.step, self.detail)
    }
}

/// All differences between a script played with tokio's timers and with ours.
pub(crate) fn differences(tokio: &[Seen], ours: &[Seen]) -> Vec<Difference> {
    assert_eq!(tokio.len(), ours.len(), "the same script");
    let mut found = Vec::new();
    for (step, (tokio, ours)) in tokio.iter().zip(ours).enumerate() {
        let mut note = |what, detail: String| found.push(Difference { what, step, detail });
        if tokio.now != ours.now {
            let (tokio, ours) = (tokio.now, ours.now);
            note("the clock", format!("tokio {tokio:?}, ours {ours:?}"));
        }
        if tokio.poll != ours.poll {
            let (tokio, ours) = (tokio.poll, ours.poll);
            note("a poll", format!("tokio {tokio:?}, ours {ours:?}"));
        }
        for (tokio, ours) in tokio.states.iter().zip(&ours.states) {
            if tokio.deadline != ours.deadline {
                note("deadline()", format!("tokio {tokio:?}, ours {ours:?}"));
            }
            if tokio.is_elapsed != ours.is_elapsed {
                note("is_elapsed()", format!("tokio {tokio:?}, ours {ours:?}"));
            }
        }
        if tokio.states.len() != ours.states.len() {
            note("which futures are left", String::new());
        }
        if let Some((what, detail)) = compare_wakes(&tokio.wakes, &ours.wakes) {
            note(what, detail);
        }
    }
    found
}

fn compare_wakes(tokio: &[Woken], ours: &[Woken]) -> Option<(&'static str, String)> {
    let by_filing = |wakes: &[Woken], filed: fn(&Woken) -> u64| {
        let firm = wakes.iter().filter(|woken| !woken.place.is_loose);
        let firm: Vec<_> = firm.collect();
        let mut pairs = firm.windows(2);
        pairs.all(|pair| pair[0].tick != pair[1].tick || filed(pair[0]) < filed(pair[1]))
    };
    let both = || format!("\n  tokio {}\n  ours  {}", shown(tokio), shown(ours));
    // Are they equal apart from their order?
    let mut sorted = [tokio.to_vec(), ours.to_vec()];
    for wakes in &mut sorted {
        wakes.sort_by_key(|woken| (woken.id, woken.poll, woken.at));
    }
    if sorted[0] != sorted[1] {
        return Some(("who is woken, and when", both()));
    }
    if !by_filing(tokio, |woken| woken.place.tokio) {
        return Some(("tokio's order is not what the script takes it for", both()));
    }
    if !tokio.iter().map(beat).eq(ours.iter().map(beat)) {
        return Some(("the order of ticks", both()));
    }
    if !by_filing(ours, |woken| woken.place.ours) {
        return Some(("the order within a tick", both()));
    }
    None
}

/// The part of a wake whose order does not depend on the order within a tick.
fn beat(woken: &Woken) -> (u64, waterwheel::Duration) {
    (woken.tick, woken.at)
}

/// Formats the wakes briefly: number, tick, and a star where the place is not guaranteed.
fn shown(wakes: &[Woken]) -> String {
    const MOST: usize = 40;
    let short = |woken: &Woken| {
        let star = if woken.place.is_loose { "*" } else { "" };
        let (id, poll, tick, at) = (woken.id, woken.poll, woken.tick, woken.at.as_millis());
        format!("{id}.{poll}{star}@{tick}/{at}")
    };
    let all: Vec<_> = wakes.iter().take(MOST).map(short).collect();
    let more = wakes.len().saturating_sub(MOST);
    match more {
        0 => all.join(" "),
        _ => format!("{} and {more} more", all.join(" ")),
    }
}
