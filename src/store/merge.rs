//! Overlays changes on the entries of a cursor, as one cursor.

use std::cmp::Ordering;

use super::{Cursor, Direction, Entry};
use crate::error::Result;

/// A key and its new value; `None` hides the entry below.
pub type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// Changes, in the order of a cursor.
pub trait ChangeCursor {
    /// The current change; `None` behind the last one.
    fn peek(&self) -> Option<Change<'_>>;

    /// Moves to the next change.
    fn advance(&mut self);
}

/// Merges a cursor with changes of the same range; a change wins over the entry of its key below.
pub struct Merge<'a, C> {
    /// `None` when it has no more entries.
    below: Option<Box<dyn Cursor + 'a>>,
    changes: C,
    direction: Direction,
    /// The current change was given out.
    is_spent: bool,
    /// An entry from below that waits for the changes before it. Copied, since it is lent only until the cursor
    /// moves. After the last change, entries pass through uncopied.
    head: Head,
}

#[derive(Default)]
struct Head {
    full: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a, C: ChangeCursor> Merge<'a, C> {
    /// Both must walk the same range in this direction.
    pub fn new(below: Option<Box<dyn Cursor + 'a>>, changes: C, direction: Direction) -> Self {
        Merge { below, changes, direction, is_spent: false, head: Head::default() }
    }

    /// Moves the next entry from below into `head`, unless one waits there already.
    fn fill_head(&mut self) -> Result<()> {
        if self.head.full {
            return Ok(());
        }
        let Some(below) = &mut self.below else { return Ok(()) };
        match below.next()? {
            Some(entry) => self.head.hold(entry),
            None => self.below = None,
        }
        Ok(())
    }

    /// Compares the waiting entry with `key`, in cursor order; no entry counts as behind everything.
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

impl<C: ChangeCursor> Cursor for Merge<'_, C> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        if std::mem::take(&mut self.is_spent) {
            self.changes.advance();
        }
        while self.changes.peek().is_some() {
            self.fill_head()?;
            let Some((key, change)) = self.changes.peek() else { break };
            match self.head_cmp(key) {
                Ordering::Less => return Ok(Some(self.head.release())),
                Ordering::Equal => self.head.full = false,
                Ordering::Greater => {}
            }
            if change.is_some() {
                self.is_spent = true;
                return Ok(self.changes.peek().and_then(|(key, change)| Some((key, change?))));
            }
            self.changes.advance();
        }
        if self.head.full {
            return Ok(Some(self.head.release()));
        }
        match &mut self.below {
            Some(below) => below.next(),
            None => Ok(None),
        }
    }
}
