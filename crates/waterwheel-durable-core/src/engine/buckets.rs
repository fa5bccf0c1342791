//! Which bucket cascades next?

use crate::store::{Bucket, Due, Level, Op, PageLimit};

use super::io::{Config, Query};
use super::store_link::{Purpose, StoreLink};

/// The first bucket that has rows, as far as the engine knows, and whether the store is being asked for it. Buckets may be seconds of a handler, or days.
#[derive(Debug)]
pub(super) struct First {
    known: Known,
    is_in_flight: bool,
    /// The lowest bucket written to while a reply is in flight, which may not include it.
    lowered: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
enum Known {
    /// Unknown: the store has to be asked.
    Unknown,
    /// There are no rows.
    None,
    /// No bucket before this one has rows.
    At(i64),
}

impl First {
    pub(super) fn unknown() -> First {
        First {
            known: Known::Unknown,
            is_in_flight: false,
            lowered: None,
        }
    }

    pub(super) fn none() -> First {
        First {
            known: Known::None,
            ..First::unknown()
        }
    }

    pub(super) fn is_known(&self) -> bool {
        !matches!(self.known, Known::Unknown)
    }

    pub(super) fn number(&self) -> Option<i64> {
        match self.known {
            Known::At(number) => Some(number),
            Known::Unknown | Known::None => None,
        }
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.is_in_flight
    }

    /// Notes that the store is being asked.
    pub(super) fn ask(&mut self) {
        self.is_in_flight = true;
    }

    /// Notes that the store has to be asked again.
    pub(super) fn forget(&mut self) {
        self.known = Known::Unknown;
    }

    /// Takes the store's reply. `None` if it answered a different query, so the store has to be asked again.
    pub(super) fn replied(&mut self, first: Option<Option<i64>>) {
        self.is_in_flight = false;
        self.known = match first {
            None => Known::Unknown,
            Some(None) => Known::None,
            Some(Some(number)) => Known::At(number),
        };
        if let Some(number) = self.lowered.take() {
            self.lower_known(number);
        }
    }

    /// Notes that a row was written to this bucket.
    pub(super) fn lower(&mut self, number: i64) {
        if self.is_in_flight {
            self.lowered = Some(self.lowered.map_or(number, |first| first.min(number)));
        }
        self.lower_known(number);
    }

    /// Lowers only the known bound: the caller corrects a reply that is in flight.
    pub(super) fn lower_known(&mut self, number: i64) {
        self.known = match self.known {
            // A later query sees the write, and a reply in flight is corrected by `lowered` or the caller.
            Known::Unknown => Known::Unknown,
            Known::None => Known::At(number),
            Known::At(first) => Known::At(first.min(number)),
        };
    }
}

/// The known lower bounds of the levels above seconds, finest first.
#[derive(Debug)]
pub(super) struct Buckets {
    /// How much of a bucket cascades in one commit: as many rows as are loaded at a time, and about as many bytes.
    limit: PageLimit,
    levels: [BucketLevel; Level::CASCADING.len()],
}

#[derive(Debug)]
struct BucketLevel {
    first: First,
    is_cascading: bool,
}

impl Default for BucketLevel {
    fn default() -> BucketLevel {
        BucketLevel {
            first: First::unknown(),
            is_cascading: false,
        }
    }
}

impl Buckets {
    pub(super) fn new(config: &Config) -> Buckets {
        let limit = PageLimit {
            rows: config.page,
            bytes: (config.max_bytes_in_memory / 32).max(1),
        };
        Buckets {
            limit,
            levels: Default::default(),
        }
    }

    /// When the next bucket is due to cascade, by the wall clock.
    pub(super) fn cascades_at(&self) -> Option<Due> {
        let levels = self.levels.iter().zip(Level::CASCADING);
        let levels = levels.filter(|(of, _)| !of.is_cascading);
        let times = levels.filter_map(|(of, level)| {
            let number = of.first.number()?;
            Some(Bucket { level, number }.cascades_at())
        });
        times.min()
    }

    /// Cascades the buckets whose time has come.
    pub(super) fn cascade(&mut self, link: &mut StoreLink) {
        let now = link.now.due();
        for (of, level) in self.levels.iter_mut().zip(Level::CASCADING) {
            if of.first.is_in_flight() || of.is_cascading {
                continue;
            }
            if !of.first.is_known() {
                of.first.ask();
                link.read(Query::FirstBucket(level), Purpose::Bucket(level));
            } else if let Some(number) = of.first.number() {
                let bucket = Bucket { level, number };
                if bucket.cascades_at() <= now {
                    of.is_cascading = true;
                    link.push(Op::Cascade {
                        bucket,
                        now,
                        limit: self.limit,
                    });
                }
            }
        }
    }

    /// Takes the store's answer: the first bucket of a level.
    pub(super) fn found(&mut self, level: Level, first: Option<i64>) {
        self.of(level).first.replied(Some(first));
    }

    /// Notes that a row was written to this bucket.
    pub(super) fn written(&mut self, bucket: Bucket) {
        self.of(bucket.level).first.lower(bucket.number);
    }

    /// Notes that rows have moved from this bucket to these.
    pub(super) fn cascaded(&mut self, bucket: Bucket, is_empty: bool, to: Vec<Bucket>) {
        let of = self.of(bucket.level);
        of.is_cascading = false;
        if is_empty {
            of.first.forget();
        }
        for bucket in to {
            self.written(bucket);
        }
    }

    fn of(&mut self, level: Level) -> &mut BucketLevel {
        &mut self.levels[usize::from(level.number()) - 1]
    }
}
