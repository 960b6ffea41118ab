//! May the store be written to after a commit has failed?
//!
//! A flush that fails may have dropped what it could not write, and the next one will not tell: to the system the
//! pages are clean. So after a failed commit the store is read-only until it is opened again, whatever LMDB would
//! do. The one failure that work may go on after is a full disk, if it can be shown to be just that:
//!
//! - a second descriptor of the data file, which the system tells of every failed flush since it was opened,
//!   flushes without an error; and
//! - the disk has no room for another file either.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use heed::MdbError;

use crate::store::directory::Directory;

/// What is believed of the data file.
pub(super) struct Trust {
    witness: File,
    lost: AtomicBool,
}

impl Trust {
    /// Opens a second descriptor, before anything is written.
    pub(super) fn new(directory: &Directory) -> io::Result<Trust> {
        Ok(Trust { witness: File::open(directory.data_file())?, lost: AtomicBool::new(false) })
    }

    /// Errors: a commit has failed in such a way that nothing more may be written.
    pub(super) fn check(&self) -> Result<(), heed::Error> {
        if self.lost.load(Ordering::SeqCst) { Err(heed::Error::Mdb(MdbError::Panic)) } else { Ok(()) }
    }

    /// A commit or a flush failed like this; gives what it was in truth. LMDB reports a write cut short by a
    /// full disk as an I/O error.
    pub(super) fn after(&self, e: heed::Error, directory: &Directory) -> heed::Error {
        if !matches!(e, heed::Error::Io(_)) {
            return e;
        }
        let flushes = self.witness.sync_data().is_ok();
        if flushes && directory.is_out_of_room() {
            return heed::Error::Io(io::ErrorKind::StorageFull.into());
        }
        self.lost.store(true, Ordering::SeqCst);
        e
    }
}
