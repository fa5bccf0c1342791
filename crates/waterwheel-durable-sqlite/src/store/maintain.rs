//! What does a store do after a commit, and while nothing is done? It copies its WAL, maintains its reserve, sorts its keys, and gives free pages back.

use waterwheel_durable_core::store::StoreError;

use super::SqliteStore;
use crate::error::{no_space, rolled_back};
use crate::space;
use crate::wal::Length;

/// On a full disk, the WAL is copied when it has so many pages: it does not use up the last space.
const SHORT_WAL: i64 = 64;

/// How many bytes a page has in the WAL, about.
pub(super) const FRAME: u64 = 4_120;

impl SqliteStore {
    /// As the [contract](waterwheel_durable_core::store::Store::maintain) says.
    pub(super) fn maintain_now(&mut self) -> Result<(), StoreError> {
        self.has_not_failed()?;
        let there = self.is_there();
        self.note(there)?;
        let is_idle = std::mem::replace(&mut self.is_idle, true);
        let copied = self.checkpoint_in_space();
        let has_copied = self.note(copied)?;
        self.look_for_space();
        let kept = self.maintain_reserve().map_err(rolled_back);
        self.note(kept)?;
        if std::mem::take(&mut self.was_refused) {
            // There may be no space for a longer WAL.
            return Ok(());
        }
        // Not beside a copy of the WAL, which takes as long: no commit is to wait for both. But at the next time.
        let waits = has_copied && !is_idle && !self.keys_are_next;
        self.keys_are_next = waits;
        if !waits {
            let ordered = self.order_keys(is_idle);
            self.note(ordered)?;
        }
        // Not after each commit: it is a part of what is written anyway. On a full disk, free pages are of use to what is still written.
        if self.gives_back && (has_copied || is_idle) && !self.space.is_full() {
            let given_back = self.give_back(is_idle);
            self.note(given_back)?;
        }
        Ok(())
    }

    /// Copies a long WAL into the file, and one that could not become longer: the next commit begins it again, in the space that it has. Says whether it has. One
    /// that is far longer is left to a thread of its own.
    fn checkpoint(&mut self) -> rusqlite::Result<bool> {
        let is_full = self.space.is_full();
        // What cannot wait for space, can for this.
        self.poll_checkpointer(is_full)?;
        if self.checkpointer.is_under_way() {
            return Ok(false);
        }
        let wal = self.wal()?;
        if !is_full && self.checkpointer.takes(wal, self.long_wal) {
            self.acknowledged.copies(wal);
            if self.checkpointer.begin(&self.path, wal) {
                return Ok(false);
            }
        }
        let long_wal = match is_full {
            true => self.long_wal.min(SHORT_WAL),
            false => self.long_wal,
        };
        let is_long = self.was_refused || wal.all >= long_wal;
        if is_long {
            self.copy_wal()?;
        }
        Ok(is_long)
    }

    /// Copies the WAL, as far as no reader keeps it from that.
    pub(super) fn copy_wal(&mut self) -> rusqlite::Result<()> {
        let wal = self.wal()?;
        if wal.left() > 0 {
            self.acknowledged.copies(wal);
        }
        let copied = Length::by(&self.connection, "PRAGMA wal_checkpoint(PASSIVE)");
        if let Ok(wal) = &copied {
            self.acknowledged.has_copied(*wal, false);
        }
        copied.map(drop)
    }

    /// Notes the end of a copy on another thread, if it has ended, or waits for it.
    pub(super) fn poll_checkpointer(&mut self, waits: bool) -> rusqlite::Result<()> {
        let is_under_way = self.checkpointer.is_under_way();
        let copied = match waits {
            true => self.checkpointer.wait(),
            false => self.checkpointer.poll(),
        };
        if is_under_way
            && !self.checkpointer.is_under_way()
            && let Ok(Some(wal)) = &copied
        {
            self.acknowledged.has_copied(*wal, true);
        }
        copied.map(drop)
    }

    /// The same, in the space of the reserve if there is no other.
    pub(super) fn checkpoint_in_space(&mut self) -> Result<bool, StoreError> {
        let mut copied = self.checkpoint();
        if let Err(error) = &copied
            && self.space.is_none(error)
        {
            self.was_refused = true;
            if !self.space.give_up(&self.connection) {
                return copied.map_err(|error| no_space(&error));
            }
            copied = self.checkpoint();
        }
        copied.map_err(|error| self.in_a_step(error).error)
    }

    pub(super) fn look_for_space(&mut self) {
        if self.space.is_full() {
            let on_disk = self.on_disk();
            self.space.look_again(on_disk.unwrap_or(u64::MAX));
        }
    }

    pub(super) fn maintain_reserve(&mut self) -> rusqlite::Result<()> {
        if !self.space.is_whole() {
            let on_disk = self.on_disk()?;
            self.space.maintain(on_disk);
        }
        Ok(())
    }

    /// How many bytes the file and its WAL have.
    fn on_disk(&self) -> rusqlite::Result<u64> {
        let file = (self.files.length)(&self.path).unwrap_or(0);
        let frames = self.wal_length()?.max(0).unsigned_abs();
        Ok(file + frames * FRAME)
    }

    /// Does a part of what the index of the keys has left to be done. If that is refused, it waits: with each commit it would fill the WAL again.
    fn order_keys(&mut self, is_idle: bool) -> Result<(), StoreError> {
        if self.keys_wait.lasts() {
            return Ok(());
        }
        let ordered = self.order_keys_now(is_idle);
        match &ordered {
            Ok(()) => self.keys_wait.end(),
            Err(_) => self.keys_wait.refuse(),
        }
        ordered
    }

    /// On a full disk, no runs are merged: what space is left is for what cannot wait. What is in memory becomes a run as soon as there are free pages for it. If
    /// it made the file longer, the WAL could not be copied after that, and nothing more would be settled once the WAL is full.
    fn order_keys_now(&mut self, is_idle: bool) -> Result<(), StoreError> {
        let is_full = self.space.is_full();
        let may_write = || match is_full {
            true => Ok(space::free(&self.connection)? > 2 * self.keys.fresh_bytes()),
            false => Ok(true),
        };
        if self.keys.is_much_fresh() && may_write().map_err(rolled_back)? {
            self.transact(|store| store.keys.write_fresh(&store.connection))?;
        }
        match !is_full && self.keys.is_to_merge(is_idle) {
            true => self.transact(|store| store.keys.merge(&store.connection)),
            false => Ok(()),
        }
    }

    /// Gives a part of the free pages back.
    fn give_back(&mut self, is_idle: bool) -> Result<(), StoreError> {
        let is_due = self.vacuum.is_due(&self.connection, self.is_giving_back);
        self.is_giving_back = is_due.map_err(rolled_back)?;
        match self.is_giving_back {
            true => self.transact(|store| store.vacuum.step(&store.connection, is_idle)),
            false => Ok(()),
        }
    }
}
