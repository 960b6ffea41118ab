//! Background work: full memtables become tables, and tables are merged.
//!
//! There are two threads, because a merge may take seconds and a flush must not wait for it. Writers wait for a flush
//! only when [`SEALED_MAX`] memtables are full; they are slowed down when many runs of tables are unmerged, so that
//! reads stay quick.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lsm_tree::AbstractTree;
use lsm_tree::compaction::Leveled;
use parking_lot::{Condvar, Mutex};

use super::slots::SlotId;
use super::{MEMTABLE_BYTES, Shared};
use crate::error::{Error, Kind, Result, sqlstate};

/// Limit of full memtables waiting to be written (count).
const SEALED_MAX: usize = 4;

/// With more unmerged runs of tables (count), each commit waits [`DELAY`] per additional run.
const RUNS_MANY: usize = 16;

const DELAY: Duration = Duration::from_micros(200);

/// Room on the disk, in bytes, without which no merge is tried again after one that failed.
const MERGED_BYTES: u64 = 256 << 20;

/// Delay before failed work is retried.
const PATIENCE: Duration = Duration::from_millis(200);

/// The pending work.
#[derive(Default)]
pub(super) struct Upkeep {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The newest log segment whose memtable is full and must be flushed.
    sealed: Option<u64>,
    merge: bool,
    /// Slots whose tables can be dropped.
    cleared: Vec<SlotId>,
    /// Why the last flush failed.
    failure: Option<String>,
    stop: bool,
}

impl Upkeep {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    /// Announces that the memtable of this log segment is full.
    pub(super) fn flush(&self, segment: u64) {
        self.change(|state| state.sealed = Some(segment));
    }

    /// Announces that there may be something to merge.
    pub(super) fn merge(&self) {
        self.change(|state| state.merge = true);
    }

    /// Announces that no new snapshot reads this slot.
    pub(super) fn clear(&self, slot: SlotId) {
        self.change(|state| {
            state.cleared.push(slot);
            state.merge = true;
        });
    }

    /// Waits until one more memtable may fill up.
    ///
    /// Errors: `Unavailable` while full ones cannot be written.
    pub(super) fn admit(&self, shared: &Shared) -> Result<()> {
        let mut state = self.state.lock();
        while shared.tree.sealed_memtable_count() >= SEALED_MAX {
            if let Some(why) = &state.failure {
                return Err(Error::new(Kind::Unavailable, "no more can be written for now")
                    .why(format!("what was written before cannot be put into tables: {why}"))
                    .hint("free some space on the disk; it is tried again and again")
                    .state(sqlstate::IO));
            }
            self.changed.wait_for(&mut state, PATIENCE);
        }
        Ok(())
    }

    /// Delays the caller if merging lags far behind.
    pub(super) fn pace(&self, shared: &Shared) {
        let too_many = shared.tree.l0_run_count().saturating_sub(RUNS_MANY);
        if too_many > 0 {
            thread::sleep(DELAY * too_many.min(100) as u32);
        }
    }

    /// Waits until `wanted` finds work in the state; `None` when it is time to stop.
    fn wait<T>(&self, mut wanted: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let mut state = self.state.lock();
        while !state.stop {
            if let Some(found) = wanted(&mut state) {
                return Some(found);
            }
            self.changed.wait(&mut state);
        }
        None
    }

    /// Waits before a retry, but not when stopping.
    fn sleep(&self) {
        let mut state = self.state.lock();
        if !state.stop {
            self.changed.wait_for(&mut state, PATIENCE);
        }
    }
}

/// The two threads, stopped when dropped.
pub(super) struct Threads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(super) fn start(shared: &Arc<Shared>) -> Result<Threads> {
        let mut started = Threads { shared: shared.clone(), threads: Vec::new() };
        for (name, work) in [("flush", flush_all as fn(&Shared)), ("merge", merge_all)] {
            let shared = shared.clone();
            let thread = thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared))?;
            started.threads.push(thread);
        }
        Ok(started)
    }
}

impl Threads {
    pub(super) fn stop(&mut self) {
        self.shared.upkeep.change(|state| state.stop = true);
        for thread in self.threads.drain(..) {
            // If one panicked, the log still has everything.
            let _ = thread.join();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs `work`, turning a panic into an error: writers wait for these threads, and would wait forever for a dead one.
fn surviving(work: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::internal("the LSM tree gave up on its tables")))
}

fn flush_all(shared: &Shared) {
    let upkeep = &shared.upkeep;
    while let Some(segment) = upkeep.wait(|state| state.sealed) {
        let failure = surviving(|| flush(shared, segment)).err().map(|e| e.to_string());
        let failed = failure.is_some();
        upkeep.change(|state| {
            if !failed && state.sealed == Some(segment) {
                state.sealed = None;
            }
            state.merge |= !failed;
            state.failure = failure;
        });
        if failed {
            upkeep.sleep();
            // A table that is not finished stays on the disk until the next open, so only one may fail so.
            let bytes = shared.tree.sealed_memtable_count() as u64 * MEMTABLE_BYTES;
            while !shared.directory.has_room(bytes) && !upkeep.state.lock().stop {
                upkeep.sleep();
            }
        }
    }
}

/// Writes all full memtables, then removes the log up to `segment`.
pub(super) fn flush(shared: &Shared, segment: u64) -> Result<()> {
    shared.trust.check()?;
    {
        let lock = shared.tree.get_flush_lock();
        shared.tree.flush(&lock, shared.views.oldest()).map_err(|e| shared.distrust(e))?;
    }
    shared.mark.forget(segment)?;
    shared.refresh();
    Ok(())
}

fn merge_all(shared: &Shared) {
    let upkeep = &shared.upkeep;
    let mut cleared = Vec::new();
    let mut has_failed = false;
    while let Some(more) =
        upkeep.wait(|state| std::mem::take(&mut state.merge).then(|| std::mem::take(&mut state.cleared)))
    {
        cleared.extend(more);
        // Errors are ignored: whoever reads the damaged table gets them. A merge is retried after the next flush.
        if !shared.trust.is_lost() {
            let _ = surviving(|| drop_cleared(shared, &mut cleared));
            // Of a merge that fails, finished tables stay on the disk until the next open.
            if !has_failed || shared.directory.has_room(MERGED_BYTES) {
                has_failed = surviving(|| merge(shared)).is_err();
            }
        }
        shared.refresh();
        forget_old(shared);
        upkeep.changed.notify_all();
    }
    cleared.append(&mut upkeep.state.lock().cleared);
    if !shared.trust.is_lost() {
        // What fails goes with a later merge of the same keys.
        let _ = surviving(|| drop_cleared(shared, &mut cleared));
    }
}

/// Drops the tables that hold nothing but entries of cleared slots.
fn drop_cleared(shared: &Shared, cleared: &mut Vec<SlotId>) -> Result<()> {
    while let Some(slot) = cleared.last() {
        let dropped = shared.tree.drop_range(slot.to_be_bytes()..(slot + 1).to_be_bytes());
        dropped.map_err(|e| shared.distrust(e))?;
        cleared.pop();
    }
    Ok(())
}

fn merge(shared: &Shared) -> Result<()> {
    let strategy = Arc::new(Leveled::default());
    loop {
        let before = shared.tree.current_version().id();
        let merged = shared.tree.compact(strategy.clone(), shared.views.oldest());
        merged.map_err(|e| shared.distrust(e))?;
        if shared.tree.current_version().id() == before || shared.upkeep.state.lock().stop {
            return Ok(());
        }
    }
}

/// Lets go of the lists of tables that no snapshot reads any more, and so of tables that are in none of the others.
fn forget_old(shared: &Shared) {
    let folder = shared.directory.lsm_folder().join("tree");
    let mut lists = shared.tree.get_version_history_lock();
    // A list that cannot be removed is tried again the next time.
    let _ = lists.maintenance(&folder, shared.views.oldest());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_what_the_work_failed_by() {
        assert!(surviving(|| Ok(())).is_ok());
        assert_eq!(surviving(|| panic!("poisoned")).map_err(|e| e.kind()), Err(Kind::Internal));
    }
}
