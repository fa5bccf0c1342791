use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Handle, Id};

/// A command from another process to the service that has the store open: see [`Store::orders`](crate::Store::orders).
/// Its text form is `cancel HANDLE` and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Cancel a timer.
    Cancel(Handle),
    /// Make a dead letter a timer again.
    Redrive(Id),
    /// Delete a dead letter.
    Discard(Id),
    /// Pause the deliveries of this namespace.
    Pause(Arc<str>),
    /// Resume the deliveries of this namespace.
    Resume(Arc<str>),
}

/// Answers of the service. Any other text says why the command was not carried out.
impl Order {
    /// The command was carried out.
    pub const DONE: &str = "done";
    /// The timer to cancel has fired.
    pub const FIRED: &str = "not cancelled: its handler is running, or has just returned; if that attempt fails, the timer is pending again, so repeat the command";
    /// The timer or dead letter does not exist.
    pub const GONE: &str = "there is no such timer or dead letter";
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Order::Cancel(handle) => write!(f, "cancel {handle}"),
            Order::Redrive(id) => write!(f, "redrive {id}"),
            Order::Discard(id) => write!(f, "discard {id}"),
            Order::Pause(namespace) => write!(f, "pause {namespace}"),
            Order::Resume(namespace) => write!(f, "resume {namespace}"),
        }
    }
}

/// The text is not a valid [`Order`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidOrder;

impl fmt::Display for InvalidOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "invalid command: expected `cancel HANDLE`, `redrive ID`, `discard ID`, `pause NAMESPACE` or `resume NAMESPACE`",
        )
    }
}

impl std::error::Error for InvalidOrder {}

impl FromStr for Order {
    type Err = InvalidOrder;

    fn from_str(text: &str) -> Result<Order, InvalidOrder> {
        let (what, of) = text.split_once(' ').ok_or(InvalidOrder)?;
        match what {
            "cancel" => of.parse().map(Order::Cancel).map_err(|_| InvalidOrder),
            "redrive" => of.parse().map(Order::Redrive).map_err(|_| InvalidOrder),
            "discard" => of.parse().map(Order::Discard).map_err(|_| InvalidOrder),
            "pause" if !of.is_empty() => Ok(Order::Pause(of.into())),
            "resume" if !of.is_empty() => Ok(Order::Resume(of.into())),
            _ => Err(InvalidOrder),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_is_written() {
        let handle: Handle = "10000000007@5@billing/notify".parse().unwrap();
        for order in [
            Order::Cancel(handle.clone()),
            Order::Redrive(handle.id),
            Order::Discard(handle.id),
            Order::Pause("billing".into()),
            Order::Resume("a name".into()),
        ] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        for wrong in [
            "",
            "pause",
            "pause ",
            "resume ",
            "cancel 7",
            "redrive x",
            "stop billing",
        ] {
            assert_eq!(wrong.parse::<Order>(), Err(InvalidOrder), "{wrong}");
        }
    }
}
