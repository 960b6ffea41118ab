//! The write side of the tree: one LMDB write transaction.
//!
//! LMDB admits one at a time: to begin a [`TreeWriter`] waits until the previous one is committed or dropped.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use heed::types::Bytes;
use heed::{CommitOrAbort, PutFlags, RwTxn};

use super::seal::{CHECKSUM_BYTES, checksum_written, seal, unseal};
use super::tally::Tally;
use super::vet::{Deed, OldEntries, Vet};
use super::write_cursor::WriteCursor;
use super::{KeyspaceHandle, Keyspaces, STATE, Tree, VERSION_KEY, aside, name_of};
use crate::error::{Error, Kind, Result};
use crate::key::in_key_order;
use crate::store::{Change, KeyspaceId, Mutation, TakeChange};

/// An open write transaction; dropped, it leaves nothing behind.
pub(in crate::store::embedded) struct TreeWriter<'t> {
    tree: &'t Tree,
    txn: RwTxn<'t>,
    /// The committed keyspaces, and those this transaction has created.
    keyspaces: Arc<Keyspaces>,
    has_created: bool,
    /// The changes of each keyspace, for its tally.
    written: BTreeMap<KeyspaceId, KeyspaceDelta>,
    vet: RefCell<Vet<'t>>,
    /// Damaged keyspaces, whose changes go beside them.
    held: BTreeSet<KeyspaceId>,
    /// The last value written, sealed; kept for its capacity.
    sealed: Vec<u8>,
}

#[derive(Default)]
struct KeyspaceDelta {
    is_cleared: bool,
    /// Tally of entries added minus those removed, since the clear if there was one.
    change: Tally,
    /// The greatest key written. What is beyond it is as it was when the transaction began.
    greatest: Vec<u8>,
}

impl KeyspaceDelta {
    /// Notes that `key` is written, behind all others. Errors: it is not behind them.
    fn ascend(&mut self, key: &[u8]) -> Result<()> {
        if *key <= *self.greatest {
            return Err(Error::internal("changes that do not come in the order of their keys"));
        }
        self.greatest.clear();
        self.greatest.extend_from_slice(key);
        Ok(())
    }

    /// Notes that `key` is written.
    fn reach(&mut self, key: &[u8]) {
        if *key > *self.greatest {
            self.greatest.clear();
            self.greatest.extend_from_slice(key);
        }
    }
}

/// Fewer entries (count) than this are changed where they are.
const REBUILT_ENTRIES: u64 = if cfg!(test) { 16 } else { 1024 };

/// Where a key goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) enum PutPosition {
    /// Wherever it belongs.
    Anywhere,
    /// Behind all others of its keyspace. This fills pages completely and needs no search.
    End,
}

impl<'t> TreeWriter<'t> {
    pub(super) fn begin(tree: &'t Tree) -> Result<Self> {
        let txn = tree.env.write_txn()?;
        let vet = Vet::new(tree, txn.id() as u64 - 1)?;
        tree.check_free_pages(vet.trees())?;
        let held = vet.held();
        // Read with LMDB's write lock held: only writers add keyspaces.
        let keyspaces = tree.keyspaces();
        Ok(TreeWriter {
            tree,
            txn,
            keyspaces,
            has_created: false,
            written: BTreeMap::new(),
            vet: RefCell::new(vet),
            held,
            sealed: Vec::new(),
        })
    }

    /// Applies mutations, each keyspace's in key order, so that each page is visited once.
    pub(in crate::store::embedded) fn apply(&mut self, mutations: &[Mutation]) -> Result<()> {
        let is_clear = |mutation: &Mutation| matches!(mutation, Mutation::Clear(_));
        for run in mutations.chunk_by(|a, b| !is_clear(a) && !is_clear(b)) {
            if let [Mutation::Clear(keyspace)] = run {
                self.clear(*keyspace)?;
                continue;
            }
            let keyspaces: BTreeSet<KeyspaceId> = run.iter().map(Mutation::keyspace).collect();
            for keyspace in keyspaces {
                let changes = || run.iter().filter_map(|m| m.change().filter(|_| m.keyspace() == keyspace));
                if changes().is_sorted_by(|(a, _), (b, _)| a < b) {
                    self.change_all(keyspace, changes().count() as u64, |take| changes().try_for_each(take))?;
                    continue;
                }
                // Of several changes of one key the last counts.
                let sorted = in_key_order(changes(), |(key, _)| ((), key));
                let mut last = sorted.chunk_by(|(a, _), (b, _)| a == b).filter_map(|same| same.last());
                self.change_all(keyspace, sorted.len() as u64, |take| last.try_for_each(|last| take(*last)))?;
            }
        }
        Ok(())
    }

    /// From now on changes of this keyspace go beside it. It must not have been written yet in this transaction.
    pub(in crate::store::embedded) fn hold(&mut self, keyspace: KeyspaceId) {
        self.held.insert(keyspace);
    }

    /// As [`TreeWriter::change_all`], with acknowledged changes: keeps them beside their keyspace if that is held.
    pub(in crate::store::embedded) fn take_in(
        &mut self,
        keyspace: KeyspaceId,
        give: impl FnOnce(&mut TakeChange<'_>) -> Result<()>,
    ) -> Result<()> {
        if !self.held.contains(&keyspace) {
            // A memtable is not asked how many it has.
            return self.change_all(keyspace, 0, give);
        }
        let beside = aside::beside(keyspace);
        give(&mut |(key, value)| self.put(beside, key, &aside::encode(value), PutPosition::Anywhere))
    }

    /// Makes `changes` changes of one keyspace, whose keys ascend. `give` hands them over. If they are as many as half of its
    /// entries, the tree is built anew, which takes less than to change its pages, and fills them.
    pub(in crate::store::embedded) fn change_all(
        &mut self,
        keyspace: KeyspaceId,
        changes: u64,
        give: impl FnOnce(&mut TakeChange<'_>) -> Result<()>,
    ) -> Result<()> {
        self.check_held(keyspace)?;
        let database = match self.keyspaces.get(&keyspace) {
            // What this transaction has written cannot be read beside a cursor of it.
            Some(database) if !self.written.contains_key(&keyspace) => *database,
            _ => return give(&mut |change| self.change(keyspace, change)),
        };
        let entries = self.vet.get_mut().entries(keyspace);
        if entries >= REBUILT_ENTRIES
            && changes >= entries / 2
            && let Some(old) = self.take_out(keyspace)?
        {
            return self.rebuild(keyspace, database, old, give);
        }
        let TreeWriter { tree, txn, written, vet, sealed, .. } = self;
        let (written, vet) = (written.entry(keyspace).or_default(), vet.get_mut());
        let mut cursor = WriteCursor::new(database, txn)?;
        give(&mut |(key, value)| {
            written.ascend(key)?;
            vet.before(keyspace, key, if value.is_some() { Deed::Put } else { Deed::Delete })?;
            let before = vet.committed(keyspace, key)?;
            match value {
                Some(value) => {
                    seal(sealed, keyspace, key, value);
                    cursor.put(key, sealed).map_err(|e| tree.distrust(e))?;
                    written.change.add(sealed);
                }
                None if before.is_some() => cursor.delete(key).map_err(|e| tree.distrust(e))?,
                None => return Ok(()),
            }
            if let Some(before) = before {
                written.change.take(&checksum_written(keyspace, key, before));
            }
            Ok(())
        })
    }

    /// Frees the pages of a keyspace, if each is proved to belong to it, and gives its entries as they were.
    fn take_out(&mut self, keyspace: KeyspaceId) -> Result<Option<OldEntries<'t>>> {
        match self.prove(keyspace) {
            Err(e) if e.kind() == Kind::Corrupt => return Ok(None),
            proof => proof?,
        }
        let old = self.vet.get_mut().entries_of(keyspace)?;
        self.free(keyspace)?;
        Ok(Some(old))
    }

    /// Writes the old entries of a keyspace that was freed anew, with changes.
    fn rebuild(
        &mut self,
        keyspace: KeyspaceId,
        database: KeyspaceHandle,
        mut old: OldEntries<'t>,
        give: impl FnOnce(&mut TakeChange<'_>) -> Result<()>,
    ) -> Result<()> {
        let TreeWriter { tree, txn, written, sealed, .. } = self;
        let written = written.entry(keyspace).or_default();
        let mut cursor = WriteCursor::new(database, txn)?;
        let mut append = |written: &mut KeyspaceDelta, key: &[u8], sealed: &[u8]| {
            written.change.add(sealed);
            cursor.append(key, sealed).map_err(|e| Error::from(tree.distrust(e)))
        };
        give(&mut |(key, value)| {
            // Old entries go as they are: their checksums hold as little or as much as they did.
            old.pass_to(key, |key, sealed| append(written, key, sealed))?;
            written.ascend(key)?;
            let Some(value) = value else { return Ok(()) };
            seal(sealed, keyspace, key, value);
            append(written, key, sealed)
        })?;
        let mut last: &[u8] = &[];
        old.pass_rest(|key, sealed| {
            last = key;
            append(written, key, sealed)
        })?;
        written.reach(last);
        Ok(())
    }

    /// Errors: `Corrupt`, when the keyspace is held.
    fn check_held(&self, keyspace: KeyspaceId) -> Result<()> {
        if self.held.contains(&keyspace) { Err(aside::refused(keyspace)) } else { Ok(()) }
    }

    fn change(&mut self, keyspace: KeyspaceId, (key, value): Change<'_>) -> Result<()> {
        match value {
            Some(value) => self.put(keyspace, key, value, PutPosition::Anywhere),
            None => self.delete(keyspace, key),
        }
    }

    /// The value under `key`, own writes included.
    pub(in crate::store::embedded) fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        self.check_held(keyspace)?;
        let Some(database) = self.keyspaces.get(&keyspace).filter(|_| !key.is_empty()) else {
            return Ok(None);
        };
        self.vet.borrow_mut().before(keyspace, key, Deed::Put)?;
        let stored = database.get(&self.txn, key)?;
        stored.map(|stored| unseal(keyspace, key, stored)).transpose()
    }

    pub(in crate::store::embedded) fn last_key(&self, keyspace: KeyspaceId) -> Result<Option<&[u8]>> {
        self.check_held(keyspace)?;
        let Some(database) = self.keyspaces.get(&keyspace) else { return Ok(None) };
        self.vet.borrow_mut().before_append(keyspace)?;
        Ok(database.last(&self.txn)?.map(|(key, _)| key))
    }

    /// The transaction has written no key from `key` on.
    fn is_beyond(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        self.written.get(&keyspace).is_none_or(|written| *key > *written.greatest)
    }

    pub(in crate::store::embedded) fn put(
        &mut self,
        keyspace: KeyspaceId,
        key: &[u8],
        value: &[u8],
        at: PutPosition,
    ) -> Result<()> {
        self.check_held(keyspace)?;
        let database = match self.keyspaces.get(&keyspace) {
            Some(database) => *database,
            None => self.create(keyspace, 0)?,
        };
        let (before, flags) = match at {
            PutPosition::Anywhere => (self.sum_before(keyspace, key, Deed::Put)?, PutFlags::empty()),
            PutPosition::End => {
                self.vet.get_mut().before_append(keyspace)?;
                (None, PutFlags::APPEND)
            }
        };
        seal(&mut self.sealed, keyspace, key, value);
        let put = database.put_with_flags(&mut self.txn, flags, key, &self.sealed);
        put.map_err(|e| self.tree.distrust(e))?;
        let written = self.written.entry(keyspace).or_default();
        written.reach(key);
        if let Some(before) = before {
            written.change.take(&before);
        }
        written.change.add(&self.sealed);
        Ok(())
    }

    pub(in crate::store::embedded) fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        self.check_held(keyspace)?;
        let Some(database) = self.keyspaces.get(&keyspace).copied().filter(|_| !key.is_empty()) else {
            return Ok(());
        };
        let Some(before) = self.sum_before(keyspace, key, Deed::Delete)? else { return Ok(()) };
        database.delete(&mut self.txn, key).map_err(|e| self.tree.distrust(e))?;
        let written = self.written.entry(keyspace).or_default();
        written.reach(key);
        written.change.take(&before);
        Ok(())
    }

    /// Checks the pages that LMDB will read. Gives the checksum of what is under `key`, own writes included; `None`:
    /// nothing is.
    fn sum_before(
        &mut self,
        keyspace: KeyspaceId,
        key: &[u8],
        deed: Deed,
    ) -> Result<Option<[u8; CHECKSUM_BYTES]>> {
        let is_beyond = self.is_beyond(keyspace, key);
        let vet = self.vet.get_mut();
        vet.before(keyspace, key, deed)?;
        let before = match self.keyspaces.get(&keyspace) {
            // Our own search begins in the leaf of the last key, LMDB's at the root.
            _ if is_beyond => vet.committed(keyspace, key)?,
            Some(database) => database.get(&self.txn, key)?,
            None => None,
        };
        Ok(before.map(|stored| checksum_written(keyspace, key, stored)))
    }

    /// Empties a keyspace, and what was kept beside it. LMDB frees its pages only if each is proved to belong to it.
    /// Otherwise they are given up: the old tree stays in the file unused, and a new one takes its place.
    fn clear(&mut self, keyspace: KeyspaceId) -> Result<()> {
        match self.prove(keyspace) {
            Err(e) if e.kind() == Kind::Corrupt => {
                let given_up = self.forget(keyspace);
                self.create(keyspace, given_up + 1)?;
            }
            proof => proof.and_then(|()| self.free(keyspace))?,
        }
        if self.held.remove(&keyspace) { self.clear(aside::beside(keyspace)) } else { Ok(()) }
    }

    /// Frees all pages of a keyspace, which are proved to belong to it.
    fn free(&mut self, keyspace: KeyspaceId) -> Result<()> {
        self.forget(keyspace);
        let Some(database) = self.keyspaces.get(&keyspace) else { return Ok(()) };
        database.clear(&mut self.txn).map_err(|e| self.tree.distrust(e).into())
    }

    /// The old pages of a keyspace are no longer used. Gives how many of its trees were given up before.
    fn forget(&mut self, keyspace: KeyspaceId) -> usize {
        self.written.insert(keyspace, KeyspaceDelta { is_cleared: true, ..KeyspaceDelta::default() });
        self.vet.get_mut().forget(keyspace)
    }

    /// Errors: `Corrupt`, when the pages of a keyspace may not be those that were written.
    fn prove(&self, keyspace: KeyspaceId) -> Result<()> {
        let found = self.vet.borrow().before_clear(keyspace)?;
        match found {
            Some(found) if found != self.tally(keyspace)? => Err(aside::refused(keyspace)),
            _ => Ok(()),
        }
    }

    /// Creates a keyspace, or the tree that replaces one given up. In a nested transaction, because heed gives out
    /// handles only when a transaction ends. The handle serves this transaction at once, and others when this one
    /// commits.
    fn create(&mut self, keyspace: KeyspaceId, given_up: usize) -> Result<KeyspaceHandle, heed::Error> {
        let env = &self.tree.env;
        let name = name_of(keyspace, given_up);
        let created =
            env.create_databases_and_commit(env.nested_write_txn(&mut self.txn)?, |opener, txn| {
                let database = opener.create_database::<Bytes, Bytes>(txn, Some(&name))?;
                Ok::<_, heed::Error>(CommitOrAbort::Commit::<_, heed::Error>(database))
            })?;
        let database = Result::from(created)?;
        Arc::make_mut(&mut self.keyspaces).insert(keyspace, database);
        self.has_created = true;
        Ok(database)
    }

    /// Records the new tallies. Errors: with the keyspace that failed.
    pub(in crate::store::embedded) fn note_tallies(&mut self) -> Result<(), (KeyspaceId, Error)> {
        let mut written = std::mem::take(&mut self.written).into_iter();
        written.try_for_each(|(keyspace, written)| {
            self.note_tally(keyspace, &written).map_err(|e| (keyspace, e))
        })
    }

    fn note_tally(&mut self, keyspace: KeyspaceId, written: &KeyspaceDelta) -> Result<()> {
        let Some(database) = self.keyspaces.get(&keyspace).filter(|_| keyspace != STATE) else {
            return Ok(());
        };
        let entries = database.len(&self.txn)?;
        let before = if written.is_cleared { Tally::default() } else { self.tally(keyspace)? };
        let now = before.plus(written.change);
        // LMDB may have met a damaged page that looks valid to it.
        now.check(keyspace, entries)?;
        self.put(STATE, &Tally::key(keyspace), &now.encode(), PutPosition::Anywhere)
    }

    /// The tally of a keyspace when this transaction began.
    fn tally(&self, keyspace: KeyspaceId) -> Result<Tally> {
        let noted = self.get(STATE, &Tally::key(keyspace))?;
        Tally::of(keyspace, self.vet.borrow().entries(keyspace), noted)
    }

    /// Makes everything visible and durable. The tree then has everything up to `version`.
    pub(in crate::store::embedded) fn commit(mut self, version: u64) -> Result<()> {
        self.note_tallies().map_err(|(_, e)| e)?;
        self.put(STATE, VERSION_KEY, &version.to_le_bytes(), PutPosition::Anywhere)?;
        let TreeWriter { tree, txn, keyspaces, has_created, .. } = self;
        if has_created {
            let mut known = tree.keyspaces.write();
            txn.commit().map_err(|e| tree.distrust(e))?;
            *known = keyspaces;
        } else {
            txn.commit().map_err(|e| tree.distrust(e))?;
        }
        Ok(())
    }
}
