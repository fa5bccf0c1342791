use super::Row;

/// How much is loaded, or cascades, at a time. What comes first is the end: so many rows, or the row with which there are so many bytes.
///
/// So a load has a row if there is one, however large it is, and what has fewer rows and fewer bytes is all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// How many rows.
    pub rows: usize,
    /// How many [bytes](Row::bytes).
    pub bytes: usize,
}

impl Most {
    /// So many rows, of any size.
    #[must_use]
    pub const fn rows(rows: usize) -> Most {
        Most {
            rows,
            bytes: usize::MAX,
        }
    }

    /// The first of these rows, as many as there may be.
    ///
    /// # Errors
    ///
    /// The first error among them.
    pub fn of<E>(self, rows: impl IntoIterator<Item = Result<Row, E>>) -> Result<Vec<Row>, E> {
        self.of_sized(rows, Row::bytes)
    }

    /// The same of whatever stands for a row, if its bytes are known.
    ///
    /// # Errors
    ///
    /// The first error among them.
    pub fn of_sized<T, E>(
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

    /// Whether rows that were loaded are all there were.
    #[must_use]
    pub fn is_more_than(self, rows: &[Row]) -> bool {
        let bytes = rows.iter().map(Row::bytes).fold(0, usize::saturating_add);
        rows.len() < self.rows && bytes < self.bytes
    }
}
