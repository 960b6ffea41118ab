//! Changes kept beside a damaged keyspace.
//!
//! Acknowledged changes must get from the log into the tree, but LMDB must not read a damaged page. So when one
//! change would go to such a page, all changes of its keyspace go into a tree of their own, in the same transaction.
//! From then on the keyspace is *held*: its pages stay as they are, and nobody writes to it until it is cleared,
//! which discards both trees. Readers get these changes from a memtable, filled when the database is opened.
//!
//! The changes of keyspace 7 are stored in keyspace 2147483655, that is 7 + 2^31, whose name is `7=`. A value there:
//!
//! | bytes | holds |
//! |---|---|
//! | 1 | 0: the key is deleted; 1: it has a value |
//! | n | the value |

use super::KEYSPACES;
use crate::error::{Error, Result};
use crate::store::{DamagedKeyspace, KeyspaceId};

const BESIDE: u32 = 1 << 31;

/// The keyspace with the changes of `keyspace`.
pub(super) fn beside(keyspace: KeyspaceId) -> KeyspaceId {
    KeyspaceId(keyspace.0 | BESIDE)
}

/// The keyspace whose changes are in this one; `None` if this is an ordinary keyspace.
pub(super) fn whose(keyspace: KeyspaceId) -> Option<KeyspaceId> {
    let is_beside = keyspace.0 & BESIDE != 0 && keyspace < KEYSPACES;
    is_beside.then_some(KeyspaceId(keyspace.0 & !BESIDE))
}

/// The stored form of a change: the new value; `None`: deleted.
pub(super) fn encode(value: Option<&[u8]>) -> Vec<u8> {
    [&[u8::from(value.is_some())], value.unwrap_or_default()].concat()
}

/// The change in a stored value. Errors: `Corrupt`.
pub(super) fn decode(stored: &[u8]) -> Result<Option<&[u8]>> {
    match stored {
        [0] => Ok(None),
        [1, value @ ..] => Ok(Some(value)),
        _ => Err(Error::corrupt("the data file is damaged")
            .why("a change that was kept beside a damaged keyspace makes no sense")
            .hint("restore the database from a backup")),
    }
}

/// The error for a write to a held keyspace.
pub(in crate::store::embedded) fn refused(keyspace: KeyspaceId) -> Error {
    Error::corrupt(format!("keyspace {} is damaged", keyspace.0))
        .why("pages of it are not what they were, so nothing more is written there")
        .hint("REPAIR INDEX mends an index; restore a table from a backup, or DROP it; check the disk")
        .caused_by(DamagedKeyspace(keyspace))
}

#[cfg(test)]
mod tests {
    use super::super::{STATE, keyspace_of, name_of};
    use super::*;

    #[test]
    fn the_example_of_the_table() {
        assert_eq!(beside(KeyspaceId(7)), KeyspaceId(2147483655));
        assert_eq!(whose(KeyspaceId(2147483655)), Some(KeyspaceId(7)));
        assert_eq!([KeyspaceId(7), KEYSPACES, STATE].map(whose), [None; 3]);
        for (keyspace, given_up, name) in [
            (KeyspaceId(7), 0, "7"),
            (KeyspaceId(70), 2, "70++"),
            (beside(KeyspaceId(7)), 0, "7="),
            (beside(KeyspaceId(7)), 1, "7=+"),
        ] {
            assert_eq!(name_of(keyspace, given_up), name);
            assert_eq!(keyspace_of(name.as_bytes()).unwrap(), (keyspace, given_up));
        }
        for value in [None, Some(&b""[..]), Some(b"\0value")] {
            assert_eq!(decode(&encode(value)).unwrap(), value);
        }
        assert!(decode(b"").is_err() && decode(b"\0value").is_err() && decode(b"\x02").is_err());
    }
}
