use std::sync::Arc;

use waterwheel_cron::Schedule;
use waterwheel_cron::jiff::tz::TimeZone;
use waterwheel_durable_core::store::{Due, Id};

use super::stored::{self, Definition};
use super::zone::{self, timestamp};
use waterwheel_durable_core::engine::calendar::{Occurrences, Progress};

/// The occurrences of a cron expression in a time zone, between two times.
#[derive(Debug)]
pub(super) struct Cron {
    pub(super) schedule: Schedule,
    pub(super) definition: Definition,
}

impl Cron {
    fn zone(&self) -> &TimeZone {
        self.schedule.zone()
    }
}

impl Occurrences for Cron {
    fn next_after(&self, after: Due) -> Option<Due> {
        // Nothing comes before 1970 or after 2500, because no id would be left for it.
        let from = self.definition.from.unwrap_or(0).max(0);
        let after = after.as_millis().max(from - 1);
        let next = self
            .schedule
            .next_after(timestamp(Due::from_millis(after))?)?;
        let next = Due::from_millis(next.as_millisecond());
        let until = self.definition.until.unwrap_or(i64::MAX);
        let has_id = Id::of_occurrence(0, 0, next.second()).is_some();
        (has_id && next.as_millis() <= until).then_some(next)
    }

    fn civil(&self, at: Due) -> i64 {
        zone::civil(self.zone(), at)
    }

    fn instant(&self, civil: i64, near: Due) -> Due {
        zone::instant(self.zone(), civil, near)
    }

    fn rules(&self, from: Due) -> u64 {
        zone::rules(self.zone(), from)
    }

    fn stored(&self, progress: &Progress) -> Arc<[u8]> {
        stored::write(&self.definition, progress)
    }
}
