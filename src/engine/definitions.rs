//! The definitions in force, and how they change.
//!
//! A reader's catalog has to match its snapshot. So a DDL statement announces the next catalog before it
//! commits; until the commit has returned, each new snapshot is asked which catalog it holds. The commit may
//! take long (DROP TABLE visits every page that it frees), and only other DDL waits for it.
//!
//! In a read-only database another process may change definitions, so every snapshot is asked.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::catalog::Catalog;
use crate::error::Result;
use crate::exec::watch::CancelHandle;
use crate::store::{Snapshot, Store};

/// Interval at which a waiting statement checks for cancellation.
const LOOK: Duration = Duration::from_millis(10);

/// The current catalog, and the next one while it is being committed.
pub struct Definitions {
    now: RwLock<Now>,
    /// Another process may change the definitions.
    follows: bool,
    /// Held while definitions change.
    changing: Mutex<()>,
}

#[derive(Clone)]
struct Now {
    current: Arc<Catalog>,
    /// Being committed: the store may have it already.
    next: Option<Arc<Catalog>>,
}

/// The right to change definitions, until dropped.
pub struct DefinitionsGuard<'d> {
    definitions: &'d Definitions,
    _changing: MutexGuard<'d, ()>,
}

impl Definitions {
    /// Definitions of a store that only this process writes.
    pub fn new(current: Catalog) -> Definitions {
        let now = RwLock::new(Now { current: Arc::new(current), next: None });
        Definitions { now, follows: false, changing: Mutex::default() }
    }

    /// Definitions of a store that another process may write.
    pub fn following(current: Catalog) -> Definitions {
        Definitions { follows: true, ..Definitions::new(current) }
    }

    /// The definitions as of the last acknowledged commit.
    pub fn current(&self) -> Arc<Catalog> {
        Arc::clone(&self.now.read().current)
    }

    /// A snapshot and the catalog that matches it. Errors: of the store.
    pub fn view(&self, store: &dyn Store) -> Result<(Arc<Catalog>, Arc<dyn Snapshot>)> {
        let (known, snapshot) = {
            let now = self.now.read();
            (now.clone(), store.snapshot()?)
        };
        let catalog = match known.next.is_none() && !self.follows {
            true => known.current,
            false => self.within(&*snapshot, known)?,
        };
        Ok((catalog, snapshot))
    }

    /// The catalog in a snapshot: one of those `known`, or what another process has stored.
    fn within(&self, snapshot: &dyn Snapshot, known: Now) -> Result<Arc<Catalog>> {
        let reader = snapshot.reader()?;
        let stored = Catalog::stored_version(&*reader)?;
        // Statistics keep the version: until their commit has returned, those in force count.
        let mut known = std::iter::once(known.current).chain(known.next);
        if let Some(catalog) = known.find(|catalog| catalog.version() == stored) {
            return Ok(catalog);
        }
        let catalog = Arc::new(Catalog::load(&*reader)?);
        let mut now = self.now.write();
        // Another thread may have seen a later snapshot.
        if now.current.version() < catalog.version() {
            now.current = Arc::clone(&catalog);
        }
        Ok(catalog)
    }

    /// Waits for other DDL to finish. Errors: `Cancelled`; of the store.
    pub fn change(&self, store: &dyn Store, cancel: &CancelHandle) -> Result<DefinitionsGuard<'_>> {
        let _changing = loop {
            cancel.check()?;
            if let Some(changing) = self.changing.try_lock_for(LOOK) {
                break changing;
            }
        };
        // A commit that panicked may have left a next catalog.
        self.settle(store)?;
        Ok(DefinitionsGuard { definitions: self, _changing })
    }

    /// If there is a next catalog, asks the store whether it was committed.
    fn settle(&self, store: &dyn Store) -> Result<()> {
        if self.now.read().next.is_some() {
            let (current, _) = self.view(store)?;
            *self.now.write() = Now { current, next: None };
        }
        Ok(())
    }
}

impl DefinitionsGuard<'_> {
    /// The definitions to be changed.
    pub fn current(&self) -> Arc<Catalog> {
        self.definitions.current()
    }

    /// Makes `catalog`, which `commit` stores, the one in force. Errors: those of `commit`; the catalog may
    /// be stored all the same if another commit of the group panicked.
    pub fn commit(
        self,
        store: &dyn Store,
        catalog: Catalog,
        commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let next = Arc::new(catalog);
        self.definitions.now.write().next = Some(Arc::clone(&next));
        if let Err(e) = commit() {
            // If the store cannot say, readers ask with each snapshot.
            let _ = self.definitions.settle(store);
            return Err(e);
        }
        *self.definitions.now.write() = Now { current: next, next: None };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::store::{BulkWriter, MemoryStore, WriteBatch};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    /// A store that reports when a commit begins and when it is applied, and waits until told to go on.
    struct Slow {
        store: MemoryStore,
        at: Mutex<Sender<&'static str>>,
        go_on: Mutex<Receiver<()>>,
    }

    impl Store for Slow {
        fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
            self.store.snapshot()
        }

        fn commit(&self, batch: WriteBatch) -> Result<()> {
            let stop = |at| {
                self.at.lock().send(at).unwrap();
                self.go_on.lock().recv().unwrap();
            };
            stop("before");
            self.store.commit(batch)?;
            stop("behind");
            Ok(())
        }

        fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
            self.store.bulk()
        }
    }

    #[test]
    fn readers_do_not_wait_for_a_change_and_their_definitions_fit_their_snapshot() {
        let ((at, stops), (go, go_on)) = (channel(), channel());
        let store = Slow { store: MemoryStore::new(), at: Mutex::new(at), go_on: Mutex::new(go_on) };
        let definitions = Definitions::new(Catalog::empty());
        let seen = || {
            let (catalog, snapshot) = definitions.view(&store).unwrap();
            let stored = Catalog::load(&*snapshot.reader().unwrap()).unwrap().version();
            assert_eq!(catalog.version(), stored);
            stored
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                let change = definitions.change(&store, &CancelHandle::default()).unwrap();
                let (catalog, batch) = change.current().edit().finish().unwrap();
                change.commit(&store, catalog, || store.commit(batch)).unwrap();
            });
            assert_eq!(stops.recv().unwrap(), "before");
            assert_eq!(seen(), 0);
            go.send(()).unwrap();
            assert_eq!(stops.recv().unwrap(), "behind");
            assert_eq!((seen(), definitions.current().version()), (1, 0));
            go.send(()).unwrap();
        });
        assert_eq!((seen(), definitions.current().version()), (1, 1));
    }

    /// A store that commits and then panics, or fails with an uncertain outcome.
    struct Uncertain(MemoryStore, &'static str);

    impl Store for Uncertain {
        fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
            self.0.snapshot()
        }

        fn commit(&self, batch: WriteBatch) -> Result<()> {
            match self.1 {
                "refuses" => {}
                _ => self.0.commit(batch)?,
            }
            assert_ne!(self.1, "panics");
            Err(Error::internal("who knows"))
        }

        fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
            self.0.bulk()
        }
    }

    #[test]
    fn whether_a_change_is_in_is_asked_of_the_store_when_nobody_says_so() {
        for (how, expected) in [("refuses", 0), ("doubts", 1), ("panics", 1)] {
            let store = Uncertain(MemoryStore::new(), how);
            let definitions = Definitions::new(Catalog::empty());
            let change = || definitions.change(&store, &CancelHandle::default()).unwrap();
            let (catalog, batch) = change().current().edit().finish().unwrap();
            let commit = || change().commit(&store, catalog, || store.commit(batch));
            assert!(
                catch_unwind(AssertUnwindSafe(commit)).is_ok_and(|done| done.is_err()) || how == "panics"
            );
            assert_eq!(change().current().version(), expected, "{how}");
        }
    }
}
