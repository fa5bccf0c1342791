//! A limit for an HTTP response: it ends with the body.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use http::{Request, Response};
use http_body::Body;
use tower::{Layer, Service, ServiceExt, service_fn};
use waterwheel::error::{Elapsed, Error};
use waterwheel::tower::{HttpTimeout, HttpTimeoutLayer, LimitedBody};
use waterwheel::{Duration, Instant, ManualClock, Timer, sleep};

use crate::bodies::Step::{Data, Endless, Fail, Trailers, Wait};
use crate::bodies::{Broken, Read, Script, poll_body, read};
use crate::services::{Slow, at_once, once, stuck};
use crate::support::{HOUR, assert_settled, current_thread, ms, poll_once};

/// What comes of this body with a limit of 10 ms, and when.
async fn limited(script: Script) -> (Read, Duration) {
    let start = Instant::now();
    let mut service = HttpTimeout::new(at_once(once(script)), ms(10));
    let response = service.call(Request::new(())).await.unwrap();
    let mut body = response.into_body();
    let read = read(&mut body).await;
    assert_settled(&Timer::current());
    (read, start.elapsed())
}

/// The same on a manual clock, with all that was read when the limit passed, and what comes then.
fn at_the_limit(script: Script, then: impl FnOnce(&mut LimitedBody<Script>)) {
    let runtime = current_thread();
    let clock = ManualClock::new();
    let builder = Timer::builder().clock(clock.clone());
    let timer = builder.start_on(runtime.handle()).unwrap();
    let mut service = HttpTimeoutLayer::new(ms(10))
        .on(&timer)
        .layer(at_once(once(script)));
    let Poll::Ready(Ok(response)) = poll_once(&mut service.call(Request::new(()))) else {
        panic!("it responds at once");
    };
    let mut body = response.into_body();
    clock.advance(ms(9));
    assert!(matches!(poll_body(&mut body), Poll::Ready(Some(Ok(_)))));
    clock.advance(ms(1));
    then(&mut body);
}

#[tokio::test(start_paused = true)]
async fn a_response_is_cut_before_its_headers() {
    let (future, life) = stuck::<Result<Response<Script>, Broken>>();
    let mut future = Some(future);
    let mut service = HttpTimeout::new(service_fn(|_: Request<()>| future.take().unwrap()), ms(10));
    let start = Instant::now();
    let mut call = pin!(service.call(Request::new(())));
    let error = call.as_mut().await.unwrap_err();
    assert!(error.is::<Elapsed>());
    assert_eq!(start.elapsed(), ms(10));
    assert_eq!(life.strong_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_response_is_cut_between_headers_and_body() {
    let (read, after) = limited(Script::new([Wait(ms(60)), Data("late")])).await;
    assert!(read.error.unwrap().is::<Elapsed>());
    assert_eq!((&*read.data, after), ("", ms(10)));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_is_cut() {
    let steps = (0..60).flat_map(|_| [Wait(ms(3)), Data("a")]);
    let (read, after) = limited(Script::new(steps)).await;
    assert!(read.error.unwrap().is::<Elapsed>());
    assert_eq!((&*read.data, after), ("aaa", ms(10)));
}

#[tokio::test(start_paused = true)]
async fn trailers_that_come_late_are_cut() {
    let (read, after) = limited(Script::new([Data("all"), Wait(ms(11)), Trailers])).await;
    assert!(read.error.unwrap().is::<Elapsed>());
    assert!(read.trailers.is_none());
    assert_eq!((&*read.data, after), ("all", ms(10)));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_in_time_is_whole() {
    let steps = [Data("a"), Wait(ms(9)), Data("b"), Trailers];
    let (read, after) = limited(Script::new(steps)).await;
    assert!(read.error.is_none());
    assert!(read.trailers.unwrap().contains_key("grpc-status"));
    assert_eq!((&*read.data, after), ("ab", ms(9)));
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
async fn an_error_of_the_body_passes_through() {
    let (read, after) = limited(Script::new([Data("a"), Wait(ms(3)), Fail])).await;
    assert_eq!(read.error.unwrap().downcast_ref(), Some(&Broken));
    assert_eq!(after, ms(3));
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
async fn a_body_that_was_cut_is_dropped_at_once_and_ends() {
    let script = Script::new([Wait(ms(60)), Data("late")]);
    let life = script.life();
    let mut service = HttpTimeout::new(at_once(once(script)), ms(10));
    let mut body = service.call(Request::new(())).await.unwrap().into_body();
    assert!(!body.is_end_stream());
    assert!(read(&mut body).await.error.is_some());
    assert_eq!(life.strong_count(), 0, "while the outer body is kept");
    assert!(body.is_end_stream());
    assert_eq!(body.size_hint().exact(), Some(0));
    assert!(matches!(poll_body(&mut body), Poll::Ready(None)));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_cancels_its_timer() {
    let script = Script::new([Wait(ms(60)), Data("late")]);
    let life = script.life();
    let mut service = HttpTimeout::new(at_once(once(script)), ms(10));
    let mut body = service.call(Request::new(())).await.unwrap().into_body();
    assert!(poll_body(&mut body).is_pending());
    assert_eq!(Timer::current().metrics().pending(), 2);
    drop(body);
    assert_eq!(life.strong_count(), 0);
    assert_settled(&Timer::current());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_has_ended_keeps_no_place_of_its_timer() {
    let timer = Timer::builder().max_pending(1).start().unwrap();
    let layer = HttpTimeoutLayer::new(ms(10)).on(&timer);
    let empty = Script::new([]).knowing_its_end();
    let last = Script::new([Data("all")]).knowing_its_end();
    for (script, frames) in [
        (empty, 0),
        (last, 1),
        (Script::new([Trailers]), 1),
        (Script::new([]), 1),
        (Script::new([Fail]), 1),
    ] {
        let mut service = layer.clone().layer(at_once(once(script)));
        let mut body = service.call(Request::new(())).await.unwrap().into_body();
        for _ in 0..frames {
            assert!(timer.try_sleep(ms(1)).is_err(), "the body has the place");
            assert!(poll_body(&mut body).is_ready());
        }
        assert!(timer.try_sleep(ms(1)).is_ok(), "{body:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_timer_refuses_a_response() {
    let timer = Timer::builder().max_pending(1).start().unwrap();
    let _place = timer.sleep(ms(10));
    let handler = at_once(|_| panic!("it is not called"));
    let mut service = HttpTimeoutLayer::new(ms(10)).on(&timer).layer(handler);
    let error = service.call(Request::new(())).await.unwrap_err();
    assert!(error.downcast_ref::<Error>().unwrap().is_at_capacity());
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
        let Poll::Ready(Some(Err(error))) = poll_body(body) else {
            panic!("it goes on: {body:?}");
        };
        assert!(error.is::<Elapsed>());
    });
}

#[test]
fn what_ends_a_body_wins_even_past_the_limit() {
    at_the_limit(Script::new([Data("all")]), |body| {
        assert!(matches!(poll_body(body), Poll::Ready(None)));
    });
    at_the_limit(Script::new([Data("all"), Trailers]), |body| {
        let Poll::Ready(Some(Ok(frame))) = poll_body(body) else {
            panic!("trailers are the end");
        };
        assert!(frame.is_trailers());
    });
    at_the_limit(
        Script::new([Data("a"), Data("b")]).knowing_its_end(),
        |body| {
            let Poll::Ready(Some(Ok(frame))) = poll_body(body) else {
                panic!("nothing comes after it");
            };
            assert!(frame.is_data());
            assert!(body.is_end_stream());
        },
    );
    at_the_limit(Script::new([Data("a"), Fail]), |body| {
        let Poll::Ready(Some(Err(error))) = poll_body(body) else {
            panic!("an error is the end");
        };
        assert!(error.is::<Broken>());
    });
}

#[tokio::test]
async fn the_size_of_a_body_passes_through() {
    let handler = service_fn(async |_: Request<()>| {
        Ok::<_, Broken>(Response::new("twelve bytes".to_owned()))
    });
    let mut service = HttpTimeout::new(handler, ms(60_000));
    let body = service.call(Request::new(())).await.unwrap().into_body();
    assert_eq!(body.size_hint().exact(), Some(12));
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
