//! How are bytes and names that the users of a service have chosen shown?

use std::fmt::Write;
use std::path::Path;

/// Returns bytes as text if they are UTF-8, otherwise in hexadecimal.
pub(crate) fn of_bytes(bytes: &[u8]) -> (String, Encoding) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), Encoding::Utf8),
        Err(_) => (hex(bytes), Encoding::Hex),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) enum Encoding {
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "hex")]
    Hex,
}

/// Shows bytes on one line. Only the first `limit` are read: a payload may have a megabyte.
pub(crate) fn one_line(bytes: &[u8], limit: usize) -> String {
    let head = &bytes[..bytes.len().min(limit)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The limit may be within a character.
        Err(error) if head.len() < bytes.len() && error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return with_rest(format!("0x{}", hex(head)), head.len(), bytes.len()),
    };
    with_rest(clean(text), text.len(), bytes.len())
}

fn with_rest(mut text: String, shown: usize, all: usize) -> String {
    if shown < all {
        text.push('…');
    }
    text
}

/// Removes everything that would move the cursor or otherwise affect a terminal.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_printed(letter) {
            true => clean.push(letter),
            false => clean.extend(letter.escape_default()),
        }
    }
    clean
}

/// Whether a character is neither a control character nor one that changes the direction of text.
fn is_printed(letter: char) -> bool {
    let turns = matches!(letter, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !letter.is_control() && !turns && !matches!(letter, '\u{2028}' | '\u{2029}')
}

/// The name of a store in messages: that of a file, or a URL without a password.
pub(crate) fn place(place: &Path) -> String {
    let text = place.display().to_string();
    let Some((scheme, rest)) = text.split_once("://") else {
        return text;
    };
    let rest = rest.split('?').next().unwrap_or_default();
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

/// Truncates a text to this many characters.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => {
            let head = text.chars().take(limit.saturating_sub(1));
            head.chain(['…']).collect()
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a `String` does not fail.
        let _: std::fmt::Result = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_or_hexadecimal_on_one_line() {
        assert_eq!(one_line(b"order 17", 100), "order 17");
        assert_eq!(one_line("héllo".as_bytes(), 100), "héllo");
        // The limit is within the é.
        assert_eq!(one_line("héllo".as_bytes(), 2), "h…");
        assert_eq!(one_line("héllo".as_bytes(), 3), "hé…");
        assert_eq!(one_line(&[0xff, 0, 7], 100), "0xff0007");
        assert_eq!(one_line(&[0xff, 0, 7], 2), "0xff00…");
        // An incomplete character that is not cut off by the limit.
        assert_eq!(one_line(&[b'h', 0xc3], 2), "0x68c3");
        assert_eq!(one_line(b"", 5), "");
    }

    #[test]
    fn what_a_terminal_would_follow_is_written_out() {
        assert_eq!(
            clean("a\u{1b}[2Jb\nc\u{202e}d\u{9b}\u{61c}"),
            "a\\u{1b}[2Jb\\nc\\u{202e}d\\u{9b}\\u{61c}"
        );
        assert_eq!(clean("größer 日本"), "größer 日本");
    }

    #[test]
    fn a_place_has_no_password() {
        for (text, shown) in [
            ("/var/lib/a@b/timers.db", "/var/lib/a@b/timers.db"),
            ("postgres://db/orders", "postgres://db/orders"),
            ("postgres://app@db/orders", "postgres://app@db/orders"),
            ("postgres://app:a:b@c@db/orders", "postgres://app@db/orders"),
            (
                "postgres://app@db/orders?password=secret",
                "postgres://app@db/orders",
            ),
            ("postgres:///orders?password=a@b", "postgres:///orders"),
        ] {
            assert_eq!(place(Path::new(text)), shown);
        }
    }

    #[test]
    fn a_text_is_cut_at_a_character() {
        assert_eq!(cut("größer", 6), "größer");
        assert_eq!(cut("größer", 4), "grö…");
        assert_eq!(cut("größer", 1), "…");
    }
}
