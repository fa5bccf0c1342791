//! A client asks the server A, and A asks the server B.

use waterwheel::{Duration, ManualClock, Timer};

use crate::link::{Ask, Client, Handlers, Link};
use crate::support::eventually;
use crate::wire::{Channel, serve};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_through_both_servers() {
    let mut chain = Chain::start().await;
    let answer = chain.client.ask(Ask { forever: false }).await;
    let answer = answer.unwrap();
    assert_eq!(answer.path, ["A", "B"]);
    assert_eq!(answer.left, [], "no deadline");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_gives_up_ends_both_handlers() {
    let mut chain = Chain::start().await;
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).start().unwrap();
    let mut client = chain.client.clone();
    let asked =
        tokio::spawn(timer.timeout(
            MINUTE,
            async move { client.ask(Ask { forever: true }).await },
        ));
    eventually("both handlers run", || chain.running() == (1, 1));
    clock.advance(MINUTE);
    asked.await.unwrap().expect_err("it takes for ever");
    eventually("both handlers are dropped", || chain.running() == (0, 0));
    // The connections are as good as before.
    let answer = chain.client.ask(Ask { forever: false }).await;
    assert_eq!(answer.unwrap().path, ["A", "B"]);
}

pub(crate) struct Chain {
    pub(crate) client: Client,
    pub(crate) a: Handlers,
    pub(crate) b: Handlers,
}

impl Chain {
    pub(crate) async fn start() -> Chain {
        let (a, b) = (Handlers::default(), Handlers::default());
        let last = serve(Link {
            name: "B",
            next: None,
            handlers: b.clone(),
        });
        let next = Client::new(Channel::to(last.await).await);
        let first = serve(Link {
            name: "A",
            next: Some(next),
            handlers: a.clone(),
        });
        let client = Client::new(Channel::to(first.await).await);
        Chain { client, a, b }
    }

    /// The numbers of running handlers of A and B.
    pub(crate) fn running(&self) -> (usize, usize) {
        (self.a.running(), self.b.running())
    }
}
