//! Checks the book against the promises.

use std::collections::HashSet;
use std::fmt;

use crate::book::{Book, Closed, Line, Order};

/// A delivery that was settled so long before the kill, in microseconds, is not made again. A commit takes some milliseconds, on a busy disk more.
const SETTLES_WITHIN: i64 = 3_000_000;

/// What the book says at the kill.
#[derive(Debug, Default)]
pub(crate) struct AtTheKill {
    /// How many orders were paid or closed.
    pub(crate) over: usize,
    /// Payments that had begun, and had not ended.
    paying: HashSet<Order>,
    /// Orders whose timers may not have been settled.
    closing: HashSet<Order>,
}

impl AtTheKill {
    pub(crate) fn of(book: &Book) -> AtTheKill {
        let (mut at, mut over) = (AtTheKill::default(), HashSet::new());
        let closed = |line: &Line| match line {
            Line::Closed(closed) => Some(closed.at),
            _ => None,
        };
        let last = book.lines.iter().filter_map(closed).max().unwrap_or(0);
        for line in &book.lines {
            match line {
                Line::Placed(..) => {}
                Line::Paying(order) => drop(at.paying.insert(*order)),
                Line::Refused(order) => drop(at.paying.remove(order)),
                Line::Paid(order) | Line::PaidBefore(order) => {
                    at.paying.remove(order);
                    over.insert(*order);
                }
                Line::Closed(closed) => {
                    if closed.at >= last - SETTLES_WITHIN {
                        at.closing.insert(closed.order);
                    }
                    over.insert(closed.order);
                }
            }
        }
        at.over = over.len();
        at
    }
}

/// What is right, and what is not.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    orders: usize,
    paid: usize,
    closed: usize,
    refused: usize,
    /// Payments under way at the kill: their cancels may have been done or not.
    unknown: usize,
    torn: usize,
    /// Calls of the handler for an order that it had closed before the kill.
    again: usize,
    closed_after: usize,
    /// Milliseconds, of the orders that came due in one life of the shop.
    lateness: Vec<i64>,
    first_after: Option<i64>,
    // From here on nothing is to be found.
    not_placed: usize,
    lost: usize,
    early: usize,
    closed_though_paid: usize,
    /// More than once in one life.
    twice: usize,
    other_timer: usize,
    /// It was closed again, and was settled long before the kill.
    again_late: usize,
    /// Its timer was gone after the kill, and it was not being paid then.
    not_being_paid: usize,
}

/// What the book says of an order.
#[derive(Debug, Clone, Default)]
struct Story {
    timer: Option<(String, i64)>,
    is_paid: bool,
    is_refused: bool,
    is_paid_before: bool,
    closed: Vec<Closed>,
}

pub(crate) fn check(
    book: &Book,
    orders: Order,
    killed_at: i64,
    at_the_kill: &AtTheKill,
) -> Verdict {
    let mut stories = vec![Story::default(); orders as usize];
    for line in &book.lines {
        match line {
            Line::Placed(order, handle) => {
                let timer = (handle.id.to_string(), handle.due.as_millis());
                stories[*order as usize].timer = Some(timer);
            }
            Line::Paying(_) => {}
            Line::Paid(order) => stories[*order as usize].is_paid = true,
            Line::Refused(order) => stories[*order as usize].is_refused = true,
            Line::PaidBefore(order) => stories[*order as usize].is_paid_before = true,
            Line::Closed(closed) => stories[closed.order as usize].closed.push(closed.clone()),
        }
    }
    let mut verdict = Verdict {
        orders: orders as usize,
        torn: book.torn,
        ..Verdict::default()
    };
    for (order, story) in (0..).zip(&stories) {
        verdict.judge(story, killed_at);
        let is_again = story.closed.len() > 1 && !at_the_kill.closing.contains(&order);
        verdict.again_late += usize::from(is_again);
        let is_gone = story.is_paid_before && !at_the_kill.paying.contains(&order);
        verdict.not_being_paid += usize::from(is_gone);
    }
    verdict.lateness.sort_unstable();
    verdict
}

impl Verdict {
    fn judge(&mut self, story: &Story, killed_at: i64) {
        let Some((id, due)) = &story.timer else {
            self.not_placed += 1;
            return;
        };
        self.paid += usize::from(story.is_paid);
        self.refused += usize::from(story.is_refused);
        self.unknown += usize::from(story.is_paid_before);
        self.closed += usize::from(!story.closed.is_empty());
        let is_paid = story.is_paid || story.is_paid_before;
        self.closed_though_paid += usize::from(is_paid && !story.closed.is_empty());
        self.lost += usize::from(!is_paid && story.closed.is_empty());
        for run in [1, 2] {
            let calls = story.closed.iter().filter(|it| it.run == run).count();
            self.twice += calls.saturating_sub(1);
        }
        self.again += story.closed.len().saturating_sub(1);
        for closed in &story.closed {
            self.early += usize::from(closed.at < closed.due * 1_000);
            self.other_timer += usize::from(closed.id != *id || closed.due != *due);
            if closed.run == 2 {
                self.closed_after += 1;
                let at = closed.at - killed_at;
                self.first_after = Some(self.first_after.map_or(at, |first| first.min(at)));
            }
            // What came due while the shop was off is late by that.
            let is_same_life = closed.run == 1 || closed.due * 1_000 > killed_at + 1_000_000;
            if is_same_life {
                self.lateness.push((closed.at - closed.due * 1_000) / 100);
            }
        }
    }

    pub(crate) fn is_well(&self) -> bool {
        // One torn line: the last one of the life that was cut short.
        self.wrong().iter().all(|(count, _)| *count == 0) && self.torn <= 1
    }

    fn wrong(&self) -> [(usize, &'static str); 8] {
        [
            (self.not_placed, "orders were never placed"),
            (self.lost, "orders were neither paid nor closed"),
            (self.early, "orders were closed early"),
            (
                self.closed_though_paid,
                "orders were closed although their payment was taken",
            ),
            (
                self.twice,
                "orders were closed twice without an abort in between",
            ),
            (
                self.other_timer,
                "orders were closed by a timer other than their own",
            ),
            (
                self.again_late,
                "orders were closed again, although they were settled long before the abort",
            ),
            (
                self.not_being_paid,
                "orders lost their timers, although they were not being paid at the abort",
            ),
        ]
    }

    fn part(&self, of_a_thousand: usize) -> f64 {
        let last = self.lateness.len().saturating_sub(1);
        let at = last * of_a_thousand / 1_000;
        self.lateness
            .get(at)
            .map_or(0.0, |tenths| *tenths as f64 / 10.0)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:>7} orders", self.orders)?;
        writeln!(
            f,
            "{:>7} paid: their timers were cancelled, and never delivered",
            self.paid
        )?;
        writeln!(
            f,
            "{:>7} closed, {} of them after the restart",
            self.closed, self.closed_after
        )?;
        writeln!(
            f,
            "{:>7} payments refused, because the order was being closed",
            self.refused
        )?;
        writeln!(
            f,
            "{:>7} payments in progress at the abort, and found done after the restart",
            self.unknown
        )?;
        writeln!(
            f,
            "{:>7} delivered again: they were running, or being settled, at the abort",
            self.again
        )?;
        writeln!(f, "{:>7} torn lines in the book", self.torn)?;
        let (p50, p99, max) = (self.part(500), self.part(990), self.part(1_000));
        writeln!(
            f,
            "lateness while the shop was running: p50 {p50} ms, p99 {p99} ms, max {max} ms"
        )?;
        if let Some(first) = self.first_after {
            writeln!(f, "first delivery {} ms after the abort", first / 1_000)?;
        }
        for (count, what) in self.wrong().iter().filter(|(count, _)| *count > 0) {
            writeln!(f, "{count:>7} {what}: WRONG")?;
        }
        Ok(())
    }
}
