//! Parses and formats the `grpc-timeout` header.
//!
//! The value consists of 1 to 8 ASCII digits and a unit: `H`, `M`, `S`, `m`, `u` or `n`, for hours, minutes, seconds,
//! milliseconds, microseconds and nanoseconds. It is defined by
//! [gRPC over HTTP/2](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
//!
//! ```
//! use waterwheel::Duration;
//! use waterwheel::rpc::grpc_timeout::{self, InvalidTimeout};
//!
//! # fn main() -> Result<(), InvalidTimeout> {
//! assert_eq!(grpc_timeout::parse("250m")?, Duration::from_millis(250));
//! let header = grpc_timeout::format(Duration::from_millis(250));
//! assert_eq!(header.as_str(), "250000u");
//! assert!(grpc_timeout::parse("250 ms").is_err());
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::str;

use tokio::time::Duration;

/// The largest value that 8 digits hold.
const MOST: u64 = 99_999_999;

/// The units, the finest first, with their length in nanoseconds.
const UNITS: [(u8, u64); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', HOUR),
];

const HOUR: u64 = 3_600_000_000_000;

/// Parses the value of a `grpc-timeout` header, given as a `str`, as bytes, or as an `http::HeaderValue`.
///
/// # Errors
///
/// Returns an error if the last character is not a unit or the value is empty ([`InvalidTimeout::is_unit`]), or if the unit is
/// not preceded by 1 to 8 ASCII digits ([`InvalidTimeout::is_value`]): signs, spaces and decimal points are not allowed.
///
/// Zero is accepted, although gRPC requires a positive integer, since older versions of grpc-java send it
/// ([grpc-java#12201](https://github.com/grpc/grpc-java/pull/12201)). Such a call is due at once.
///
/// ```
/// use waterwheel::rpc::grpc_timeout::parse;
///
/// assert!(parse("").unwrap_err().is_unit());
/// assert!(parse("5h").unwrap_err().is_unit());
/// assert!(parse("S").unwrap_err().is_value());
/// assert!(parse("+5S").unwrap_err().is_value());
/// assert!(parse("123456789u").unwrap_err().is_value());
/// ```
pub fn parse(header: impl AsRef<[u8]>) -> Result<Duration, InvalidTimeout> {
    parse_bytes(header.as_ref())
}

fn parse_bytes(header: &[u8]) -> Result<Duration, InvalidTimeout> {
    let (unit, digits) = header.split_last().ok_or(InvalidTimeout(Kind::Unit))?;
    let known = UNITS.iter().find(|(known, _)| known == unit);
    let (_, length) = known.ok_or(InvalidTimeout(Kind::Unit))?;
    let is_number = matches!(digits.len(), 1..=8) && digits.iter().all(u8::is_ascii_digit);
    if !is_number {
        return Err(InvalidTimeout(Kind::Value));
    }
    let value: u32 = digits
        .iter()
        .fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    // As a `Duration`, since 8 digits of hours are more nanoseconds than 64 bits hold.
    Ok(Duration::from_nanos(*length) * value)
}

/// Formats a duration as the value of a `grpc-timeout` header, in the finest unit for which 8 digits suffice, rounded down.
///
/// The value never exceeds the duration, and is less than one unit below it: a deadline does not grow on its way across servers.
/// A duration that does not fit into 8 digits of hours, such as `Duration::MAX`, becomes `99999999H`, about 11 thousand years.
/// This function does not allocate.
///
/// # When no time remains
///
/// A duration of zero becomes `0n`, since any other value would be more. gRPC requires a positive integer, and some versions of
/// grpc-go reject zero as malformed ([grpc-go#8290](https://github.com/grpc/grpc-go/pull/8290)). Do not send a call when no time
/// remains, since no answer could arrive in time: fail it on the client with `DEADLINE_EXCEEDED`.
///
/// ```
/// use waterwheel::Duration;
/// use waterwheel::rpc::grpc_timeout::format;
///
/// assert_eq!(format(Duration::ZERO).as_str(), "0n");
/// assert_eq!(format(Duration::from_nanos(1_234)).as_str(), "1234n");
/// assert_eq!(format(Duration::from_nanos(1_234_567_899)).as_str(), "1234567u");
/// assert_eq!(format(Duration::from_secs(3_600)).as_str(), "3600000m");
/// assert_eq!(format(Duration::MAX).as_str(), "99999999H");
/// ```
#[must_use]
pub fn format(timeout: Duration) -> Header {
    // A duration of more than 584 years, which 64 bits do not hold, has too many minutes for 8 digits in any case.
    let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    for (unit, length) in UNITS {
        let value = nanos / length;
        if value <= MOST && length < HOUR {
            return Header::new(value, unit);
        }
    }
    Header::new((timeout.as_secs() / 3_600).min(MOST), b'H')
}

/// The value of a `grpc-timeout` header, created by [`format()`]: at most nine ASCII bytes.
///
/// To use it with the `http` crate, write `HeaderValue::from_bytes(header.as_ref())`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// The digits and the unit, at the end.
    bytes: [u8; 9],
    start: u8,
}

impl Header {
    fn new(mut value: u64, unit: u8) -> Header {
        let mut bytes = [b'0'; 9];
        bytes[8] = unit;
        let mut start = 8;
        loop {
            start -= 1;
            bytes[start] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        Header {
            bytes,
            start: start as u8,
        }
    }

    /// Returns the value as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Never an error: digits and a letter.
        str::from_utf8(self.as_ref()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Header {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}

impl AsRef<str> for Header {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Header").field(&self.as_str()).finish()
    }
}

/// The error of a `grpc-timeout` header that could not be parsed.
///
/// A server that receives such a header should serve the request without a deadline from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTimeout(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Value,
    Unit,
}

impl InvalidTimeout {
    /// Returns `true` if the unit was not preceded by 1 to 8 ASCII digits.
    #[must_use]
    pub fn is_value(&self) -> bool {
        self.0 == Kind::Value
    }

    /// Returns `true` if the unit was missing or unknown.
    #[must_use]
    pub fn is_unit(&self) -> bool {
        self.0 == Kind::Unit
    }
}

impl fmt::Display for InvalidTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Value => {
                "the grpc-timeout does not have 1 to 8 ASCII digits before its unit: \
                 write for example `250m` for 250 ms"
            }
            Kind::Unit => {
                "the grpc-timeout does not end with a known unit: \
                 write `H`, `M`, `S`, `m` (ms), `u` (µs) or `n` (ns)"
            }
        })
    }
}

impl std::error::Error for InvalidTimeout {}
