//! The header `grpc-timeout`, in both directions.

use proptest::prelude::*;
use waterwheel::Duration;
use waterwheel::rpc::grpc_timeout::{format, parse};

use crate::support::{ms, us};

const SECOND: Duration = Duration::from_secs(1);

/// The longest duration that a header can express.
const MOST: Duration = Duration::from_secs(99_999_999 * 3_600);

#[test]
fn each_unit_is_read() {
    for (header, duration) in [
        ("1n", Duration::from_nanos(1)),
        ("20u", us(20)),
        ("300m", ms(300)),
        ("4S", 4 * SECOND),
        ("5M", 300 * SECOND),
        ("6H", 21_600 * SECOND),
        // Not positive, as gRPC demands, but seen in practice (grpc-java#12201).
        ("0n", Duration::ZERO),
        ("00000000H", Duration::ZERO),
        ("00000007S", 7 * SECOND),
        ("99999999n", Duration::from_nanos(99_999_999)),
        ("99999999m", ms(99_999_999)),
        ("99999999H", MOST),
    ] {
        assert_eq!(parse(header), Ok(duration), "{header}");
        assert_eq!(parse(header.as_bytes()), Ok(duration), "{header}");
    }
}

#[test]
fn what_is_no_header_is_refused_with_the_reason() {
    for bad in [
        "", "1", "5h", "5s", "5ms", "1N", "1U", "5 ", "m5", "1S\n", "12345678", "1µ",
    ] {
        let error = parse(bad).expect_err(bad);
        assert!(error.is_unit() && !error.is_value(), "{bad:?}: {error}");
        assert!(error.to_string().contains("does not end with a known unit"));
    }
    for bad in [
        "S",
        "m",
        "123456789u",
        "000000001S",
        "+1m",
        "-1S",
        "1 m",
        " 1m",
        "1.5S",
        "1_0S",
        "0x1S",
        "1e3m",
        "1mm",
        "1S, 2S",
        "٣S",
        "1µS",
        "99999999999999999999999999H",
    ] {
        let error = parse(bad).expect_err(bad);
        assert!(error.is_value() && !error.is_unit(), "{bad:?}: {error}");
        assert!(error.to_string().contains("1 to 8 ASCII digits"));
    }
    for bad in [&b"\xff\xfe"[..], b"1\xff", b"\x001S", b"1\0"] {
        parse(bad).expect_err("bytes that are no text");
    }
}

#[test]
fn a_duration_is_written_in_the_finest_unit_that_holds_it() {
    for (nanos, header) in [
        (0, "0n"),
        (1, "1n"),
        (99_999_999, "99999999n"),
        (100_000_000, "100000u"),
        (100_000_999, "100000u"),
        (99_999_999_999, "99999999u"),
        (100_000_000_000, "100000m"),
        (99_999_999_999_999, "99999999m"),
        (100_000_000_000_000, "100000S"),
    ] {
        assert_eq!(format(Duration::from_nanos(nanos)).as_str(), header);
    }
    for (seconds, header) in [
        (99_999_999, "99999999S"),
        (100_000_000, "1666666M"),
        (99_999_999 * 60 + 59, "99999999M"),
        (100_000_000 * 60, "1666666H"),
        (99_999_999 * 3_600, "99999999H"),
        (u64::MAX, "99999999H"),
    ] {
        assert_eq!(format(Duration::from_secs(seconds)).as_str(), header);
    }
    assert_eq!(format(Duration::MAX).as_str(), "99999999H");
}

#[test]
fn a_header_is_text_and_bytes_without_allocation() {
    let header = format(ms(250));
    let (text, bytes): (&str, &[u8]) = (header.as_ref(), header.as_ref());
    assert_eq!((text, bytes), ("250000u", &b"250000u"[..]));
    assert_eq!(std::format!("{header:>9}|{header}"), "  250000u|250000u");
    assert_eq!(parse(header), Ok(ms(250)));
}

/// A chain of servers, each of which passes on its own timeout.
#[test]
fn a_deadline_does_not_grow_on_its_way() {
    let mut left = Duration::from_nanos(12_345_678_999_999);
    for _server in 0..100 {
        let passed_on = parse(format(left)).expect("a header of ours");
        assert!(passed_on <= left);
        left = passed_on - Duration::from_nanos(1);
    }
}

/// The length of the unit that a header ends with.
fn unit_of(header: &str) -> Duration {
    match header.as_bytes()[header.len() - 1] {
        b'n' => Duration::from_nanos(1),
        b'u' => us(1),
        b'm' => ms(1),
        b'S' => SECOND,
        b'M' => 60 * SECOND,
        _ => 3_600 * SECOND,
    }
}

fn any_duration() -> impl Strategy<Value = Duration> {
    // Seven digits are as likely as two.
    (any::<u64>(), 0u32..64, 0u32..1_000_000_000)
        .prop_map(|(seconds, shift, nanos)| Duration::new(seconds >> shift, nanos))
}

proptest! {
    #[test]
    fn what_is_written_is_less_by_less_than_a_unit(duration in any_duration()) {
        let header = format(duration);
        prop_assert!(header.as_str().len() <= 9);
        let read = parse(header).expect("a header of ours");
        prop_assert!(read <= duration);
        prop_assert!(duration >= MOST || duration - read < unit_of(header.as_str()));
        prop_assert_eq!(duration >= MOST, read == MOST);
        // With the next finer unit it would need too many digits.
        let unit = unit_of(header.as_str()).as_nanos();
        let finer = [1, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000]
            .into_iter()
            .filter(|&it| it < unit)
            .max();
        prop_assert!(finer.is_none_or(|finer| duration.as_nanos() / finer > 99_999_999));
    }

    #[test]
    fn what_was_read_is_written_without_loss(value in 0u32..100_000_000, unit in "[HMSmun]") {
        let read = parse(std::format!("{value}{unit}")).expect("it is valid");
        prop_assert_eq!(parse(format(read)), Ok(read));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        let is_valid = matches!(bytes.len(), 2..=9)
            && bytes[..bytes.len() - 1].iter().all(u8::is_ascii_digit)
            && b"HMSmun".contains(&bytes[bytes.len() - 1]);
        prop_assert_eq!(parse(&bytes).is_ok(), is_valid);
    }

    #[test]
    fn nearly_valid_text_is_read_or_refused(text in "[-+ .0-9]{0,10}[HMSmunhs0]?") {
        let digits = text.strip_suffix(['H', 'M', 'S', 'm', 'u', 'n']);
        let is_valid = digits.is_some_and(|digits| {
            matches!(digits.len(), 1..=8) && digits.bytes().all(|it| it.is_ascii_digit())
        });
        prop_assert_eq!(parse(&text).is_ok(), is_valid);
    }
}
