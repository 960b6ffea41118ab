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
use super::vet::{Deed, Vet};
use super::{KeyspaceHandle, Keyspaces, STATE, Tree, VERSION_KEY, aside, name_of};
use crate::error::{Error, Kind, Result};
use crate::key::in_key_order;
use crate::store::{Change, KeyspaceId, Mutation};

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
    /// Notes that `key` is written.
    fn reach(&mut self, key: &[u8]) {
        if *key > *self.greatest {
            self.greatest.clear();
            self.greatest.extend_from_slice(key);
        }
    }
}

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
                if changes().is_sorted_by_key(|(key, _)| key) {
                    changes().try_for_each(|change| self.change(keyspace, change))?;
                    continue;
                }
                // Of several changes of one key the last counts.
                let sorted = in_key_order(changes(), |(key, _)| ((), key));
                sorted.into_iter().try_for_each(|change| self.change(keyspace, change))?;
            }
        }
        Ok(())
    }

    /// From now on changes of this keyspace go beside it. It must not have been written yet in this transaction.
    pub(in crate::store::embedded) fn hold(&mut self, keyspace: KeyspaceId) {
        self.held.insert(keyspace);
    }

    /// Applies an acknowledged change, or keeps it beside its keyspace if that is held.
    pub(in crate::store::embedded) fn take_in(
        &mut self,
        keyspace: KeyspaceId,
        (key, value): Change<'_>,
    ) -> Result<()> {
        if self.held.contains(&keyspace) {
            return self.put(aside::beside(keyspace), key, &aside::encode(value), PutPosition::Anywhere);
        }
        self.change(keyspace, (key, value))
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
        let proof = self.prove(keyspace);
        let given_up = self.vet.get_mut().forget(keyspace);
        self.written.insert(keyspace, KeyspaceDelta { is_cleared: true, ..KeyspaceDelta::default() });
        match (proof, self.keyspaces.get(&keyspace)) {
            (Err(e), _) if e.kind() != Kind::Corrupt => return Err(e),
            (Err(_), _) => {
                self.create(keyspace, given_up + 1)?;
            }
            (Ok(()), Some(database)) => {
                database.clear(&mut self.txn).map_err(|e| self.tree.distrust(e))?;
            }
            (Ok(()), None) => {}
        }
        if self.held.remove(&keyspace) { self.clear(aside::beside(keyspace)) } else { Ok(()) }
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
