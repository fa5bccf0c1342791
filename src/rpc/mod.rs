//! What an RPC stack needs of timers beside a timeout: a deadline that travels, and a limit of idle time that costs a store.
//!
//! | file | concept |
//! |---|---|
//! | `deadline` | [`Deadline`]: the instant by which a request must be done, which the code that serves the request can look up |
//! | `scope` | [`Deadline::scope`] and its siblings, which make a deadline current |
//! | `current` | what is current within a scope: the deadline, and the timer |
//! | `scoped` | [`Scoped`]: the future of [`Deadline::scope`] |
//! | `grpc_timeout` | the header `grpc-timeout`: to and from a `Duration` |
//! | `idle_timeout` | [`IdleTimeout`]: ends what has been idle for too long |
//! | `guarded` | [`Guarded`]: the future of [`IdleTimeout::guard`] |
//! | `last_touch` | the cell of an idle timeout, which threads touch without a lock |
//!
//! A server, in short: it reads the header, and serves the request within the scope of its deadline. Clients that are called
//! meanwhile look the deadline up, and write what is left of it into the header of their own request.
//!
//! ```
//! use waterwheel::rpc::{Deadline, grpc_timeout};
//! use waterwheel::{Duration, sleep};
//!
//! async fn call_another_server() -> String {
//!     match Deadline::current().remaining() {
//!         Some(Duration::ZERO) => "no call, it would come too late".to_owned(),
//!         Some(left) => grpc_timeout::format(left).to_string(),
//!         None => "no header".to_owned(),
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limit = grpc_timeout::parse("2S")?;
//! let header = Deadline::after(limit).scope(call_another_server()).await?;
//! assert!(grpc_timeout::parse(header)? < Duration::from_secs(2));
//!
//! let limit = grpc_timeout::parse("5m")?;
//! let handler = sleep(Duration::from_secs(60));
//! assert!(Deadline::after(limit).scope(handler).await.is_err());
//! # Ok(())
//! # }
//! ```

mod current;
mod deadline;
pub mod grpc_timeout;
mod guarded;
mod idle_timeout;
mod last_touch;
#[cfg(all(test, waterwheel_loom))]
mod models;
mod scope;
mod scoped;

#[cfg(feature = "tower")]
pub(crate) use current::{Entered, deadline_on, is_ended_by, timer as current_timer};
pub use deadline::Deadline;
pub use guarded::Guarded;
pub use idle_timeout::IdleTimeout;
pub use scoped::Scoped;
