//! The read side of the tree: one moment of it, its keyspaces, and cursors in them.
//!
//! A read transaction of LMDB's keeps the pages of the moment as they are. Nobody reads through it: what is read is
//! looked up in mapped memory by [`Btree`], by any number of threads at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use heed::{RoTxn, WithoutTls};

use super::btree::{Btree, Place};
use super::map::Pages;
use super::meta::{Meta, Root};
use super::seal::unseal;
use super::{COUNTED_KEY, KEYSPACES, STATE, Tree, VERSION_KEY, entries_key, keyspace_of};
use crate::error::{Error, Result};
use crate::key::{End, KeyRange};
use crate::store::{Cursor, Direction, Entry, KeyspaceId};

/// One moment of the tree; while it is there, no page of that is reused. The fields drop in order: the transaction ends
/// before the map may close.
pub(in crate::store::embedded) struct View {
    /// Never locked: a transaction may move between threads, but they may not share it.
    _txn: Mutex<RoTxn<'static, WithoutTls>>,
    /// Of every keyspace there was; any other reads as empty.
    roots: HashMap<KeyspaceId, Root>,
    /// Length of the file, which holds all pages of the moment.
    bytes: u64,
    tree: Arc<Tree>,
}

impl View {
    /// The tree as it is now. Nobody may write into it meanwhile.
    pub(in crate::store::embedded) fn of(tree: &Arc<Tree>) -> Result<View> {
        let txn = tree.env.clone().static_read_txn()?;
        let (roots, bytes) = roots(tree, txn.id() as u64)?;
        Ok(View { _txn: Mutex::new(txn), roots, bytes, tree: tree.clone() })
    }

    /// Up to which version it has everything.
    pub(in crate::store::embedded) fn version(&self) -> Result<u64> {
        let stored = self.reader().get(STATE, VERSION_KEY)?;
        let version = stored.and_then(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?)));
        version.ok_or_else(|| {
            Error::corrupt("the data file is damaged")
                .why("it does not say up to where it has what the log had")
                .hint("restore the database from a backup")
        })
    }

    /// A way in.
    pub(in crate::store::embedded) fn reader(&self) -> TreeReader<'_> {
        TreeReader { pages: self.tree.map.pages(self.bytes), view: self }
    }
}

/// The keyspaces in the tree after transaction `number`, which a read transaction holds on to, and the file's length.
pub(super) fn roots(tree: &Tree, number: u64) -> Result<(HashMap<KeyspaceId, Root>, u64)> {
    let bytes = tree.witness.metadata().map_err(heed::Error::Io)?.len();
    let pages = tree.map.pages(bytes);
    let meta = pages.meta(number).and_then(|page| Meta::parse(page).ok()).filter(|meta| meta.txn == number);
    let meta = meta.ok_or_else(|| {
        Error::corrupt("data.mdb is damaged")
            .why(format!("its first pages do not say what transaction {number} left"))
            .hint("restore the database from a backup; check the disk")
    })?;
    Ok((keyspaces(pages, meta.keyspaces)?, bytes))
}

/// What LMDB's tree of keyspaces says.
pub(super) fn keyspaces(pages: Pages<'_>, root: Root) -> Result<HashMap<KeyspaceId, Root>> {
    let mut names = Btree { pages, keyspace: KEYSPACES, root }.start()?;
    let mut roots = HashMap::new();
    let mut last: &[u8] = &[];
    while let Some((name, tree)) = names.step(Direction::Forward)? {
        let (id, root) = (keyspace_of(name)?, Root::parse(tree));
        let root = root.filter(|_| name > last).ok_or_else(|| {
            Error::corrupt(format!("keyspace {} of data.mdb is damaged", id.0))
                .why("what is said of its tree makes no sense")
                .hint("restore the database from a backup; check the disk")
        })?;
        roots.insert(id, root);
        last = name;
    }
    Ok(roots)
}

pub(in crate::store::embedded) struct TreeReader<'v> {
    view: &'v View,
    pages: Pages<'v>,
}

impl<'v> TreeReader<'v> {
    fn tree(&self, keyspace: KeyspaceId) -> Option<Btree<'v>> {
        let root = *self.view.roots.get(&keyspace)?;
        Some(Btree { pages: self.pages, keyspace, root })
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
        let tree = self.tree(keyspace).filter(|_| !range.is_empty());
        match tree {
            Some(tree) => Ok(Box::new(TreeCursor::new(tree, range, direction)?)),
            None => Ok(Box::new(Nothing)),
        }
    }

    /// The same, verified.
    pub(in crate::store::embedded) fn count(&self, keyspace: KeyspaceId) -> Result<u64> {
        let entries = self.entries(keyspace);
        let is_counted = self.get(STATE, COUNTED_KEY)? == self.get(STATE, VERSION_KEY)?;
        let noted = if is_counted { self.get(STATE, &entries_key(keyspace))? } else { None };
        match noted {
            Some(noted) if *noted != entries.to_le_bytes() => {
                Err(Error::corrupt(format!("the number of entries of keyspace {} is damaged", keyspace.0))
                    .why(format!("its tree says {entries}, and something else was noted when it was written"))
                    .hint("restore the database from a backup; check the disk"))
            }
            _ => Ok(entries),
        }
    }

    /// LMDB counts as it writes.
    pub(in crate::store::embedded) fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.view.roots.get(&keyspace).map_or(0, |root| root.entries)
    }
}

/// A walk of what is not there.
struct Nothing;

impl Cursor for Nothing {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        Ok(None)
    }
}

/// A walk of a range that has room for keys.
pub(super) struct TreeCursor<'a> {
    keyspace: KeyspaceId,
    range: KeyRange,
    direction: Direction,
    /// Nothing was given yet.
    is_first: bool,
    /// `None` at the end of the range.
    place: Option<Place<'a>>,
}

impl<'a> TreeCursor<'a> {
    pub(super) fn new(tree: Btree<'a>, range: &KeyRange, direction: Direction) -> Result<TreeCursor<'a>> {
        let (place, before) = match (direction, &range.end) {
            (Direction::Forward, _) => (tree.seek(&range.start)?, Direction::Reverse),
            (Direction::Reverse, End::Before(end)) => (tree.seek(end)?, Direction::Forward),
            (Direction::Reverse, End::Open) => (tree.end()?, Direction::Forward),
        };
        place.prove(before, |key| match direction {
            Direction::Forward => *key < *range.start,
            Direction::Reverse => range.is_past(key),
        })?;
        Ok(TreeCursor {
            keyspace: tree.keyspace,
            range: range.clone(),
            direction,
            is_first: true,
            place: Some(place),
        })
    }
}

impl Cursor for TreeCursor<'_> {
    /// A damaged key may look as if the range ended before it, and a damaged page may lead astray. So the
    /// entry that ends the range is checked like one inside, and keys must follow each other.
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let Some(place) = &mut self.place else { return Ok(None) };
        let Some((key, stored)) = place.step(self.direction)? else {
            self.place = None;
            return Ok(None);
        };
        let value = unseal(self.keyspace, key, stored)?;
        place.prove_order(self.direction, key)?;
        // To compare with nothing takes longer than to compare with something.
        let is_before = || !self.range.start.is_empty() && *key < *self.range.start;
        let (ended, too_early) = match self.direction {
            Direction::Forward => (self.range.is_past(key), self.is_first && is_before()),
            Direction::Reverse => (is_before(), self.is_first && self.range.is_past(key)),
        };
        self.is_first = false;
        if too_early {
            return Err(place.misplaced(key));
        }
        if ended {
            self.place = None;
            return Ok(None);
        }
        Ok(Some((key, value)))
    }
}
