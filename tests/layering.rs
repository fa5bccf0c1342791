//! The arrows between the rooms of the house point one way: `wheel ← driver ← time`.

use std::fs;
use std::path::{Path, PathBuf};

/// Each room and the rooms that it may name. A file or folder of `src` that is missing here fails
/// the test, so that a new room has to say where it stands.
const ROOMS: &[(&str, &[&str])] = &[
    ("sync", &[]),
    ("wheel", &[]),
    ("error", &["wheel"]),
    ("driver", &["wheel", "error", "sync"]),
    ("time", &["driver", "wheel", "error"]),
    ("lib", &["wheel", "error", "sync", "driver", "time"]),
];

/// What the crate root exports, and the room that it comes from.
const AT_THE_ROOT: &[(&str, &str)] = &[
    ("Sleep", "time"),
    ("Interval", "time"),
    ("MissedTickBehavior", "time"),
    ("Timeout", "time"),
    ("sleep", "time"),
    ("interval", "time"),
    ("timeout", "time"),
    ("Builder", "driver"),
    ("Lateness", "driver"),
    ("Metrics", "driver"),
    ("Timer", "driver"),
];

/// What the wheel is free of: it is handed the time and asks nobody for it.
const NOT_IN_THE_WHEEL: &[&str] = &[
    "tokio",
    "Instant",
    "Waker",
    "Mutex",
    "Atomic",
    "std::thread",
];

#[test]
fn the_arrows_between_the_rooms_point_one_way() {
    let names: Vec<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    for file in sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))) {
        let room = room_of(&file);
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            panic!("{} is in no known room: add it to `ROOMS`", file.display());
        };
        for line in code_lines(&file) {
            assert!(
                !line.contains("crate::{"),
                "{}: one room a `use`, so that this test can read it: {line}",
                file.display()
            );
            for (item, home) in AT_THE_ROOT {
                if *home != room && names_item(&line, item) {
                    assert!(
                        allowed.contains(home),
                        "{}: `{room}` must not know `{home}`, whose `{item}` is: {line}",
                        file.display()
                    );
                }
            }
            for other in &names {
                if *other != room && names_room(&line, other) {
                    assert!(
                        allowed.contains(other),
                        "{}: `{room}` must not know `{other}`: {line}",
                        file.display()
                    );
                }
            }
        }
    }
}

#[test]
fn the_wheel_knows_no_clock_no_thread_and_no_future() {
    for file in sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/wheel"))) {
        let code = code_lines(&file);
        // What stands under `#[cfg(test)]` is not the wheel's.
        let code = code
            .iter()
            .take_while(|line| !line.contains("#[cfg(test)]"));
        for line in code {
            for word in NOT_IN_THE_WHEEL {
                assert!(!line.contains(word), "{}: {line}", file.display());
            }
        }
    }
}

#[test]
fn no_file_allows_unsafe_code() {
    let lib = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap();
    assert!(lib.contains("#![forbid(unsafe_code)]"));
}

/// Whether a line, which is no comment, names an item of the crate root by its path.
fn names_item(line: &str, item: &str) -> bool {
    line.match_indices("crate::").any(|(at, path)| {
        let rest = &line[at + path.len()..];
        rest.starts_with(item)
            && !rest[item.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
    })
}

fn names_room(line: &str, room: &str) -> bool {
    line.contains(&format!("crate::{room}::")) || line.contains(&format!("crate::{room};"))
}

fn room_of(file: &Path) -> String {
    let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let inside = file.strip_prefix(source).unwrap();
    let first = inside.components().next().unwrap();
    let name = Path::new(first.as_os_str()).file_stem().unwrap();
    name.to_str().unwrap().to_owned()
}

/// The lines of a file that are no comments.
fn code_lines(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("//"))
        .map(str::to_owned)
        .collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    assert!(!files.is_empty(), "nothing in {}", folder.display());
    files
}
