//! Decides whether a store may still be written to after a failed write or flush.
//!
//! A failed flush may have dropped pages that it could not write, and the next flush will not report it: for the
//! system these pages are clean. So after such a failure a store is read-only until it is opened again, whatever the
//! library below would do. Work may go on after one failure only: a full disk, if it is proved to be just that,
//! because no flush has failed, and there is no room for another file either.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::directory::is_full;
use crate::error::{Error, Kind, Result, sqlstate};

/// Whether the disk is still trusted; true once that is lost.
#[derive(Default)]
pub(super) struct Trust(AtomicBool);

impl Trust {
    /// Nothing more may be written.
    pub(super) fn is_lost(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Errors: `Unavailable` when nothing more may be written.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_lost() { Err(read_only()) } else { Ok(()) }
    }

    /// Notes that a write or flush has failed and the state of the disk is unknown.
    pub(super) fn lose(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// The error for a failed write. Unless the disk was full, nothing is written any more.
    pub(super) fn after_write(&self, e: io::Error) -> Error {
        if is_full(&e) && !self.is_lost() {
            return full().caused_by(e);
        }
        self.after_flush(e)
    }

    /// The error for a failed flush: nothing is written any more.
    pub(super) fn after_flush(&self, e: io::Error) -> Error {
        self.lose();
        failed(e.to_string()).caused_by(e)
    }
}

/// The error for any write after that.
pub(super) fn read_only() -> Error {
    Error::new(Kind::Unavailable, "the database can only be read since a commit failed")
        .why("the disk refused to write or flush it, and may have lost more than it said")
        .hint("check the disk and open the database again")
        .state(sqlstate::IO)
}

/// The error for a write that failed only because the disk was full.
pub(super) fn full() -> Error {
    Error::new(Kind::Unavailable, "the disk is full").hint("free some space and retry").state(sqlstate::IO)
}

/// The error for any other failure of the disk.
pub(super) fn failed(why: impl Into<String>) -> Error {
    Error::new(Kind::Unavailable, "the database cannot be read or written")
        .why(why)
        .hint("see whether the disk is full or failing, and open the database again: that shows whether the statement was done")
        .state(sqlstate::IO)
}
