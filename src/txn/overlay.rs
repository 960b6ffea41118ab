//! A snapshot overlaid with a transaction's buffered changes.

use std::sync::Arc;

use super::{Buffer, KeyspaceChanges};
use crate::error::Result;
use crate::key::{End, KeyRange, Rowkey};
use crate::store::{
    Change, ChangeCursor, Cursor, Direction, Entry, KeyspaceId, Merge, Reader, Snapshot, one_or_none,
};

/// Deletions that a walk has to pass before its first entry (count), for that to be worth keeping.
const PASSED_MIN: usize = 16;

/// A transaction's view: its own changes first, then the base.
pub(super) struct Overlay {
    base: Arc<dyn Snapshot>,
    buffer: Buffer,
}

impl Overlay {
    pub(super) fn new(base: Arc<dyn Snapshot>, buffer: Buffer) -> Self {
        Overlay { base, buffer }
    }
}

impl Snapshot for Overlay {
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(OverlayReader { base: self.base.reader()?, buffer: &self.buffer, is_recorded: true }))
    }

    fn unrecorded(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(OverlayReader {
            base: self.base.unrecorded()?,
            buffer: &self.buffer,
            is_recorded: false,
        }))
    }

    /// The version of the base: own writes are not committed yet.
    fn version(&self) -> u64 {
        self.base.version()
    }
}

struct OverlayReader<'s> {
    base: Box<dyn Reader + 's>,
    buffer: &'s Buffer,
    is_recorded: bool,
}

impl Reader for OverlayReader<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        let Some(changes) = self.buffer.get(&keyspace) else {
            return self.base.get(keyspace, key);
        };
        match changes.entries.get(key) {
            Some(change) => Ok(change.as_deref()),
            None if changes.cleared => Ok(None),
            None => self.base.get(keyspace, key),
        }
    }

    fn get_many(&self, keyspace: KeyspaceId, keys: &[&[u8]]) -> Result<Vec<Option<&[u8]>>> {
        let changes = match self.buffer.get(&keyspace) {
            Some(changes) if keys.len() > 1 && !changes.cleared => changes,
            Some(_) => return keys.iter().map(|key| self.get(keyspace, key)).collect(),
            None => return self.base.get_many(keyspace, keys),
        };
        let own: Vec<_> = keys.iter().map(|key| changes.entries.get(*key)).collect();
        let others = keys.iter().zip(&own).filter(|(_, own)| own.is_none()).map(|(key, _)| *key);
        let mut of_base = self.base.get_many(keyspace, &others.collect::<Vec<_>>())?.into_iter();
        let values = own.into_iter().map(|own| match own {
            Some(change) => change.as_deref(),
            None => of_base.next().flatten(),
        });
        Ok(values.collect())
    }

    fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>> {
        let Some(changes) = self.buffer.get(&keyspace) else {
            return self.base.cursor(keyspace, range, direction);
        };
        let range = changes.emptied.left_of(range.clone(), direction);
        if range.is_empty() {
            return self.base.cursor(keyspace, &range, direction);
        }
        let base = match changes.cleared {
            true => None,
            false => Some(self.base.cursor(keyspace, &range, direction)?),
        };
        let own = Buffered::new(changes, &range, direction);
        let begins_deleted = matches!(own.head, Some((_, None)));
        let merge = Merge::new(base, own, direction);
        // What is kept of a walk stands for its reads, too.
        if begins_deleted && self.is_recorded {
            Ok(Box::new(Passing { merge, changes, range: Some(range), direction }))
        } else {
            Ok(Box::new(merge))
        }
    }

    /// Entries of the base plus own puts minus own deletes: off by puts that overwrite a key and deletes that find
    /// none.
    fn entries(&self, keyspace: KeyspaceId) -> Result<u64> {
        let entries = match self.buffer.get(&keyspace) {
            Some(changes) if changes.cleared => changes.net.unsigned_abs(),
            Some(changes) => self.base.entries(keyspace)?.saturating_add_signed(changes.net),
            None => return self.base.entries(keyspace),
        };
        if entries == 0 { one_or_none(self, keyspace) } else { Ok(entries) }
    }

    fn estimate(&self, keyspace: KeyspaceId, range: &KeyRange) -> Result<Option<u64>> {
        if self.buffer.contains_key(&keyspace) { Ok(None) } else { self.base.estimate(keyspace, range) }
    }

    fn count(&self, keyspace: KeyspaceId) -> Result<Option<u64>> {
        if self.buffer.contains_key(&keyspace) { Ok(None) } else { self.base.count(keyspace) }
    }

    /// Only the base: own writes are in memory.
    fn verify(&self, keyspace: KeyspaceId, watch: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        self.base.verify(keyspace, watch)
    }
}

/// A walk that begins with a deletion, and keeps what it passes before its first entry.
struct Passing<'a> {
    merge: Merge<'a, Buffered<'a>>,
    changes: &'a KeyspaceChanges,
    /// The range of the walk, until its first entry.
    range: Option<KeyRange>,
    direction: Direction,
}

impl Cursor for Passing<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let range = self.range.take();
        let entry = self.merge.next()?;
        if let Some(mut passed) = range {
            match (entry, self.direction) {
                (Some((key, _)), Direction::Forward) => passed.end = End::Before(key.into()),
                (Some((key, _)), Direction::Reverse) => passed.start = Rowkey::from(key).successor(),
                (None, _) => {}
            }
            if self.changes.entries.range::<_, [u8]>(passed.bounds()).nth(PASSED_MIN - 1).is_some() {
                self.changes.emptied.note(passed);
            }
        }
        Ok(entry)
    }
}

/// A key and its new value.
type BufferedChange<'a> = (&'a Rowkey, &'a Option<Arc<[u8]>>);

/// Changes in cursor order.
struct Buffered<'a> {
    rest: Box<dyn Iterator<Item = BufferedChange<'a>> + 'a>,
    head: Option<BufferedChange<'a>>,
}

impl<'a> Buffered<'a> {
    fn new(changes: &'a KeyspaceChanges, range: &KeyRange, direction: Direction) -> Self {
        let inside = changes.entries.range::<_, [u8]>(range.bounds());
        let mut rest: Box<dyn Iterator<Item = _>> = match direction {
            Direction::Forward => Box::new(inside),
            Direction::Reverse => Box::new(inside.rev()),
        };
        Buffered { head: rest.next(), rest }
    }
}

impl ChangeCursor for Buffered<'_> {
    fn peek(&self) -> Option<Change<'_>> {
        self.head.map(|(key, change)| (key.as_bytes(), change.as_deref()))
    }

    fn advance(&mut self) {
        self.head = self.rest.next();
    }
}
