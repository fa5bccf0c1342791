//! `rpc`: calls to a server task in the same process, over an mpsc channel there and a oneshot back; bare, and each
//! under a timeout of 30 s that never expires.
//!
//! This is the cost that a timeout adds to the cheapest call possible: over a network the share would be smaller. There is
//! one server for all clients. With one client, the two tasks take turns on one worker; with two, the server is woken from
//! both workers, and most of the variation comes from how the scheduler places the three. A client calls again as soon as it
//! has its answer, and yields only while it waits for it.
//!
//! *Cross* is the share of the calls that end on another thread than the one that they began on, where their timer was
//! armed: the scheduler moved the client, and the timer is cancelled from a foreign thread. The CPU time tells whether
//! calls are made by one worker or by two. It is read while the workers run, so it is up to 1 % too small or too large.
//!
//! No target compares them with bare calls. A bare call takes some 220 ns on the machine of the log, and a timeout within
//! 5 % of that would take 11 ns: half a clock read, without which no timer has a deadline. The floor is in the table.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use waterwheel_suite::{Absent, Metric, Sample};

use crate::contestant::{
    AsyncIo, Current, Floor, FuturesTimer, Own, Sleeps, Start, TimesOut, Tokio, Watched, pingora,
};
use crate::cpu;
use crate::crew::worker;
use crate::entrant::Entrant;
use crate::stage::Stage;
use crate::workload::Workload;

const CALLS: &str = "calls";
const METRICS: &[Metric] = &[
    Metric::higher(CALLS, "calls/s"),
    Metric::lower("CPU a call", "ns"),
    Metric::lower("cross", "%"),
];
const CLIENTS: [usize; 2] = [1, 2];
const BARE: &str = "bare";
const TIMEOUT: Duration = Duration::from_secs(30);
const WARM_UP: Duration = Duration::from_millis(50);
/// The number of requests that may wait for the server.
const QUEUE: usize = 64;

fn title(clients: usize) -> String {
    let plural = if clients == 1 { "" } else { "s" };
    format!("rpc, {clients} client{plural}")
}

pub(crate) fn all(quick: bool) -> Vec<Workload> {
    let millis = if quick { 100 } else { 500 };
    let time = Duration::from_millis(millis);
    let workload = |clients| Workload {
        title: title(clients),
        work: format!("as many calls as {millis} ms have room for"),
        metrics: METRICS,
        entrants: vec![
            bare(clients, time),
            entrant(|| Tokio, clients, time),
            entrant(Own::<Watched>::start, clients, time),
            entrant(|| Current, clients, time),
            entrant(pingora, clients, time),
            entrant(Floor::<false>::start, clients, time),
            entrant(Floor::<true>::start, clients, time),
        ],
        absent: [AsyncIo::NAME, FuturesTimer::NAME]
            .map(|name| Absent::new(name, "has no timeout"))
            .into(),
    };
    CLIENTS.map(workload).into()
}

fn bare(clients: usize, time: Duration) -> Entrant {
    Entrant::new(BARE, move || sample(clients, time, || Bare))
}

fn entrant<T: TimesOut>(start: impl Start<T>, clients: usize, time: Duration) -> Entrant {
    Entrant::new(T::NAME, move || {
        sample(clients, time, move || Limited(start()))
    })
}

/// A way to wait for a call.
trait Waits: Clone + Send + Sync + 'static {
    /// Returns whether the call was answered in time.
    fn wait_for(&self, call: impl Future<Output = ()> + Send) -> impl Future<Output = bool> + Send;
}

#[derive(Clone)]
struct Bare;

impl Waits for Bare {
    async fn wait_for(&self, call: impl Future<Output = ()> + Send) -> bool {
        call.await;
        true
    }
}

#[derive(Clone)]
struct Limited<C>(C);

impl<C: TimesOut> Waits for Limited<C> {
    fn wait_for(&self, call: impl Future<Output = ()> + Send) -> impl Future<Output = bool> + Send {
        self.0.timeout(TIMEOUT, call)
    }
}

/// A question, and the channel for the answer.
type Request = (u64, oneshot::Sender<u64>);

fn sample<W: Waits>(
    clients: usize,
    time: Duration,
    start: impl FnOnce() -> W + Send + 'static,
) -> Sample {
    let stage = Stage::new();
    let waits = stage.run(async move { start() });
    let (requests, queue) = mpsc::channel(QUEUE);
    let server = stage.spawn(serve(queue));
    let phase = Arc::new(Phase::default());
    let clients: Vec<_> = (0..clients)
        .map(|_| stage.spawn(client(waits.clone(), requests.clone(), phase.clone())))
        .collect();
    drop(requests);
    thread::sleep(WARM_UP);
    phase.measured.store(true, Relaxed);
    let cpu = cpu::nanos_of(|| thread::sleep(time));
    phase.over.store(true, Relaxed);

    let counts: Vec<Counted> = clients
        .into_iter()
        .map(|client| stage.wait(client))
        .collect();
    stage.wait(server);
    let rates = counts.iter().map(|it| it.calls as f64 / it.seconds);
    let calls: u64 = counts.iter().map(|it| it.calls).sum();
    let crossed: u64 = counts.iter().map(|it| it.crossed).sum();
    Sample::of(vec![
        rates.sum(),
        cpu / calls as f64,
        100.0 * crossed as f64 / calls as f64,
    ])
}

/// The stop flag. The main thread sets it, the clients read it once per call.
#[derive(Default)]
struct Phase {
    measured: AtomicBool,
    over: AtomicBool,
}

/// The result of one client.
struct Counted {
    calls: u64,
    /// The number of calls that ended on another thread.
    crossed: u64,
    seconds: f64,
}

async fn client<W: Waits>(waits: W, requests: mpsc::Sender<Request>, phase: Arc<Phase>) -> Counted {
    let mut number = 0;
    while !phase.measured.load(Relaxed) {
        call_once(&waits, &requests, &mut number).await;
    }
    let (start, before) = (Instant::now(), number);
    let mut crossed = 0;
    while !phase.over.load(Relaxed) {
        let began_on = worker();
        call_once(&waits, &requests, &mut number).await;
        crossed += u64::from(worker() != began_on);
    }
    Counted {
        calls: number - before,
        crossed,
        seconds: start.elapsed().as_secs_f64(),
    }
}

async fn call_once<W: Waits>(waits: &W, requests: &mpsc::Sender<Request>, number: &mut u64) {
    let call = async {
        let (reply, answer) = oneshot::channel();
        let sent = requests.send((*number, reply)).await;
        assert!(sent.is_ok(), "the server waits for the last client");
        *number = answer.await.expect("the server answers every request");
    };
    assert!(waits.wait_for(call).await, "no call takes 30 s");
}

/// Answers until the last client is gone.
async fn serve(mut queue: mpsc::Receiver<Request>) {
    while let Some((number, reply)) = queue.recv().await {
        reply
            .send(number + 1)
            .expect("a client waits for its answer");
    }
}
