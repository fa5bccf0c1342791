//! Plays one script with tokio-stream's adapter and with ours: the same items at the same instants, with the same hints.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

use futures::stream::{self, Stream, StreamExt as _};
use tokio::time::{Instant, sleep};
use waterwheel::ext::StreamExt;

use crate::support::{Dice, ms, paused, us};

/// The behaviour of a source and of its consumer.
#[derive(Debug, Clone)]
struct Script {
    /// The time that passes before each item.
    gaps: Vec<Duration>,
    /// Whether the source ends after its items, or stays silent.
    ends: bool,
    /// The time that the consumer takes for each item.
    thinks: Vec<Duration>,
    /// The duration that the adapter gets.
    duration: Duration,
    max_size: usize,
}

impl Script {
    fn of_seed(seed: u64) -> Script {
        let mut dice = Dice(seed);
        let unit = [ms(1), us(1), us(250)][dice.roll(3) as usize];
        let mut durations = |most: u64, sides: u64| {
            let count = dice.roll(most);
            let roll = |_| unit * u32::try_from(dice.roll(sides)).unwrap();
            (0..count).map(roll).collect::<Vec<_>>()
        };
        let (gaps, thinks) = (durations(9, 12), durations(5, 8));
        Script {
            gaps,
            ends: dice.roll(3) > 0,
            thinks,
            duration: unit * u32::try_from(dice.roll(10)).unwrap(),
            max_size: 1 + dice.roll(4) as usize,
        }
    }

    /// A stream of numbers, each after its gap. A number without a gap is ready at once.
    fn source(&self) -> impl Stream<Item = usize> + use<> {
        let (gaps, ends) = (self.gaps.clone(), self.ends);
        stream::unfold(0, move |at| {
            let gap = gaps.get(at).copied();
            async move {
                match gap {
                    Some(Duration::ZERO) => {}
                    Some(gap) => sleep(gap).await,
                    None if ends => return None,
                    None => std::future::pending().await,
                }
                Some((at, at + 1))
            }
        })
    }

    /// The items with their times and the hints before them, until the end or until nothing has come for a while.
    async fn play<S: Stream<Item: Debug> + ?Sized>(&self, mut stream: Pin<Box<S>>) -> Vec<String> {
        let start = Instant::now();
        let mut seen = Vec::new();
        let mut thinks = self.thinks.iter().cycle();
        loop {
            let hint = stream.size_hint();
            let patience = tokio::time::timeout(ms(1_000), stream.next());
            let Ok(next) = patience.await else {
                seen.push(format!("{hint:?} silence"));
                return seen;
            };
            seen.push(format!("{hint:?} {next:?} after {:?}", start.elapsed()));
            if next.is_none() {
                return seen;
            }
            if let Some(think) = thinks.next().filter(|think| !think.is_zero()) {
                sleep(*think).await;
            }
        }
    }
}

/// Plays a thousand scripts with both, each in its own runtime.
fn compare<T, O>(theirs: impl Fn(&Script) -> Pin<Box<T>>, ours: impl Fn(&Script) -> Pin<Box<O>>)
where
    T: Stream<Item: Debug> + ?Sized,
    O: Stream<Item: Debug> + ?Sized,
{
    let mut lines = 0;
    for seed in 0..1_000 {
        let script = Script::of_seed(seed);
        let expected = paused().block_on(async { script.play(theirs(&script)).await });
        let found = paused().block_on(async { script.play(ours(&script)).await });
        assert_eq!(found, expected, "seed {seed}: {script:#?}");
        lines += found.len();
    }
    assert!(lines > 3_000, "{lines} items, or this shows nothing");
}

#[test]
fn timeout_gives_what_tokio_streams_gives() {
    compare(
        |script| {
            let limited = tokio_stream::StreamExt::timeout(script.source(), script.duration);
            Box::pin(limited.map(|item| item.map_err(drop)))
        },
        |script| {
            let limited = StreamExt::timeout(script.source(), script.duration);
            Box::pin(limited.map(|item| item.map_err(drop)))
        },
    );
}

#[test]
fn timeout_repeating_gives_what_tokio_streams_gives() {
    // The first tick of an interval that begins now comes at once in both, and a period is not zero.
    compare(
        |script| {
            let ticks = tokio::time::interval(script.duration.max(us(1)));
            let limited = tokio_stream::StreamExt::timeout_repeating(script.source(), ticks);
            Box::pin(limited.map(|item| item.map_err(drop)).take(50))
        },
        |script| {
            let ticks = waterwheel::interval(script.duration.max(us(1)));
            let limited = StreamExt::timeout_repeating(script.source(), ticks);
            Box::pin(limited.map(|item| item.map_err(drop)).take(50))
        },
    );
}

#[test]
fn throttle_gives_what_tokio_streams_gives() {
    compare(
        |script| {
            let source = script.source();
            Box::pin(tokio_stream::StreamExt::throttle(source, script.duration))
        },
        |script| {
            // tokio-stream's adapter has no hint, ours has that of its stream.
            let mut ours = Box::pin(StreamExt::throttle(script.source(), script.duration));
            let hintless = stream::poll_fn(move |context| ours.as_mut().poll_next(context));
            Box::pin(hintless)
        },
    );
}

#[test]
fn chunks_timeout_gives_what_tokio_streams_gives() {
    compare(
        |script| {
            let (most, duration) = (script.max_size, script.duration);
            let source = script.source();
            Box::pin(tokio_stream::StreamExt::chunks_timeout(
                source, most, duration,
            ))
        },
        |script| {
            let (most, duration) = (script.max_size, script.duration);
            Box::pin(StreamExt::chunks_timeout(script.source(), most, duration))
        },
    );
}

#[test]
fn the_hints_are_those_of_tokio_streams() {
    let runtime = paused();
    let _entered = runtime.enter();
    for count in [0, 1, 5, 7] {
        let source = || stream::iter(0..count);
        let theirs = tokio_stream::StreamExt::timeout(source(), ms(1)).size_hint();
        assert_eq!(StreamExt::timeout(source(), ms(1)).size_hint(), theirs);
        let theirs = tokio_stream::StreamExt::chunks_timeout(source(), 3, ms(1)).size_hint();
        assert_eq!(
            StreamExt::chunks_timeout(source(), 3, ms(1)).size_hint(),
            theirs
        );
    }
    // One more item than `usize` counts, since an `Err` may come around each.
    let endless = StreamExt::timeout(stream::repeat(1), ms(1)).size_hint();
    let theirs = tokio_stream::StreamExt::timeout(stream::repeat(1), ms(1)).size_hint();
    assert_eq!(endless, theirs);
    // This one exists only in our adapter.
    let slow = StreamExt::throttle(stream::iter(0..5), ms(1));
    assert_eq!(slow.size_hint(), (5, Some(5)));
}
