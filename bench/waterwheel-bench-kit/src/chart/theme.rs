//! The style sheet of every card, for light and dark themes.
//!
//! A card paints its own background, so it can be read on any page. The reader's browser picks one of the two
//! themes (`prefers-color-scheme`), even for an image in a README.
//!
//! The colours are Okabe and Ito's, made lighter or darker where the contrast with the background would be too low. Curves
//! also differ in their dashes and marks, because not everybody can tell eight colours apart.

/// The class, its light and dark colours, and the dash of its line, as in SVG's `stroke-dasharray`.
const SERIES: [(&str, &str, &str, &str); 11] = [
    ("current", "#0067b1", "#58a6ff", "none"),
    ("own", "#008a63", "#20b890", "8 4"),
    ("tokio", "#d55e00", "#ff8a3d", "none"),
    ("tokio-alt", "#97317a", "#f0a0d0", "5 3"),
    ("own-thread", "#1f2328", "#f0f6fc", "1.5 2.5"),
    ("own-tokio-only", "#3a8ac0", "#a5d6ff", "9 3 2 3"),
    ("pingora-timeout", "#757500", "#b8b461", "none"),
    ("async-io", "#704a00", "#f0e442", "14 3"),
    ("futures-timer", "#868f99", "#7d8590", "3 2"),
    ("other", "#8a7766", "#a08f7f", "none"),
    // For entries of the legend that stand for no contestant.
    ("anyone", "#6e7781", "#9198a1", "none"),
];

/// The class, property, and light and dark colours of everything but the contestants.
const GROUND: [(&str, &str, &str, &str); 12] = [
    ("card", "fill", "#ffffff", "#0d1117"),
    ("card", "stroke", "#d1d9e0", "#3d444d"),
    ("text", "fill", "#59636e", "#9198a1"),
    ("strong", "fill", "#1f2328", "#f0f6fc"),
    ("grid", "stroke", "#e6eaef", "#21262d"),
    ("axis", "stroke", "#8c959f", "#656c76"),
    ("ink", "stroke", "#1f2328", "#f0f6fc"),
    ("halo", "stroke", "#ffffff", "#0d1117"),
    ("margin", "stroke", "#ffffff", "#0d1117"),
    ("line.open", "fill", "#ffffff", "#0d1117"),
    ("shaded", "fill", "#eff2f5", "#1c2128"),
    ("alert", "fill", "#cf222e", "#ff7b72"),
];

const SHAPES: &str = "\
text{font-family:-apple-system,BlinkMacSystemFont,'Segoe UI','Noto Sans',Helvetica,Arial,sans-serif;font-size:12px}
.title{font-size:17px;font-weight:600}
.small{font-size:11px}
.heading,.alert,.ours{font-weight:600}
.middle{text-anchor:middle}
.end{text-anchor:end}
.fill{fill:currentColor}
.faint{fill-opacity:.3;stroke:currentColor}
.band{fill-opacity:.1}
.line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}
.current .line{stroke-width:3}
.grid,.axis{stroke-width:1}
.whisker{fill:none;stroke-width:1}
.own-ink{stroke:currentColor}
.margin{stroke-width:3;stroke-opacity:.55}
.floor{fill:none;stroke-width:2}
.halo{fill:none;stroke-width:4}
";

/// The whole style sheet.
pub(super) fn style_sheet() -> String {
    let dash = |(class, _, _, dash): (&str, &str, &str, &str)| {
        format!(".{class} .line{{stroke-dasharray:{dash}}}\n")
    };
    let dashes = SERIES.map(dash).concat();
    let (light, dark) = (look(false), look(true));
    // The marks come after the dashes, which would break their outlines.
    let marks = ".line.open{stroke-dasharray:none;stroke-width:2}\n";
    format!("{SHAPES}{dashes}{marks}{light}@media (prefers-color-scheme:dark){{\n{dark}}}")
}

fn look(dark: bool) -> String {
    let pick = |light, dark_one| if dark { dark_one } else { light };
    let ground = GROUND.map(|(class, property, light, dark)| {
        let selector = if class == "text" {
            "text".to_owned()
        } else {
            format!(".{class}")
        };
        format!("{selector}{{{property}:{}}}\n", pick(light, dark))
    });
    let colours = SERIES.map(|(class, light, dark_one, _)| {
        format!(".{class}{{color:{}}}\n", pick(light, dark_one))
    });
    ground.concat() + &colours.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2 defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let byte = u8::from_str_radix(&colour[at..at + 2], 16).expect("two hex digits");
            let value = f64::from(byte) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    /// The contrast ratio, from 1 to 21, as WCAG 2 defines it.
    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    #[test]
    fn every_colour_stands_out_from_the_ground_in_both_themes() {
        let at_least = |least: f64, what: &str, light: &str, dark: &str| {
            for (colour, ground) in [(light, "#ffffff"), (dark, "#0d1117")] {
                let contrast = contrast(colour, ground);
                assert!(contrast >= least, "{what}: {contrast:.2} on {ground}");
            }
        };
        for (class, light, dark, _) in SERIES {
            at_least(3.0, class, light, dark);
        }
        for (class, _, light, dark) in GROUND {
            if ["text", "strong", "alert"].contains(&class) {
                at_least(4.5, class, light, dark);
            }
        }
        assert_eq!(contrast("#000000", "#ffffff").round(), 21.0);
    }
}
