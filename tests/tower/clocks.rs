//! Layers with deadlines on the clock of a scope, and on that of a layer's timer.

use std::task::Poll;

use http::Request;
use tower::{Layer, Service, service_fn};
use waterwheel::error::Elapsed;
use waterwheel::rpc::Deadline;
use waterwheel::tower::{ClientDeadlineLayer, DeadlineLayer};

use crate::bodies::Step::{Data, Wait};
use crate::bodies::{Script, poll_body};
use crate::services::{at_once, once, request, stuck_service};
use crate::support::{HOUR, ms, other_clock, poll_once};

#[tokio::test(start_paused = true)]
async fn a_server_in_a_scope_uses_its_timer() {
    for is_before in [false, true] {
        let (clock, timer) = other_clock(is_before).await;
        let (mut stuck, _life) = stuck_service();
        let handler = service_fn(|request: Request<()>| {
            assert_eq!(Deadline::current().remaining(), Some(ms(50)));
            stuck.call(request)
        });
        let mut service = DeadlineLayer::new().layer(handler);
        let scope = Deadline::at(timer.now() + ms(100));
        let mut call = scope.sync_scope_on(&timer, || {
            Box::pin(service.call(request("grpc-timeout", "50m")))
        });
        // Outside the scope it still has the scope's timer.
        assert!(poll_once(&mut call).is_pending());
        tokio::time::advance(ms(500)).await;
        clock.advance(ms(49));
        assert!(poll_once(&mut call).is_pending());
        clock.advance(ms(1));
        let Poll::Ready(Err(error)) = poll_once(&mut call) else {
            panic!("it was not cut by the clock of the scope");
        };
        assert!(error.is::<Elapsed>());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_in_a_scope_uses_its_timer() {
    for is_before in [false, true] {
        let (clock, timer) = other_clock(is_before).await;
        let script = once(Script::new([Data("a"), Wait(HOUR), Data("late")]));
        let mut script = Some(script);
        let server = at_once(|request: Request<()>| {
            assert_eq!(request.headers()["grpc-timeout"], "50000000n");
            script.take().unwrap()(request)
        });
        let mut client = ClientDeadlineLayer::new().layer(server);
        let scope = Deadline::at(timer.now() + ms(50));
        let mut call = scope.sync_scope_on(&timer, || client.call(Request::new(())));
        let Poll::Ready(Ok(response)) = poll_once(&mut call) else {
            panic!("a response");
        };
        let mut body = response.into_body();
        assert!(matches!(poll_body(&mut body), Poll::Ready(Some(Ok(_)))));
        assert!(poll_body(&mut body).is_pending());
        tokio::time::advance(ms(500)).await;
        clock.advance(ms(49));
        assert!(poll_body(&mut body).is_pending());
        clock.advance(ms(1));
        assert!(matches!(poll_body(&mut body), Poll::Ready(Some(Err(_)))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_finds_the_timer_of_its_layer() {
    for is_before in [false, true] {
        let (_clock, timer) = other_clock(is_before).await;
        for timeout in ["50m", "bad"] {
            let handler = at_once(|_| {
                let expected = (timeout == "50m").then_some(ms(50));
                assert_eq!(Deadline::current().remaining(), expected);
                assert_eq!(
                    Deadline::after(ms(20)),
                    Deadline::at(timer.now() + ms(20)),
                    "by the clock of the layer's timer"
                );
                Script::new([])
            });
            let mut service = DeadlineLayer::new().on(&timer).layer(handler);
            service
                .call(request("grpc-timeout", timeout))
                .await
                .unwrap();
            assert_eq!(Deadline::after(ms(20)).remaining(), Some(ms(20)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_remains_of_a_scope_is_carried_to_the_layer() {
    for is_before in [false, true] {
        let (clock, timer) = other_clock(is_before).await;
        let (mut of_server, mut of_client) = (None, None);
        let server = at_once(|_| {
            of_server = Deadline::current().remaining();
            Script::new([])
        });
        let called = at_once(|request: Request<()>| {
            of_client = Some(request.headers()["grpc-timeout"].clone());
            Script::new([])
        });
        let mut server = DeadlineLayer::new().cap(HOUR).on(&timer).layer(server);
        let mut client = ClientDeadlineLayer::new().on(&timer).layer(called);
        let scope = Deadline::after(ms(100)).scope(async {
            server.call(Request::new(())).await.unwrap();
            client.call(Request::new(())).await.unwrap();
        });
        scope.await.unwrap();
        drop((server, client, clock));
        assert_eq!(of_server, Some(ms(100)));
        assert_eq!(of_client.unwrap(), "100000u");
    }
}
