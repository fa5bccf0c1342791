//! A service with every policy on, but none that limits anything: what do they cost then?

use waterwheel_durable::{Backoff, Builder, Durable, Policy, Rate};

use std::time::Duration;

use crate::place::{Failure, HANDLER};

/// A limit that no row reaches.
const MUCH: u32 = 10_000_000;
/// The namespaces besides the one that is measured. Each has a handler, and none has a due timer.
const OTHERS: [&str; 7] = ["mail", "push", "trial", "refund", "ledger", "cart", "stock"];
/// The namespace that is measured.
const SHOP: &str = "shop";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policies {
    Off,
    On,
}

impl Policies {
    pub(crate) fn builder(self) -> Builder {
        match self {
            Policies::Off => Durable::builder(),
            Policies::On => Durable::builder().concurrency(MUCH as usize),
        }
    }

    /// The full name of the handler that is measured.
    pub(crate) fn handler(self) -> &'static str {
        match self {
            Policies::Off => HANDLER,
            Policies::On => "shop/reminder",
        }
    }

    /// Creates the namespaces, if policies are on.
    pub(crate) async fn set_up(self, timers: &Durable) -> Result<(), Failure> {
        if self == Policies::Off {
            return Ok(());
        }
        for name in [SHOP].into_iter().chain(OTHERS) {
            let namespace = timers.create_namespace(name, all()).await?;
            if name != SHOP {
                namespace.handle(HANDLER, |_| async { Ok(()) });
            }
        }
        Ok(())
    }

    /// Sets the policy of the default namespace, whose timers are pending in the file with the millions.
    pub(crate) async fn set_default(self, timers: &Durable) -> Result<(), Failure> {
        let policy = match self {
            Policies::Off => Policy::default(),
            Policies::On => all(),
        };
        let namespace = timers.namespace("default")?;
        if namespace.policy()? != policy {
            namespace.set_policy(policy).await?;
        }
        Ok(())
    }
}

/// A policy with every field set.
fn all() -> Policy {
    Policy::default()
        .backoff(Backoff::new(
            Duration::from_secs(15),
            Duration::from_secs(3_600),
        ))
        .concurrency(MUCH as usize)
        .rate(Rate::per_second(MUCH))
        .priority(3)
        .insert_rate(Rate::per_second(MUCH))
        .retention(7)
        .starts(4)
}
