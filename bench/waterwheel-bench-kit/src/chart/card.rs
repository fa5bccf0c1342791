//! The frame of every chart: background, title, legend, and the conditions below.

use svg::Document;
use svg::node::element::{Description, Group, Style, Title};

use super::draw::{bar, bold_width_of, text, width_of, wrap};
use super::theme::style_sheet;

/// The width of a README on GitHub.
pub(super) const WIDTH: f64 = 830.0;
/// The space between the card's edge and its contents.
pub(super) const MARGIN: f64 = 24.0;
/// The width that is left for the panels.
pub(super) const INNER: f64 = WIDTH - 2.0 * MARGIN;

const LEGEND_LINE: f64 = 20.0;
const FOOTER_LINE: f64 = 15.0;

/// A chart without its frame.
pub struct Chart {
    /// The measured quantity, and its unit.
    pub title: String,
    /// The work in a sentence, and which direction is better.
    pub subtitle: String,
    pub legend: Vec<Sign>,
    /// The drawing, from (0, 0), at most `INNER` wide.
    pub body: Group,
    pub height: f64,
    /// Notes for the reader of this chart beyond the conditions.
    pub notes: Vec<String>,
}

/// An entry of the legend.
pub struct Sign {
    /// The symbol, drawn on a base line at y = 0 from x = 0.
    pub symbol: Group,
    pub width: f64,
    pub label: String,
    pub ours: bool,
}

/// Renders the chart as a document. `alert` and `faults`, the problems in the run, come before the conditions, where they cannot be missed.
pub fn frame(chart: Chart, alert: Option<&str>, faults: &[String], conditions: &str) -> Document {
    let mut y = MARGIN + 14.0;
    let mut page = Group::new().add(text("title strong", (MARGIN, y), &chart.title));
    for line in wrap(&chart.subtitle, INNER) {
        y += 20.0;
        page = page.add(text("", (MARGIN, y), &line));
    }
    y += 24.0;
    let (legend, legend_height) = legend(chart.legend);
    page = page.add(moved(legend, MARGIN, y));
    y += legend_height;
    page = page.add(moved(chart.body, MARGIN, y));
    y += chart.height + 10.0;

    let mut footer: Vec<(&str, String)> = Vec::new();
    footer.extend(alert.map(|alert| ("small alert", alert.to_owned())));
    let faults = faults.iter().map(|fault| ("small alert", fault.as_str()));
    let notes = chart.notes.iter().map(|note| ("small", note.as_str()));
    for (class, paragraph) in faults.chain(notes).chain([("small", conditions)]) {
        // The estimate is for 12 pixels, but the footer uses 11.
        let lines = wrap(paragraph, INNER * 12.0 / 11.0);
        footer.extend(lines.into_iter().map(|line| (class, line)));
    }
    for (class, line) in &footer {
        y += FOOTER_LINE;
        page = page.add(text(class, (MARGIN, y), line));
    }
    let height = y + MARGIN - 6.0;

    let ground = bar("card", (0.5, 0.5), (WIDTH - 1.0, height - 1.0)).set("rx", 8);
    Document::new()
        .set("viewBox", (0, 0, WIDTH, height))
        .set("width", WIDTH)
        .set("height", height)
        .set("role", "img")
        .add(Title::new(chart.title))
        .add(Description::new().add(svg::node::Text::new(chart.subtitle)))
        .add(Style::new(style_sheet()))
        .add(ground)
        .add(page)
}

/// A group at another position.
pub(super) fn moved(group: Group, x: f64, y: f64) -> Group {
    group.set("transform", format!("translate({x:.1} {y:.1})"))
}

/// The signs side by side, on as many lines as they need, and their total height.
fn legend(signs: Vec<Sign>) -> (Group, f64) {
    let (mut group, mut x, mut y) = (Group::new(), 0.0, 0.0);
    let lines = !signs.is_empty();
    for sign in signs {
        let label_at = sign.width + 6.0;
        let label_width = if sign.ours {
            bold_width_of(&sign.label)
        } else {
            width_of(&sign.label)
        };
        let width = label_at + label_width + 14.0;
        if x > 0.0 && x + width > INNER {
            (x, y) = (0.0, y + LEGEND_LINE);
        }
        let class = if sign.ours { "ours strong" } else { "" };
        let entry = sign.symbol.add(text(class, (label_at, 0.0), &sign.label));
        group = group.add(moved(entry, x, y));
        x += width;
    }
    (group, if lines { y + LEGEND_LINE } else { 0.0 })
}
