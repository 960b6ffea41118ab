//! A snapshot with buffered changes laid over it.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::Arc;

use super::{Buffer, Changes};
use crate::error::Result;
use crate::key::{KeyRange, Rowkey};
use crate::store::{Cursor, Direction, Entry, KeyspaceId, Reader, Snapshot, bounds};

/// What a transaction sees: its own changes first, the base below.
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
        Ok(Box::new(OverlayReader { base: self.base.reader()?, buffer: &self.buffer }))
    }

    fn unrecorded(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(OverlayReader { base: self.base.unrecorded()?, buffer: &self.buffer }))
    }

    /// The version of the base: own writes are no commit yet.
    fn version(&self) -> u64 {
        self.base.version()
    }
}

struct OverlayReader<'s> {
    base: Box<dyn Reader + 's>,
    buffer: &'s Buffer,
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

    fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>> {
        match self.buffer.get(&keyspace) {
            Some(changes) if !range.is_empty() => {
                let base = match changes.cleared {
                    true => None,
                    false => Some(self.base.cursor(keyspace, range, direction)?),
                };
                Ok(Box::new(Merge::new(base, changes, range, direction)))
            }
            _ => self.base.cursor(keyspace, range, direction),
        }
    }

    /// Entries of the base plus own puts less own deletes: off by the puts that overwrite a key and
    /// the deletes that find none.
    fn entries(&self, keyspace: KeyspaceId) -> Result<u64> {
        Ok(match self.buffer.get(&keyspace) {
            Some(changes) if changes.cleared => changes.net.unsigned_abs(),
            Some(changes) => self.base.entries(keyspace)?.saturating_add_signed(changes.net),
            None => self.base.entries(keyspace)?,
        })
    }

    fn count(&self, keyspace: KeyspaceId) -> Result<Option<u64>> {
        if self.buffer.contains_key(&keyspace) { Ok(None) } else { self.base.count(keyspace) }
    }
}

/// Changes in cursor order.
type ChangeIter<'a> = Box<dyn Iterator<Item = (&'a Rowkey, &'a Option<Arc<[u8]>>)> + 'a>;

/// Two ways into one range, walked in step; a change wins over the base entry of its key.
struct Merge<'a> {
    /// `None` when the keyspace was cleared or the base has run dry.
    base: Option<Box<dyn Cursor + 'a>>,
    changes: Peekable<ChangeIter<'a>>,
    direction: Direction,
    /// A base entry that waits for the changes before it; copied, since the base lends it only until
    /// it moves. Once the changes are used up, base entries pass through uncopied.
    head: Head,
}

#[derive(Default)]
struct Head {
    full: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> Merge<'a> {
    fn new(
        base: Option<Box<dyn Cursor + 'a>>,
        changes: &'a Changes,
        range: &KeyRange,
        direction: Direction,
    ) -> Self {
        let inside = changes.entries.range::<_, [u8]>(bounds(range));
        let changes: ChangeIter<'a> = match direction {
            Direction::Forward => Box::new(inside),
            Direction::Reverse => Box::new(inside.rev()),
        };
        Merge { base, changes: changes.peekable(), direction, head: Head::default() }
    }

    /// Makes the next base entry wait in `head`, unless one waits already or there is none.
    fn fill_head(&mut self) -> Result<()> {
        if self.head.full {
            return Ok(());
        }
        let Some(base) = &mut self.base else { return Ok(()) };
        match base.next()? {
            Some(entry) => self.head.hold(entry),
            None => self.base = None,
        }
        Ok(())
    }

    /// How the waiting base entry lies to `key`, in cursor order; no entry lies behind everything.
    fn head_cmp(&self, key: &[u8]) -> Ordering {
        match (self.head.full, self.direction) {
            (false, _) => Ordering::Greater,
            (true, Direction::Forward) => self.head.key[..].cmp(key),
            (true, Direction::Reverse) => key.cmp(&self.head.key[..]),
        }
    }
}

impl Head {
    fn hold(&mut self, (key, value): Entry<'_>) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.value.extend_from_slice(value);
        self.full = true;
    }

    fn release(&mut self) -> Entry<'_> {
        self.full = false;
        (&self.key, &self.value)
    }
}

impl Cursor for Merge<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        while let Some(&(key, change)) = self.changes.peek() {
            self.fill_head()?;
            match self.head_cmp(key) {
                Ordering::Less => return Ok(Some(self.head.release())),
                Ordering::Equal => self.head.full = false,
                Ordering::Greater => {}
            }
            self.changes.next();
            if let Some(value) = change {
                return Ok(Some((key.as_bytes(), value.as_ref())));
            }
        }
        if self.head.full {
            return Ok(Some(self.head.release()));
        }
        match &mut self.base {
            Some(base) => base.next(),
            None => Ok(None),
        }
    }
}
