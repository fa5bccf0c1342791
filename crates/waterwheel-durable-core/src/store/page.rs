use std::cmp::{Ordering, Reverse};

use super::{Bucket, Dead, Due, Handle, Id, Level, Row};

/// A limit on how much is loaded, or cascades, at a time. It ends at whichever comes first: the number of rows, or the
/// row that reaches the number of bytes.
///
/// A load therefore returns at least one row if there is one, however large it is; and a result with fewer rows and
/// fewer bytes is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// The maximum number of rows.
    pub rows: usize,
    /// The number of [bytes](Row::bytes) after which no further row follows.
    pub bytes: usize,
}

impl PageLimit {
    /// Creates a limit on the number of rows, of any size.
    #[must_use]
    pub const fn rows(rows: usize) -> PageLimit {
        PageLimit {
            rows,
            bytes: usize::MAX,
        }
    }

    /// Returns the first of these rows, as many as the limit allows.
    ///
    /// # Errors
    ///
    /// The first error of `rows`.
    pub fn take<E>(self, rows: impl IntoIterator<Item = Result<Row, E>>) -> Result<Vec<Row>, E> {
        self.take_sized(rows, Row::bytes)
    }

    /// Same as [`take`](PageLimit::take), for other items whose size is known.
    ///
    /// # Errors
    ///
    /// The first error of `rows`.
    pub fn take_sized<T, E>(
        self,
        rows: impl IntoIterator<Item = Result<T, E>>,
        bytes_of: impl Fn(&T) -> usize,
    ) -> Result<Vec<T>, E> {
        let (mut first, mut bytes) = (Vec::new(), 0_usize);
        for row in rows.into_iter().take(self.rows) {
            let row = row?;
            bytes = bytes.saturating_add(bytes_of(&row));
            first.push(row);
            if bytes >= self.bytes {
                break;
            }
        }
        Ok(first)
    }

    /// Returns whether the loaded `rows` stay below this limit, so that they are all there are.
    #[must_use]
    pub fn exceeds(self, rows: &[Row]) -> bool {
        let bytes = rows.iter().map(Row::bytes).fold(0, usize::saturating_add);
        rows.len() < self.rows && bytes < self.bytes
    }
}

/// Selects handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All handlers.
    All,
    /// The handler with this name.
    Handler(&'a str),
    /// The handlers of this namespace: the part of their names before the `/`, or `default` if there is none.
    Namespace(&'a str),
}

impl Scope<'_> {
    /// Returns whether the handler is selected.
    #[must_use]
    pub fn contains(&self, handler: &str) -> bool {
        match self {
            Scope::All => true,
            Scope::Handler(name) => handler == *name,
            Scope::Namespace(name) => Scope::namespace_of(handler) == *name,
        }
    }

    /// Returns the namespace of a handler.
    #[must_use]
    pub fn namespace_of(handler: &str) -> &str {
        handler.split_once('/').map_or("default", |(name, _)| name)
    }
}

/// A page of [dead letters](crate::store::Store::dead).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// The dead letters, in order of their ids.
    pub dead: Vec<Dead>,
    /// The id after which the next page starts. `None` if there are no more.
    pub next: Option<Id>,
}

impl DeadLetters {
    /// How many dead letters the stores of this project examine in a call, whether or not they match: each may require
    /// reading a page from disk.
    pub const EXAMINED: usize = 1_024;

    /// Builds a page from the dead letters that follow `after`: as many matching ones as `limit` allows, after examining
    /// at most `examined`. Each item of `all` is the id of a dead letter, in order, and the dead letter itself if it
    /// matches.
    ///
    /// # Errors
    ///
    /// The first error of `all`.
    pub fn of<E>(
        all: impl IntoIterator<Item = Result<(Id, Option<Dead>), E>>,
        after: Id,
        limit: PageLimit,
        examined: usize,
    ) -> Result<DeadLetters, E> {
        let mut all = all.into_iter();
        let (mut dead, mut next, mut bytes) = (Vec::new(), after, 0_usize);
        for _ in 0..examined {
            let is_filled = bytes >= limit.bytes && !dead.is_empty();
            if dead.len() >= limit.rows || is_filled {
                break;
            }
            let Some(examined) = all.next() else {
                return Ok(DeadLetters { dead, next: None });
            };
            let (id, dead_letter) = examined?;
            next = id;
            if let Some(dead_letter) = dead_letter {
                bytes = bytes.saturating_add(dead_letter.bytes());
                dead.push(dead_letter);
            }
        }
        let next = Some(next);
        Ok(DeadLetters { dead, next })
    }
}

/// A position among all pending timers: by the start of their buckets, the longer of two buckets with the same start
/// first, and by their ids within a bucket. A [cascade](crate::store::Op::Cascade) moves a timer to a later position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PendingCursor {
    /// The bucket.
    pub bucket: Bucket,
    /// The id of the timer.
    pub id: Id,
}

impl PendingCursor {
    /// Returns the position in a level after which a page starts that starts after the position `after`, or with the first timer.
    #[must_use]
    pub fn after_in(level: Level, after: Option<PendingCursor>) -> PendingCursor {
        let Some(after) = after else {
            let number = i64::MIN;
            let bucket = Bucket { level, number };
            return PendingCursor {
                bucket,
                id: Id::NONE,
            };
        };
        if level == after.bucket.level {
            return after;
        }
        let bucket = level.bucket(after.bucket.start());
        let is_later = bucket.start() == after.bucket.start() && level < after.bucket.level;
        let id = if is_later { Id::NONE } else { Id::MAX };
        PendingCursor { bucket, id }
    }

    fn order(self) -> (Due, Reverse<Level>, Id) {
        (self.bucket.start(), Reverse(self.bucket.level), self.id)
    }
}

impl PartialOrd for PendingCursor {
    fn partial_cmp(&self, other: &PendingCursor) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PendingCursor {
    fn cmp(&self, other: &PendingCursor) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// A page of [pending timers](crate::store::Store::handles).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlePage {
    /// The handles of the timers with their positions, in order.
    pub handles: Vec<(PendingCursor, Handle)>,
    /// The position after which the next page starts. `None` if there are no more timers.
    pub next: Option<PendingCursor>,
}

impl HandlePage {
    /// How many timers the stores of this project examine in a call, whether or not they match.
    pub const EXAMINED: usize = 4_096;

    /// Builds a page from the timers that follow a position: as many matching ones as `limit` allows, at least one,
    /// after examining at most `examined`. Each item of `all` is the position of a timer, in order, and its handle if
    /// it matches.
    ///
    /// # Errors
    ///
    /// The first error of `all`.
    pub fn of<E>(
        all: impl IntoIterator<Item = Result<(PendingCursor, Option<Handle>), E>>,
        limit: usize,
        examined: usize,
    ) -> Result<HandlePage, E> {
        let (mut handles, mut next) = (Vec::new(), None);
        for (number, item) in (1..).zip(all) {
            let (cursor, handle) = item?;
            handles.extend(handle.map(|handle| (cursor, handle)));
            if handles.len() >= limit.max(1) || number >= examined {
                next = Some(cursor);
                break;
            }
        }
        Ok(HandlePage { handles, next })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::store::Due;

    #[test]
    fn a_namespace_is_what_is_before_the_slash() {
        let of = |scope: Scope<'_>| {
            let all = [
                "close",
                "shop/close",
                "shopping/close",
                "shop",
                "default/close",
            ];
            all.into_iter()
                .filter(|it| scope.contains(it))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(Scope::Namespace("shop")), ["shop/close"]);
        let default = ["close", "shop", "default/close"];
        assert_eq!(of(Scope::Namespace("default")), default);
        assert_eq!(of(Scope::Handler("shop")), ["shop"]);
        assert_eq!(of(Scope::All).len(), 5);
    }

    fn dead_letter(number: u64) -> Dead {
        Dead {
            row: Row::new(
                Id::from_stored(number),
                Due::from_millis(0),
                "mail",
                [0; 100],
            ),
            at: Due::from_millis(0),
            error: "no".into(),
        }
    }

    /// Reads a page of the dead letters 1 to 9, of which multiples of 3 match. Returns their numbers, and where the next page begins.
    fn page(after: u64, limit: PageLimit, examined: usize) -> (Vec<u64>, Option<u64>) {
        let all = (after + 1..10).map(|number| {
            let is_meant = number % 3 == 0;
            let dead_letter = is_meant.then(|| dead_letter(number));
            Ok::<_, Infallible>((Id::from_stored(number), dead_letter))
        });
        let Ok(page) = DeadLetters::of(all, Id::from_stored(after), limit, examined);
        let dead = page.dead.iter().map(|it| it.row.id.get()).collect();
        (dead, page.next.map(Id::get))
    }

    #[test]
    fn a_page_ends_by_rows_by_bytes_and_by_what_was_looked_at() {
        let all = PageLimit::rows(usize::MAX);
        assert_eq!(page(0, all, 100), (vec![3, 6, 9], None));
        assert_eq!(page(0, all, 9), (vec![3, 6, 9], Some(9)));
        assert_eq!(page(9, all, 9), (vec![], None));
        assert_eq!(page(0, all, 2), (vec![], Some(2)));
        assert_eq!(page(2, all, 2), (vec![3], Some(4)));
        assert_eq!(page(0, PageLimit::rows(2), 100), (vec![3, 6], Some(6)));
        assert_eq!(page(0, PageLimit::rows(0), 100), (vec![], Some(0)));
        let bytes = |bytes| PageLimit { bytes, ..all };
        let one = dead_letter(3).bytes();
        assert_eq!(page(0, bytes(0), 100), (vec![3], Some(3)));
        assert_eq!(page(0, bytes(one), 100), (vec![3], Some(3)));
        assert_eq!(page(0, bytes(one + 1), 100), (vec![3, 6], Some(6)));
    }

    #[test]
    fn a_page_of_handles_ends_by_its_limit_and_by_what_was_examined() {
        let bucket = Level::Second.bucket(Due::from_millis(0));
        let at = |number| PendingCursor {
            bucket,
            id: Id::from_stored(number),
        };
        // Every third timer matches.
        let page = |after: u64, limit, examined| {
            let all = (after + 1..10).map(|number| {
                let row = dead_letter(number).row;
                let handle = (number % 3 == 0).then(|| row.handle());
                Ok::<_, Infallible>((at(number), handle))
            });
            let Ok(page) = HandlePage::of(all, limit, examined);
            let ids = page.handles.iter().map(|(_, handle)| handle.id.get());
            (ids.collect::<Vec<_>>(), page.next.map(|next| next.id.get()))
        };
        assert_eq!(page(0, 100, 100), (vec![3, 6, 9], None));
        assert_eq!(page(9, 100, 100), (vec![], None));
        assert_eq!(page(0, 100, 9), (vec![3, 6, 9], Some(9)));
        assert_eq!(page(0, 100, 2), (vec![], Some(2)));
        assert_eq!(page(0, 2, 100), (vec![3, 6], Some(6)));
        assert_eq!(page(0, 0, 100), (vec![3], Some(3)));
    }

    #[test]
    fn positions_are_in_order_of_time_and_the_longer_bucket_first() {
        let at = |level: Level, millis, number| PendingCursor {
            bucket: level.bucket(Due::from_millis(millis)),
            id: Id::from_stored(number),
        };
        let all = [
            at(Level::Month, -1, 5),
            at(Level::Month, 0, 4),
            at(Level::Hour, 0, 3),
            at(Level::Second, 0, 1),
            at(Level::Second, 999, 2),
            at(Level::Second, 1_000, 0),
            at(Level::Hour, 3_600_000, 0),
        ];
        assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
    }
}
