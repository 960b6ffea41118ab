//! Background threads: one finishes interrupted builds, one purges expired rows.
//!
//! An index build or REKEY that was under way when the database was closed is resumed in steps, as [`build`]
//! and [`rekey`] always work: other writers get in between the steps, and no query reads what is not ready.
//! Closing the database stops the thread; the next open continues after the last step. The purge thread
//! starts once there is a table whose rows expire.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use super::runtime::STACK_BYTES;
use super::{Database, build, expiry, rekey};
use crate::exec::watch::{CancelHandle, Watch};

/// The threads. They are joined when the last user drops the database, for they hold the store open.
#[derive(Default)]
pub struct Background {
    cancel: CancelHandle,
    builds: Mutex<Option<JoinHandle<()>>>,
    /// The thread, and a sender that wakes it from its wait when dropped.
    purges: Mutex<Option<(JoinHandle<()>, Sender<()>)>>,
}

impl Background {
    /// Resumes interrupted builds, if there are any. If no thread can be started, the indexes stay as they
    /// are: no query reads them, and REPAIR INDEX builds them.
    pub fn build(&self, db: &Database) {
        let catalog = db.catalog();
        if catalog.building().next().is_none() && catalog.rekeyed().next().is_none() {
            return;
        }
        let (db, watch) = (detached(db), Watch { cancel: self.cancel.clone(), ..Watch::default() });
        *self.builds.lock() = spawn("rowkeydb-build", move || resume(&db, &watch));
    }

    /// Starts to purge expired rows, if a table has a `ttl`. If no thread can be started, the rows stay until
    /// PURGE is run.
    pub fn purge(&self, db: &Database) {
        let mut purges = self.purges.lock();
        if purges.is_some() || !db.catalog().tables().any(|table| table.ttl_us.is_some()) {
            return;
        }
        let (stop, stopped) = mpsc::channel();
        let (db, cancel) = (detached(db), self.cancel.clone());
        let thread = spawn("rowkeydb-purge", move || expiry::purge_now_and_then(&db, cancel, &stopped));
        *purges = thread.map(|thread| (thread, stop));
    }
}

/// A handle for a background thread, which must not keep the `Background` alive: dropping that joins it.
fn detached(db: &Database) -> Database {
    Database { shared: Arc::clone(&db.shared), background: Arc::default() }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(work).ok()
}

impl Drop for Background {
    fn drop(&mut self) {
        self.cancel.cancel();
        // Unfinished work resumes at the next open, also after a panic.
        let _ = self.builds.get_mut().take().map(JoinHandle::join);
        if let Some((thread, stop)) = self.purges.get_mut().take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// Finishes interrupted builds and re-keys, in this thread.
pub fn resume(db: &Database, watch: &Watch) {
    build::resume(db, watch);
    rekey::resume(db, watch);
}
