//! Text in columns of a terminal: some characters take two, and some none.

use ratatui::style::Style;
use ratatui::text::Span;

/// The first line of a text in at most this many columns, with a sign where it was cut. Control characters are left out.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let line = Span::raw(text.lines().next().unwrap_or(""));
    let (mut kept, mut taken) = (String::new(), 0);
    // The length that stays if the sign follows.
    let mut beside_sign = 0;
    for grapheme in line.styled_graphemes(Style::new()) {
        taken += Span::raw(grapheme.symbol).width();
        if taken > columns {
            kept.truncate(beside_sign);
            kept.extend((columns > 0).then_some('…'));
            return kept;
        }
        kept.push_str(grapheme.symbol);
        if taken < columns {
            beside_sign = kept.len();
        }
    }
    kept
}

/// The text, padded with spaces.
pub(crate) fn fill(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let graphemes = Span::raw(&text);
    let graphemes = graphemes.styled_graphemes(Style::new());
    let taken: usize = graphemes.map(|it| Span::raw(it.symbol).width()).sum();
    let spaces = " ".repeat(columns - taken);
    text + &spaces
}

#[cfg(test)]
mod tests {
    use super::{cut, fill};

    #[test]
    fn a_text_that_is_too_long_is_cut_and_says_so() {
        assert_eq!(cut("sixteen letters.", 16), "sixteen letters.");
        assert_eq!(cut("seventeen letters", 16), "seventeen lette…");
        assert_eq!(cut("übermäßig", 4), "übe…");
        assert_eq!(
            (cut("ab", 1), cut("ab", 0), cut("", 0)),
            ("…".into(), "".into(), "".into())
        );
        assert_eq!(cut("any", usize::MAX), "any");
    }

    #[test]
    fn a_wide_character_takes_two_columns_and_an_accent_none() {
        assert_eq!(
            (fill("注文", 6), fill("注文", 4)),
            ("注文  ".into(), "注文".into())
        );
        // Half of a character is no character.
        assert_eq!(
            (cut("注文書", 5), cut("注文書", 4)),
            ("注文…".into(), "注…".into())
        );
        assert_eq!(fill("注文書", 4), "注… ");
        assert_eq!(fill("e\u{301}te\u{301}", 4), "e\u{301}te\u{301} ");
        assert_eq!(cut("e\u{301}te\u{301}s", 3), "e\u{301}t…");
    }

    #[test]
    fn a_text_stays_in_its_line_and_has_no_escape() {
        assert_eq!(fill("first\nsecond", 7), "first  ");
        assert_eq!(
            cut("\x1b[31mred\x1b[0m\tand\u{7} more", 80),
            "[31mred[0mand more"
        );
    }
}
