//! A limit for an HTTP response: it ends with the body.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower::{Layer, Service, ServiceExt, service_fn};
use waterwheel::error::Elapsed;
use waterwheel::tower::{HttpTimeout, HttpTimeoutLayer, LimitedBody};
use waterwheel::{Duration, Instant, sleep};

use crate::bodies::Step::{Data, Endless, Fail, Trailers, Wait};
use crate::bodies::{Broken, Script, poll_body, read};
use crate::services::{Slow, at_once, by_hand, limited, once, stuck_service};
use crate::support::{HOUR, ms};

/// Plays a script on a manual clock until a limit of 10 ms passes, and hands the body to `then`.
fn at_the_limit(script: Script, then: impl FnOnce(&mut LimitedBody<Script>)) {
    by_hand(HttpTimeoutLayer::new(ms(10)), script, |clock, body| {
        clock.advance(ms(9));
        assert!(matches!(poll_body(body), Poll::Ready(Some(Ok(_)))));
        clock.advance(ms(1));
        then(body);
    });
}

#[tokio::test(start_paused = true)]
async fn a_body_is_cut_at_its_limit_and_whole_before() {
    let trickle: Vec<_> = (0..60).flat_map(|_| [Wait(ms(3)), Data("a")]).collect();
    for (steps, data, after, is_cut) in [
        (vec![Wait(ms(60)), Data("late")], "", 10, true),
        (trickle, "aaa", 10, true),
        (vec![Data("all"), Wait(ms(11)), Trailers], "all", 10, true),
        (
            vec![Data("a"), Wait(ms(9)), Data("b"), Trailers],
            "ab",
            9,
            false,
        ),
    ] {
        let (read, at) = limited(&HttpTimeoutLayer::new(ms(10)), steps).await;
        assert_eq!((&*read.data, at, read.is_cut()), (data, ms(after), is_cut));
        let trailers = read.trailers.filter(|it| it.contains_key("grpc-status"));
        assert_eq!(
            (trailers.is_some(), read.error.is_none()),
            (!is_cut, !is_cut)
        );
    }
    let broken = [Data("a"), Wait(ms(3)), Fail];
    let (read, after) = limited(&HttpTimeoutLayer::new(ms(10)), broken).await;
    assert_eq!(read.error.unwrap().downcast_ref(), Some(&Broken));
    assert_eq!(after, ms(3));
}

#[tokio::test(start_paused = true)]
async fn a_response_is_cut_before_its_headers() {
    let (stuck, life) = stuck_service();
    let mut service = HttpTimeout::new(stuck, ms(10));
    let start = Instant::now();
    let mut call = pin!(service.call(Request::new(())));
    let error = call.as_mut().await.unwrap_err();
    assert!(error.is::<Elapsed>());
    assert_eq!(start.elapsed(), ms(10));
    assert_eq!(life.strong_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_longest_limit_of_a_response_is_never() {
    let steps = [Data("a"), Wait(HOUR * 24 * 365), Data("b"), Trailers];
    let handler = at_once(once(Script::new(steps)));
    let mut service = HttpTimeout::new(handler, Duration::MAX);
    let response = service.call(Request::new(())).await.unwrap();
    let read = read(&mut response.into_body()).await;
    assert!(read.error.is_none() && read.trailers.is_some());
    assert_eq!(read.data, "ab");
}

#[tokio::test(start_paused = true)]
async fn the_headers_and_the_body_share_one_limit() {
    let start = Instant::now();
    let handler = service_fn(async |_: Request<()>| {
        sleep(ms(6)).await;
        Ok::<_, Broken>(Response::new(Script::new([Wait(ms(6)), Data("late")])))
    });
    let mut service = HttpTimeout::new(handler, ms(10));
    let response = service.call(Request::new(())).await.unwrap();
    assert_eq!(start.elapsed(), ms(6));
    assert!(read(&mut response.into_body()).await.error.is_some());
    assert_eq!(start.elapsed(), ms(10));
}

#[tokio::test(start_paused = true)]
async fn time_to_become_ready_is_not_counted_for_http() {
    let mut service = HttpTimeout::new(Slow::Readying(sleep(ms(50))), ms(10));
    let ready = service.ready().await.unwrap();
    assert!(ready.call(()).await.is_ok());
    let mut service = HttpTimeout::new(Slow::Broken, ms(10));
    assert!(service.ready().await.unwrap_err().is::<Broken>());
}

#[test]
fn a_body_that_always_has_more_is_cut() {
    at_the_limit(Script::new([Endless]), |body| {
        assert!(matches!(poll_body(body), Poll::Ready(Some(Err(it))) if it.is::<Elapsed>()));
    });
}

#[test]
fn what_ends_a_body_wins_even_past_the_limit() {
    at_the_limit(Script::new([Data("all")]), |body| {
        assert!(matches!(poll_body(body), Poll::Ready(None)));
    });
    at_the_limit(Script::new([Data("all"), Trailers]), |body| {
        assert!(matches!(poll_body(body), Poll::Ready(Some(Ok(it))) if it.is_trailers()));
    });
    let last = Script::new([Data("a"), Data("b")]).knowing_its_end();
    at_the_limit(last, |body| {
        assert!(matches!(poll_body(body), Poll::Ready(Some(Ok(it))) if it.is_data()));
        assert!(body.is_end_stream());
    });
    at_the_limit(Script::new([Data("a"), Fail]), |body| {
        assert!(matches!(poll_body(body), Poll::Ready(Some(Err(it))) if it.is::<Broken>()));
    });
}

/// A body that is ready at each poll, and uses up the coop budget of its task.
#[tokio::test(start_paused = true)]
async fn a_body_that_uses_up_the_budget_is_cut() {
    struct Busy(u32);
    impl Body for Busy {
        type Data = bytes::Bytes;
        type Error = Broken;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, Broken>>> {
            self.0 += 1;
            assert!(self.0 < 100_000, "it was not cut");
            while let Poll::Ready(progress) = tokio::task::coop::poll_proceed(context) {
                progress.made_progress();
            }
            Poll::Pending
        }
    }
    let whole = HttpTimeoutLayer::new(ms(10));
    for layer in [whole, HttpTimeoutLayer::new(HOUR).frame_timeout(ms(10))] {
        let busy = service_fn(async |_: Request<()>| Ok::<_, Broken>(Response::new(Busy(0))));
        let mut service = layer.layer(busy);
        let mut body = service.call(Request::new(())).await.unwrap().into_body();
        let advance = tokio::spawn(async {
            for _ in 0..20 {
                waterwheel::advance(ms(1)).await;
            }
        });
        assert!(read(&mut body).await.error.unwrap().is::<Elapsed>());
        advance.await.unwrap();
    }
}
