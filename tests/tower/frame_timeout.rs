//! A limit between the frames of a body, in addition to that of the whole response.

use std::task::Poll;

use http::{Request, Response};
use http_body::Body;
use tower::{Layer, Service, service_fn};
use waterwheel::error::{Elapsed, Error};
use waterwheel::rpc::Deadline;
use waterwheel::tower::{DeadlineLayer, HttpTimeoutLayer, LimitedBody, RespondLayer};
use waterwheel::{Duration, Instant, Timer, sleep};

use crate::bodies::Step::{Data, Endless, Fail, Trailers, Wait};
use crate::bodies::{Broken, Script, poll_body, read};
use crate::services::{at_once, body_by, by_hand, limited, once};
use crate::support::{Dice, HOUR, assert_settled, bounded_timer, current_thread, ms, own_timer};

/// A layer with a limit for the whole response, and one for each frame.
fn layer(whole: Duration, frame: Duration) -> HttpTimeoutLayer {
    HttpTimeoutLayer::new(whole).frame_timeout(frame)
}

/// The data of a polled frame.
#[track_caller]
fn assert_data(body: &mut LimitedBody<Script>, expected: &str) {
    match poll_body(body) {
        Poll::Ready(Some(Ok(frame))) => assert_eq!(frame.into_data().unwrap(), expected),
        other => panic!("no data: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn frames_that_take_too_long_are_cut_and_no_others() {
    let late = [Wait(HOUR), Data("late")];
    let stalls = [Wait(ms(9)), Data("a"), Wait(ms(9)), Data("b")];
    let at_the_deadline = [Wait(ms(10)), Data("a"), Wait(ms(10)), Data("b")];
    let cut = |data, after| (data, after, true);
    let whole = |data, after| (data, after, false);
    for (steps, expected) in [
        ([&stalls[..], &late].concat(), cut("ab", 9 + 9 + 10)),
        (late.to_vec(), cut("", 10)),
        (vec![Data("all"), Wait(ms(11)), Trailers], cut("all", 10)),
        (vec![Data("all"), Wait(ms(11))], cut("all", 10)),
        (
            [&at_the_deadline[..], &[Wait(ms(10)), Trailers]].concat(),
            whole("ab", 30),
        ),
        (vec![Data("a"), Wait(ms(10))], whole("a", 10)),
    ] {
        let has_trailers = !expected.2 && matches!(steps.last(), Some(Trailers));
        let (read, after) = limited(&layer(HOUR, ms(10)), steps.clone()).await;
        let found = (&*read.data, after.as_millis(), read.is_cut());
        assert_eq!(found, expected, "{steps:?}");
        assert_eq!(read.trailers.is_some(), has_trailers, "{steps:?}");
        assert_eq!(read.error.is_some(), expected.2, "{steps:?}");
    }
    let (broken, _) = limited(&layer(HOUR, ms(10)), [Data("a"), Wait(ms(10)), Fail]).await;
    assert!(broken.error.unwrap().is::<Broken>());
}

#[tokio::test(start_paused = true)]
async fn the_headers_have_the_limit_of_the_whole_alone() {
    let start = Instant::now();
    let slow = |wait| {
        service_fn(move |_: Request<()>| async move {
            sleep(wait).await;
            Ok::<_, Broken>(Response::new(Script::new([Wait(ms(9)), Data("a")])))
        })
    };
    let mut service = layer(ms(100), ms(10)).layer(slow(ms(50)));
    let response = service.call(Request::new(())).await.unwrap();
    assert_eq!(read(&mut response.into_body()).await.data, "a");
    assert_eq!(start.elapsed(), ms(59));
    let mut service = layer(ms(100), ms(10)).layer(slow(HOUR));
    let cut = service.call(Request::new(())).await.unwrap_err();
    assert!(cut.is::<Elapsed>());
    assert_eq!(start.elapsed(), ms(159));
    // Without a limit of the whole response, the body has none.
    let mut service = layer(Duration::MAX, ms(10)).layer(slow(HOUR * 24 * 365));
    assert!(service.call(Request::new(())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_the_whole_holds_while_frames_come_in_time() {
    let trickle = || Script::new((0..60).flat_map(|_| [Wait(ms(9)), Data("a")]));
    for (whole, expected) in [(ms(25), (2, ms(25))), (ms(5), (0, ms(5)))] {
        let start = Instant::now();
        let mut body = body_by(&layer(whole, ms(10)), trickle()).await;
        let read = read(&mut body).await;
        assert!(read.is_cut());
        assert_eq!((read.data.len(), start.elapsed()), expected);
    }
    // This limit also cuts a body that is never pending, but that of the frames does not.
    let mut body = body_by(&layer(ms(25), ms(10)), Script::new([Endless])).await;
    sleep(ms(24)).await;
    assert_data(&mut body, "more");
    sleep(ms(1)).await;
    assert!(read(&mut body).await.is_cut());
}

#[tokio::test(start_paused = true)]
async fn frames_alone_are_limited_if_the_whole_never_ends() {
    let start = Instant::now();
    let steps = (0..100).flat_map(|_| [Wait(HOUR * 24 * 365), Data("a")]);
    let year = HOUR * 24 * 365;
    let mut body = body_by(&layer(Duration::MAX, year), Script::new(steps)).await;
    assert_eq!(read(&mut body).await.data.len(), 100);
    assert_eq!(start.elapsed(), year * 100);
    let steps = [Data("a"), Wait(ms(9)), Data("b"), Wait(year), Data("late")];
    let mut body = body_by(&layer(Duration::MAX, ms(10)), Script::new(steps)).await;
    let start = Instant::now();
    let read = read(&mut body).await;
    assert!(read.is_cut());
    assert_eq!((&*read.data, start.elapsed()), ("ab", ms(19)));
}

#[tokio::test(start_paused = true)]
async fn the_longest_time_for_a_frame_is_never() {
    let timer = own_timer();
    let steps = || Script::new([Wait(HOUR), Data("a"), Wait(HOUR), Data("b")]);
    let mut body = body_by(&layer(Duration::MAX, Duration::MAX).on(&timer), steps()).await;
    assert_eq!(read(&mut body).await.data, "ab");
    assert_eq!(timer.metrics().armed(), 0, "no timer is needed");
    let start = Instant::now();
    let mut body = body_by(&layer(HOUR + ms(10), Duration::MAX).on(&timer), steps()).await;
    let read = read(&mut body).await;
    assert!(read.is_cut());
    assert_eq!((&*read.data, start.elapsed()), ("a", HOUR + ms(10)));
}

#[test]
fn with_no_time_a_frame_has_until_the_end_of_the_tick() {
    let ready = Script::new([Data("a"), Data("b")]);
    by_hand(layer(HOUR, ms(0)), ready, |clock, body| {
        assert_data(body, "a");
        clock.advance(ms(500));
        assert_data(body, "b");
        assert!(matches!(poll_body(body), Poll::Ready(None)));
    });
    let runtime = current_thread();
    let _entered = runtime.enter();
    for past_a_tick in [false, true] {
        let stalls = Script::new([Data("a"), Wait(HOUR), Data("late")]);
        by_hand(layer(HOUR, ms(0)), stalls, |clock, body| {
            if past_a_tick {
                clock.advance(Duration::from_micros(1));
            }
            assert_data(body, "a");
            if past_a_tick {
                assert!(poll_body(body).is_pending());
                clock.advance(ms(1));
            }
            assert!(matches!(poll_body(body), Poll::Ready(Some(Err(_)))));
        });
    }
}

#[test]
fn time_in_which_the_client_is_slow_does_not_count() {
    let runtime = current_thread();
    let _entered = runtime.enter();
    let steps = [Data("a"), Data("b"), Wait(HOUR), Data("late")];
    by_hand(layer(HOUR, ms(10)), Script::new(steps), |clock, body| {
        // Nobody polls for the first frame, or for the second.
        clock.advance(ms(500));
        assert_data(body, "a");
        clock.advance(ms(500));
        assert_data(body, "b");
        clock.advance(ms(500));
        assert!(poll_body(body).is_pending());
        clock.advance(ms(9));
        assert!(
            poll_body(body).is_pending(),
            "a poll does not start the time anew"
        );
        clock.advance(ms(1));
        let Poll::Ready(Some(Err(error))) = poll_body(body) else {
            panic!("it was not cut: {body:?}");
        };
        assert!(error.is::<Elapsed>());
        assert!(matches!(poll_body(body), Poll::Ready(None)));
    });
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_is_ready_counts_however_late_it_is_fetched() {
    let steps = [Wait(ms(5)), Data("a"), Wait(ms(5)), Trailers];
    let mut body = body_by(&layer(HOUR, ms(10)), Script::new(steps)).await;
    for _ in 0..2 {
        assert!(poll_body(&mut body).is_pending());
        // The time has run out meanwhile, and the task was woken.
        sleep(ms(500)).await;
        assert!(matches!(poll_body(&mut body), Poll::Ready(Some(Ok(_)))));
    }
    assert_settled(&Timer::current());
    // A frame that is not ready is too late, even if nobody has polled since.
    let mut body = body_by(&layer(HOUR, ms(10)), Script::new([Wait(HOUR), Trailers])).await;
    assert!(poll_body(&mut body).is_pending());
    sleep(ms(500)).await;
    assert!(matches!(poll_body(&mut body), Poll::Ready(Some(Err(_)))));
}

#[tokio::test(start_paused = true)]
async fn one_timer_is_pushed_back_from_frame_to_frame() {
    for whole in [HOUR, Duration::MAX] {
        let timer = own_timer();
        let steps = (0..1000).flat_map(|_| [Wait(ms(3)), Data("a")]);
        let mut body = body_by(&layer(whole, ms(10)).on(&timer), Script::new(steps)).await;
        assert_eq!(read(&mut body).await.data.len(), 1000);
        let metrics = assert_settled(&timer);
        assert_eq!((metrics.armed(), metrics.fired()), (1, 0), "{whole:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_nobody_asks_for_wakes_nobody() {
    let timer = own_timer();
    let steps = [Wait(ms(3)), Data("a"), Wait(HOUR), Data("late")];
    let mut body = body_by(&layer(HOUR, ms(10)).on(&timer), Script::new(steps)).await;
    assert!(poll_body(&mut body).is_pending());
    sleep(ms(3)).await;
    assert_data(&mut body, "a");
    sleep(ms(500)).await;
    assert_eq!(timer.metrics().fired(), 0);
    drop(body);
    assert_settled(&timer);
}

#[tokio::test(start_paused = true)]
async fn a_response_takes_one_place_of_its_timer_until_it_ends() {
    let timer = bounded_timer(1);
    let layers = [
        HttpTimeoutLayer::new(HOUR),
        layer(HOUR, ms(10)),
        layer(Duration::MAX, ms(10)),
    ];
    let refused = async |layer: HttpTimeoutLayer| {
        let mut service = layer.layer(at_once(|_| panic!("it is not called")));
        let refused = service.call(Request::new(())).await.unwrap_err();
        *refused.downcast::<Error>().unwrap()
    };
    for layer in layers.clone() {
        let layer = layer.on(&timer);
        for (script, is_over) in [
            (Script::new([]).knowing_its_end(), true),
            (Script::new([Data("all")]).knowing_its_end(), false),
            (Script::new([Trailers]), false),
            (Script::new([]), false),
            (Script::new([Fail]), false),
            (Script::new([Wait(HOUR)]), false),
        ] {
            let life = script.life();
            let mut body = body_by(&layer, script).await;
            if !is_over {
                assert!(refused(layer.clone()).await.is_at_capacity());
                let _last = http_body_util::BodyExt::frame(&mut body).await;
            }
            assert!(timer.try_sleep(ms(1)).is_ok(), "{body:?}");
            drop(body);
            assert_eq!(life.strong_count(), 0);
        }
        let mut body = body_by(&layer, Script::new([Wait(HOUR)])).await;
        assert!(poll_body(&mut body).is_pending());
        assert!(timer.try_sleep(ms(1)).is_err());
        drop(body);
        assert!(timer.try_sleep(ms(1)).is_ok(), "a body that is dropped");
    }
    timer.shutdown();
    for layer in layers {
        assert!(refused(layer.on(&timer)).await.is_shutdown());
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_whose_timer_is_stopped_says_so() {
    for whole in [HOUR, Duration::MAX] {
        for polls_before in [false, true] {
            let timer = own_timer();
            let steps = [Data("a"), Wait(HOUR), Data("late")];
            let mut body = body_by(&layer(whole, ms(10)).on(&timer), Script::new(steps)).await;
            assert_data(&mut body, "a");
            if polls_before {
                assert!(poll_body(&mut body).is_pending());
            }
            timer.shutdown();
            let start = Instant::now();
            let error = read(&mut body).await.error.unwrap();
            assert!(error.downcast_ref::<Elapsed>().unwrap().was_stopped());
            assert_eq!(start.elapsed(), ms(0));
            assert!(matches!(poll_body(&mut body), Poll::Ready(None)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_grpc_that_stalls_ends_with_a_status() {
    let request = || {
        let request = Request::builder().header("content-type", "application/grpc");
        request.body(()).unwrap()
    };
    for (is_stopped, status) in [(false, "4"), (true, "14")] {
        let timer = own_timer();
        let script = Script::new([Data("a"), Wait(HOUR), Trailers]);
        let limited = layer(HOUR, ms(10)).on(&timer).layer(at_once(once(script)));
        let mut service = RespondLayer::grpc().layer(limited);
        let mut body = service.call(request()).await.unwrap().into_body();
        if is_stopped {
            timer.shutdown();
        }
        let read = read(&mut body).await;
        assert!(read.error.is_none());
        assert_eq!(read.data, if is_stopped { "" } else { "a" });
        assert_eq!(read.trailers.unwrap()["grpc-status"], status);
        assert!(body.is_end_stream());
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_and_a_limit_of_frames_hold_together() {
    let start = Instant::now();
    for (cap, expected) in [(ms(5), ms(5)), (ms(50), ms(10))] {
        let before = start.elapsed();
        let handler = at_once(|_| {
            assert_eq!(Deadline::current().remaining(), Some(cap));
            Script::new([Wait(HOUR), Data("late")])
        });
        let frames = layer(Duration::MAX, ms(10)).layer(handler);
        let mut service = DeadlineLayer::new().cap(cap).layer(frames);
        let mut body = service.call(Request::new(())).await.unwrap().into_body();
        assert!(read(&mut body).await.is_cut());
        assert_eq!(start.elapsed() - before, expected);
    }
}

#[tokio::test]
async fn size_and_end_of_a_body_pass_through() {
    for layer in [HttpTimeoutLayer::new(HOUR), layer(HOUR, HOUR)] {
        let handler = service_fn(async |_: Request<()>| {
            Ok::<_, Broken>(Response::new("twelve bytes".to_owned()))
        });
        let mut service = layer.layer(handler);
        let mut body = service.call(Request::new(())).await.unwrap().into_body();
        assert_eq!(body.size_hint().exact(), Some(12));
        assert!(!body.is_end_stream());
        assert!(matches!(poll_body(&mut body), Poll::Ready(Some(Ok(_)))));
        assert_eq!(body.size_hint().exact(), Some(0));
        assert!(body.is_end_stream());
    }
}

/// The expected result for data after each of these waits, and then the end: the number of frames, when the body ends, and whether it is cut.
fn expected(waits: &[u64], whole: u64, frame: u64) -> (usize, u64, bool) {
    let mut now = 0;
    for (count, wait) in waits.iter().enumerate() {
        let cut = whole.min(now + frame);
        if now + wait > cut {
            return (count, cut, true);
        }
        now += wait;
        // A frame may come at its own deadline. At that of the whole response, data that may not be the last is too late.
        if now == whole {
            return (count, whole, true);
        }
    }
    (waits.len(), now, false)
}

#[tokio::test(start_paused = true)]
async fn random_bodies_are_cut_when_they_are_to_be() {
    let mut dice = Dice(31);
    let mut cuts = 0;
    for _ in 0..500 {
        let waits: Vec<_> = (0..dice.roll(6)).map(|_| dice.roll(12)).collect();
        let (whole, frame) = (dice.roll(40), dice.roll(14));
        let steps = waits.iter().flat_map(|&wait| [Wait(ms(wait)), Data("a")]);
        let start = Instant::now();
        let mut body = body_by(&layer(ms(whole), ms(frame)), Script::new(steps)).await;
        let read = read(&mut body).await;
        let was_cut = read.error.is_some();
        let found = (read.data.len(), start.elapsed(), was_cut);
        let (count, after, is_cut) = expected(&waits, whole, frame);
        assert_eq!(
            found,
            (count, ms(after), is_cut),
            "{waits:?} {whole} {frame}"
        );
        cuts += usize::from(was_cut);
    }
    assert!((100..400).contains(&cuts), "{cuts}");
    assert_settled(&Timer::current());
}
