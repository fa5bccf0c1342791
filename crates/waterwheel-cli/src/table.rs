//! Columns for people, in lines of 100 characters.

use crate::failure::Failure;
use crate::output::Output;
use crate::text;

/// The maximum width of a line.
const WIDTH: usize = 100;

/// The gap between two columns.
const GAP: usize = 2;

/// A column. If the line would be too wide, a column that `gives` becomes narrower, down to its minimum width.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    is_number: bool,
    gives: Option<usize>,
}

impl Column {
    pub(crate) const fn text(name: &'static str) -> Column {
        Column {
            name,
            is_number: false,
            gives: None,
        }
    }

    pub(crate) const fn number(name: &'static str) -> Column {
        Column {
            name,
            is_number: true,
            gives: None,
        }
    }

    /// A column whose text may be truncated.
    pub(crate) const fn cut(name: &'static str, min: usize) -> Column {
        Column {
            name,
            is_number: false,
            gives: Some(min),
        }
    }
}

/// Prints rows below the names of their columns.
pub(crate) fn print(
    output: &mut Output,
    columns: &[Column],
    rows: &[Vec<String>],
) -> Result<(), Failure> {
    let widths = widths(columns, rows);
    let names: Vec<_> = columns
        .iter()
        .map(|column| column.name.to_owned())
        .collect();
    for row in [&names].into_iter().chain(rows) {
        let mut line = String::new();
        for ((column, cell), width) in columns.iter().zip(row).zip(&widths) {
            let cell = text::cut(cell, *width);
            let pad = " ".repeat(width - cell.chars().count());
            match column.is_number {
                true => line += &format!("{pad}{cell}"),
                false => line += &format!("{cell}{pad}"),
            }
            line += &" ".repeat(GAP);
        }
        output.line(&line)?;
    }
    Ok(())
}

fn widths(columns: &[Column], rows: &[Vec<String>]) -> Vec<usize> {
    let widest = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.max().unwrap_or(0).max(columns[at].name.len())
    };
    let mut widths: Vec<_> = (0..columns.len()).map(widest).collect();
    // The widest column becomes narrower first, until they are equally wide.
    while widths.iter().sum::<usize>() + GAP * (widths.len() - 1) > WIDTH {
        let widest = (0..columns.len())
            .filter(|at| columns[*at].gives.is_some_and(|min| widths[*at] > min))
            .max_by_key(|at| widths[*at]);
        match widest {
            Some(at) => widths[at] -= 1,
            None => break,
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_column_gives_until_the_line_fits() {
        let columns = [
            Column::cut("A", 8),
            Column::number("NUMBER"),
            Column::cut("B", 8),
        ];
        let row = |a: usize, b: usize| vec!["a".repeat(a), "7".to_owned(), "b".repeat(b)];
        assert_eq!(widths(&columns, &[row(3, 5)]), [3, 6, 5]);
        assert_eq!(widths(&columns, &[row(300, 5)]), [85, 6, 5]);
        assert_eq!(widths(&columns, &[row(300, 200)]), [45, 6, 45]);
        assert_eq!(widths(&columns, &[]), [1, 6, 1]);
    }
}
