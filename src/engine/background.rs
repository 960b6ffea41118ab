//! What was being built when the database was left, built on beside everything else.
//!
//! It goes by steps, as [`build`] and [`rekey`] always do: other writers get in between them, and no query reads what
//! is not ready. When the database is closed the thread leaves off, and the next open goes on behind its last step.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use super::runtime::STACK_BYTES;
use super::{Database, build, rekey};
use crate::exec::watch::{CancelHandle, Watch};

/// The thread that builds. Dropped with the last user of the database, and then awaited, for it has the store open.
pub struct Background {
    cancel: CancelHandle,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts it, if there is anything to build. Where the system has no thread to give, indexes stay as they are:
    /// no query reads them, and REPAIR INDEX builds them.
    pub fn start(db: &Database) -> Option<Arc<Background>> {
        let catalog = db.catalog();
        if catalog.building().next().is_none() && catalog.rekeyed().next().is_none() {
            return None;
        }
        let watch = Watch::default();
        let cancel = watch.cancel.clone();
        let db = Database { shared: Arc::clone(&db.shared), background: None };
        let thread = Builder::new().name("rowkeydb-build".to_owned()).stack_size(STACK_BYTES);
        let thread = thread.spawn(move || resume(&db, &watch)).ok()?;
        Some(Arc::new(Background { cancel, thread: Some(thread) }))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.cancel.cancel();
        // What it has not done, it will do when the database is opened again; so it will after a panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Goes on with what was under way, to its end.
pub fn resume(db: &Database, watch: &Watch) {
    build::resume(db, watch);
    rekey::resume(db, watch);
}
