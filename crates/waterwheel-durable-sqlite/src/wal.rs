//! The WAL of a file: finding frames in it that SQLite does not know of, and copying one that has become long.
//!
//! A commit that runs out of space has written a part of its frames. If the WAL was used before, an old frame lies at the position of its last frame, possibly
//! of the same page: then the written part of the page, followed by the rest of the old frame, can equal the intended last frame, including its checksum. A
//! file system that writes in place does not run out of space there, because the file does not grow; a copy-on-write file system can refuse that commit, and
//! the next opening would find it. So the store inspects the WAL itself, in [SQLite's format](https://www.sqlite.org/fileformat2.html#walformat).
//!
//! # Checkpoints
//!
//! The store copies its WAL into the file after a commit, a few megabytes at a time. While a reader keeps a transaction open, it can copy nothing, and the WAL
//! grows until the transaction ends. Copying hundreds of megabytes at once would delay commits for as long as the disk takes. So a second connection on its own
//! thread copies a WAL that is [far longer](Checkpointer::takes) than usual, with a `PASSIVE` checkpoint, during which commits continue. It runs pass after
//! pass, as long as commits add less than a pass copies; the store copies the rest, so that the WAL ends. A pass copies everything and syncs the file once:
//! SQLite discards the progress of an interrupted pass, so there are no smaller ones.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, InterruptHandle, OpenFlags};

use super::connection;
use super::options::OpenOptions;

/// The size in bytes of the WAL's header, and of a frame's header.
pub(crate) const HEADER: usize = 32;
const FRAME: usize = 24;

/// The number of frames read at a time.
const FRAMES: usize = 64;

/// The length of a WAL, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Length {
    pub(crate) all: i64,
    /// The number of pages that are already in the file.
    pub(crate) copied: i64,
}

impl Length {
    /// Runs a checkpoint pragma and returns its result. Both numbers are negative if there is no WAL.
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

/// Whether the WAL may contain a whole commit after this many frames: a frame that ends a commit and has the salt of the WAL. `read` takes an offset and a
/// length. It is called for the header and for what follows these frames: what precedes them may be large.
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

/// Whether SQLite finds this many frames in a WAL when it opens a file: it reads up to the first frame whose checksum or salt is wrong. Also true if the WAL
/// has another salt, and so was started again since.
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

/// The salt of a WAL, from its header, or 0 if the header is too short.
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

/// The eight bytes at a position as a number, or 0 if there are fewer.
fn long(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes.get(at..at + 8).and_then(|it| it.try_into().ok());
    eight.map_or(0, u64::from_be_bytes)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

/// How long to wait after a pass that a reader kept from copying everything.
const PAUSE: Duration = Duration::from_millis(100);

/// A pass that is running on its thread.
struct UnderWay {
    begun: Length,
    thread: JoinHandle<Copied>,
    interrupt: Interrupt,
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderWay")
            .field("begun", &self.begun)
            .finish_non_exhaustive()
    }
}

/// The handle that interrupts the connection of a pass, once that is open.
type Interrupt = Arc<OnceLock<InterruptHandle>>;

/// How often a pass is interrupted until it ends: SQLite ignores an interrupt that arrives before the copying begins.
const AGAIN: Duration = Duration::from_millis(1);

/// A pass that has ended.
#[derive(Debug)]
struct Pass {
    begun: Length,
    at: Instant,
    /// Whether the pass copied everything that the WAL had when it began.
    is_whole: bool,
}

/// The result of the thread, or `None` if the pass could not begin.
pub(crate) type Copied = rusqlite::Result<Option<Length>>;

/// Runs checkpoints on its own connection, next to the store's, and is shut down before the store.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    /// The number of uncopied pages from which on it takes a WAL, or `None` if it never does.
    min: Option<i64>,
    under_way: Option<UnderWay>,
    last: Option<Pass>,
    /// Whether the last pass could not begin, or has failed; the store then copies this WAL itself.
    gives_way: bool,
}

/// Before this version of SQLite, a checkpoint concurrent with commits could lose some: <https://sqlite.org/wal.html#walresetbug>. The bundled one is newer.
const LEAST_VERSION: i32 = 3_051_003;

impl Checkpointer {
    pub(crate) fn new(min: Option<i64>) -> Checkpointer {
        Checkpointer::with_version(min, rusqlite::version_number())
    }

    fn with_version(min: Option<i64>, version: i32) -> Checkpointer {
        Checkpointer {
            min: min.filter(|_| version >= LEAST_VERSION),
            under_way: None,
            last: None,
            gives_way: false,
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether a WAL is long enough for the checkpointer to start on it.
    pub(crate) fn is_long_enough(&self, wal: Length) -> bool {
        self.min.is_some_and(|min| wal.left() >= min)
    }

    /// Whether the checkpointer copies this WAL instead of the store, which copies `usual` pages at a time.
    pub(crate) fn takes(&mut self, wal: Length, usual: i64) -> bool {
        let Some(min) = self.min else {
            return false;
        };
        let min = match &self.last {
            Some(_) => min.min(2 * usual),
            None => min,
        };
        // Otherwise commits would extend the WAL without end.
        let falls_behind = |last: &Pass| last.is_whole && wal.left() > last.begun.left() / 2;
        if wal.left() < min || self.last.as_ref().is_some_and(falls_behind) {
            self.last = None;
            self.gives_way = false;
            return false;
        }
        !self.gives_way
    }

    /// Begins a pass, unless a reader has just kept the last one from copying everything. Returns whether the WAL is left to the checkpointer.
    pub(crate) fn begin(&mut self, file: &Path, wal: Length) -> bool {
        let waits = |last: &Pass| !last.is_whole && last.at.elapsed() < PAUSE;
        if self.last.as_ref().is_some_and(waits) {
            return true;
        }
        let file = file.to_owned();
        self.spawn(wal, move |interrupt| copy(&file, interrupt));
        !self.gives_way
    }

    fn spawn(&mut self, wal: Length, pass: impl FnOnce(&Interrupt) -> Copied + Send + 'static) {
        let interrupt = Interrupt::default();
        let own = Arc::clone(&interrupt);
        let thread = thread::Builder::new().name("waterwheel-checkpoint".to_owned());
        match thread.spawn(move || pass(&own)) {
            Ok(thread) => {
                self.under_way = Some(UnderWay {
                    begun: wal,
                    thread,
                    interrupt,
                });
            }
            Err(_) => self.gives_way = true,
        }
    }

    /// Notes the end of a pass, if it has ended, and returns what it has copied, or `None` if that is unknown.
    ///
    /// # Errors
    ///
    /// SQLite's error for the pass, once.
    pub(crate) fn poll(&mut self) -> Copied {
        match &self.under_way {
            Some(pass) if pass.thread.is_finished() => self.wait(),
            _ => Ok(None),
        }
    }

    /// Waits for the pass, and returns its result.
    pub(crate) fn wait(&mut self) -> Copied {
        let Some(pass) = self.under_way.take() else {
            return Ok(None);
        };
        let begun = pass.begun;
        // After a panic, the store copies the WAL itself.
        let copied = pass.thread.join().unwrap_or(Ok(None));
        match &copied {
            Ok(Some(wal)) => {
                let is_whole = wal.copied >= begun.all;
                let at = Instant::now();
                self.last = Some(Pass {
                    begun,
                    at,
                    is_whole,
                });
            }
            _ => self.gives_way = true,
        }
        copied
    }

    /// Ends a running pass. Its progress is discarded, and the WAL keeps the pages. If its thread is already syncing the file, this waits for the sync.
    ///
    /// # Errors
    ///
    /// SQLite's error for a pass that has already failed.
    pub(crate) fn end(&mut self) -> rusqlite::Result<()> {
        while let Some(pass) = &self.under_way
            && !pass.thread.is_finished()
        {
            if let Some(interrupt) = pass.interrupt.get() {
                interrupt.interrupt();
            }
            thread::sleep(AGAIN);
        }
        match self.wait() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
                Ok(())
            }
            ended => ended.map(drop),
        }
    }
}

#[cfg(test)]
impl Checkpointer {
    /// Starts another pass in place of the usual one.
    pub(crate) fn stand_in(
        &mut self,
        pass: impl FnOnce(&OnceLock<InterruptHandle>) -> rusqlite::Result<()> + Send + 'static,
    ) {
        let none = Length { all: 0, copied: 0 };
        self.spawn(none, move |interrupt| pass(interrupt).map(|()| Some(none)));
    }

    /// Whether the running pass has ended.
    pub(crate) fn has_ended(&self) -> bool {
        let pass = self.under_way.as_ref();
        pass.is_none_or(|pass| pass.thread.is_finished())
    }
}

fn copy(file: &Path, interrupt: &Interrupt) -> Copied {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // If this fails, nothing was copied, and the store's own connection is already open.
    let Ok(connection) = Connection::open_with_flags(file, flags) else {
        return Ok(None);
    };
    let off = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    // If another process has locked the file, the store copies the WAL: it waits for the lock.
    let off = off.and_then(|_| connection.busy_timeout(Duration::ZERO));
    if off.is_err() || connection::configure(&connection, OpenOptions::DEFAULT.synchronous).is_err()
    {
        return Ok(None);
    }
    let _: Result<(), InterruptHandle> = interrupt.set(connection.get_interrupt_handle());
    Length::by(&connection, "PRAGMA wal_checkpoint(PASSIVE)").map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A WAL of this many frames, all or none of which end a commit.
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

    /// A WAL of this many frames as SQLite writes it, with a page size of 512 bytes.
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

#[cfg(test)]
mod checkpointer_tests {
    use super::*;

    const MIN: i64 = 8_000;
    const USUAL: i64 = 1_000;

    fn wal(all: i64, copied: i64) -> Length {
        Length { all, copied }
    }

    /// A checkpointer whose last pass began at this length and copied this much.
    fn after(begun: Length, copied: i64) -> Checkpointer {
        let last = Pass {
            begun,
            at: Instant::now(),
            is_whole: copied >= begun.all,
        };
        let mut checkpointer = Checkpointer::new(Some(MIN));
        checkpointer.last = Some(last);
        checkpointer
    }

    #[test]
    fn a_wal_that_is_far_too_long_is_for_it_until_little_is_left() {
        let mut checkpointer = Checkpointer::new(Some(MIN));
        assert!(!checkpointer.takes(wal(7_999, 0), USUAL));
        // Pages that are already in the file need no copying.
        assert!(!checkpointer.takes(wal(50_000, 49_000), USUAL));
        assert!(checkpointer.takes(wal(8_000, 0), USUAL));
        let whole =
            |left: i64| after(wal(50_000, 0), 50_000).takes(wal(50_000 + left, 50_000), USUAL);
        assert!(whole(2_000) && !whole(1_999));
        assert!(!Checkpointer::new(None).takes(wal(1_000_000, 0), USUAL));
    }

    #[test]
    fn none_is_for_it_with_an_older_version_of_sqlite() {
        let takes = |version| {
            Checkpointer::with_version(Some(MIN), version).takes(wal(1_000_000, 0), USUAL)
        };
        assert!(takes(LEAST_VERSION) && !takes(3_051_002));
    }

    #[test]
    fn commits_that_add_as_much_as_it_copies_wait_for_the_store() {
        let mut checkpointer = after(wal(50_000, 0), 50_000);
        assert!(!checkpointer.takes(wal(75_001, 50_000), USUAL));
        let mut checkpointer = after(wal(50_000, 0), 50_000);
        assert!(checkpointer.takes(wal(75_000, 50_000), USUAL));
        // Here a reader is the reason, not the commits.
        let mut checkpointer = after(wal(50_000, 0), 7_000);
        assert!(checkpointer.takes(wal(90_000, 7_000), USUAL));
    }

    #[test]
    fn it_waits_a_moment_for_a_reader_to_end() {
        let nowhere = Path::new("/nowhere/timers.db");
        let mut checkpointer = after(wal(50_000, 0), 7_000);
        let ended = |checkpointer: &mut Checkpointer, at: Option<Instant>| {
            checkpointer.last.as_mut().unwrap().at = at.unwrap();
        };
        let now = Instant::now();
        // An hour in the future: however long this test is delayed, the pause is not over.
        ended(
            &mut checkpointer,
            now.checked_add(Duration::from_secs(3_600)),
        );
        assert!(checkpointer.begin(nowhere, wal(90_000, 7_000)) && !checkpointer.is_under_way());
        ended(&mut checkpointer, now.checked_sub(PAUSE));
        assert!(checkpointer.begin(nowhere, wal(90_000, 7_000)) && checkpointer.is_under_way());
        // The pass could not begin: the store copies this WAL itself, and the checkpointer takes the next one.
        checkpointer.wait().unwrap();
        assert!(!checkpointer.takes(wal(90_000, 7_000), USUAL));
        assert!(!checkpointer.takes(wal(90_000, 90_000), USUAL));
        assert!(checkpointer.takes(wal(9_000, 0), USUAL));
    }
}
