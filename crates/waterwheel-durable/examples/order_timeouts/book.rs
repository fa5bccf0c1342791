//! The book: what the shop records next to its timers.
//!
//! Each line is one unbuffered write, so it survives the end of the process, and only the last line may be torn. (It would not survive a power cut, as the timers
//! would. A real shop keeps this in its database.)

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use waterwheel_durable::Handle;

/// An order's number.
pub(crate) type Order = u32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// The insert of its timer was acknowledged.
    Placed(Order, Handle),
    /// Its timer is about to be cancelled.
    Paying(Order),
    /// The cancel was acknowledged: the money is taken.
    Paid(Order),
    /// The payment came too late.
    Refused(Order),
    /// The payment was in progress at the abort, and the timer is gone: as far as the shop knows, the cancel was applied.
    PaidBefore(Order),
    /// The handler has closed it.
    Closed(Closed),
}

/// One call of the handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) order: Order,
    /// In which life of the shop.
    pub(crate) run: u8,
    /// The timer's id, in hexadecimal.
    pub(crate) id: String,
    /// Milliseconds since 1970.
    pub(crate) due: i64,
    /// Microseconds since 1970.
    pub(crate) at: i64,
}

/// The book as it is read.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) lines: Vec<Line>,
    /// How many lines do not end as they should.
    pub(crate) torn: usize,
}

impl Book {
    pub(crate) fn read(folder: &Path) -> io::Result<Book> {
        let bytes = match std::fs::read(path(folder)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut book = Book::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match Line::parse(line) {
                Some(line) => book.lines.push(line),
                None => book.torn += 1,
            }
        }
        Ok(book)
    }
}

/// The book as it is written.
#[derive(Debug)]
pub(crate) struct Pen(File);

impl Pen {
    pub(crate) fn new(folder: &Path) -> io::Result<Pen> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path(folder))?;
        // What the last process has begun is a line of its own.
        file.write_all(b"\n")?;
        Ok(Pen(file))
    }

    pub(crate) fn write(&self, line: &Line) {
        (&self.0)
            .write_all(line.text().as_bytes())
            .expect("the book can be written");
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("book.txt")
}

impl Line {
    /// With a full stop: a number that was cut is not taken for a number.
    fn text(&self) -> String {
        match self {
            Line::Placed(order, handle) => format!("placed {order} {handle} .\n"),
            Line::Paying(order) => format!("paying {order} .\n"),
            Line::Paid(order) => format!("paid {order} .\n"),
            Line::Refused(order) => format!("refused {order} .\n"),
            Line::PaidBefore(order) => format!("paid_before {order} .\n"),
            Line::Closed(closed) => {
                let Closed {
                    order,
                    run,
                    id,
                    due,
                    at,
                } = closed;
                format!("closed {order} {run} {id} {due} {at} .\n")
            }
        }
    }

    fn parse(line: &str) -> Option<Line> {
        let words: Vec<&str> = line.split(' ').collect();
        Some(match words[..] {
            ["placed", order, handle, "."] => {
                Line::Placed(order.parse().ok()?, handle.parse().ok()?)
            }
            ["paying", order, "."] => Line::Paying(order.parse().ok()?),
            ["paid", order, "."] => Line::Paid(order.parse().ok()?),
            ["refused", order, "."] => Line::Refused(order.parse().ok()?),
            ["paid_before", order, "."] => Line::PaidBefore(order.parse().ok()?),
            ["closed", order, run, id, due, at, "."] => Line::Closed(Closed {
                order: order.parse().ok()?,
                run: run.parse().ok()?,
                id: id.to_owned(),
                due: due.parse().ok()?,
                at: at.parse().ok()?,
            }),
            _ => return None,
        })
    }
}
