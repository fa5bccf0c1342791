//! Cancel, redrive, discard, pause, resume.

use std::time::Duration;

use waterwheel_store::{Id, Order};
use waterwheel_store_sqlite::Reader;

use super::page;
use crate::arguments::{Cancel, Letters, Name, Named};
use crate::carry_out::carry_out;
use crate::failure::{Failure, say};
use crate::output::Output;
use crate::text;

/// How many dead letters one commit is asked for. If one of them is refused, the rest is left.
const PAGE: usize = 500;

pub(crate) fn cancel(reader: &Reader, asked: &Cancel, output: &mut Output) -> Result<(), Failure> {
    let mut missing = 0;
    let mut orders = Vec::new();
    for name in &asked.names {
        match name {
            Name::Handle(handle) => orders.push(Order::Cancel(handle.clone())),
            Name::Id(id) => match reader.search(*id)? {
                Some(found) => orders.push(Order::Cancel(found.handle())),
                None => {
                    say(&format!("{id}: there is no such timer"));
                    missing += 1;
                }
            },
        }
    }
    let failed = all(reader, &orders, asked.wait.limit, "cancelled", output)?;
    said(missing + failed)
}

pub(crate) fn redrive(
    reader: &Reader,
    asked: &Letters,
    output: &mut Output,
) -> Result<(), Failure> {
    letters(reader, asked, Order::Redrive, "redriven", output)
}

pub(crate) fn discard(
    reader: &Reader,
    asked: &Letters,
    output: &mut Output,
) -> Result<(), Failure> {
    letters(reader, asked, Order::Discard, "discarded", output)
}

fn letters(
    reader: &Reader,
    asked: &Letters,
    order: fn(Id) -> Order,
    done: &str,
    output: &mut Output,
) -> Result<(), Failure> {
    let limit = asked.wait.limit;
    if !asked.ids.is_empty() {
        let orders: Vec<_> = asked.ids.iter().copied().map(order).collect();
        return said(all(reader, &orders, limit, done, output)?);
    }
    let whose = asked.whose();
    page::is_known(reader, &whose)?;
    let (mut after, mut failed) = (Id::NONE, 0);
    while failed == 0 {
        let page = reader.dead(&whose, after, page::most(PAGE))?;
        let Some(last) = page.last() else {
            break;
        };
        after = last.row.id;
        let orders: Vec<_> = page.iter().map(|it| order(it.row.id)).collect();
        failed = all(reader, &orders, limit, done, output)?;
    }
    said(failed)
}

pub(crate) fn pause(reader: &Reader, asked: &Named, output: &mut Output) -> Result<(), Failure> {
    let orders = [Order::Pause(asked.namespace.as_str().into())];
    said(all(reader, &orders, asked.wait.limit, "paused", output)?)
}

pub(crate) fn resume(reader: &Reader, asked: &Named, output: &mut Output) -> Result<(), Failure> {
    let orders = [Order::Resume(asked.namespace.as_str().into())];
    said(all(reader, &orders, asked.wait.limit, "resumed", output)?)
}

/// Carries out orders, and says of each whether it is done. Returns how many are not.
fn all(
    reader: &Reader,
    orders: &[Order],
    limit: Duration,
    done: &str,
    output: &mut Output,
) -> Result<usize, Failure> {
    let mut failed = 0;
    for (order, carried) in orders.iter().zip(carry_out(reader, orders, limit)?) {
        let name = text::clean(&match order {
            Order::Cancel(handle) => handle.id.to_string(),
            Order::Redrive(id) | Order::Discard(id) => id.to_string(),
            Order::Pause(name) | Order::Resume(name) => name.to_string(),
        });
        match carried {
            Ok(()) => output.line(&format!("{done} {name}")).map_err(cut_off)?,
            Err(why) => {
                say(&format!("{name}: {why}"));
                failed += 1;
            }
        }
    }
    output.flush().map_err(cut_off)?;
    Ok(failed)
}

/// To a command that only reads, a reader that has had enough is no failure. Here it may leave orders that were not carried out.
fn cut_off(failure: Failure) -> Failure {
    match failure {
        Failure::Closed => Failure::CutOff,
        other => other,
    }
}

fn said(failed: usize) -> Result<(), Failure> {
    match failed {
        0 => Ok(()),
        _ => Err(Failure::Said),
    }
}
