//! GETs of a long walk.

use crate::error::Result;
use crate::store::{Reader, Snapshot};

/// Entries (count) that one reader serves.
const SERVED_MAX: usize = 1024;

/// A reader for the GETs that a walk makes for each of its entries. A reader may keep whatever it has lent, so there is
/// a new one now and then.
pub(super) struct Gets<'s> {
    snapshot: &'s dyn Snapshot,
    open: OpenReader<'s>,
    reader: Box<dyn Reader + 's>,
    served: usize,
}

type OpenReader<'s> = fn(&'s dyn Snapshot) -> Result<Box<dyn Reader + 's>>;

impl<'s> Gets<'s> {
    pub(super) fn of(snapshot: &'s dyn Snapshot) -> Result<Gets<'s>> {
        Gets::opened(snapshot, |snapshot| snapshot.reader())
    }

    /// By [`Snapshot::unrecorded`].
    pub(super) fn unrecorded(snapshot: &'s dyn Snapshot) -> Result<Gets<'s>> {
        Gets::opened(snapshot, |snapshot| snapshot.unrecorded())
    }

    fn opened(snapshot: &'s dyn Snapshot, open: OpenReader<'s>) -> Result<Gets<'s>> {
        Ok(Gets { snapshot, open, reader: open(snapshot)?, served: 0 })
    }

    /// The reader, for what was begun.
    pub(super) fn reader(&self) -> &dyn Reader {
        &*self.reader
    }

    /// The reader for the next entry.
    pub(super) fn next(&mut self) -> Result<&dyn Reader> {
        if self.served == SERVED_MAX {
            (self.reader, self.served) = ((self.open)(self.snapshot)?, 0);
        }
        self.served += 1;
        Ok(&*self.reader)
    }
}
