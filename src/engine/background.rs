//! What goes on beside everything else: builds that were interrupted, and rows that have expired.
//!
//! What was being built when the database was left goes by steps, as [`build`] and [`rekey`] always do: other writers
//! get in between them, and no query reads what is not ready. When the database is closed the thread leaves off, and the
//! next open goes on behind its last step. Another one takes expired rows away, once there is a table whose rows expire.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;

use super::runtime::STACK_BYTES;
use super::{Database, build, expiry, rekey};
use crate::exec::watch::{CancelHandle, Watch};

/// The threads. Dropped with the last user of the database, and then awaited, for they have the store open.
#[derive(Default)]
pub struct Background {
    cancel: CancelHandle,
    builds: Mutex<Option<JoinHandle<()>>>,
    /// And what ends its waiting, when it is dropped.
    purges: Mutex<Option<(JoinHandle<()>, Sender<()>)>>,
}

impl Background {
    /// Goes on with what was being built, if there is anything. Where the system has no thread to give, indexes stay as
    /// they are: no query reads them, and REPAIR INDEX builds them.
    pub fn build(&self, db: &Database) {
        let catalog = db.catalog();
        if catalog.building().next().is_none() && catalog.rekeyed().next().is_none() {
            return;
        }
        let (db, watch) = (apart(db), Watch { cancel: self.cancel.clone(), ..Watch::default() });
        *self.builds.lock() = spawn("rowkeydb-build", move || resume(&db, &watch));
    }

    /// Takes expired rows away from now on, if a table has such. Where the system has no thread to give, they stay until
    /// somebody says PURGE.
    pub fn purge(&self, db: &Database) {
        let mut purges = self.purges.lock();
        if purges.is_some() || !db.catalog().tables().any(|table| table.ttl_us.is_some()) {
            return;
        }
        let (stop, stopped) = mpsc::channel();
        let (db, cancel) = (apart(db), self.cancel.clone());
        let thread = spawn("rowkeydb-purge", move || expiry::purge_now_and_then(&db, cancel, &stopped));
        *purges = thread.map(|thread| (thread, stop));
    }
}

/// The database for a thread that its other users wait for.
fn apart(db: &Database) -> Database {
    Database { shared: Arc::clone(&db.shared), background: Arc::default() }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(work).ok()
}

impl Drop for Background {
    fn drop(&mut self) {
        self.cancel.cancel();
        // What they have not done, they will do when the database is opened again; so they will after a panic.
        let _ = self.builds.get_mut().take().map(JoinHandle::join);
        if let Some((thread, stop)) = self.purges.get_mut().take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// Goes on with what was under way, to its end.
pub fn resume(db: &Database, watch: &Watch) {
    build::resume(db, watch);
    rekey::resume(db, watch);
}
