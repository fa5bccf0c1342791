//! The sources of a package, and the table of its rooms.

use std::collections::BTreeSet;
use std::path::Path;

use super::imports::{Import, Sources};

pub(crate) struct House {
    /// The folder, relative to the root of the repository.
    pub(crate) sources: &'static str,
    /// The rooms, from the bottom up, each with those that it may import from.
    pub(crate) rooms: &'static [(&'static str, &'static [&'static str])],
    /// Folders in which each file and folder is a room. Otherwise a folder is a room, and so is a file next to it.
    pub(crate) nested: &'static [&'static str],
    /// The advice about an arrow that points the other way.
    pub(crate) lower: &'static str,
}

impl House {
    pub(crate) fn sources(&self) -> Sources {
        Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(self.sources))
    }

    #[track_caller]
    pub(crate) fn assert_one_way(&self) {
        let sources = self.sources();
        for (file, _) in sources.code() {
            self.room_named(file);
        }
        let wrong = self.wrong_arrows(&sources.imports());
        assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), self.lower);
    }

    /// Checks that each room stands above those that it imports from.
    #[track_caller]
    pub(crate) fn assert_ordered(&self) {
        for (at, (room, allowed)) in self.rooms.iter().enumerate() {
            for other in *allowed {
                let stands_before = self.rooms[..at].iter().any(|(before, _)| before == other);
                assert!(
                    stands_before,
                    "{other} stands below {room}, which imports it"
                );
            }
        }
    }

    /// The imports that the table does not allow.
    pub(crate) fn wrong_arrows(&self, imports: &BTreeSet<Import>) -> Vec<String> {
        let mut wrong = Vec::new();
        for Import { from, to, name } in imports {
            let (room, other) = (self.room_of(from), self.room_of(to));
            let allowed = self.room_named(from);
            if room != other && !allowed.contains(&other.as_str()) {
                wrong.push(format!(
                    "{from}: `{room}` must not import {name} from `{other}`"
                ));
            }
        }
        wrong
    }

    /// The room of a file: its folder, or itself; within a nested folder, one step further in.
    pub(crate) fn room_of(&self, file: &str) -> String {
        let path = file.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        let parts: Vec<&str> = path.split('/').collect();
        let depth = if self.nested.contains(&parts[0]) {
            2
        } else {
            1
        };
        parts[..depth.min(parts.len())].join("/")
    }

    /// The rooms that a file's room may import from.
    fn room_named(&self, file: &str) -> &'static [&'static str] {
        let room = self.room_of(file);
        let Some((_, allowed)) = self.rooms.iter().find(|(known, _)| *known == room) else {
            panic!(
                "{file} is in no known room: enter `{room}` in `ROOMS`, with the rooms that it imports from"
            );
        };
        allowed
    }
}
