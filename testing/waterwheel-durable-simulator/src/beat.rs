//! A calendar without time zone history: it occurs whenever the clock on the wall shows a multiple of a period.

use std::sync::Arc;

use waterwheel_durable_core::engine::calendar::{
    Cursor, Misfire, Occurrences, Plan, Progress, SETTINGS, Stored,
};
use waterwheel_durable_core::store::{Due, Setting};

/// The times of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// The version of the declaration: declarations with equal versions are equal.
    pub version: u32,
    /// The period in seconds.
    pub period: i64,
    /// The maximum number of missed occurrences that are delivered.
    pub limit: u32,
    /// The index of the handler.
    pub handler: usize,
}

/// A beat in a zone that is `ahead` seconds ahead of UTC.
#[derive(Debug)]
struct InZone {
    beat: Beat,
    ahead: i64,
}

impl Beat {
    /// Converts the beat to the engine's type.
    #[must_use]
    pub fn plan(self, name: usize, ahead: i64, handlers: &[&str]) -> Plan {
        let misfire = match self.limit {
            0 => Misfire::Skip,
            1 => Misfire::Once,
            limit => Misfire::CatchUpTo(limit),
        };
        Plan {
            definition: self.version.to_string().into(),
            times: self.period.to_string().into(),
            handler: handlers[self.handler].into(),
            payload: format!("{name} {}", self.version).into_bytes().into(),
            misfire,
            occurrences: Arc::new(InZone { beat: self, ahead }),
        }
    }

    /// The last occurrences up to this second, latest first.
    pub fn last(self, second: i64, ahead: i64) -> impl Iterator<Item = i64> {
        let last = (second + ahead).div_euclid(self.period) * self.period - ahead;
        (0..i64::from(self.limit)).map(move |it| last - it * self.period)
    }
}

/// The index of a row's calendar.
#[must_use]
pub fn name_of(payload: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(payload).ok()?;
    text.split(' ').next()?.parse().ok()
}

impl Occurrences for InZone {
    fn next_after(&self, after: Due) -> Option<Due> {
        let period = self.beat.period;
        let civil = after.second() + self.ahead;
        let next = (civil.div_euclid(period) + 1) * period;
        Some(Due::from_second(next - self.ahead))
    }

    fn civil(&self, at: Due) -> i64 {
        at.as_millis() + self.ahead * 1_000
    }

    fn instant(&self, civil: i64, _: Due) -> Due {
        Due::from_millis(civil - self.ahead * 1_000)
    }

    fn rules(&self, _: Due) -> u64 {
        self.ahead.cast_unsigned()
    }

    fn stored(&self, progress: &Progress) -> Arc<[u8]> {
        let Beat {
            version,
            period,
            limit,
            handler,
        } = self.beat;
        let Cursor {
            at,
            civil,
            rules,
            aside,
            last,
        } = progress.cursor;
        let time = |due: Option<Due>| due.map_or(i64::MIN, Due::as_millis);
        let parts = [
            i64::from(version),
            period,
            i64::from(limit),
            handler as i64,
            i64::from(progress.number),
            at.as_millis(),
            civil,
            rules.cast_signed(),
            time(aside),
            time(last),
        ];
        let parts = parts.map(|it| it.to_string());
        parts.join(" ").into_bytes().into()
    }
}

/// The calendars of a store, in a zone that is this far ahead.
#[must_use]
pub fn read(settings: &[Setting], ahead: i64, handlers: &[&str]) -> Vec<Stored> {
    let stored = settings.iter().filter_map(|setting| {
        let name = setting.name.strip_prefix(SETTINGS)?;
        let (beat, progress) = parts(&setting.value)?;
        Some(Stored {
            name: name.into(),
            read: Ok((beat.plan(name.parse().ok()?, ahead, handlers), progress)),
        })
    });
    stored.collect()
}

fn parts(stored: &[u8]) -> Option<(Beat, Progress)> {
    let text = std::str::from_utf8(stored).ok()?;
    let parts: Result<Vec<i64>, _> = text.split(' ').map(str::parse).collect();
    let [
        version,
        period,
        limit,
        handler,
        number,
        at,
        civil,
        rules,
        aside,
        last,
    ] = parts.ok()?[..]
    else {
        return None;
    };
    let time = |millis| (millis != i64::MIN).then_some(Due::from_millis(millis));
    let beat = Beat {
        version: version.try_into().ok()?,
        period,
        limit: limit.try_into().ok()?,
        handler: handler.try_into().ok()?,
    };
    let cursor = Cursor {
        at: Due::from_millis(at),
        civil,
        rules: rules.cast_unsigned(),
        aside: time(aside),
        last: time(last),
    };
    let number = number.try_into().ok()?;
    Some((beat, Progress { number, cursor }))
}
