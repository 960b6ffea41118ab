//! The embedded engine opened for reading, possibly beside a process that writes.
//!
//! A snapshot combines a view of the tree with the log records after it. The tree is read first; what moves from the
//! log into the tree meanwhile is then seen in both, or in neither. Version numbers reveal that, and the read is
//! retried. The replayed records stay in a memtable until the tree changes. The tree itself is pinned by snapshots
//! only, so that an idle reader does not keep the writer from reusing pages.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::memtable::Memtable;
use super::snapshot::StoreState;
use super::tree::{Tree, TreeView};
use super::{held_by, replay, too_old};
use crate::error::{Kind, Result};
use crate::store::directory::Directory;
use crate::store::log::LogTail;
use crate::store::{BulkWriter, Snapshot, Store, WriteBatch, read_only};

/// How long an inconsistent read is retried, and how often.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);

/// A store that another process may be writing.
pub(in crate::store) struct ReadOnlyStore {
    tree: Arc<Tree>,
    logged: Mutex<Logged>,
}

/// The log records after the tree's version, in a memtable.
struct Logged {
    tail: LogTail,
    /// The tree's version that they follow.
    in_tree: u64,
    version: u64,
    memtable: Arc<Memtable>,
}

impl ReadOnlyStore {
    /// Opens the database in `directory`.
    ///
    /// Errors: as those of the writing store.
    pub(in crate::store) fn over(directory: Directory) -> Result<ReadOnlyStore> {
        let folder = directory.log_folder();
        let tree = Arc::new(Tree::open_read_only(directory)?);
        let logged = Logged { tail: LogTail::new(folder), in_tree: 0, version: 0, memtable: Arc::default() };
        let store = ReadOnlyStore { tree, logged: Mutex::new(logged) };
        store.state()?.view.reader().check_keyspaces()?;
        Ok(store)
    }

    /// A view of all that is acknowledged by now.
    fn state(&self) -> Result<StoreState> {
        let since = Instant::now();
        loop {
            let looked = self.logged.lock().look(&self.tree);
            match looked {
                // What changes while it is read looks damaged.
                Err(e) if e.kind() == Kind::Corrupt && since.elapsed() < PATIENCE => thread::sleep(LOOK),
                looked => return looked,
            }
        }
    }
}

impl Logged {
    /// Errors: `Corrupt` also if a writer changed what was being read; it is then read again from the start.
    fn look(&mut self, tree: &Arc<Tree>) -> Result<StoreState> {
        self.read(tree).inspect_err(|_| self.forget())
    }

    fn read(&mut self, tree: &Arc<Tree>) -> Result<StoreState> {
        let view = TreeView::of_other_process(tree)?;
        let in_tree = view.version()?;
        if in_tree != self.in_tree {
            self.forget();
            (self.in_tree, self.version) = (in_tree, in_tree);
        }
        let folder = tree.directory().log_folder();
        let Logged { tail, version, memtable, .. } = self;
        // Read from the start while no writer has it, the log shows what an open would replay.
        let closed = if tail.is_at_start() { tree.directory().keep_closed() } else { None };
        let settled = tail.read(closed.is_some(), |content| replay(&folder, content, memtable, version))?;
        if *version < settled {
            return Err(too_old(*version, settled));
        }
        let held = Arc::new(held_by(&view, in_tree)?);
        let active = Arc::clone(memtable);
        Ok(StoreState { version: *version, active, sealed: None, held, view: Arc::new(view) })
    }

    /// Drops what was read, so that the log is read again from the start.
    fn forget(&mut self) {
        self.tail.rewind();
        (self.in_tree, self.version, self.memtable) = (0, 0, Arc::default());
    }
}

impl Store for ReadOnlyStore {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(self.state()?))
    }

    fn commit(&self, batch: WriteBatch) -> Result<()> {
        if batch.is_empty() { Ok(()) } else { Err(read_only()) }
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
        Err(read_only())
    }
}
