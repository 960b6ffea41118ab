//! What a bulk writer has gathered in memory.

use std::collections::BTreeMap;

use crate::store::log::record::LogOperation;
use crate::store::{Change, KeyspaceId};

/// Entries and deletes in memory, the last one of each key.
#[derive(Default)]
pub(super) struct StagingBuffer {
    /// Entries that came in order, keys and values one after the other.
    run: Vec<u8>,
    places: Vec<RunEntry>,
    /// Deletes, and entries that came out of order; they take precedence over the run.
    loose: BTreeMap<(KeyspaceId, Vec<u8>), Option<Vec<u8>>>,
    loose_bytes: usize,
}

/// An entry of the run.
struct RunEntry {
    keyspace: KeyspaceId,
    start: usize,
    key_len: usize,
    value_len: usize,
}

impl StagingBuffer {
    /// Memory used, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.run.len() + self.places.len() * size_of::<RunEntry>() + self.loose_bytes
    }

    /// The key is greater than all in the run.
    pub(super) fn follows(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        self.places.last().is_none_or(|last| (last.keyspace, self.key(last)) < (keyspace, key))
    }

    /// Adds a put or a delete.
    pub(super) fn put(&mut self, keyspace: KeyspaceId, key: &[u8], value: Option<&[u8]>) {
        match value {
            Some(value) if self.follows(keyspace, key) => {
                if !self.loose.is_empty() {
                    self.loose.remove(&(keyspace, key.to_vec()));
                }
                let (start, key_len, value_len) = (self.run.len(), key.len(), value.len());
                self.run.extend_from_slice(key);
                self.run.extend_from_slice(value);
                self.places.push(RunEntry { keyspace, start, key_len, value_len });
            }
            value => {
                self.loose_bytes += key.len() + value.map_or(0, <[u8]>::len) + size_of::<RunEntry>();
                self.loose.insert((keyspace, key.to_vec()), value.map(<[u8]>::to_vec));
            }
        }
    }

    /// The last change of a key; `None` if there is none.
    pub(super) fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Option<Option<&[u8]>> {
        if !self.loose.is_empty()
            && let Some(value) = self.loose.get(&(keyspace, key.to_vec()))
        {
            return Some(value.as_deref());
        }
        let at =
            self.places.binary_search_by(|place| (place.keyspace, self.key(place)).cmp(&(keyspace, key)));
        at.ok().map(|at| Some(self.value(&self.places[at])))
    }

    fn key(&self, place: &RunEntry) -> &[u8] {
        &self.run[place.start..][..place.key_len]
    }

    fn value(&self, place: &RunEntry) -> &[u8] {
        &self.run[place.start + place.key_len..][..place.value_len]
    }

    /// The keyspaces with changes, ascending.
    pub(super) fn keyspaces(&self) -> Vec<KeyspaceId> {
        let mut keyspaces: Vec<_> = self.places.iter().map(|place| place.keyspace).collect();
        keyspaces.dedup();
        keyspaces.extend(self.loose.keys().map(|(keyspace, _)| *keyspace));
        keyspaces.sort_unstable();
        keyspaces.dedup();
        keyspaces
    }

    /// All changes of a keyspace, by key.
    pub(super) fn entries(&self, keyspace: KeyspaceId) -> impl Iterator<Item = Change<'_>> {
        let start = self.places.partition_point(|place| place.keyspace < keyspace);
        let run = self.places[start..].iter().take_while(move |place| place.keyspace == keyspace);
        let mut run = run.map(|place| (self.key(place), Some(self.value(place)))).peekable();
        let loose = self.loose.range((keyspace, Vec::new())..);
        let loose = loose.take_while(move |((other, _), _)| *other == keyspace);
        let mut loose = loose.map(|((_, key), value)| (&key[..], value.as_deref())).peekable();
        std::iter::from_fn(move || match (run.peek(), loose.peek()) {
            (Some((key, _)), Some((other, _))) if key >= other => {
                if key == other {
                    run.next();
                }
                loose.next()
            }
            (Some(_), _) => run.next(),
            (None, _) => loose.next(),
        })
    }

    /// All changes, as steps of a log record.
    pub(super) fn steps(&self) -> impl Iterator<Item = LogOperation<'_>> {
        self.keyspaces().into_iter().flat_map(move |keyspace| {
            self.entries(keyspace).map(move |(key, value)| match value {
                Some(value) => LogOperation::Put(keyspace, key, value),
                None => LogOperation::Delete(keyspace, key),
            })
        })
    }
}
