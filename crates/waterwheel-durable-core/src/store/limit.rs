use super::Row;

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
