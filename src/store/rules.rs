//! Limits that the local engines check before they write anything, and the errors for them.

use super::{KeyspaceId, Mutation, WriteBatch};
use crate::error::{Error, Result, sqlstate};
use crate::key::{KEY_BYTES_MAX, hex};

/// Longest value, in bytes: what LMDB can store, minus the checksum.
pub(super) const VALUE_BYTES_MAX: usize = u32::MAX as usize - 4;

/// Whether there may be such a key: others have no entry, and the engines cannot look them up.
pub(super) fn may_exist(key: &[u8]) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len())
}

/// Checks that a local engine can store an entry.
///
/// Errors: `Invalid` when the key is empty or too long, or the value too long.
pub(super) fn check_entry(keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> Result<()> {
    if key.is_empty() {
        return Err(Error::invalid(format!("empty key in keyspace {}", keyspace.0))
            .why(format!("a key is 1 to {KEY_BYTES_MAX} bytes long"))
            .state(sqlstate::LIMIT));
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::invalid(format!("key of {} bytes is too long", key.len()))
            .why(format!("the longest key is {KEY_BYTES_MAX} bytes; this one starts {}", hex(&key[..16])))
            .hint("shorten the values, or let the key have md5(col) in place of a long column")
            .state(sqlstate::LIMIT));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(Error::invalid(format!("value of {} bytes is too long", value.len()))
            .why(format!("the longest value is {VALUE_BYTES_MAX} bytes"))
            .state(sqlstate::LIMIT));
    }
    Ok(())
}

/// Checks every put of a batch; errors as [`check_entry`].
pub(super) fn check_batch(batch: &WriteBatch) -> Result<()> {
    batch.mutations.iter().try_for_each(|mutation| match mutation {
        Mutation::Put(keyspace, key, value) => check_entry(*keyspace, key, value),
        Mutation::Delete(..) | Mutation::Clear(_) => Ok(()),
    })
}
