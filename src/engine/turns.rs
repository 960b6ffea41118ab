//! Admission of writers: who may write to the store, and when.
//!
//! The store admits one writer at a time, and waiting for it inside the store cannot be cancelled. That is
//! harmless behind a commit, which takes milliseconds; but a bulk load or a large UPDATE holds the store for
//! as long as it lasts, and so does a commit that clears a keyspace, because it visits every page. So every
//! writer waits here first, where it can be cancelled: ordinary commits are admitted side by side, long ones
//! alone.
//!
//! Priority prevents starvation. A transaction that loses a conflict starts again, and a long one among many
//! short ones might lose forever. So after a few defeats it takes priority: ordinary commits of others wait
//! until it is done. Priority is a courtesy, not a lock: nobody waits longer than [`PATIENCE`], and correctness
//! does not depend on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::{Error, Kind, Result};
use crate::exec::watch::CancelHandle;
use crate::store::{Mutation, WriteBatch};

/// How long other writers wait for one that has priority.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a transaction that lost a conflict is retried (count).
const RETRIES: usize = 100;

/// Retries (count) after which it takes priority.
const RETRIES_SHARED: usize = 3;

/// Interval at which a waiting writer checks for cancellation.
const LOOK: Duration = Duration::from_millis(10);

/// The state of all writers of a database.
#[derive(Default)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Writers (count) that have priority; two if the first one took longer than others wait.
    priorities: usize,
    /// A load is running or about to start.
    loading: bool,
    /// Admitted commits that are not done (count).
    commits: usize,
    /// Writers that wait (count).
    waiting: usize,
}

/// The conflicts that a transaction has lost.
#[derive(Default)]
pub struct Defeats {
    lost: usize,
    priority: Option<Priority>,
}

impl Defeats {
    /// Counts a lost conflict, and takes priority when there were a few: the transaction may run again. Errors:
    /// `error` is no conflict, or there were too many; `Cancelled`.
    pub fn again(&mut self, error: Error, turns: &Arc<Turns>, cancel: &CancelHandle) -> Result<()> {
        if error.kind() != Kind::Conflict || self.lost == RETRIES {
            return Err(error);
        }
        self.lost += 1;
        if self.lost == RETRIES_SHARED {
            self.priority = Some(turns.take_priority(cancel)?);
        }
        Ok(())
    }

    /// Held from the time that it was taken.
    pub fn priority(&self) -> Option<&Priority> {
        self.priority.as_ref()
    }

    /// Lets others write again: the transaction is committed.
    pub fn yield_priority(&mut self) {
        self.priority = None;
    }
}

/// Precedence over the ordinary commits of others, until dropped.
pub struct Priority(Arc<Turns>);

/// Permission to commit beside others, until dropped.
pub struct SharedPermit<'t>(&'t Turns);

/// Permission to load, until dropped.
pub struct ExclusivePermit<'t>(&'t Turns);

/// Permission to commit a batch, until dropped.
pub enum Permit<'t> {
    /// Beside other commits.
    Shared(#[expect(dead_code, reason = "held to be dropped")] SharedPermit<'t>),
    /// With no other writer.
    Exclusive(#[expect(dead_code, reason = "held to be dropped")] ExclusivePermit<'t>),
}

impl Turns {
    /// Takes priority once nobody else has it, or after [`PATIENCE`]. Errors: `Cancelled`.
    pub fn take_priority(self: &Arc<Self>, cancel: &CancelHandle) -> Result<Priority> {
        self.wait(cancel, PATIENCE, |state| state.priorities == 0)?.priorities += 1;
        Ok(Priority(Arc::clone(self)))
    }

    /// Admits a commit after those that have priority and after a load. Errors: `Cancelled`.
    pub fn pass(&self, cancel: &CancelHandle, own: Option<&Priority>) -> Result<SharedPermit<'_>> {
        if own.is_none() {
            drop(self.wait(cancel, PATIENCE, |state| state.priorities == 0)?);
        }
        self.wait(cancel, Duration::MAX, |state| !state.loading)?.commits += 1;
        Ok(SharedPermit(self))
    }

    /// Admits a commit, unless it would have to wait.
    pub fn pass_at_once(&self) -> Option<SharedPermit<'_>> {
        let mut state = self.state.lock();
        let is_free = state.priorities == 0 && !state.loading;
        state.commits += usize::from(is_free);
        is_free.then(|| SharedPermit(self))
    }

    /// Admits the commit of a batch: alone if it clears a keyspace, else beside others. Errors: `Cancelled`.
    pub fn commit(
        &self,
        batch: &WriteBatch,
        cancel: &CancelHandle,
        own: Option<&Priority>,
    ) -> Result<Permit<'_>> {
        let takes_long = batch.mutations.iter().any(|mutation| matches!(mutation, Mutation::Clear(_)));
        match takes_long {
            true => self.load(cancel).map(Permit::Exclusive),
            false => self.pass(cancel, own).map(Permit::Shared),
        }
    }

    /// Admits a load after another load and the commits under way; new commits wait from now on. Errors:
    /// `Cancelled`.
    pub fn load(&self, cancel: &CancelHandle) -> Result<ExclusivePermit<'_>> {
        self.wait(cancel, Duration::MAX, |state| !state.loading)?.loading = true;
        let load = ExclusivePermit(self);
        drop(self.wait(cancel, Duration::MAX, |state| state.commits == 0)?);
        Ok(load)
    }

    fn wait(
        &self,
        cancel: &CancelHandle,
        patience: Duration,
        is_over: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        let began = Instant::now();
        while !is_over(&state) && began.elapsed() < patience {
            cancel.check()?;
            state.waiting += 1;
            self.changed.wait_for(&mut state, LOOK);
            state.waiting -= 1;
        }
        Ok(state)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        // Notifying costs a system call, so only do so if a writer waits.
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        self.0.change(|state| state.priorities -= 1);
    }
}

impl Drop for SharedPermit<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.commits -= 1);
    }
}

impl Drop for ExclusivePermit<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.loading = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn others_wait_for_the_one_with_priority() {
        let turns = Arc::new(Turns::default());
        let cancel = CancelHandle::default();
        drop(turns.pass(&cancel, None).unwrap());
        let priority = turns.take_priority(&cancel).unwrap();
        let (sender, order) = channel();
        thread::scope(|scope| {
            let (turns, other, cancel) = (&turns, sender.clone(), &cancel);
            scope.spawn(move || {
                let _pass = turns.pass(cancel, None).unwrap();
                other.send("the other").unwrap();
            });
            thread::sleep(Duration::from_millis(50));
            drop(turns.pass(cancel, Some(&priority)).unwrap());
            sender.send("the first").unwrap();
            drop(priority);
        });
        assert_eq!(order.try_iter().collect::<Vec<_>>(), ["the first", "the other"]);
    }

    #[test]
    fn a_load_is_alone_and_who_waits_for_it_can_be_stopped() {
        let turns = Arc::new(Turns::default());
        let (nobody, soon) = (CancelHandle::default(), CancelHandle::default());
        let pass = turns.pass(&nobody, None).unwrap();
        let (sender, order) = channel();
        thread::scope(|scope| {
            let (turns, nobody, loading) = (&turns, &nobody, sender.clone());
            scope.spawn(move || {
                let _load = turns.load(nobody).unwrap();
                loading.send("load").unwrap();
                thread::sleep(Duration::from_millis(100));
                loading.send("loaded").unwrap();
            });
            thread::sleep(Duration::from_millis(50));
            soon.start(Some(Duration::from_millis(20)));
            let refused = turns.pass(&soon, None).err().map(|e| e.kind());
            assert_eq!(refused, Some(Kind::Cancelled), "a load that waits comes before later commits");
            sender.send("commit").unwrap();
            drop(pass);
            drop(turns.pass(nobody, None).unwrap());
            sender.send("another commit").unwrap();
        });
        let expected = ["commit", "load", "loaded", "another commit"];
        assert_eq!(order.try_iter().collect::<Vec<_>>(), expected);
        // A load that gives up while commits are under way lets others pass.
        let pass = turns.pass(&nobody, None).unwrap();
        soon.start(Some(Duration::from_millis(20)));
        assert!(turns.load(&soon).is_err());
        drop(pass);
        drop(turns.pass(&nobody, None).unwrap());
    }
}
