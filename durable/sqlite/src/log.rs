//! What is in SQLite's log that SQLite does not know of?
//!
//! A commit that finds no space has written a part of its frames. If the log was used before, an old frame lies where the last of them was to be, and it may
//! be of the same page: then a part of the page, and the rest of the old frame, can be that last frame as it was to be, checksum and all. On a file system
//! that writes in place no space is missing there, because the file does not grow; one that copies as it writes has refused that commit, and the next opening
//! would find it. So the log is looked at, in [SQLite's format](https://www.sqlite.org/fileformat2.html#walformat).

use std::io;

/// The bytes of the header of the log, and of a frame.
const HEADER: usize = 32;
const FRAME: usize = 24;

/// How many frames are read at a time.
const FRAMES: usize = 64;

/// Whether the log may have a whole commit after so many frames: a frame that ends one, with the salt of the log. It is read from there on, by its first byte
/// and how many: what comes before may be large.
pub(crate) fn has_more(
    read: impl Fn(u64, usize) -> io::Result<Vec<u8>>,
    frames: usize,
) -> io::Result<bool> {
    let header = read(0, HEADER)?;
    let (Some(page), Some(salt)) = (number(&header, 8), header.get(16..24)) else {
        return Ok(false);
    };
    let frame = FRAME + page as usize;
    for first in (frames..).step_by(FRAMES) {
        let part = read((HEADER + first * frame) as u64, FRAMES * frame)?;
        let all = part.chunks_exact(frame);
        let own: Vec<_> = all.take_while(|it| it.get(8..16) == Some(salt)).collect();
        if own.iter().any(|frame| number(frame, 4) != Some(0)) {
            return Ok(true);
        }
        if own.len() < FRAMES {
            break;
        }
    }
    Ok(false)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of so many frames, each of which ends a commit, or none does.
    fn log(frames: usize, salt: u8, ends: bool) -> Vec<u8> {
        let mut frame = vec![0; FRAME + 512];
        frame[7] = u8::from(ends);
        frame[8..16].fill(salt);
        let mut log = vec![0; HEADER];
        log[10] = 2;
        log[16..24].fill(7);
        log.extend(frame.repeat(frames));
        log
    }

    fn reads(log: &[u8], frames: usize) -> (bool, usize) {
        let read = std::cell::Cell::new(0);
        let has_more = has_more(
            |at, most| {
                let rest = log.get(at as usize..).unwrap_or_default();
                let part = rest[..rest.len().min(most)].to_vec();
                read.set(read.get() + part.len());
                Ok(part)
            },
            frames,
        );
        (has_more.unwrap(), read.get())
    }

    #[test]
    fn a_commit_after_the_last_frame_is_found() {
        for more in [1, FRAMES, FRAMES + 1, 3 * FRAMES] {
            let mut all = log(100, 7, true);
            all.extend(&log(more - 1, 7, false)[HEADER..]);
            assert!(!reads(&all, 100).0);
            all.extend(&log(1, 7, true)[HEADER..]);
            assert!(reads(&all, 100).0, "after {more} frames");
        }
    }

    #[test]
    fn what_is_older_is_not_read() {
        let mut all = log(5_000, 7, true);
        all.extend(&log(5_000, 6, true)[HEADER..]);
        let (has_more, read) = reads(&all, 5_000);
        assert!(!has_more && read < 64 << 10, "{read} bytes were read");
        assert!(!reads(&[], 0).0 && !reads(&log(0, 7, true), 9).0);
    }
}
