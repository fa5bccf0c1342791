//! The basic shapes of a chart. Text stays text: it can be selected, searched and read aloud.

use svg::node::element::{Circle, Group, Line, Path, Rectangle, Text};

use super::look::Mark;

/// Rounds a coordinate: tenths of a pixel are finer than the eye can see, and keep the file short.
fn tenth(pixels: f64) -> f64 {
    // Adding 0 turns -0 into 0.
    (pixels * 10.0).round() / 10.0 + 0.0
}

/// Text whose base line starts at (x, y), or ends or is centred there, depending on the class.
pub(super) fn text(class: &str, (x, y): (f64, f64), content: &str) -> Text {
    let text = Text::new(content).set("x", tenth(x)).set("y", tenth(y));
    if class.is_empty() {
        text
    } else {
        text.set("class", class)
    }
}

/// An upper estimate of the width of a label of 12 pixels: the reader's font is unknown.
pub(super) fn width_of(content: &str) -> f64 {
    content.chars().count() as f64 * 6.7
}

/// The estimated width of a sentence, in which wide and narrow letters even out.
fn length_of(content: &str) -> f64 {
    width_of(content) * 0.9
}

/// The width of a label in bold.
pub(super) fn bold_width_of(content: &str) -> f64 {
    width_of(content) * 1.12
}

/// Breaks text at spaces into lines that fit.
pub(super) fn wrap(content: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in content.split(' ') {
        match lines.last_mut() {
            Some(line) if length_of(line) + length_of(" ") + length_of(word) < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A straight line.
pub(super) fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Line {
    Line::new()
        .set("class", class)
        .set("x1", tenth(x1))
        .set("y1", tenth(y1))
        .set("x2", tenth(x2))
        .set("y2", tenth(y2))
}

/// A filled rectangle.
pub(super) fn bar(class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> Rectangle {
    Rectangle::new()
        .set("class", class)
        .set("x", tenth(x))
        .set("y", tenth(y))
        .set("width", tenth(width))
        .set("height", tenth(height))
}

/// A line through all of the points.
pub(super) fn polyline(class: &str, points: &[(f64, f64)]) -> Path {
    let mut data = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        data.push_str(&format!("{command}{} {}", tenth(*x), tenth(*y)));
    }
    Path::new().set("class", class).set("d", data)
}

/// A horizontal whisker from the least to the greatest, with a cap at each end, or an arrow at the upper one if that is beyond the scale.
pub(super) fn whisker_lying(y: f64, (from, to): (f64, f64), beyond: bool) -> Group {
    let (from, to, y, top) = (tenth(from), tenth(to), tenth(y), tenth(y - 3.0));
    let end = if beyond {
        format!("M{} {top}l4 3l-4 3", tenth(to - 4.0))
    } else {
        format!("M{to} {top}v6")
    };
    let data = format!("M{from} {top}v6M{from} {y}H{to}{end}");
    let path = |class| Path::new().set("class", class).set("d", &*data);
    // A margin separates it from the bar below.
    Group::new()
        .add(path("whisker margin"))
        .add(path("whisker ink"))
}

/// A vertical whisker, in the colour of its contestant; `low` is the lower end on the card.
pub(super) fn whisker_standing(x: f64, (low, high): (f64, f64), beyond: bool) -> Group {
    let (x, left, low, high) = (tenth(x), tenth(x - 2.5), tenth(low), tenth(high));
    let end = if beyond {
        format!("M{left} {}l2.5 -4l2.5 4", tenth(high + 4.0))
    } else {
        format!("M{left} {high}h5")
    };
    let data = format!("M{left} {low}h5M{x} {low}V{high}{end}");
    Group::new().add(Path::new().set("class", "whisker own-ink").set("d", data))
}

/// A point of a line chart.
pub(super) fn mark(mark: Mark, (x, y): (f64, f64)) -> Group {
    let shape = |class, offsets: &[(f64, f64)]| {
        let points: Vec<_> = offsets.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        Group::new().add(polyline(class, &points))
    };
    let polygon = |offsets| shape("fill", offsets);
    let circle = |class, radius: f64| {
        let circle = Circle::new().set("class", class).set("r", radius);
        Group::new().add(circle.set("cx", tenth(x)).set("cy", tenth(y)))
    };
    match mark {
        Mark::Circle => circle("fill", 4.0),
        Mark::Ring => circle("line open", 3.2),
        Mark::Square => polygon(&[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)]),
        Mark::OpenSquare => {
            let (low, high) = (-3.0, 3.0);
            let corners = [(low, low), (high, low), (high, high), (low, high)];
            // Return to the first corner and continue a little, so that this corner is joined too.
            shape("line open", &[&corners[..], &corners[..2]].concat())
        }
        Mark::Diamond => polygon(&[(0.0, -4.6), (4.6, 0.0), (0.0, 4.6), (-4.6, 0.0)]),
        Mark::TriangleUp => polygon(&[(0.0, -4.4), (4.2, 3.4), (-4.2, 3.4)]),
        Mark::TriangleDown => polygon(&[(0.0, 4.4), (4.2, -3.4), (-4.2, -3.4)]),
        Mark::Cross => {
            let (rising, falling) = ([(-3.4, 3.4), (3.4, -3.4)], [(-3.4, -3.4), (3.4, 3.4)]);
            shape("line open", &rising).add(shape("line open", &falling))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        let text = text("", (0.0, 0.0), "a<b> & \"c\"").to_string();
        assert!(text.contains("a&lt;b&gt; &amp;"), "{text}");
    }

    #[test]
    fn wrapped_lines_fit_and_lose_nothing() {
        let content = "waterwheel 0.1.0, tokio 1.54.1, rustc 1.95.0; two cores";
        let lines = wrap(content, 150.0);
        assert!(
            lines.len() > 1 && lines.iter().all(|line| length_of(line) < 150.0),
            "{lines:?}"
        );
        assert_eq!(lines.join(" "), content);
    }

    #[test]
    fn coordinates_have_no_noise() {
        assert_eq!(
            [0.1 + 0.2, -0.01, 99.96].map(tenth).map(|v| v.to_string()),
            ["0.3", "0", "100"]
        );
    }
}
