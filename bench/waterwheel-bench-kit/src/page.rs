//! A page: handwritten text, with marked blocks that are filled in.
//!
//! ```text
//! <!-- figures: NAME -->
//! what the program writes
//! <!-- end of figures -->
//! ```

const BEGIN: &str = "<!-- figures: ";
const BEGIN_ENDS: &str = " -->\n";
const END: &str = "<!-- end of figures -->";

/// Returns the page with each block replaced by the result of `block` for its name.
pub fn filled(
    page: &str,
    block: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, marked)) = rest.split_once(BEGIN) {
        let (name, inside) = marked
            .split_once(BEGIN_ENDS)
            .ok_or("a mark of figures does not end in its line")?;
        // The next end may belong to another block.
        let (_, after) = inside
            .split_once(END)
            .filter(|(old, _)| !old.contains(BEGIN))
            .ok_or_else(|| format!("the figures {name:?} have no end"))?;
        text += before;
        text += &format!(
            "{BEGIN}{name}{BEGIN_ENDS}{}\n{END}",
            block(name)?.trim_end()
        );
        rest = after;
    }
    Ok(text + rest)
}

#[cfg(test)]
mod tests {
    use super::filled;

    const PAGE: &str = "\
Before.
<!-- figures: one -->
old
<!-- end of figures -->
Between.
<!-- figures: two -->
<!-- end of figures -->
After.
";

    #[test]
    fn blocks_are_replaced_and_the_rest_stays() {
        let block = |name: &str| Ok(format!("new {name}\n"));
        let text = filled(PAGE, block).unwrap();
        let expected = PAGE.replace("old", "new one");
        let expected = expected.replace("two -->\n", "two -->\nnew two\n");
        assert_eq!(text, expected);
        assert_eq!(filled(&text, block).unwrap(), expected);
    }

    #[test]
    fn a_block_that_has_no_end_or_cannot_be_made_is_an_error() {
        let block = |name: &str| Err(format!("no {name:?}"));
        let lost = PAGE.replacen("<!-- end of figures -->", "", 1);
        for page in ["<!-- figures: one -->\n", &lost] {
            let why = filled(page, |_| Ok(String::new())).unwrap_err();
            assert_eq!(why, "the figures \"one\" have no end");
        }
        assert!(filled("<!-- figures: one", block).is_err());
        assert_eq!(filled(PAGE, block).unwrap_err(), "no \"one\"");
    }
}
