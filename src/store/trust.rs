//! May a store be written to after a write or a flush has failed?
//!
//! A flush that fails may have dropped what it could not write, and the next one will not tell: to the system the
//! pages are clean. So after such a failure a store is read-only until it is opened again, whatever the library below
//! would do. The one failure that work may go on after is a full disk, if it can be shown to be just that: no flush
//! has failed, and there is no room for another file either.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::directory::is_full;
use crate::error::{Error, Kind, Result, sqlstate};

/// What is believed of the disk.
#[derive(Default)]
pub(super) struct Trust(AtomicBool);

impl Trust {
    /// Nothing more may be written.
    pub(super) fn is_lost(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Errors: nothing more may be written.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_lost() { Err(read_only()) } else { Ok(()) }
    }

    /// A write or a flush has failed, and nobody knows what is on the disk.
    pub(super) fn lose(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// What a write that failed like this means: unless there was no room, nothing is written any more.
    pub(super) fn after_write(&self, e: io::Error) -> Error {
        if is_full(&e) && !self.is_lost() {
            return full().caused_by(e);
        }
        self.after_flush(e)
    }

    /// What a flush that failed like this means: nothing is written any more.
    pub(super) fn after_flush(&self, e: io::Error) -> Error {
        self.lose();
        failed(e.to_string()).caused_by(e)
    }
}

/// What writers are told from then on.
pub(super) fn read_only() -> Error {
    Error::new(Kind::Unavailable, "the database can only be read since a commit failed")
        .why("the disk refused to write or flush it, and may have lost more than it said")
        .hint("check the disk and open the database again")
        .state(sqlstate::IO)
}

/// A write that failed for want of room, and for nothing else.
pub(super) fn full() -> Error {
    Error::new(Kind::Unavailable, "the disk is full").hint("free some space and retry").state(sqlstate::IO)
}

/// A failure of the disk that may be anything.
pub(super) fn failed(why: impl Into<String>) -> Error {
    Error::new(Kind::Unavailable, "the database cannot be read or written")
        .why(why)
        .hint("see whether the disk is full or failing, and open the database again: that shows whether the statement was done")
        .state(sqlstate::IO)
}
