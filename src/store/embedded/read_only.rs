//! The embedded engine, read by a process beside the one that writes it, or alone.
//!
//! A snapshot is what the tree has just now and what the log has behind that. The tree is looked at first: what moves
//! from the log into the tree meanwhile is then in both, or missing from both, which the versions tell, and that is tried
//! again. What was read of the log stays in a memtable for as long as the tree stays as it is; the tree itself is held by
//! snapshots only, so that a reader who waits does not keep the writer from using pages anew.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::memtable::Memtable;
use super::snapshot::{EmbeddedSnapshot, Moment};
use super::tree::{Tree, View};
use super::{held_by, parted, too_old};
use crate::error::Result;
use crate::store::directory::{Directory, damaged};
use crate::store::log::{Tail, record};
use crate::store::{BulkWriter, Snapshot, Store, WriteBatch, read_only};

/// How long what does not fit together is looked at again, and how often.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);

/// A store that another process may write.
pub(in crate::store) struct ReadOnlyStore {
    tree: Arc<Tree>,
    logged: Mutex<Logged>,
}

/// What the log has behind the tree.
struct Logged {
    tail: Tail,
    /// Of which version the tree is.
    in_tree: u64,
    version: u64,
    memtable: Arc<Memtable>,
}

impl ReadOnlyStore {
    /// Opens the database in `directory`.
    ///
    /// Errors: as those of the store that writes.
    pub(in crate::store) fn over(directory: Directory) -> Result<ReadOnlyStore> {
        let folder = directory.log_folder();
        let closed = directory.keep_closed();
        let tree = Arc::new(Tree::open_read_only(directory)?);
        let logged = Logged { tail: Tail::new(folder), in_tree: 0, version: 0, memtable: Arc::default() };
        let store = ReadOnlyStore { tree, logged: Mutex::new(logged) };
        store.moment(closed.is_some())?.view.reader().check_keyspaces()?;
        Ok(store)
    }

    /// All that is acknowledged by now.
    fn moment(&self, is_closed: bool) -> Result<Moment> {
        let mut logged = self.logged.lock();
        let since = Instant::now();
        loop {
            match logged.look(&self.tree, is_closed) {
                Err(_) if since.elapsed() < PATIENCE => {
                    logged.forget();
                    thread::sleep(LOOK);
                }
                looked => return looked,
            }
        }
    }
}

impl Logged {
    fn look(&mut self, tree: &Arc<Tree>, is_closed: bool) -> Result<Moment> {
        let view = View::beside_a_writer(tree)?;
        let in_tree = view.version()?;
        if in_tree != self.in_tree {
            self.forget();
            (self.in_tree, self.version) = (in_tree, in_tree);
        }
        let folder = tree.directory().log_folder();
        let Logged { tail, version, memtable, .. } = self;
        let settled = tail.read(is_closed, |content| {
            let (logged, steps) =
                record::decode(content).ok_or_else(|| damaged(&folder, "log", "a record makes no sense"))?;
            if logged > *version {
                if logged != *version + 1 {
                    return Err(parted(*version, logged));
                }
                memtable.write(logged, steps.into_iter());
                *version = logged;
            }
            Ok(())
        })?;
        if *version < settled {
            return Err(too_old(*version, settled));
        }
        let held = Arc::new(held_by(&view, in_tree)?);
        let active = Arc::clone(memtable);
        Ok(Moment { version: *version, active, full: None, held, view: Arc::new(view) })
    }

    /// The log is to be read again.
    fn forget(&mut self) {
        self.tail.rewind();
        (self.in_tree, self.version, self.memtable) = (0, 0, Arc::default());
    }
}

impl Store for ReadOnlyStore {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(EmbeddedSnapshot::new(Arc::new(self.moment(false)?))))
    }

    fn commit(&self, batch: WriteBatch) -> Result<()> {
        if batch.is_empty() { Ok(()) } else { Err(read_only()) }
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
        Err(read_only())
    }
}
