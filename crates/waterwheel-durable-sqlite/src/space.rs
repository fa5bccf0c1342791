//! Is there space for inserts?
//!
//! | the disk, or the part of it that the file may use | inserts | the rest |
//! |---|---|---|
//! | has space | are written | is written |
//! | is full: a commit has found no space | are [`Full`](waterwheel_durable_core::store::Outcome::Full), until there is space for the reserve and for some more | is written, in the space of deleted rows |
//! | has no space even for that | are `Full` | is written, in the space of the reserve, which is given up |
//! | is used up to seven eighths of a limit of the file or the process (`ulimit -f`) | are `Full`, until a little more is deleted | is written, up to the limit |
//!
//! # The reserve
//!
//! SQLite's WAL needs space to grow, and the file needs space for the WAL to be copied into it, even if rows are only deleted. So a reserve of some MiB lies
//! next to them, and is given up when there is no other space. Its content has no meaning, so it does not matter how much of it a crash leaves.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::ffi::{SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};
use rusqlite::{Connection, ErrorCode};

use super::files::{Files, beside, is_full, wal_of};
use super::options::OpenOptions;

/// The fraction of a limit that is reserved for steps other than inserts, as its denominator.
const KEPT: u64 = 8;

/// A limit that is at most this many pages away counts as reached.
const NEARLY: u64 = 64;

/// The maximum fraction of the disk that the reserve takes, as its denominator: inserts continue only once there is space for all of it and for some more.
const PART_OF_DISK: u64 = 6;

/// Every fourth check of a full disk writes, whatever the file system reports.
const TRIED: u32 = 4;

#[derive(Debug)]
pub(crate) struct Space {
    store: PathBuf,
    files: Files,
    reserve: Reserve,
    /// The minimum and maximum length of the reserve.
    lengths: (u64, u64),
    /// Active while the disk is full; lasts until the disk is checked again.
    full: Backoff,
    /// The limit that the file was opened with.
    own_limit: Option<u64>,
    /// The limit in effect.
    limit: Option<Limit>,
    /// Whether a commit has found no space, and is retried without its inserts.
    takes_no_inserts: bool,
}

/// The maximum size of a file.
#[derive(Debug)]
struct Limit {
    bytes: u64,
    pages: u64,
    page: u64,
    /// Whether inserts have met the limit.
    is_met: bool,
}

impl Space {
    pub(crate) fn of(store: &Path, options: &OpenOptions<'_>) -> Space {
        let files = options.files;
        let (min, max) = options.reserve;
        let part = (files.size)(store).map_or(u64::MAX, |size| size / PART_OF_DISK);
        // The reserve is a quarter longer for a moment while it is written.
        let longest = (files.longest)().map_or(u64::MAX, |longest| longest / 2);
        let max = max.min(power_of_two(part.max(min).min(longest)));
        Space {
            store: store.to_owned(),
            files,
            reserve: Reserve::of(store, files),
            lengths: (min.min(max), max),
            full: Backoff::new(options.full),
            own_limit: options.limit,
            limit: None,
            takes_no_inserts: false,
        }
    }

    /// Limits the file to the size with which it was opened, and to the size that the process may write, so that SQLite itself refuses more. A limit of the
    /// process may be raised while it runs.
    ///
    /// A WAL that cannot be copied, because the file may not grow, would itself grow up to the limit, and then nothing could be written.
    pub(crate) fn follow_limit(&mut self, on: &Connection) -> rusqlite::Result<()> {
        let limits = [self.own_limit, (self.files.longest)()];
        let bytes = limits.into_iter().flatten().min();
        if bytes == self.limit.as_ref().map(|limit| limit.bytes) {
            return Ok(());
        }
        let page = number(on, "PRAGMA page_size")?.max(1);
        let pages = bytes.map_or(u64::MAX, |bytes| (bytes / page).max(1));
        // SQLite sets it to the current number of pages, if that is more.
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

    /// Notes that a commit has found no space, on the disk or within the limit.
    pub(crate) fn found_none(&mut self, on: &Connection) {
        match &mut self.limit {
            // Both may be the case: then the WAL can use the reserve.
            Some(limit) if limit.is_used(on) && !self.reserve.meets_full_disk() => {
                limit.is_met = true;
            }
            _ => self.full.begin(),
        }
    }

    /// Gives the reserve to a full disk. Returns whether there was one that can be used.
    pub(crate) fn give_up(&mut self, on: &Connection) -> bool {
        self.found_none(on);
        self.is_full() && self.reserve.give_up()
    }

    /// Like `give_up`, before there is a connection.
    pub(crate) fn give_up_to_open(&mut self) -> bool {
        self.full.begin();
        self.reserve.give_up()
    }

    /// The number of bytes that inserts may take in the open transaction, or `None` if it is unlimited.
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

    /// Sets whether inserts are refused, whatever room there is.
    pub(crate) fn takes_no_inserts(&mut self, is_so: bool) {
        self.takes_no_inserts = is_so;
    }

    /// Notes whether inserts of a commit were refused: then the limit is met, unless the disk is full.
    pub(crate) fn were_refused(&mut self, were: bool) {
        if let Some(limit) = &mut self.limit
            && !self.full.is_on()
        {
            limit.is_met = were;
        }
    }

    /// Whether an error means that there is no space.
    pub(crate) fn is_none(&self, error: &rusqlite::Error) -> bool {
        if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            return true;
        }
        match error.sqlite_error().map(|error| error.extended_code) {
            // The index of the WAL cannot grow.
            Some(SQLITE_IOERR_SHMSIZE) => true,
            // SQLite has no error for a quota, nor for a file that may not grow.
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

    /// Checks whether a disk that was full has space again, unless it was checked just now.
    pub(crate) fn look_again(&mut self, on_disk: u64) {
        if !self.full.is_on() || self.full.lasts() {
            return;
        }
        let length = self.wanted(on_disk).max(self.reserve.length());
        // As much again as settling needs for long: otherwise inserts would find the disk full at once. The file system may report too little forever, so now
        // and then a write decides.
        let is_tried = self.full.times() % TRIED == TRIED - 1;
        let restored = match is_tried || self.reserve.may_extend(length, length / 4) {
            true => self.reserve.extend(length, length / 4),
            false => Err(io::ErrorKind::StorageFull.into()),
        };
        match restored {
            Err(error) if is_full(&error) => self.full.refuse(),
            // If the reserve cannot be written for another reason, that says nothing about space. The next insert does.
            _ => self.full.end(),
        }
    }

    /// Makes the reserve as long as it should be for files with this many bytes.
    pub(crate) fn maintain(&mut self, on_disk: u64) {
        let wanted = self.wanted(on_disk);
        // The reserve of an older version may be too large for a small disk. A store that makes no reserve leaves it as it is.
        if self.lengths.1 > 0 {
            self.reserve.shorten(self.lengths.1);
        }
        if !self.is_full()
            && self.reserve.length() < wanted
            && let Err(error) = self.reserve.extend(wanted, 0)
            && is_full(&error)
        {
            self.full.begin();
        }
    }

    /// Whether the reserve has its maximum length.
    pub(crate) fn is_whole(&self) -> bool {
        self.lengths.1 == 0 || self.reserve.length() == self.lengths.1
    }

    /// The length that the reserve should have: twice the size of all files, except for large ones, so that the WAL can be copied within it and some is left.
    fn wanted(&self, on_disk: u64) -> u64 {
        let (min, max) = self.lengths;
        let twice = on_disk.saturating_mul(2).min(max);
        twice.next_power_of_two().clamp(min, max)
    }
}

impl Limit {
    /// Whether the file has almost reached its limit: then free space on the disk does not help.
    fn is_used(&self, on: &Connection) -> bool {
        let pages = number(on, "PRAGMA page_count").unwrap_or(0);
        pages + NEARLY >= self.pages
    }

    /// The number of pages that inserts may take. Once they have met the limit, some must be freed: otherwise the service would flap between full and not full.
    fn room(&self, used: u64) -> u64 {
        let kept = self.pages / KEPT;
        let end = self.pages - kept;
        match self.is_met && used > end.saturating_sub(kept / 4) {
            true => 0,
            false => end.saturating_sub(used),
        }
    }
}

/// The largest power of two that is not larger.
fn power_of_two(number: u64) -> u64 {
    number.checked_ilog2().map_or(0, |power| 1 << power)
}

/// The size of the free pages of a file in bytes.
pub(crate) fn free(on: &Connection) -> rusqlite::Result<u64> {
    Ok(number(on, "PRAGMA freelist_count")? * number(on, "PRAGMA page_size")?)
}

fn number(on: &Connection, sql: &str) -> rusqlite::Result<u64> {
    let mut statement = on.prepare_cached(sql)?;
    let number: i64 = statement.query_row([], |row| row.get(0))?;
    Ok(number.unsigned_abs())
}

/// The number of bytes written at a time.
const PIECE: usize = 64 << 10;

/// The file that occupies space, so that there is some when the disk is full.
#[derive(Debug)]
pub(crate) struct Reserve {
    files: Files,
    path: PathBuf,
    length: u64,
}

impl Reserve {
    /// The reserve of this store in its current state.
    pub(crate) fn of(store: &Path, files: Files) -> Reserve {
        let path = beside(store, "-reserve");
        let length = (files.length)(&path).unwrap_or(0);
        Reserve {
            files,
            path,
            length,
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Gives the space of the reserve to the disk. Returns whether there was some.
    pub(crate) fn give_up(&mut self) -> bool {
        let had_some = self.length > 0;
        // A reserve that cannot be removed does not help.
        let is_removed = had_some && (self.files.remove)(&self.path).is_ok();
        if is_removed {
            self.length = 0;
        }
        is_removed
    }

    /// Truncates the reserve to this length, if it is longer.
    pub(crate) fn shorten(&mut self, length: u64) {
        if self.length > length && (self.files.set_length)(&self.path, length).is_ok() {
            self.length = length;
        }
    }

    /// Extends the reserve to this length, if it is shorter, and only if there is space for `beyond` more bytes. Otherwise it stays as it was.
    pub(crate) fn extend(&mut self, length: u64, beyond: u64) -> io::Result<()> {
        let length = length.max(self.length);
        let extended = self.write_up_to(length + beyond);
        if extended.is_ok() && (beyond == 0 || (self.files.set_length)(&self.path, length).is_ok())
        {
            self.length = length;
            return Ok(());
        }
        // At worst, the remaining file is longer than noted. Something else with its name stays as it is.
        if (self.files.length)(&self.path).is_ok() {
            let _: io::Result<()> = match self.length {
                0 => (self.files.remove)(&self.path),
                _ => (self.files.set_length)(&self.path, self.length),
            };
        }
        extended
    }

    /// Whether there may be space to [extend](Reserve::extend) the reserve to this length, and for `beyond` more bytes. Only a write shows whether there is: a
    /// quota is not checked, and a file system may report too little.
    pub(crate) fn may_extend(&self, length: u64, beyond: u64) -> bool {
        let more = length.saturating_sub(self.length) + beyond;
        (self.files.free)(&self.path).is_none_or(|free| more <= free)
    }

    /// Whether a write fails now because a quota is exhausted.
    pub(crate) fn meets_quota(&self) -> bool {
        let is_quota = |error: io::Error| error.kind() == io::ErrorKind::QuotaExceeded;
        self.probe().is_err_and(is_quota)
    }

    /// Whether a write fails now for want of space on the disk.
    pub(crate) fn meets_full_disk(&self) -> bool {
        self.probe().is_err_and(|error| is_full(&error))
    }

    /// Whether no file may become slightly longer than this: because of a limit of the process (`ulimit -f`) or of the file system.
    pub(crate) fn meets_longest(&self, length: u64) -> bool {
        let is_too_long = |error: io::Error| error.kind() == io::ErrorKind::FileTooLarge;
        self.probe_with(|probe| {
            (self.files.append)(probe, &[0])?;
            // The part that is not written takes no space.
            (self.files.set_length)(probe, length + PIECE as u64)
        })
        .is_err_and(is_too_long)
    }

    /// Writes a little to a temporary file.
    fn probe(&self) -> io::Result<()> {
        self.probe_with(|probe| {
            let mut piece = vec![0; PIECE];
            fill(&mut piece, 0);
            (self.files.append)(probe, &piece)?;
            (self.files.sync)(probe)
        })
    }

    fn probe_with(&self, write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
        let probe = beside(&self.path, "-probe");
        let written = write(&probe);
        let _: io::Result<()> = (self.files.remove)(&probe);
        written
    }

    fn write_up_to(&self, end: u64) -> io::Result<()> {
        let mut at = self.length;
        let mut piece = vec![0; PIECE];
        while at < end {
            let left = usize::try_from(end - at).map_or(PIECE, |left| left.min(PIECE));
            fill(&mut piece[..left], at);
            (self.files.append)(&self.path, &piece[..left])?;
            at += left as u64;
        }
        (self.files.sync)(&self.path)
    }
}

/// Fills with bytes that no file system can compress: space saved by compression could not be given up.
fn fill(piece: &mut [u8], at: u64) {
    // xorshift64*, by G. Marsaglia and S. Vigna. Its state is never 0.
    let mut state = at ^ 0x9e37_79b9_7f4a_7c15;
    for eight in piece.chunks_mut(8) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let number = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        eight.copy_from_slice(&number[..eight.len()]);
    }
}

/// The maximum backoff is 16 times as long as the first one.
const MAX_DOUBLED: u32 = 4;

/// Each backoff is twice as long as the previous one: a retry may write until all space is used before it is refused again.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    since: Option<Instant>,
    /// The number of repeated refusals.
    times: u32,
}

impl Backoff {
    /// A backoff that has not begun.
    pub(crate) fn new(first: Duration) -> Backoff {
        Backoff {
            first,
            since: None,
            times: 0,
        }
    }

    /// Whether it has begun and nothing has succeeded since.
    pub(crate) fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// Whether it is too early to try again.
    pub(crate) fn lasts(&self) -> bool {
        let length = self.first.saturating_mul(1 << self.times.min(MAX_DOUBLED));
        self.since.is_some_and(|since| since.elapsed() < length)
    }

    pub(crate) fn times(&self) -> u32 {
        self.times
    }

    /// Begins, because something found no space. If it has already begun, it lasts no longer for that.
    pub(crate) fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Notes that a retry was refused.
    pub(crate) fn refuse(&mut self) {
        self.times += u32::from(self.is_on());
        self.since = Some(Instant::now());
    }

    pub(crate) fn end(&mut self) {
        *self = Backoff::new(self.first);
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind::StorageFull;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    static LOOKS: AtomicU32 = AtomicU32::new(0);

    /// A full disk that is checked again after this time.
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
        // After 10 ms, 20, 40, 80, and then every 160.
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

    #[test]
    fn a_backoff_is_twice_as_long_each_time_up_to_sixteen_times() {
        let mut backoff = Backoff::new(Duration::from_secs(100));
        assert!(!backoff.is_on() && !backoff.lasts());
        for seconds in [100, 200, 400, 800, 1_600, 1_600] {
            backoff.refuse();
            let since = backoff.since;
            // Other refusals do not make it longer.
            backoff.begin();
            assert_eq!(backoff.since, since);
            for (ago, lasts) in [(seconds - 50, true), (seconds, false)] {
                backoff.since = since.unwrap().checked_sub(Duration::from_secs(ago));
                assert_eq!(backoff.lasts(), lasts, "{ago} of {seconds}");
            }
        }
        backoff.end();
        assert!(!backoff.is_on() && backoff.times() == 0);
    }
}
