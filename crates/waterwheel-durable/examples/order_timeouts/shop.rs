//! The shop: customers who place orders and pay, and a handler that closes what was not paid.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use tokio::task::JoinSet;
use waterwheel_durable::{Cancelled, Delivery, Drain, Durable, Failure, Handle};

use crate::book::{Book, Closed, Line, Order, Pen};
use crate::{TIME_TO_PAY, micros};

/// How long customers come: orders are placed, paid and closed at the same time for some seconds.
const PLACING: Duration = Duration::from_secs(14);
/// How long the shop waits, after the last order is due, for what is not closed. The check finds it then.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// 1, or 2 after the abort.
    pub(crate) run: u8,
    pub(crate) orders: Order,
    /// When the first customer came, in milliseconds since 1970.
    pub(crate) start: i64,
}

/// How far an order is.
const OPEN: u8 = 0;
const PAYING: u8 = 1;
const OVER: u8 = 2;

#[derive(Debug)]
struct Shop {
    plan: Plan,
    pen: Pen,
    /// By order.
    states: Vec<AtomicU8>,
    placed: AtomicU32,
    paid: AtomicU32,
    closed: AtomicU32,
    over: AtomicU32,
}

pub(crate) fn open(folder: &Path, plan: Plan) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match runtime.block_on(run(folder, plan)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the shop failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(folder: &Path, plan: Plan) -> Result<(), Box<dyn std::error::Error>> {
    // What the shop knows of its last life.
    let book = Book::read(folder)?;
    let shop = Arc::new(Shop::new(plan, Pen::new(folder)?));
    let mut handles = vec![None; plan.orders as usize];
    for line in book.lines {
        shop.note(line, &mut handles);
    }
    let timers = Durable::open(folder.join("timers.db")).await?;
    timers.handle("close", {
        let shop = Arc::clone(&shop);
        move |delivery| {
            let closed = shop.close(&delivery);
            async { closed }
        }
    });

    let progress = tokio::spawn(Arc::clone(&shop).show_progress(timers.clone()));
    let mut customers = JoinSet::new();
    for (order, handle) in (0..).zip(handles) {
        if shop.states[order as usize].load(Ordering::SeqCst) != OVER {
            customers.spawn(Arc::clone(&shop).customer(timers.clone(), order, handle));
        }
    }
    while let Some(customer) = customers.join_next().await {
        customer??;
    }
    // What is not paid by now is to be closed.
    let end = SystemTime::now() + TIME_TO_PAY + PATIENCE;
    while shop.over.load(Ordering::SeqCst) < plan.orders && SystemTime::now() < end {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    progress.abort();
    timers.shutdown(Drain::within(PATIENCE)).await?;
    println!("{}", shop.progress());
    Ok(())
}

impl Shop {
    fn new(plan: Plan, pen: Pen) -> Shop {
        Shop {
            plan,
            pen,
            states: (0..plan.orders).map(|_| AtomicU8::new(OPEN)).collect(),
            placed: AtomicU32::new(0),
            paid: AtomicU32::new(0),
            closed: AtomicU32::new(0),
            over: AtomicU32::new(0),
        }
    }

    /// Takes up what an earlier life has written.
    fn note(&self, line: Line, handles: &mut [Option<Handle>]) {
        match line {
            Line::Placed(order, handle) => {
                handles[order as usize] = Some(handle);
                self.placed.fetch_add(1, Ordering::SeqCst);
            }
            Line::Paying(order) => self.states[order as usize].store(PAYING, Ordering::SeqCst),
            Line::Paid(order) | Line::PaidBefore(order) => {
                self.paid.fetch_add(1, Ordering::SeqCst);
                self.is_over(order);
            }
            // It is being closed, or was.
            Line::Refused(_) => {}
            Line::Closed(closed) => {
                self.closed.fetch_add(1, Ordering::SeqCst);
                self.is_over(closed.order);
            }
        }
    }

    /// Places an order, and pays, or does not.
    async fn customer(
        self: Arc<Shop>,
        timers: Durable,
        order: Order,
        handle: Option<Handle>,
    ) -> Result<(), waterwheel_durable::Error> {
        let placed_at = self.time_of(order);
        let handle = match handle {
            Some(handle) => handle,
            None => {
                sleep_until(placed_at).await;
                // If an earlier life has inserted it, and did not get to know, the key names that timer.
                let key = format!("order-{order}");
                let timer = timers.after("close", TIME_TO_PAY).key(key);
                let inserted = timer.payload(&order).insert().await?;
                let handle = inserted.into_handle();
                self.pen.write(&Line::Placed(order, handle.clone()));
                self.placed.fetch_add(1, Ordering::SeqCst);
                handle
            }
        };
        let due = handle.due.time().expect("a due time of this era");
        let Some(pays_at) = pays_at(order, placed_at, due) else {
            return Ok(());
        };
        sleep_until(pays_at).await;
        let state = &self.states[order as usize];
        let was_paying = state.load(Ordering::SeqCst) == PAYING;
        if state.load(Ordering::SeqCst) == OVER {
            // The shop knows that it is closed: it takes no money.
            return Ok(());
        }
        self.pen.write(&Line::Paying(order));
        let line = match timers.cancel(&handle).await? {
            Cancelled::Done => Line::Paid(order),
            Cancelled::AlreadyFired => Line::Refused(order),
            // Settled in this life, or cancelled in the last one just before the kill.
            Cancelled::NotFound if was_paying && state.load(Ordering::SeqCst) != OVER => {
                Line::PaidBefore(order)
            }
            Cancelled::NotFound => Line::Refused(order),
        };
        self.pen.write(&line);
        if !matches!(line, Line::Refused(_)) {
            self.paid.fetch_add(1, Ordering::SeqCst);
            self.is_over(order);
        }
        Ok(())
    }

    /// The handler. It writes into the book before its timer is settled: so an order is closed at least once.
    fn close(&self, delivery: &Delivery) -> Result<(), Failure> {
        let closed = Closed {
            order: delivery.json()?,
            run: self.plan.run,
            id: delivery.id().to_string(),
            due: micros(delivery.due()) / 1_000,
            at: micros(SystemTime::now()),
        };
        let order = closed.order;
        self.pen.write(&Line::Closed(closed));
        self.closed.fetch_add(1, Ordering::SeqCst);
        self.is_over(order);
        Ok(())
    }

    fn is_over(&self, order: Order) {
        let was = self.states[order as usize].swap(OVER, Ordering::SeqCst);
        if was == OVER {
            return;
        }
        let over = self.over.fetch_add(1, Ordering::SeqCst) + 1;
        if self.plan.run == 1 && over >= self.plan.orders / 2 {
            println!("{}", self.progress());
            // No destructor, no flush, no shutdown; in the middle of commits, payments and deliveries.
            std::process::abort();
        }
    }

    /// When the customer comes.
    fn time_of(&self, order: Order) -> SystemTime {
        let start = SystemTime::UNIX_EPOCH + Duration::from_millis(self.plan.start.unsigned_abs());
        start + PLACING.mul_f64(f64::from(order) / f64::from(self.plan.orders))
    }

    async fn show_progress(self: Arc<Shop>, timers: Durable) {
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        loop {
            seconds.tick().await;
            let metrics = timers.metrics();
            let (in_memory, running) = (metrics.in_memory, metrics.running);
            let progress = self.progress();
            println!("{progress}; in memory {in_memory}, running {running}");
        }
    }

    fn progress(&self) -> String {
        let since = micros(SystemTime::now()) / 1_000 - self.plan.start;
        let [placed, paid, closed] =
            [&self.placed, &self.paid, &self.closed].map(|it| it.load(Ordering::SeqCst));
        let open = placed.saturating_sub(self.over.load(Ordering::SeqCst));
        let seconds = since / 1_000;
        format!(
            "{seconds:>4} s  placed {placed:>7}  paid {paid:>7}  closed {closed:>6}  open {open:>6}"
        )
    }
}

/// When a customer pays: one of ten never, two of a hundred about when the order is closed, the others before.
fn pays_at(order: Order, placed: SystemTime, due: SystemTime) -> Option<SystemTime> {
    // Any order is as good as another: a hash, so that both lives agree.
    let hash = u64::from(order).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let part = Duration::from_micros(hash % TIME_TO_PAY.as_micros() as u64);
    match order % 100 {
        0..10 => None,
        10..12 => Some(due - Duration::from_millis(10) + part / 500),
        _ => Some(placed + part.mul_f64(0.95)),
    }
}

async fn sleep_until(time: SystemTime) {
    if let Ok(left) = time.duration_since(SystemTime::now()) {
        tokio::time::sleep(left).await;
    }
}
