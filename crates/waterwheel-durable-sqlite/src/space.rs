//! Is there space for inserts?
//!
//! | the disk, or what the file may have of it | inserts | the rest |
//! |---|---|---|
//! | has space | are written | is written |
//! | is full: a commit has found no space | are [`Full`](waterwheel_durable_core::store::Outcome::Full), until there is space for the reserve and for some more | is written, where rows that have gone have left space |
//! | and even that has found none | the same | is written, in the space of the reserve, which is given up |
//! | is used but for an eighth, of a file with a limit, its own or one of the process (`ulimit -f`) | are `Full`, until a little more has gone | is written, up to the limit |

use rusqlite::ffi::{SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};
use rusqlite::{Connection, ErrorCode};
use std::io;
use std::path::{Path, PathBuf};

use super::open_options::{Files, OpenOptions};
use super::pause::Pause;
use super::reserve::{self, Reserve};
use super::store::wal_of;

/// Of a limit, one such part is kept for other steps than inserts.
const KEPT: u64 = 8;

/// So many pages are not looked at one by one.
const NEARLY: u64 = 64;

/// The reserve takes no more than one such part of its disk: inserts go on only once there is space for all of it and for some more.
const PART_OF_DISK: u64 = 6;

/// Each fourth look at a full disk writes, whatever the file system says.
const TRIED: u32 = 4;

#[derive(Debug)]
pub(crate) struct Space {
    store: PathBuf,
    files: Files,
    reserve: Reserve,
    /// How long the reserve is, at least and at most.
    lengths: (u64, u64),
    /// It is on while the disk is full, and lasts until the disk is looked at again.
    full: Pause,
    /// The limit that the file was opened with.
    own_limit: Option<u64>,
    /// The one that holds.
    limit: Option<Limit>,
    /// A commit has found no space, and is tried again without its inserts.
    takes_no_inserts: bool,
}

/// How large a file may become, in pages.
#[derive(Debug)]
struct Limit {
    bytes: u64,
    pages: u64,
    page: u64,
    /// Inserts have met it.
    is_met: bool,
}

impl Space {
    pub(crate) fn of(store: &Path, options: &OpenOptions<'_>) -> Space {
        let files = options.files;
        let (min, max) = options.reserve;
        let part = (files.size)(store).map_or(u64::MAX, |size| size / PART_OF_DISK);
        // It is written a quarter longer for a moment.
        let longest = (files.longest)().map_or(u64::MAX, |longest| longest / 2);
        let max = max.min(power_of_two(part.max(min).min(longest)));
        Space {
            store: store.to_owned(),
            files,
            reserve: Reserve::of(store, files),
            lengths: (min.min(max), max),
            full: Pause::new(options.full),
            own_limit: options.limit,
            limit: None,
            takes_no_inserts: false,
        }
    }

    /// Lets the file have as many bytes at most as it was opened with, and as the process may write: SQLite itself refuses more. A limit of the process may be
    /// raised while it runs.
    ///
    /// A WAL that cannot be copied, because the file may become no longer, would grow up to the limit itself, and then nothing could be written.
    pub(crate) fn follow_limit(&mut self, on: &Connection) -> rusqlite::Result<()> {
        let limits = [self.own_limit, (self.files.longest)()];
        let bytes = limits.into_iter().flatten().min();
        if bytes == self.limit.as_ref().map(|limit| limit.bytes) {
            return Ok(());
        }
        let page = number(on, "PRAGMA page_size")?.max(1);
        let pages = bytes.map_or(u64::MAX, |bytes| (bytes / page).max(1));
        // It is the number of pages that there are, if these are more.
        let max = u64::from(u32::MAX - 1).min(pages);
        number(on, &format!("PRAGMA max_page_count = {max}"))?;
        self.limit = bytes.map(|bytes| Limit {
            bytes,
            pages,
            page,
            is_met: false,
        });
        Ok(())
    }

    /// Whether the disk is full.
    pub(crate) fn is_full(&self) -> bool {
        self.full.is_on()
    }

    /// A commit has found no space: on the disk, or within the limit.
    pub(crate) fn found_none(&mut self, on: &Connection) {
        match &mut self.limit {
            // Both may be: then the reserve is of use, for the WAL.
            Some(limit) if limit.is_used(on) && !self.reserve.meets_full_disk() => {
                limit.is_met = true;
            }
            _ => self.full.begin(),
        }
    }

    /// The disk is full: gives the reserve to it. Returns whether there was one, and it is of use.
    pub(crate) fn give_up(&mut self, on: &Connection) -> bool {
        self.found_none(on);
        self.is_full() && self.reserve.give_up()
    }

    /// The same, before there is a connection.
    pub(crate) fn give_up_to_open(&mut self) -> bool {
        self.full.begin();
        self.reserve.give_up()
    }

    /// How many bytes inserts may have in the transaction that is open. `None` is any number.
    pub(crate) fn room(&mut self, on: &Connection) -> rusqlite::Result<Option<u64>> {
        self.follow_limit(on)?;
        let Some(limit) = &self.limit else {
            return Ok(self.is_full().then_some(0));
        };
        if self.is_full() || self.takes_no_inserts {
            return Ok(Some(0));
        }
        let free = number(on, "PRAGMA freelist_count")?;
        let used = number(on, "PRAGMA page_count")?.saturating_sub(free);
        Ok(Some(limit.room(used) * limit.page))
    }

    /// Whether inserts are refused, whatever room there is.
    pub(crate) fn takes_no_inserts(&mut self, is_so: bool) {
        self.takes_no_inserts = is_so;
    }

    /// Whether inserts of a commit were refused: then the limit is met, unless the disk is full.
    pub(crate) fn were_refused(&mut self, were: bool) {
        if let Some(limit) = &mut self.limit
            && !self.full.is_on()
        {
            limit.is_met = were;
        }
    }

    /// Whether an error says that there is no space.
    pub(crate) fn is_none(&self, error: &rusqlite::Error) -> bool {
        if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            return true;
        }
        match error.sqlite_error().map(|error| error.extended_code) {
            // The index of the WAL cannot become longer.
            Some(SQLITE_IOERR_SHMSIZE) => true,
            // SQLite has no word for a quota, nor for a file that may become no longer.
            Some(SQLITE_IOERR_WRITE) => self.reserve.meets_quota() || self.meets_longest(),
            _ => false,
        }
    }

    fn meets_longest(&self) -> bool {
        let length = |file: &Path| (self.files.length)(file).unwrap_or(0);
        let longer = length(&self.store).max(length(&wal_of(&self.store)));
        self.reserve.meets_longest(longer)
    }

    /// Whether a file that could not be opened has met a full disk.
    pub(crate) fn is_full_to_open(&self) -> bool {
        self.reserve.meets_full_disk()
    }

    /// Looks whether a disk that was full has space again, if it was not done just now.
    pub(crate) fn look_again(&mut self, on_disk: u64) {
        if !self.full.is_on() || self.full.lasts() {
            return;
        }
        let length = self.wanted(on_disk).max(self.reserve.length());
        // As much again as settling needs for long: else inserts would find it full at once.
        // What the file system says may be too little, for ever: so the write decides now and then.
        let is_tried = self.full.times() % TRIED == TRIED - 1;
        let restored = match is_tried || self.reserve.may_extend(length, length / 4) {
            true => self.reserve.extend(length, length / 4),
            false => Err(io::ErrorKind::StorageFull.into()),
        };
        match restored {
            Err(error) if reserve::is_full(&error) => self.full.refuse(),
            // One that cannot be written for another reason says nothing about space. The next insert does.
            _ => self.full.end(),
        }
    }

    /// Makes the reserve as long as it is to be beside files of so many bytes.
    pub(crate) fn maintain(&mut self, on_disk: u64) {
        let wanted = self.wanted(on_disk);
        // One of an older version has taken too much of a small disk. A store that makes none leaves it as it is.
        if self.lengths.1 > 0 {
            self.reserve.shorten(self.lengths.1);
        }
        if !self.is_full()
            && self.reserve.length() < wanted
            && let Err(error) = self.reserve.extend(wanted, 0)
            && reserve::is_full(&error)
        {
            self.full.begin();
        }
    }

    /// Whether the reserve is as long as it ever is.
    pub(crate) fn is_whole(&self) -> bool {
        self.lengths.1 == 0 || self.reserve.length() == self.lengths.1
    }

    /// The WAL can be copied into the file in the space of the reserve, and some is left: it is as long as all of it twice, but for large files.
    fn wanted(&self, on_disk: u64) -> u64 {
        let (min, max) = self.lengths;
        let twice = on_disk.saturating_mul(2).min(max);
        twice.next_power_of_two().clamp(min, max)
    }
}

impl Limit {
    /// Whether the file is as long as it may be, or nearly: then no space of the disk is of use.
    fn is_used(&self, on: &Connection) -> bool {
        let pages = number(on, "PRAGMA page_count").unwrap_or(0);
        pages + NEARLY >= self.pages
    }

    /// How many pages inserts may take. Once they have met the limit, some must have gone: else the service would say "full" and "no longer full" all the time.
    fn room(&self, used: u64) -> u64 {
        let kept = self.pages / KEPT;
        let end = self.pages - kept;
        match self.is_met && used > end.saturating_sub(kept / 4) {
            true => 0,
            false => end.saturating_sub(used),
        }
    }
}

/// The largest power of two that is no larger.
fn power_of_two(number: u64) -> u64 {
    number.checked_ilog2().map_or(0, |power| 1 << power)
}

/// How many bytes the free pages of a file have.
pub(crate) fn free(on: &Connection) -> rusqlite::Result<u64> {
    Ok(number(on, "PRAGMA freelist_count")? * number(on, "PRAGMA page_size")?)
}

fn number(on: &Connection, sql: &str) -> rusqlite::Result<u64> {
    let mut statement = on.prepare_cached(sql)?;
    let number: i64 = statement.query_row([], |row| row.get(0))?;
    Ok(number.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind::StorageFull;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::open_options::Files;

    static LOOKS: AtomicU32 = AtomicU32::new(0);

    /// A full disk, which is looked at after so long.
    fn full(pause: Duration, append: fn(&Path, &[u8]) -> io::Result<()>) -> Space {
        let files = Files {
            append,
            sync: |_| Ok(()),
            set_length: |_, _| Ok(()),
            ..OpenOptions::DEFAULT.files
        };
        let options = OpenOptions {
            files,
            full: pause,
            ..OpenOptions::DEFAULT
        };
        let mut space = Space::of(Path::new("/nowhere/timers.db"), &options);
        space.give_up_to_open();
        space
    }

    #[test]
    fn a_disk_that_stays_full_is_looked_at_less_and_less() {
        let append = |_: &Path, _: &[u8]| {
            LOOKS.fetch_add(1, Ordering::Relaxed);
            Err(StorageFull.into())
        };
        let mut space = full(Duration::from_millis(10), append);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(640) {
            space.look_again(0);
            std::thread::sleep(Duration::from_millis(1));
        }
        space.look_again(0);
        // After 10 ms, 20, 40, 80, and then each 160.
        let looks = LOOKS.load(Ordering::Relaxed);
        assert!((1..=8).contains(&looks), "{looks} looks");
        assert!(space.is_full());
    }

    #[test]
    fn what_finds_no_space_again_and_again_puts_no_look_off() {
        let pause = Duration::from_millis(100);
        let mut space = full(pause, |_, _| Ok(()));
        let connection = Connection::open_in_memory().unwrap();
        let begun = Instant::now();
        while space.is_full() {
            assert!(begun.elapsed().as_secs() < 60, "it was never looked at");
            space.found_none(&connection);
            space.look_again(0);
        }
        assert!(begun.elapsed() >= pause);
    }
}
