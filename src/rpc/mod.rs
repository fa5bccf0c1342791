//! Deadlines that follow a request from server to server, and idle timeouts that are cheap to push back.
//!
//! | item | purpose |
//! |---|---|
//! | [`Deadline`] | the instant by which a request must be done, which the code that serves the request can look up |
//! | [`Scoped`] | the future of [`Deadline::scope`], which makes a deadline current |
//! | [`grpc_timeout`] | converts between the `grpc-timeout` header and a `Duration` |
//! | [`IdleTimeout`] | ends a connection or stream that has been idle for too long |
//! | [`Guarded`] | the future of [`IdleTimeout::guard`] |
//!
//! A server reads the header and serves the request within the scope of its deadline. Clients that are called in that scope look
//! up the deadline, and write the remaining time into the header of their own request.
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
mod idle_timeout;
#[cfg(all(test, waterwheel_loom))]
mod models;
mod scope;

#[cfg(feature = "tower")]
pub(crate) use current::{Entered, deadline_on, is_ended_by, timer as current_timer};
pub use deadline::Deadline;
pub use idle_timeout::{Guarded, IdleTimeout};
pub use scope::Scoped;
