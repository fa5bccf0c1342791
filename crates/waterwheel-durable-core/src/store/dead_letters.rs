use super::{Dead, Id, PageLimit, Scope, Store, StoreError};

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

    /// Returns all dead letters of these handlers, however many. For tests and tools.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn all(store: &mut dyn Store, scope: Scope<'_>) -> Result<Vec<Dead>, StoreError> {
        let (mut all, mut next) = (Vec::new(), Some(Id::NONE));
        while let Some(after) = next {
            let page = store.dead(scope, after, PageLimit::rows(usize::MAX))?;
            all.extend(page.dead);
            next = page.next;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use super::*;
    use crate::store::{Due, Row};

    fn dead_letter(number: u64) -> Dead {
        Dead {
            row: Row {
                id: Id::from_stored(number),
                due: Due::from_millis(0),
                handler: "mail".into(),
                failures: 0,
                starts: 0,
                has_moved: false,
                key: None,
                payload: Arc::from([0; 100]),
            },
            at: Due::from_millis(0),
            error: "no".into(),
        }
    }

    /// A page of the dead letters 1 to 9, of which those are meant that 3 divides: their numbers, and where the next one begins.
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
}
