//! The write side of the tree: one LMDB write transaction.
//!
//! LMDB admits one at a time: whoever begins a [`Writer`] waits until the one before is committed or dropped.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use heed::types::Bytes;
use heed::{CommitOrAbort, PutFlags, RwTxn};

use super::seal::{seal, unseal};
use super::vet::{Deed, Vet};
use super::view::check_noted;
use super::{COUNTED_KEY, Keyspace, Keyspaces, STATE, Tree, VERSION_KEY, entries_key};
use crate::error::Result;
use crate::store::{KeyspaceId, Mutation};

/// An open write transaction; dropped, it leaves nothing behind.
pub(in crate::store::embedded) struct Writer<'t> {
    tree: &'t Tree,
    txn: RwTxn<'t>,
    /// The committed keyspaces, and those this transaction has created.
    keyspaces: Arc<Keyspaces>,
    has_created: bool,
    /// Those whose number of entries may be another one now.
    touched: BTreeSet<KeyspaceId>,
    vet: RefCell<Vet<'t>>,
    /// The last value written, sealed; kept for its capacity.
    sealed: Vec<u8>,
}

/// Where a key goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store::embedded) enum At {
    /// Wherever it belongs.
    Anywhere,
    /// Behind all others of its keyspace. That fills pages to the brim and searches nothing.
    End,
}

impl<'t> Writer<'t> {
    pub(super) fn begin(tree: &'t Tree) -> Result<Self> {
        let txn = tree.env.write_txn()?;
        let vet = RefCell::new(Vet::new(tree, txn.id() as u64 - 1)?);
        // Read after the lock is ours: only writers add keyspaces.
        let keyspaces = tree.keyspaces();
        Ok(Writer {
            tree,
            txn,
            keyspaces,
            has_created: false,
            touched: BTreeSet::new(),
            vet,
            sealed: Vec::new(),
        })
    }

    pub(in crate::store::embedded) fn apply(&mut self, mutations: &[Mutation]) -> Result<()> {
        mutations.iter().try_for_each(|mutation| match mutation {
            Mutation::Put(keyspace, key, value) => self.put(*keyspace, key, value, At::Anywhere),
            Mutation::Delete(keyspace, key) => self.delete(*keyspace, key),
            Mutation::Clear(keyspace) => self.clear(*keyspace),
        })
    }

    /// The value under `key`, own writes included.
    pub(in crate::store::embedded) fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        let Some(database) = self.keyspaces.get(&keyspace).filter(|_| !key.is_empty()) else {
            return Ok(None);
        };
        self.vet.borrow_mut().before(keyspace, key, Deed::Put)?;
        let stored = database.get(&self.txn, key)?;
        stored.map(|stored| unseal(keyspace, key, stored)).transpose()
    }

    pub(in crate::store::embedded) fn last_key(&self, keyspace: KeyspaceId) -> Result<Option<&[u8]>> {
        let Some(database) = self.keyspaces.get(&keyspace) else { return Ok(None) };
        self.vet.borrow_mut().before_append(keyspace)?;
        Ok(database.last(&self.txn)?.map(|(key, _)| key))
    }

    pub(in crate::store::embedded) fn put(
        &mut self,
        keyspace: KeyspaceId,
        key: &[u8],
        value: &[u8],
        at: At,
    ) -> Result<()> {
        let database = match self.keyspaces.get(&keyspace) {
            Some(database) => *database,
            None => self.create(keyspace)?,
        };
        match at {
            At::Anywhere => self.vet.get_mut().before(keyspace, key, Deed::Put)?,
            At::End => self.vet.get_mut().before_append(keyspace)?,
        }
        self.touched.insert(keyspace);
        seal(&mut self.sealed, keyspace, key, value);
        let flags = if at == At::End { PutFlags::APPEND } else { PutFlags::empty() };
        Ok(database.put_with_flags(&mut self.txn, flags, key, &self.sealed)?)
    }

    pub(in crate::store::embedded) fn delete(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Result<()> {
        if let Some(database) = self.keyspaces.get(&keyspace).filter(|_| !key.is_empty()) {
            self.vet.get_mut().before(keyspace, key, Deed::Delete)?;
            self.touched.insert(keyspace);
            database.delete(&mut self.txn, key)?;
        }
        Ok(())
    }

    fn clear(&mut self, keyspace: KeyspaceId) -> Result<()> {
        self.vet.get_mut().before_clear(keyspace)?;
        self.touched.insert(keyspace);
        match self.keyspaces.get(&keyspace) {
            Some(database) => Ok(database.clear(&mut self.txn)?),
            None => Ok(()),
        }
    }

    /// Creates a keyspace, in a nested transaction because heed gives handles out only at the end of
    /// one. The handle is good for this transaction at once, and for others when this one commits.
    fn create(&mut self, keyspace: KeyspaceId) -> Result<Keyspace, heed::Error> {
        let env = &self.tree.env;
        let created =
            env.create_databases_and_commit(env.nested_write_txn(&mut self.txn)?, |opener, txn| {
                let database = opener.create_database::<Bytes, Bytes>(txn, Some(&keyspace.0.to_string()))?;
                Ok::<_, heed::Error>(CommitOrAbort::Commit::<_, heed::Error>(database))
            })?;
        let database = Result::from(created)?;
        Arc::make_mut(&mut self.keyspaces).insert(keyspace, database);
        self.has_created = true;
        Ok(database)
    }

    /// Notes how many entries there are: what LMDB notes of that has no checksum.
    fn count(&mut self) -> Result<()> {
        let is_counted = self.get(STATE, COUNTED_KEY)? == self.get(STATE, VERSION_KEY)?;
        let touched = match is_counted {
            true => std::mem::take(&mut self.touched),
            false => self.keyspaces.keys().copied().collect(),
        };
        for keyspace in touched.into_iter().filter(|keyspace| *keyspace != STATE) {
            if let Some(database) = self.keyspaces.get(&keyspace) {
                let entries = database.len(&self.txn)?;
                if let Some(noted) = self.get(STATE, &entries_key(keyspace))?.filter(|_| is_counted) {
                    check_noted(keyspace, self.vet.borrow().entries(keyspace), noted)?;
                }
                self.put(STATE, &entries_key(keyspace), &entries.to_le_bytes(), At::Anywhere)?;
            }
        }
        Ok(())
    }

    /// Leaves the notes as they are.
    #[cfg(test)]
    pub(in crate::store::embedded) fn commit_uncounted(self) {
        self.txn.commit().unwrap();
    }

    /// Makes it all visible and durable; the tree has everything up to `version` then.
    pub(in crate::store::embedded) fn commit(mut self, version: u64) -> Result<()> {
        self.count()?;
        self.put(STATE, VERSION_KEY, &version.to_le_bytes(), At::Anywhere)?;
        self.put(STATE, COUNTED_KEY, &version.to_le_bytes(), At::Anywhere)?;
        let Writer { tree, txn, keyspaces, has_created, .. } = self;
        if has_created {
            let mut known = tree.keyspaces.write().unwrap_or_else(PoisonError::into_inner);
            txn.commit().map_err(|e| tree.distrust(e))?;
            *known = keyspaces;
        } else {
            txn.commit().map_err(|e| tree.distrust(e))?;
        }
        Ok(())
    }
}
