//! A process that delivers timers. It notes each event in a file before anything follows from it, and obeys commands on its standard input.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use waterwheel_durable::{self as durable, Drain, Durable, HandlerOptions, NewTimer};
use waterwheel_durable_postgres::Postgres;

use crate::log::{Event, HANDLERS, Writer};

/// A command, as a line on the standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Insert timers that are due evenly over this time: this many for each handler but `long`, which gets as many as it can handle in the time.
    Insert { count: u32, within: Duration },
    /// Shut down.
    ShutDown,
}

impl Order {
    pub(crate) fn to_line(self) -> String {
        match self {
            Order::Insert { count, within } => format!("insert {count} {}\n", within.as_millis()),
            Order::ShutDown => "shut-down\n".to_owned(),
        }
    }

    fn parse(line: &str) -> Option<Order> {
        let mut words = line.split_whitespace();
        Some(match words.next()? {
            "insert" => Order::Insert {
                count: words.next()?.parse().ok()?,
                within: Duration::from_millis(words.next()?.parse().ok()?),
            },
            "shut-down" => Order::ShutDown,
            _ => return None,
        })
    }
}

/// Runs until it is told to shut down, or its standard input ends.
pub(crate) fn run(url: &str, log: &Path) -> Result<(), Box<dyn Error>> {
    let (sender, orders) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if let Some(order) = Order::parse(&line) {
                let _ = sender.send(order);
            }
        }
    });
    let log = Arc::new(Writer::open(log)?);
    // For the audit.
    let url = format!("{url}?application_name={}", std::process::id());
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build()?;
    runtime.block_on(obey(&url, &log, orders))
}

async fn obey(
    url: &str,
    log: &Arc<Writer>,
    mut orders: mpsc::UnboundedReceiver<Order>,
) -> Result<(), Box<dyn Error>> {
    let of_hook = Arc::clone(log);
    let builder = Durable::builder().store(Postgres::new(url));
    let builder = builder.on_event(move |event| {
        if let durable::Event::Failed { .. } = event {
            of_hook.write(&Event::Fails);
        }
    });
    let opening = builder.open();
    let timers = tokio::select! {
        timers = opening => timers?,
        // A standby that is to end.
        () = shut_down(&mut orders) => return Ok(()),
    };
    for (handler, takes, concurrency) in HANDLERS {
        let (options, log) = (HandlerOptions::default(), Arc::clone(log));
        timers.handle_with(handler, options.concurrency(concurrency), move |delivery| {
            let (log, id) = (Arc::clone(&log), delivery.id());
            let due = delivery.due();
            async move {
                log.write(&Event::Begins {
                    id: id.get(),
                    handler,
                    due,
                });
                if !takes.is_zero() {
                    tokio::time::sleep(takes).await;
                }
                log.write(&Event::Ends {
                    id: id.get(),
                    handler,
                });
                Ok(())
            }
        });
    }
    log.write(&Event::Opens);
    while let Some(order) = orders.recv().await {
        match order {
            Order::Insert { count, within } => insert(&timers, log, count, within).await?,
            Order::ShutDown => break,
        }
    }
    let stopped = timers
        .shutdown(Drain::within(Duration::from_secs(60)))
        .await?;
    log.write(&Event::Ended {
        abandoned: stopped.abandoned,
    });
    Ok(())
}

async fn shut_down(orders: &mut mpsc::UnboundedReceiver<Order>) {
    while let Some(order) = orders.recv().await {
        if order == Order::ShutDown {
            return;
        }
    }
}

async fn insert(
    timers: &Durable,
    log: &Writer,
    count: u32,
    within: Duration,
) -> Result<(), Box<dyn Error>> {
    let begin = SystemTime::now();
    let mut new = Vec::new();
    for (handler, takes, concurrency) in HANDLERS {
        let count = match takes.as_secs() {
            0 => count,
            secs => u32::try_from(within.as_secs() / secs * concurrency as u64)?,
        };
        for number in 0..count {
            new.push(NewTimer::at(handler, begin + within * number / count));
        }
    }
    for inserted in timers.insert_many(new).await? {
        log.write(&Event::Inserted {
            id: inserted.handle().id.get(),
        });
    }
    Ok(())
}
