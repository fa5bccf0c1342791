//! Numbers as text, and text on standard output.

use std::io::{self, Write as _};
use std::time::Duration;

/// Like `print!`, but does not panic if the pipe is closed (`… | head`).
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// `1234567` as `1 234 567`.
pub fn grouped(number: u64) -> String {
    in_groups(&number.to_string(), ' ')
}

/// Rounded to a hundredth of a millisecond.
pub fn milliseconds(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

/// Digits in groups of three.
pub fn in_groups(digits: &str, separator: char) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let numbers = [0, 12, 999, 1_000, 123_456, 1_234_567];
        let texts = ["0", "12", "999", "1 000", "123 456", "1 234 567"];
        assert_eq!(numbers.map(grouped), texts);
    }
}
