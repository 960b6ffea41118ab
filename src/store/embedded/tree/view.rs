//! The read side of the tree: a view of one moment, and cursors in its keyspaces.
//!
//! An LMDB read transaction pins the pages of the moment. Nothing is read through it: any number of threads search
//! the pages in mapped memory with [`Btree`].

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use heed::{RoTxn, WithoutTls};
use parking_lot::Mutex;

use super::btree::{Btree, BtreePosition, LastLeaves};
use super::map::Pages;
use super::meta::{Meta, Root};
use super::page::compare;
use super::seal::{prove_key, unseal};
use super::tally::{TALLIES, Tally};
use super::{KEYSPACES, STATE, Tree, VERSION_KEY, aside, keyspace_of};
use crate::error::{Error, Kind, Result};
use crate::key::{End, FastMap, KeyRange, Rowkey};
use crate::store::{Change, Cursor, Direction, Entry, KeyspaceId, Visit};

/// The root of every existing keyspace; any other is empty.
pub(super) type Trees = FastMap<KeyspaceId, Root>;

/// One moment of the tree; while it exists, none of its pages is reused. The fields drop in order: the transaction
/// ends before the map may close.
pub(in crate::store::embedded) struct TreeView {
    /// Never locked: a transaction may move between threads, but they may not share it.
    _txn: Mutex<RoTxn<'static, WithoutTls>>,
    trees: Trees,
    last_leaves: LastLeaves,
    /// Number of pages in the file, which has all pages of the moment.
    present: u64,
    tree: Arc<Tree>,
}

/// A reserved slot in LMDB's reader table, taken before a commit so that the view after it cannot fail for lack of
/// one.
pub(in crate::store::embedded) struct ReaderSlot(
    #[expect(dead_code, reason = "held")] RoTxn<'static, WithoutTls>,
);

impl ReaderSlot {
    /// Errors: `Unavailable` when too many views are held.
    pub(in crate::store::embedded) fn of(tree: &Tree) -> Result<ReaderSlot> {
        Ok(ReaderSlot(tree.env.clone().static_read_txn()?))
    }
}

/// How long a view waits for a slot in the reader table that another process has taken.
const PATIENCE: Duration = Duration::from_secs(1);

/// The interval at which it tries.
const LOOK: Duration = Duration::from_millis(5);

impl TreeView {
    /// [`TreeView::of`] in place of a reserved slot. Another process may take that in between, for a while.
    pub(in crate::store::embedded) fn seated(tree: &Arc<Tree>, seat: ReaderSlot) -> Result<TreeView> {
        drop(seat);
        let since = Instant::now();
        loop {
            match TreeView::of(tree) {
                Err(e) if e.kind() == Kind::Unavailable && since.elapsed() < PATIENCE => thread::sleep(LOOK),
                seen => return seen,
            }
        }
    }

    /// The tree as it is now. No writer may commit meanwhile.
    pub(in crate::store::embedded) fn of(tree: &Arc<Tree>) -> Result<TreeView> {
        let txn = tree.env.clone().static_read_txn()?;
        let (pages, trees) = trees(tree, txn.id() as u64)?;
        Ok(TreeView {
            _txn: Mutex::new(txn),
            trees,
            last_leaves: LastLeaves::default(),
            present: pages.present(),
            tree: tree.clone(),
        })
    }

    /// The tree as it is now, while another process may write. Errors: `Corrupt` also if that one committed too
    /// quickly.
    pub(in crate::store::embedded) fn of_other_process(tree: &Arc<Tree>) -> Result<TreeView> {
        let view = TreeView::of(tree)?;
        // The meta page of transaction N is overwritten by N + 2, which begins only after N + 1 is committed. So if N
        // is still the newest transaction, the meta page was read whole.
        fence(Ordering::SeqCst);
        if tree.env.read_txn()?.id() == view._txn.lock().id() {
            return Ok(view);
        }
        Err(Error::corrupt("data.mdb is damaged, or changes faster than it can be read"))
    }

    /// The version up to which the tree has everything.
    pub(in crate::store::embedded) fn version(&self) -> Result<u64> {
        let stored = self.reader().get(STATE, VERSION_KEY)?;
        let version = stored.and_then(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?)));
        version.ok_or_else(|| {
            Error::corrupt("the data file is damaged")
                .why("it does not say up to where it has what the log had")
                .hint("restore the database from a backup")
        })
    }

    /// Checks, before the first commit, that the tree will be able to take it. The view must be the newest.
    pub(in crate::store::embedded) fn check_free_pages(&self) -> Result<()> {
        self.tree.check_free_pages(&self.trees)
    }

    pub(in crate::store::embedded) fn reader(&self) -> TreeReader<'_> {
        TreeReader { pages: self.tree.map.pages_of(self.present), view: self }
    }
}

/// The page map and the roots after transaction `number`, which an open transaction pins.
pub(super) fn trees(tree: &Tree, number: u64) -> Result<(Pages<'_>, Trees)> {
    let bytes = tree.witness.metadata().map_err(heed::Error::Io)?.len();
    let meta = tree.map.pages(bytes, 1).meta(number).and_then(|page| Meta::parse(page).ok());
    let meta = meta.filter(|meta| meta.txn == number).ok_or_else(|| {
        Error::damaged(
            "data.mdb is damaged",
            format!("its first pages do not say what transaction {number} left"),
        )
    })?;
    let pages = tree.map.pages(bytes, meta.last_page);
    Ok((pages, keyspaces(pages, meta.keyspaces)?))
}

/// The roots in LMDB's tree of keyspaces. If a keyspace has several trees, the one with the longest name counts.
pub(super) fn keyspaces(pages: Pages<'_>, root: Root) -> Result<Trees> {
    let mut roots = Trees::default();
    let mut last: &[u8] = &[];
    Btree { pages, keyspace: KEYSPACES, root, last_leaves: None }.start()?.walk_trees(|name, tree| {
        let ((id, given_up), root) = (keyspace_of(name)?, Root::parse(tree));
        let root = root.filter(|_| name > last).ok_or_else(|| {
            Error::damaged(
                format!("keyspace {} of data.mdb is damaged", id.0),
                "what is said of its tree makes no sense",
            )
        })?;
        roots.insert(id, Root { given_up, ..root });
        last = name;
        Ok(true)
    })?;
    Ok(roots)
}

pub(in crate::store::embedded) struct TreeReader<'v> {
    view: &'v TreeView,
    pages: Pages<'v>,
}

impl<'v> TreeReader<'v> {
    fn tree(&self, keyspace: KeyspaceId) -> Option<Btree<'v>> {
        let root = *self.view.trees.get(&keyspace)?;
        Some(Btree { pages: self.pages, keyspace, root, last_leaves: Some(&self.view.last_leaves) })
    }

    pub(in crate::store::embedded) fn get(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
    ) -> Result<Option<&'v [u8]>> {
        self.tree(keyspace).map_or(Ok(None), |tree| tree.get(key))
    }

    pub(in crate::store::embedded) fn get_many(
        &self,
        keyspace: KeyspaceId,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<&'v [u8]>>> {
        self.tree(keyspace).map_or_else(|| Ok(vec![None; keys.len()]), |tree| tree.get_many(keys))
    }

    pub(in crate::store::embedded) fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>> {
        let cursor = match self.tree(keyspace).filter(|_| !range.is_empty()) {
            Some(tree) => TreeCursor::new(tree, range, direction)?,
            None => TreeCursor { keyspace, direction, limit: None, place: None, ended: true },
        };
        Ok(Box::new(cursor))
    }

    /// About how many entries lie in a range.
    pub(in crate::store::embedded) fn estimate(&self, keyspace: KeyspaceId, range: &KeyRange) -> Result<u64> {
        self.tree(keyspace).filter(|_| !range.is_empty()).map_or(Ok(0), |tree| tree.estimate(range))
    }

    /// The recorded tally of a keyspace.
    fn tally(&self, keyspace: KeyspaceId) -> Result<Tally> {
        Tally::of(keyspace, self.entries(keyspace), self.get(STATE, &Tally::key(keyspace))?)
    }

    /// Number of entries in a keyspace, checked against its tally.
    pub(in crate::store::embedded) fn count(&self, keyspace: KeyspaceId) -> Result<u64> {
        self.tally(keyspace).map(|tally| tally.entries)
    }

    /// Walks a keyspace, telling `watch` how many entries were read, and compares them with the tally.
    pub(in crate::store::embedded) fn verify(
        &self,
        keyspace: KeyspaceId,
        watch: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let expected = self.tally(keyspace)?;
        let mut found = Tally::default();
        if let Some(tree) = self.tree(keyspace) {
            tree.start()?.walk(Direction::Forward, |key, stored| {
                unseal(keyspace, key, stored)?;
                found.add(stored);
                if found.entries.is_multiple_of(4096) {
                    watch(found.entries)?;
                }
                Ok(true)
            })?;
        }
        if found == expected {
            return Ok(());
        }
        Err(Error::corrupt(format!("keyspace {} is damaged", keyspace.0))
            .why("its entries are sound, and not those that were written last: the disk has lost a write")
            .hint("check the disk; REPAIR INDEX mends an index, a backup or COPY TO and a new table mend a table"))
    }

    /// Checks that every keyspace with entries has a tally, and the reverse, and that the counts agree.
    pub(in crate::store::embedded) fn check_keyspaces(&self) -> Result<()> {
        let mut tallies = self.cursor(STATE, &KeyRange::prefix(TALLIES), Direction::Forward)?;
        // The keyspace of the tallies has none of its own.
        let mut noted = 1;
        while let Some((key, tally)) = tallies.next()? {
            let keyspace = Tally::keyspace(key).ok_or_else(|| Error::corrupt("the data file is damaged"))?;
            let tally = Tally::of(keyspace, self.entries(keyspace), Some(tally))?;
            noted += u64::from(tally.entries > 0);
        }
        let there = self.view.trees.values().filter(|root| root.entries > 0).count() as u64;
        if noted == there {
            return Ok(());
        }
        Err(Error::damaged(
            "the data file is damaged",
            format!("it has {there} keyspaces with entries, and {noted} were noted"),
        ))
    }

    /// The pages that a search for `key` reads, from the root on.
    #[cfg(test)]
    pub(in crate::store::embedded) fn path(&self, keyspace: KeyspaceId, key: &[u8]) -> Vec<u64> {
        self.tree(keyspace).unwrap().seek(key).unwrap().numbers()
    }

    /// All pages of a keyspace, those of long values included.
    #[cfg(test)]
    pub(in crate::store::embedded) fn pages(&self, keyspace: KeyspaceId) -> Vec<u64> {
        self.tree(keyspace).unwrap().numbers().unwrap()
    }

    /// Shows the changes that are kept beside damaged keyspaces.
    pub(in crate::store::embedded) fn show_held(
        &self,
        mut show: impl FnMut(KeyspaceId, Change<'_>),
    ) -> Result<()> {
        for beside in self.view.trees.keys() {
            let Some(keyspace) = aside::whose(*beside) else { continue };
            let mut changes = self.cursor(*beside, &KeyRange::all(), Direction::Forward)?;
            while let Some((key, change)) = changes.next()? {
                show(keyspace, (key, aside::decode(change)?));
            }
        }
        Ok(())
    }

    /// Number of entries, which LMDB keeps.
    pub(in crate::store::embedded) fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.view.trees.get(&keyspace).map_or(0, |root| root.entries)
    }
}

/// A walk of a range.
pub(super) struct TreeCursor<'a> {
    keyspace: KeyspaceId,
    direction: Direction,
    /// Where the range ends in the walk's direction: forward the first key past it, in reverse its first key.
    limit: Option<Rowkey>,
    /// `None` if the keyspace does not exist.
    place: Option<BtreePosition<'a>>,
    /// Nothing of the range is left.
    ended: bool,
}

impl<'a> TreeCursor<'a> {
    /// A cursor over a non-empty range.
    pub(super) fn new(tree: Btree<'a>, range: &KeyRange, direction: Direction) -> Result<TreeCursor<'a>> {
        let (near, far) = ends(range, direction);
        let place = near.map_or_else(|| tree.end(), |key| tree.seek(key))?;
        place.prove_start(range, direction)?;
        let (keyspace, limit) = (tree.keyspace, far.cloned());
        Ok(TreeCursor { keyspace, direction, limit, place: Some(place), ended: false })
    }

    /// Shows entries to `visit`. A damaged key may look as if the range ended before it, and a damaged page may lead
    /// astray. So the key of the entry that ends the range is proved, and keys must ascend.
    #[inline]
    fn show(&mut self, mut visit: impl FnMut(&'a [u8], &'a [u8]) -> Result<bool>) -> Result<bool> {
        let TreeCursor { keyspace, direction, limit, place, ended: has_ended } = self;
        let Some(found) = place.as_mut().filter(|_| !*has_ended) else { return Ok(false) };
        let mut ended = false;
        let is_past = |key: &[u8]| match (&limit, *direction) {
            (None, _) => false,
            (Some(limit), Direction::Forward) => compare(key, limit).is_ge(),
            (Some(limit), Direction::Reverse) => compare(key, limit).is_lt(),
        };
        let stopped = found.walk(*direction, |key, stored| {
            ended = is_past(key);
            match ended {
                true => prove_key(*keyspace, key, stored).map(|()| false),
                false => visit(key, unseal(*keyspace, key, stored)?),
            }
        })?;
        *has_ended = ended || !stopped;
        Ok(!*has_ended)
    }
}

/// The end of a range from which a walk starts, and the other one; `None`: that of the keyspace.
fn ends(KeyRange { start, end }: &KeyRange, direction: Direction) -> (Option<&Rowkey>, Option<&Rowkey>) {
    let end = match end {
        End::Before(end) => Some(end),
        End::Open => None,
    };
    match direction {
        Direction::Forward => (Some(start), end),
        Direction::Reverse => (end, Some(start).filter(|key| !key.is_empty())),
    }
}

impl Cursor for TreeCursor<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let mut found = None;
        self.show(|key, value| {
            found = Some((key, value));
            Ok(false)
        })?;
        Ok(found)
    }

    fn move_to(&mut self, range: &KeyRange) -> Result<bool> {
        let (near, far) = ends(range, self.direction);
        let (Some(place), Some(key)) = (&mut self.place, near) else { return Ok(false) };
        self.ended = true;
        if range.is_empty() {
            return Ok(true);
        }
        place.seek(key)?;
        place.prove_start(range, self.direction)?;
        if self.limit.as_ref() != far {
            self.limit = far.cloned();
        }
        self.ended = false;
        Ok(true)
    }

    fn walk(&mut self, visit: &mut Visit<'_>) -> Result<bool> {
        self.show(visit)
    }
}
