//! What is in SQLite's WAL that SQLite does not know of?
//!
//! A commit that finds no space has written a part of its frames. If the WAL was used before, an old frame lies where the last of them was to be, and it may
//! be of the same page: then a part of the page, and the rest of the old frame, can be that last frame as it was to be, checksum and all. On a file system
//! that writes in place no space is missing there, because the file does not grow; one that copies as it writes has refused that commit, and the next opening
//! would find it. So the WAL is looked at, in [SQLite's format](https://www.sqlite.org/fileformat2.html#walformat).

use std::io;

use rusqlite::Connection;

/// The bytes of the header of the WAL, and of a frame.
pub(crate) const HEADER: usize = 32;
const FRAME: usize = 24;

/// How many frames are read at a time.
const FRAMES: usize = 64;

/// How long a WAL is, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Length {
    pub(crate) all: i64,
    /// So many of them are in the file.
    pub(crate) copied: i64,
}

impl Length {
    /// Both are negative if there is no WAL.
    pub(crate) fn by(connection: &Connection, sql: &str) -> rusqlite::Result<Length> {
        let mut length = connection.prepare_cached(sql)?;
        length.query_row([], |row| {
            Ok(Length {
                all: row.get(1)?,
                copied: row.get(2)?,
            })
        })
    }

    pub(crate) fn left(self) -> i64 {
        self.all - self.copied
    }
}

/// Whether the WAL may have a whole commit after so many frames: a frame that ends one, with the salt of the WAL. It is read from there on, by its first byte
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

/// Whether SQLite finds so many frames in a WAL as it opens a file: it reads up to the first frame whose checksum or salt is wrong. Also if the WAL has another
/// salt, and so was begun again since.
pub(crate) fn has_frames(
    read: impl Fn(u64, usize) -> io::Result<Vec<u8>>,
    of_salt: u64,
    frames: u64,
) -> io::Result<bool> {
    let header = read(0, HEADER)?;
    let (Some(magic @ 0x377f_0682..=0x377f_0683), Some(size)) =
        (number(&header, 0), number(&header, 8))
    else {
        return Ok(false);
    };
    let is_big = magic & 1 == 1;
    let mut sums = (0, 0);
    add(&mut sums, header.get(..24).unwrap_or_default(), is_big);
    let is_size = size.is_power_of_two() && (512..=65_536).contains(&size);
    if header.len() < HEADER || joined(sums) != long(&header, 24) || !is_size {
        return Ok(false);
    }
    if of_salt != 0 && salt(&header) != of_salt {
        return Ok(true);
    }
    let length = FRAME + size as usize;
    let mut found = 0;
    while found < frames {
        let part = read(HEADER as u64 + found * length as u64, FRAMES * length)?;
        for frame in part.chunks_exact(length) {
            add(&mut sums, &frame[..8], is_big);
            add(&mut sums, &frame[FRAME..], is_big);
            let is_valid = number(frame, 0) != Some(0)
                && frame.get(8..16) == header.get(16..24)
                && long(frame, 16) == joined(sums);
            if !is_valid {
                return Ok(found >= frames);
            }
            found += 1;
        }
        if part.len() < FRAMES * length {
            break;
        }
    }
    Ok(found >= frames)
}

/// The salt of a WAL, from its header. 0 if it has none.
pub(crate) fn salt(header: &[u8]) -> u64 {
    long(header, 16)
}

fn joined((first, second): (u32, u32)) -> u64 {
    u64::from(first) << 32 | u64::from(second)
}

/// Adds words to SQLite's checksum of a WAL.
fn add((first, second): &mut (u32, u32), bytes: &[u8], is_big: bool) {
    for eight in bytes.chunks_exact(8) {
        let word = |at: usize| {
            let four = [eight[at], eight[at + 1], eight[at + 2], eight[at + 3]];
            match is_big {
                true => u32::from_be_bytes(four),
                false => u32::from_le_bytes(four),
            }
        };
        *first = first.wrapping_add(word(0)).wrapping_add(*second);
        *second = second.wrapping_add(word(4)).wrapping_add(*first);
    }
}

/// Eight bytes. 0 if there are fewer.
fn long(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes.get(at..at + 8).and_then(|it| it.try_into().ok());
    eight.map_or(0, u64::from_be_bytes)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A WAL of so many frames, each of which ends a commit, or none does.
    fn wal(frames: usize, salt: u8, ends: bool) -> Vec<u8> {
        let mut frame = vec![0; FRAME + 512];
        frame[7] = u8::from(ends);
        frame[8..16].fill(salt);
        let mut wal = vec![0; HEADER];
        wal[10] = 2;
        wal[16..24].fill(7);
        wal.extend(frame.repeat(frames));
        wal
    }

    fn reads(wal: &[u8], frames: usize) -> (bool, usize) {
        let read = std::cell::Cell::new(0);
        let has_more = has_more(
            |at, limit| {
                let rest = wal.get(at as usize..).unwrap_or_default();
                let part = rest[..rest.len().min(limit)].to_vec();
                read.set(read.get() + part.len());
                Ok(part)
            },
            frames,
        );
        (has_more.unwrap(), read.get())
    }

    /// A WAL as SQLite writes it, of so many frames with a page of 512 bytes.
    fn whole(frames: u32, is_big: bool) -> Vec<u8> {
        let mut wal = (0x377f_0682 | u32::from(is_big)).to_be_bytes().to_vec();
        for number in [3_007_000, 512, 0, 11, 12] {
            wal.extend(u32::to_be_bytes(number));
        }
        let mut sums = (0, 0);
        add(&mut sums, &wal, is_big);
        wal.extend(joined(sums).to_be_bytes());
        for page in 1..=frames {
            let mut frame = page.to_be_bytes().to_vec();
            frame.extend(frames.to_be_bytes());
            let data = [page as u8; 512];
            add(&mut sums, &frame, is_big);
            add(&mut sums, &data, is_big);
            frame.extend([0, 0, 0, 11, 0, 0, 0, 12]);
            frame.extend(joined(sums).to_be_bytes());
            wal.extend(frame);
            wal.extend(data);
        }
        wal
    }

    fn has(wal: &[u8], salt: u64, frames: u64) -> bool {
        let read = |at: u64, limit| {
            let rest = wal.get(at as usize..).unwrap_or_default();
            Ok(rest[..rest.len().min(limit)].to_vec())
        };
        has_frames(read, salt, frames).unwrap()
    }

    #[test]
    fn frames_are_counted_up_to_the_first_that_is_damaged() {
        const SALT: u64 = 11 << 32 | 12;
        const LENGTH: usize = FRAME + 512;
        for is_big in [false, true] {
            for frames in [1, 63, 64, 65, 200] {
                let wal = whole(frames, is_big);
                let all = u64::from(frames);
                assert!(has(&wal, SALT, all) && !has(&wal, SALT, all + 1));
                assert!(has(&wal, 0, all) && has(&wal, SALT + 1, all + 1));
                assert!(!has(&wal[..wal.len() - 1], SALT, all));
                for damaged in [0, frames / 2, frames - 1] {
                    for at in [0, 9, 20, FRAME, LENGTH - 1] {
                        let mut wal = wal.clone();
                        wal[HEADER + damaged as usize * LENGTH + at] ^= 1;
                        let left = u64::from(damaged);
                        assert!(has(&wal, SALT, left) && !has(&wal, SALT, left + 1));
                    }
                }
                let mut damaged = wal.clone();
                damaged[17] ^= 1;
                assert!(!has(&damaged, SALT, 1));
            }
        }
        assert!(!has(&[], SALT, 0));
    }

    #[test]
    fn a_commit_after_the_last_frame_is_found() {
        for more in [1, FRAMES, FRAMES + 1, 3 * FRAMES] {
            let mut all = wal(100, 7, true);
            all.extend(&wal(more - 1, 7, false)[HEADER..]);
            assert!(!reads(&all, 100).0);
            all.extend(&wal(1, 7, true)[HEADER..]);
            assert!(reads(&all, 100).0, "after {more} frames");
        }
    }

    #[test]
    fn what_is_older_is_not_read() {
        let mut all = wal(5_000, 7, true);
        all.extend(&wal(5_000, 6, true)[HEADER..]);
        let (has_more, read) = reads(&all, 5_000);
        assert!(!has_more && read < 64 << 10, "{read} bytes were read");
        assert!(!reads(&[], 0).0 && !reads(&wal(0, 7, true), 9).0);
    }
}
