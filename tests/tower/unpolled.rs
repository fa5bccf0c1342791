//! A body that nothing polls: a limitation of the limits.

use http::Request;
use tower::{Layer, Service};
use waterwheel::error::Elapsed;
use waterwheel::tower::{DeadlineLayer, HttpTimeoutLayer};
use waterwheel::{Instant, Timer};

use crate::bodies::Step::{Data, Wait};
use crate::bodies::{Script, read};
use crate::services::{at_once, once};
use crate::support::{HOUR, ms};

// hyper's HTTP/2 server polls a body only if the client has room for more data.
#[tokio::test(start_paused = true)]
async fn a_body_lives_past_its_limit_while_it_is_not_polled() {
    let script = || Script::new([Data("a"), Wait(HOUR), Data("late")]);
    let [one, two] = [script(), script()];
    let lives = [one.life(), two.life()];
    let mut limited = HttpTimeoutLayer::new(ms(10)).layer(at_once(once(one)));
    let mut served = DeadlineLayer::new().cap(ms(10)).layer(at_once(once(two)));
    let bodies = [
        limited.call(Request::new(())).await.unwrap().into_body(),
        served.call(Request::new(())).await.unwrap().into_body(),
    ];
    tokio::time::advance(ms(500)).await;
    assert_eq!(lives.each_ref().map(|life| life.strong_count()), [1, 1]);
    let start = Instant::now();
    for (mut body, life) in bodies.into_iter().zip(lives) {
        let read = read(&mut body).await;
        assert!(read.error.unwrap().is::<Elapsed>());
        assert_eq!((start.elapsed(), life.strong_count()), (ms(0), 0));
    }
    assert_eq!(Timer::current().metrics().armed(), 0);
}
