//! What is in SQLite's log that SQLite does not know of?
//!
//! A commit that finds no space has written a part of its frames. If the log was used before, an old frame lies where the last of them was to be, and it may
//! be of the same page: then a part of the page, and the rest of the old frame, can be that last frame as it was to be, checksum and all. On a file system
//! that writes in place no space is missing there, because the file does not grow; one that copies as it writes has refused that commit, and the next opening
//! would find it. So the log is looked at, in [SQLite's format](https://www.sqlite.org/fileformat2.html#walformat).

/// The bytes of the header of the log, and of a frame.
const HEADER: usize = 32;
const FRAME: usize = 24;

/// Whether the log may have a whole commit after so many frames: a frame that ends one, with the salt of the log.
pub(crate) fn has_more(log: &[u8], frames: usize) -> bool {
    let page = number(log, 8).unwrap_or(0) as usize;
    let salt = log.get(16..24);
    let Some(rest) = log.get(HEADER..) else {
        return false;
    };
    rest.chunks_exact(FRAME + page)
        .skip(frames)
        .take_while(|frame| frame.get(8..16) == salt)
        .any(|frame| number(frame, 4) != Some(0))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}
