//! Changes laid over what lies below, as one cursor.

use std::cmp::Ordering;

use super::{Cursor, Direction, Entry};
use crate::error::Result;

/// A key and its new value; `None` hides the key of what lies below.
pub type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// Changes in the order of a cursor.
pub trait Changes {
    /// The one at hand; `None` behind the last one.
    fn peek(&self) -> Option<Change<'_>>;

    /// Goes on to the next one.
    fn advance(&mut self);
}

/// Two ways into one range, walked in step; a change wins over the entry of its key below.
pub struct Merge<'a, C> {
    /// `None` when there is nothing, or nothing more.
    below: Option<Box<dyn Cursor + 'a>>,
    changes: C,
    direction: Direction,
    /// The change at hand was given out.
    is_spent: bool,
    /// An entry from below that waits for the changes before it; copied, since it is lent only until the cursor
    /// moves. Once the changes are used up, entries pass through uncopied.
    head: Head,
}

#[derive(Default)]
struct Head {
    full: bool,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'a, C: Changes> Merge<'a, C> {
    /// Both must go this way through the same range.
    pub fn new(below: Option<Box<dyn Cursor + 'a>>, changes: C, direction: Direction) -> Self {
        Merge { below, changes, direction, is_spent: false, head: Head::default() }
    }

    /// Makes the next entry from below wait in `head`, unless one waits already or there is none.
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

    /// How the waiting entry lies to `key`, in cursor order; no entry lies behind everything.
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

impl<C: Changes> Cursor for Merge<'_, C> {
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
