//! What goes on behind the commits: full memtables become tables, tables are merged.
//!
//! Two threads, since a merge may take seconds and a flush should not wait for it. Writers wait for a flush only when
//! [`SEALED_MAX`] memtables are full, and a little each when many runs of tables are unmerged, so that reads stay quick.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lsm_tree::AbstractTree;
use lsm_tree::compaction::Leveled;
use parking_lot::{Condvar, Mutex};

use super::Shared;
use super::slots::SlotId;
use crate::error::{Error, Kind, Result, sqlstate};

/// Full memtables that may wait to be written (count).
const SEALED_MAX: usize = 4;

/// Unmerged runs of tables (count) from which on a commit waits, [`DELAY`] for each one more.
const RUNS_MANY: usize = 16;

const DELAY: Duration = Duration::from_micros(200);

/// How long until what failed is tried again.
const PATIENCE: Duration = Duration::from_millis(200);

/// What is to be done.
#[derive(Default)]
pub(super) struct Upkeep {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Memtables up to this segment of the log are full.
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

    /// The memtable of this segment is full.
    pub(super) fn flush(&self, segment: u64) {
        self.change(|state| state.sealed = Some(segment));
    }

    /// There is something to merge.
    pub(super) fn merge(&self) {
        self.change(|state| state.merge = true);
    }

    /// Nobody will read this slot any more.
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

    /// Waits a moment if merging lags far behind.
    pub(super) fn pace(&self, shared: &Shared) {
        let too_many = shared.tree.l0_run_count().saturating_sub(RUNS_MANY);
        if too_many > 0 {
            thread::sleep(DELAY * too_many.min(100) as u32);
        }
    }

    /// Waits for what `wanted` takes out of the state; `None` when it is time to stop.
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

    /// Waits, but no longer than needed to stop.
    fn sleep(&self) {
        let mut state = self.state.lock();
        if !state.stop {
            self.changed.wait_for(&mut state, PATIENCE);
        }
    }
}

/// The threads at work, until dropped.
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
            // One that panicked has left the log as it was, which is what counts.
            let _ = thread.join();
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The work, of which a panic is an error: writers wait for these threads, and would wait for good.
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
        }
    }
}

/// Writes all full memtables, then forgets the log up to `segment`.
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
    while let Some(cleared) =
        upkeep.wait(|state| std::mem::take(&mut state.merge).then(|| std::mem::take(&mut state.cleared)))
    {
        // What is wrong with a table is told to whoever reads it. A merge is tried again after the next flush.
        if !shared.trust.is_lost() {
            let _ = surviving(|| merge(shared, &cleared).map_err(|e| shared.distrust(e)));
        }
        shared.refresh();
        upkeep.changed.notify_all();
    }
}

fn merge(shared: &Shared, cleared: &[SlotId]) -> lsm_tree::Result<()> {
    for slot in cleared {
        shared.tree.drop_range(slot.to_be_bytes()..(slot + 1).to_be_bytes())?;
    }
    let strategy = Arc::new(Leveled::default());
    loop {
        let before = shared.tree.current_version().id();
        shared.tree.compact(strategy.clone(), shared.views.oldest())?;
        if shared.tree.current_version().id() == before || shared.upkeep.state.lock().stop {
            return Ok(());
        }
    }
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
