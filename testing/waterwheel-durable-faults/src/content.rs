use std::collections::BTreeMap;

use super::Choice;
use super::file::File;

/// The files of a disk.
#[derive(Debug, Clone, Default)]
pub struct Content {
    /// All files, including deleted ones.
    pub(crate) files: Vec<File>,
    pub(crate) names: BTreeMap<String, usize>,
    pub(crate) synced_names: BTreeMap<String, usize>,
    /// The changes of the file that each name refers to since the folder was synced.
    pub(crate) name_changes: Vec<(u64, String, Option<usize>)>,
    pub(crate) calls: u64,
}

impl Content {
    /// A disk with files of these names, all of them synced.
    #[must_use]
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, Vec<u8>)>) -> Content {
        let mut content = Content::default();
        for (name, bytes) in files {
            content.names.insert(name.to_owned(), content.files.len());
            content.files.push(File::of(bytes));
        }
        content.synced_names.clone_from(&content.names);
        content
    }

    /// Whether everything is durable.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.name_changes.is_empty()
            && self
                .names
                .values()
                .all(|file| self.files[*file].is_synced())
    }

    pub(crate) fn used(&self) -> usize {
        let files = self.names.values();
        files.map(|file| self.files[*file].bytes().len()).sum()
    }

    pub(crate) fn left(&self, choice: &mut dyn Choice) -> Content {
        let mut names = self.synced_names.clone();
        let calls: Vec<u64> = self.name_changes.iter().map(|(call, ..)| *call).collect();
        if !calls.is_empty() {
            let kept = choice.keep(self.files.len(), &calls);
            for (_, name, file) in &self.name_changes[..kept] {
                rename(&mut names, name, *file);
            }
        }
        let left = names
            .iter()
            .map(|(name, file)| (name.as_str(), self.files[*file].left(*file, choice)));
        Content::of(left)
    }
}

pub(crate) fn rename(names: &mut BTreeMap<String, usize>, name: &str, file: Option<usize>) {
    match file {
        Some(file) => names.insert(name.to_owned(), file),
        None => names.remove(name),
    };
}
