//! Tasks that await.
//!
//! On a single-threaded runtime tasks run in the order in which they are woken. So the log that all of them write shows
//! the order of wakes again, now including the effects of tokio's scheduler, its coop budget and the driver's own task.
//! A sleep that is reset to later may come anywhere among its equals, and the tasks would then continue in another
//! order: such scripts are compared task by task.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use futures::future::{Either, select};
use tokio::time::advance;
use waterwheel::{Duration, Instant};

use super::model::{
    DAY, Difference, END, Missed, Ours, Times, Tokio, When, check, millis, number, settle,
};
use crate::support::paused;

/// A step of the runtime's main task.
#[derive(Debug, Clone)]
enum Step {
    Spawn { task: usize, acts: Vec<Act> },
    Advance { to: u64 },
    Await { to: u64 },
}

/// An act of a task. Delays are in milliseconds; `at` counts from the start of the script.
#[derive(Debug, Clone, Copy)]
enum Act {
    Sleep {
        delay: u64,
    },
    Until {
        at: u64,
    },
    Timeout {
        limit: u64,
        delay: u64,
    },
    Either {
        left: u64,
        right: u64,
    },
    Both {
        left: u64,
        right: u64,
    },
    /// A sleep that is polled, then reset to this percentage of its delay.
    Sooner {
        delay: u64,
        part: u64,
    },
    /// A sleep that is polled, then reset to this much later.
    Later {
        delay: u64,
        by: u64,
    },
    /// A sleep that is reset before the first poll, and after completion.
    Again {
        before: u64,
        after: u64,
    },
    /// An interval, with a pause after each tick.
    Beat {
        period: u64,
        missed: Missed,
        pause: u64,
    },
}

// ----- from a seed -----

fn write(seed: u64, most: u64, may_loosen: bool) -> Vec<Step> {
    let mut when = When::new(seed);
    when.now = when.dice.roll(2_000);
    let mut script = vec![Step::Advance { to: when.now }];
    when.meet();
    let tasks = 1 + when.dice.any_magnitude(most) as usize;
    let mut task = 0;
    while task < tasks {
        for _ in 0..=when.dice.roll(tasks as u64) {
            let acts = (0..=when.dice.roll(7)).map(|_| act(&mut when, may_loosen));
            let acts = acts.collect();
            script.push(Step::Spawn { task, acts });
            task += 1;
        }
        script.extend(pass(&mut when));
    }
    for _ in 0..8 {
        script.extend(pass(&mut when));
    }
    script.push(Step::Await { to: END });
    script
}

fn act(when: &mut When, may_loosen: bool) -> Act {
    // However many delays there are, they end before the script does.
    let mut delay = || when.delay().min(9 * DAY);
    let [left, right] = [delay(), delay()];
    match when.dice.roll(16) {
        0..=2 => Act::Sleep { delay: left },
        3..=6 => Act::Until {
            at: when.deadline().min(END / 2),
        },
        7 | 8 => Act::Timeout {
            limit: left,
            delay: right,
        },
        9 => Act::Either { left, right },
        10 => Act::Both { left, right },
        11 if may_loosen => Act::Later {
            delay: left,
            by: right,
        },
        11 | 12 => Act::Sooner {
            delay: left,
            part: when.dice.roll(100),
        },
        13 => Act::Again {
            before: left,
            after: right,
        },
        _ => Act::Beat {
            period: left.max(1),
            missed: [Missed::Burst, Missed::Delay, Missed::Skip][when.dice.roll(3) as usize],
            pause: right,
        },
    }
}

fn pass(when: &mut When) -> Option<Step> {
    let to = when.next()?;
    when.now = when.now.max(to);
    Some(match when.dice.roll(3) {
        0 => Step::Await { to },
        _ => Step::Advance { to },
    })
}

// ----- with these timers -----

/// An act that a task has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Done {
    task: usize,
    act: usize,
    at: Duration,
    /// The result of the act.
    how: u64,
}

/// The log, step by step.
fn play<T: Times>(script: &[Step]) -> Vec<Vec<Done>> {
    paused().block_on(async {
        let start = Instant::now();
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = 0;
        let mut steps = Vec::new();
        for step in script {
            let now = start.elapsed().as_millis() as u64;
            match step {
                Step::Spawn { task, acts } => {
                    tasks += 1;
                    tokio::spawn(work::<T>(start, *task, acts.clone(), Arc::clone(&log)));
                    // The tasks start together with the next step of the clock.
                    continue;
                }
                Step::Advance { to } => {
                    // Let spawned tasks start now, not when the clock has moved.
                    settle(tasks).await;
                    advance(millis(to.saturating_sub(now))).await;
                }
                Step::Await { to } => {
                    settle(tasks).await;
                    if *to > now {
                        T::sleep_until(start + millis(*to)).await;
                    }
                }
            }
            settle(tasks).await;
            steps.push(std::mem::take(&mut *log.lock().expect("no task panics")));
        }
        steps
    })
}

async fn work<T: Times>(start: Instant, task: usize, acts: Vec<Act>, log: Arc<Mutex<Vec<Done>>>) {
    for (act, what) in acts.into_iter().enumerate() {
        let how = perform::<T>(start, what).await;
        let mut log = log.lock().expect("no task panics");
        let at = start.elapsed();
        log.push(Done { task, act, at, how });
    }
}

async fn perform<T: Times>(start: Instant, act: Act) -> u64 {
    let boxed = |delay| Box::pin(T::sleep(millis(delay)));
    match act {
        Act::Sleep { delay } => T::sleep(millis(delay)).await,
        Act::Until { at } => T::sleep_until(start + millis(at)).await,
        Act::Timeout { limit, delay } => {
            let limited = T::timeout(millis(limit), T::sleep(millis(delay)));
            return limited.await.is_ok().into();
        }
        Act::Either { left, right } => match select(boxed(left), boxed(right)).await {
            Either::Left(_) => return 1,
            Either::Right(_) => return 2,
        },
        Act::Both { left, right } => {
            futures::join!(boxed(left), boxed(right));
        }
        Act::Sooner { delay, part } => {
            let (now, mut sleep) = (Instant::now(), boxed(delay));
            let poll = futures::poll!(&mut sleep);
            T::reset(sleep.as_mut(), now + millis(delay * part / 100));
            sleep.await;
            return poll.is_ready().into();
        }
        Act::Later { delay, by } => {
            let (now, mut sleep) = (Instant::now(), boxed(delay));
            let poll = futures::poll!(&mut sleep);
            T::reset(sleep.as_mut(), now + millis(delay + by));
            sleep.await;
            return poll.is_ready().into();
        }
        Act::Again { before, after } => {
            let mut sleep = boxed(DAY);
            T::reset(sleep.as_mut(), Instant::now() + millis(before));
            sleep.as_mut().await;
            T::reset(sleep.as_mut(), Instant::now() + millis(after));
            sleep.await;
        }
        Act::Beat {
            period,
            missed,
            pause,
        } => {
            let mut interval = T::interval_at(Instant::now(), millis(period), missed);
            let mut ticks = 0_u64;
            for _ in 0..4 {
                let tick = poll_fn(|context| T::poll_tick(&mut interval, context)).await;
                let tick = tick.saturating_duration_since(start).as_millis() as u64;
                ticks = ticks.wrapping_mul(31).wrapping_add(tick);
                if pause > period {
                    T::sleep(millis(pause)).await;
                }
            }
            return ticks;
        }
    }
    0
}

// ----- beside each other -----

fn beside_tokio(script: &[Step], by_task: bool) -> Vec<Difference> {
    let plays = [play::<Tokio>(script), play::<Ours>(script)];
    let [tokio, ours] = plays.map(|mut steps| {
        if by_task {
            // The acts of one task stay in order.
            steps
                .iter_mut()
                .for_each(|log| log.sort_by_key(|done| done.task));
        }
        steps
    });
    let mut found = Vec::new();
    for (step, (tokio, ours)) in tokio.iter().zip(&ours).enumerate() {
        let first = tokio.iter().zip(ours).find(|(tokio, ours)| tokio != ours);
        if first.is_some() || tokio.len() != ours.len() {
            let lengths = (tokio.len(), ours.len());
            let sort = |log: &Vec<Done>| {
                let mut log = log.clone();
                log.sort_by_key(|done| done.task);
                log
            };
            found.push(Difference {
                what: match sort(tokio) == sort(ours) {
                    true => "the order in which tasks run",
                    false => "what tasks do, and when",
                },
                step,
                detail: format!("{lengths:?} acts, first {first:?}"),
            });
        }
    }
    found
}

#[test]
fn tasks_run_in_the_order_that_tokios_do() {
    let write = |seed| write(seed, 30, false);
    check(number(200), write, |script| beside_tokio(script, false));
}

#[test]
fn thousands_of_tasks_run_in_the_order_that_tokios_do() {
    let write = |seed| write(seed, 4_000, false);
    check(number(12), write, |script| beside_tokio(script, false));
}

#[test]
fn tasks_that_reset_to_later_do_what_they_do_when_tokios_do() {
    let write = |seed| write(seed, 30, true);
    check(number(200), write, |script| beside_tokio(script, true));
}
