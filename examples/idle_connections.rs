//! A hundred thousand connections, each with an idle timeout that every message touches. Prints what a touch costs, compared to
//! resetting a timer.
//!
//! ```text
//! cargo run --release --example idle_connections
//! ```

use std::error::Error;
use std::future::{Future, pending};
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time;

use waterwheel::rpc::IdleTimeout;
use waterwheel::{Duration, Instant, Timer};

const CONNECTIONS: usize = 100_000;
const MESSAGES: u32 = 10;
const IDLE: Duration = Duration::from_secs(1);

struct Connection {
    idle: IdleTimeout,
    task: tokio::task::JoinHandle<Instant>,
}

impl Connection {
    fn open() -> Connection {
        let idle = IdleTimeout::new(IDLE);
        // A server puts the future that serves the connection here, in place of `pending`.
        let guard = idle.guard(pending::<()>());
        let task = tokio::spawn(async {
            let _elapsed = guard.await.expect_err("the client fell silent");
            Instant::now()
        });
        Connection { idle, task }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let connections: Vec<_> = (0..CONNECTIONS).map(|_| Connection::open()).collect();

    let messages = CONNECTIONS as u32 * MESSAGES;
    let touches = per_message(messages, || {
        for _ in 0..MESSAGES {
            connections.iter().for_each(|it| it.idle.touch());
        }
    });
    println!(
        "{CONNECTIONS} connections, {messages} messages: {touches} ns per touch, one connection after the other"
    );
    costs(&connections[0].idle, messages);

    // The first half falls silent, the others get a message every 100 ms.
    let (silent, busy) = connections.split_at(CONNECTIONS / 2);
    let timer = Timer::current();
    let last = timer.now();
    silent.iter().for_each(|it| it.idle.touch_at(last));
    while last.elapsed() < IDLE + Duration::from_millis(500) {
        let now = timer.now(); // One clock read for a batch of messages.
        busy.iter().for_each(|it| it.idle.touch_at(now));
        waterwheel::sleep(Duration::from_millis(100)).await;
    }
    let ended = |some: &[Connection]| some.iter().filter(|it| it.task.is_finished()).count();
    println!(
        "after {:?}: {} of {} silent connections have ended, and {} busy ones",
        last.elapsed(),
        ended(silent),
        silent.len(),
        ended(busy)
    );

    let mut latest = last;
    for connection in connections.into_iter().take(CONNECTIONS / 2) {
        let end = connection.task.await?;
        assert!(end >= last + IDLE, "a connection ended early");
        latest = latest.max(end);
    }
    println!(
        "none ended early, the last one {:?} late",
        latest - (last + IDLE)
    );
    println!("{}", timer.metrics());
    Ok(())
}

/// Prints what the alternatives cost, on one connection.
fn costs(idle: &IdleTimeout, messages: u32) {
    let far = Instant::now() + Duration::from_secs(3600);
    let mut context = Context::from_waker(Waker::noop());
    let mut own = waterwheel::sleep_until(far);
    let _ = pin!(&mut own).poll(&mut context);
    let mut tokios = pin!(tokio::time::sleep_until(far));
    let _ = tokios.as_mut().poll(&mut context);

    let read = per_message(messages, || {
        (0..messages).for_each(|_| {
            black_box(Instant::now());
        });
    });
    let touch = per_message(messages, || {
        (0..messages).for_each(|_| black_box(idle).touch());
    });
    let now = Instant::now();
    let touch_at = per_message(messages, || {
        (0..messages).for_each(|_| black_box(idle).touch_at(black_box(now)));
    });
    let set_deadline = per_message(messages, || {
        (0..messages).for_each(|_| own.set_deadline(Instant::now() + IDLE * 3600));
    });
    let reset = per_message(messages, || {
        (0..messages).for_each(|_| tokios.as_mut().reset(Instant::now() + IDLE * 3600));
    });
    println!(
        "on one connection: a clock read {read} ns, `touch` {touch} ns, `touch_at` within a tick {touch_at} ns; \
         with `&mut`: `Sleep::set_deadline` {set_deadline} ns, tokio's `Sleep::reset` {reset} ns"
    );
}

/// Returns the nanoseconds that `act` takes per message.
fn per_message(messages: u32, act: impl FnOnce()) -> u128 {
    let start = time::Instant::now();
    act();
    (start.elapsed() / messages).as_nanos()
}
