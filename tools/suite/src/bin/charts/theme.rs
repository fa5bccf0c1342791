//! The look of every card: one style sheet, for light and for dark.
//!
//! A card paints its own ground, so it can be read on any page. The reader's browser picks one of the two looks
//! (`prefers-color-scheme`), also for an image in a README.
//!
//! Ours are blue and strong. The peers are warm or grey, and muted. That contrast, of hue and of lightness, stays with every
//! common colour blindness; in line charts each contestant has a mark of its own besides.

/// Class, colour in light, colour in dark.
const COLOURS: [(&str, &str, &str); 12] = [
    ("own", "#0063b0", "#4ba3ff"),
    ("current", "#48a4dd", "#a5d6ff"),
    ("own-frugal", "#7d8fd6", "#8e96e8"),
    ("own-precise", "#008577", "#2fc8b2"),
    ("tokio", "#cf7d2c", "#e3a05b"),
    ("tokio-alt", "#8c5a32", "#b98a62"),
    ("tokio-util", "#a9779c", "#c79dbd"),
    ("pingora-timeout", "#8b8840", "#b8b461"),
    ("async-io", "#747c86", "#9aa3ad"),
    ("futures-timer", "#a0a7af", "#707982"),
    ("other", "#b3a394", "#8a7d70"),
    // What the legend explains without meaning any contestant.
    ("anyone", "#6e7781", "#8d96a0"),
];

/// Class, property, light, dark: what is not a contestant.
const GROUND: [(&str, &str, &str, &str); 11] = [
    ("card", "fill", "#ffffff", "#0d1117"),
    ("card", "stroke", "#d1d9e0", "#3d444d"),
    ("text", "fill", "#59636e", "#9198a1"),
    ("strong", "fill", "#1f2328", "#f0f6fc"),
    ("grid", "stroke", "#e6eaef", "#21262d"),
    ("axis", "stroke", "#8c959f", "#656c76"),
    ("ink", "stroke", "#1f2328", "#f0f6fc"),
    ("halo", "stroke", "#ffffff", "#0d1117"),
    ("margin", "stroke", "#ffffff", "#0d1117"),
    ("line.ring", "fill", "#ffffff", "#0d1117"),
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
.faint{fill-opacity:.42}
.band{fill-opacity:.12}
.line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}
.own .line,.own-precise .line{stroke-width:2.6}
.own-frugal .line,.tokio-alt .line{stroke-dasharray:5 3}
.line.ring{stroke-dasharray:none}
.grid,.axis{stroke-width:1}
.whisker{fill:none;stroke-width:1}
.own-ink{stroke:currentColor}
.margin{stroke-width:3;stroke-opacity:.55}
.floor{fill:none;stroke-width:2}
.halo{fill:none;stroke-width:4}
";

/// The whole style sheet.
pub(crate) fn style_sheet() -> String {
    let (light, dark) = (look(false), look(true));
    format!("{SHAPES}{light}@media (prefers-color-scheme:dark){{\n{dark}}}")
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
    let colours =
        COLOURS.map(|(class, light, dark)| format!(".{class}{{color:{}}}\n", pick(light, dark)));
    ground.concat() + &colours.concat()
}
