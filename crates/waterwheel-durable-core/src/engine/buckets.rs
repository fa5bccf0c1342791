//! Which bucket cascades next?

use crate::store::{Bucket, Due, Level, Op};

use super::in_flight::Purpose;
use super::next::Next;
use super::{Call, Engine};

/// What is known of the far levels, the finest first.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    levels: [BucketLevel; Level::FAR.len()],
}

#[derive(Debug)]
struct BucketLevel {
    next: Next,
    is_in_flight: bool,
    /// Meanwhile a row was written to this bucket. The reply may not know of it.
    lowered: Option<i64>,
    is_cascading: bool,
}

impl Default for BucketLevel {
    fn default() -> BucketLevel {
        BucketLevel {
            next: Next::Unknown,
            is_in_flight: false,
            lowered: None,
            is_cascading: false,
        }
    }
}

impl Buckets {
    /// When the next bucket of each level is to cascade.
    pub(super) fn cascades_at(&self) -> impl Iterator<Item = Due> {
        self.levels
            .iter()
            .zip(Level::FAR)
            .filter_map(|(of, level)| match of.next {
                Next::At(number) if !of.is_cascading => {
                    Some(Bucket { level, number }.cascades_at())
                }
                _ => None,
            })
    }

    /// A row was written to this bucket.
    pub(super) fn written(&mut self, bucket: Bucket) {
        let (of, number) = (self.of(bucket.level), bucket.number);
        if of.is_in_flight {
            of.lowered = Some(of.lowered.map_or(number, |first| first.min(number)));
        }
        of.next.lower(number);
    }

    fn of(&mut self, level: Level) -> &mut BucketLevel {
        &mut self.levels[usize::from(level.number()) - 1]
    }
}

impl Engine {
    /// Lets the buckets cascade whose time has come.
    pub(super) fn cascade(&mut self) {
        let now = self.present();
        for level in Level::FAR {
            let of = self.buckets.of(level);
            if of.is_in_flight || of.is_cascading {
                continue;
            }
            match of.next {
                Next::None => {}
                Next::Unknown => {
                    of.is_in_flight = true;
                    let call = Call::FirstBucket(level);
                    let purpose = Purpose::Bucket(level);
                    self.send(call, purpose);
                }
                Next::At(number) => {
                    let bucket = Bucket { level, number };
                    if bucket.cascades_at() <= now {
                        of.is_cascading = true;
                        let limit = self.config.cascade();
                        let op = Op::Cascade { bucket, now, limit };
                        self.commits.push(op);
                    }
                }
            }
        }
    }

    /// The store has said which bucket is next.
    pub(super) fn bucket_found(&mut self, level: Level, first: Option<i64>) {
        let of = self.buckets.of(level);
        of.is_in_flight = false;
        of.next = Next::found(first);
        if let Some(number) = of.lowered.take() {
            of.next.lower(number);
        }
    }

    /// Rows have moved from this bucket.
    pub(super) fn cascaded(
        &mut self,
        bucket: Bucket,
        is_empty: bool,
        buckets: Vec<Bucket>,
        seconds: Vec<(std::sync::Arc<str>, i64)>,
    ) {
        let of = self.buckets.of(bucket.level);
        of.is_cascading = false;
        if is_empty {
            of.next = Next::Unknown;
        }
        for bucket in buckets {
            self.buckets.written(bucket);
        }
        for (handler, second) in seconds {
            let queue = self.queue(&handler);
            self.written(queue, second);
        }
    }
}
