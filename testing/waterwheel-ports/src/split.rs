//! Splits `use tokio::{net::TcpStream, time::sleep};` into one import of tokio and one of waterwheel.
//!
//! Both stay on the lines of the original, since the names of documentation tests contain their line numbers.

const BEGIN: &str = "use tokio::{";

/// Returns the text with its imports split, and their number. An error is the line of an import that has no end.
pub(crate) fn split(text: &str) -> Result<(String, usize), usize> {
    let mut done = String::new();
    let mut rest = text;
    let mut count = 0;
    while let Some((before, import)) = rest.split_once(BEGIN) {
        done += before;
        let line = done.matches('\n').count() + 1;
        let (inside, after) = inside(import).ok_or(line)?;
        let (others, of_time) = parted(inside);
        let leading = leading(&done);
        done += &format!("{BEGIN}{others}}};");
        for item in &of_time {
            done += &format!(" {leading}use waterwheel::{item};");
        }
        count += usize::from(!of_time.is_empty());
        rest = after;
    }
    Ok((done + rest, count))
}

/// The contents of the braces that have just been opened, and the text after the import.
fn inside(import: &str) -> Option<(&str, &str)> {
    let mut open = 1;
    let end = import.find(|c| {
        open += i32::from(c == '{') - i32::from(c == '}');
        open == 0
    })?;
    let (inside, after) = import.split_at(end);
    Some((inside, after.strip_prefix("};")?))
}

/// The items apart from those of `time`, and those of `time`.
fn parted(inside: &str) -> (String, Vec<&str>) {
    let mut others = String::new();
    let mut of_time = Vec::new();
    let mut left_blank = String::new();
    let mut is_first = true;
    for item in items(inside) {
        // In documentation each line of an import begins with slashes.
        let name = item.trim_start_matches([' ', '\n', '/', '!']);
        if is_of_time(name.trim_end()) {
            of_time.push(name.trim_end());
            let before = &item[..item.len() - name.len()];
            if before.contains('\n') {
                left_blank += before.trim_end_matches(' ');
            }
            continue;
        }
        if !is_first {
            others.push(',');
        }
        others += &left_blank;
        others += item;
        left_blank.clear();
        is_first = false;
    }
    others += &left_blank;
    if !of_time.is_empty() && !others.contains('\n') {
        others = others.trim().to_owned();
    }
    (others, of_time)
}

/// Splits an import at its commas, except those in inner braces.
fn items(inside: &str) -> impl Iterator<Item = &str> {
    let mut open = 0;
    inside.split(move |c| {
        open += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && open == 0
    })
}

fn is_of_time(item: &str) -> bool {
    item == "time" || item.starts_with("time::") || item.starts_with("time as ")
}

/// The text before an import that belongs to both halves: an attribute on its own line, and its visibility.
fn leading(before: &str) -> String {
    let mut lines = before.rsplit('\n');
    let this = lines.next().unwrap_or_default().trim_start();
    let seen = if this.starts_with("pub") { this } else { "" };
    let above = lines.next().unwrap_or_default().trim();
    if above.starts_with("#[") {
        format!("{above} {seen}")
    } else {
        seen.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn an_import_is_split_within_its_lines() {
        for (before, after) in [
            (
                "use tokio::{sync::oneshot, time::Duration};\n",
                "use tokio::{sync::oneshot}; use waterwheel::time::Duration;\n",
            ),
            (
                "use tokio::{task, time};",
                "use tokio::{task}; use waterwheel::time;",
            ),
            (
                "use tokio::{time::{self, sleep}, net::{TcpListener, TcpStream}};",
                "use tokio::{net::{TcpListener, TcpStream}}; use waterwheel::time::{self, sleep};",
            ),
            // An import of many lines.
            (
                "use tokio::{\n    sync::{mpsc, Mutex},\n    time::sleep,\n};\nuse std::io;\n",
                "use tokio::{\n    sync::{mpsc, Mutex},\n\n}; use waterwheel::time::sleep;\nuse std::io;\n",
            ),
            (
                "use tokio::{\n    sync::Mutex,\n    task, time,\n};\n",
                "use tokio::{\n    sync::Mutex,\n    task,\n}; use waterwheel::time;\n",
            ),
            // An import in documentation.
            (
                "    /// use tokio::{sync::oneshot, time::Duration};\n",
                "    /// use tokio::{sync::oneshot}; use waterwheel::time::Duration;\n",
            ),
            (
                "/// use tokio::{\n///     time::sleep,\n///     net::TcpStream,\n/// };\n",
                "/// use tokio::{\n///\n///     net::TcpStream,\n/// }; use waterwheel::time::sleep;\n",
            ),
            // Both halves have the attribute and the visibility.
            (
                "#[cfg(unix)]\n    pub(crate) use tokio::{net, time};",
                "#[cfg(unix)]\n    pub(crate) use tokio::{net}; #[cfg(unix)] pub(crate) use waterwheel::time;",
            ),
        ] {
            assert_eq!(split(before), Ok((after.to_owned(), 1)));
            assert_eq!(before.lines().count(), after.lines().count());
        }
    }

    #[test]
    fn what_is_not_of_time_stays() {
        for text in [
            "use tokio::{net::TcpStream, runtime::{Handle, Runtime}};\n",
            "use tokio::time;\n",
            "use tokio::{\n    net,\n    timer::time,\n};\n",
        ] {
            assert_eq!(split(text), Ok((text.to_owned(), 0)));
        }
    }

    #[test]
    fn an_import_without_an_end_is_an_error() {
        assert_eq!(split("\n\nuse tokio::{time, net\n"), Err(3));
        assert_eq!(split("use tokio::{time}\n"), Err(1));
    }
}
