//! The tally of a keyspace: the number of its entries and the sum of their checksums, kept to detect lost writes.
//!
//! A commit records both, under a checksum of their own, for each keyspace that it writes. LMDB's own entry counts
//! are compared with them when a database is opened, and for every `count(*)`. The sum does not depend on the order
//! of the entries, so a commit reads only what it overwrites or deletes to update it; a walk of all entries checks it
//! ([`TreeReader::verify`](super::TreeReader::verify)). This detects what nothing else does: a stale page, valid in
//! itself, that the disk returns as it was some commits ago. A sum that is wrong once stays wrong until its keyspace
//! is cleared.
//!
//! | bytes | holds, little-endian |
//! |---|---|
//! | 8 | entries |
//! | 8 | sum of their checksums, modulo 2^64 |

use super::seal::CHECKSUM_BYTES;
use crate::error::{Error, Result};
use crate::store::KeyspaceId;

/// Prefix of a tally's key, before the keyspace's number.
pub(super) const TALLIES: &[u8] = b"tally ";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) entries: u64,
    pub(super) sum: u64,
}

impl Tally {
    /// The key of a keyspace's tally.
    pub(super) fn key(keyspace: KeyspaceId) -> Vec<u8> {
        [TALLIES, &keyspace.0.to_be_bytes()].concat()
    }

    /// The keyspace whose tally is under `key`.
    pub(super) fn keyspace(key: &[u8]) -> Option<KeyspaceId> {
        let number = key.strip_prefix(TALLIES)?.try_into().ok()?;
        Some(KeyspaceId(u32::from_be_bytes(number)))
    }

    pub(super) fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.entries.to_le_bytes());
        bytes[8..].copy_from_slice(&self.sum.to_le_bytes());
        bytes
    }

    /// Decodes the tally `noted` of a keyspace that has `entries` entries; `None`: it never had any.
    ///
    /// Errors: `Corrupt`, naming the keyspace.
    pub(super) fn of(keyspace: KeyspaceId, entries: u64, noted: Option<&[u8]>) -> Result<Tally> {
        let number = |bytes: &[u8], at| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let decoded = noted.map_or(Some(Tally::default()), |bytes| {
            Some(Tally { entries: number(bytes, 0)?, sum: number(bytes, 8)? })
        });
        let tally = decoded.ok_or_else(|| Error::corrupt("the data file is damaged"))?;
        tally.check(keyspace, entries).map(|()| tally)
    }

    /// Checks that a keyspace has as many entries as the tally says.
    ///
    /// Errors: `Corrupt`, naming the keyspace.
    pub(super) fn check(self, keyspace: KeyspaceId, entries: u64) -> Result<()> {
        if self.entries == entries {
            return Ok(());
        }
        Err(Error::damaged(
            format!("the number of entries of keyspace {} is damaged", keyspace.0),
            format!("its tree says {entries}, and {} were written", self.entries),
        ))
    }

    /// Adds an entry.
    pub(super) fn add(&mut self, stored: &[u8]) {
        self.entries = self.entries.wrapping_add(1);
        self.sum = self.sum.wrapping_add(checksum_of(stored));
    }

    /// Removes an entry.
    pub(super) fn take(&mut self, stored: &[u8]) {
        self.entries = self.entries.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(checksum_of(stored));
    }

    /// The sum of both; each may be a difference below zero (it wraps).
    pub(super) fn plus(self, other: Tally) -> Tally {
        Tally { entries: self.entries.wrapping_add(other.entries), sum: self.sum.wrapping_add(other.sum) }
    }
}

/// The checksum at the end of what is stored.
fn checksum_of(stored: &[u8]) -> u64 {
    stored.last_chunk::<CHECKSUM_BYTES>().map_or(0, |sum| u32::from_le_bytes(*sum).into())
}
