//! A record of the log: a version, and the steps that made it.
//!
//! The version is 8 bytes; then steps, one after the other. All numbers are little-endian.
//!
//! | step | bytes |
//! |---|---|
//! | put | 1, keyspace (4), length of key (4), length of value (4), key, value |
//! | delete | 2, keyspace (4), length of key (4), key |
//! | clear | 3, keyspace (4) |
//! | take slots | 4, the next slot (4) |
//!
//! Example: version 5 deletes `k` of keyspace 7: `0500000000000000 02 07000000 01000000 6b`.

use crate::store::{KeyspaceId, Mutation};

/// One change to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum LogOperation<'a> {
    Put(KeyspaceId, &'a [u8], &'a [u8]),
    Delete(KeyspaceId, &'a [u8]),
    Clear(KeyspaceId),
    /// All slots of the LSM engine before this one are taken, possibly by a bulk writer that never commits.
    TakeSlots(u32),
}

impl<'a> From<&'a Mutation> for LogOperation<'a> {
    fn from(mutation: &'a Mutation) -> LogOperation<'a> {
        match mutation {
            Mutation::Put(keyspace, key, value) => LogOperation::Put(*keyspace, key, value),
            Mutation::Delete(keyspace, key) => LogOperation::Delete(*keyspace, key),
            Mutation::Clear(keyspace) => LogOperation::Clear(*keyspace),
        }
    }
}

/// Appends a record to `out`. Keys and values are shorter than 4 GiB.
pub(in crate::store) fn encode<'a>(
    out: &mut Vec<u8>,
    version: u64,
    steps: impl Iterator<Item = LogOperation<'a>>,
) {
    out.extend(version.to_le_bytes());
    for step in steps {
        let number = |n: usize| (n as u32).to_le_bytes();
        match step {
            LogOperation::Put(keyspace, key, value) => {
                out.push(1);
                out.extend(keyspace.0.to_le_bytes());
                out.extend(number(key.len()));
                out.extend(number(value.len()));
                out.extend(key);
                out.extend(value);
            }
            LogOperation::Delete(keyspace, key) => {
                out.push(2);
                out.extend(keyspace.0.to_le_bytes());
                out.extend(number(key.len()));
                out.extend(key);
            }
            LogOperation::Clear(keyspace) => {
                out.push(3);
                out.extend(keyspace.0.to_le_bytes());
            }
            LogOperation::TakeSlots(next) => {
                out.push(4);
                out.extend(next.to_le_bytes());
            }
        }
    }
}

/// The version and its steps; `None` if the bytes are not a record.
pub(in crate::store) fn decode(record: &[u8]) -> Option<(u64, Vec<LogOperation<'_>>)> {
    let (version, mut rest) = record.split_first_chunk::<8>()?;
    let mut steps = Vec::new();
    while let Some((kind, more)) = rest.split_first() {
        rest = more;
        let first = number(&mut rest)?;
        let keyspace = KeyspaceId(first);
        steps.push(match kind {
            1 => {
                let (key, value) = (number(&mut rest)?, number(&mut rest)?);
                LogOperation::Put(keyspace, bytes(&mut rest, key)?, bytes(&mut rest, value)?)
            }
            2 => {
                let key = number(&mut rest)?;
                LogOperation::Delete(keyspace, bytes(&mut rest, key)?)
            }
            3 => LogOperation::Clear(keyspace),
            4 => LogOperation::TakeSlots(first),
            _ => return None,
        });
    }
    Some((u64::from_le_bytes(*version), steps))
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    bytes(rest, 4)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

fn bytes<'a>(rest: &mut &'a [u8], len: u32) -> Option<&'a [u8]> {
    let (bytes, more) = rest.split_at_checked(len as usize)?;
    *rest = more;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::hex;

    #[test]
    fn the_example_of_the_table() {
        let mut out = Vec::new();
        encode(&mut out, 5, std::iter::once(LogOperation::Delete(KeyspaceId(7), b"k")));
        assert_eq!(hex(&out), "05000000000000000207000000010000006b");
    }

    fn some_step() -> impl Strategy<Value = (u8, u32, Vec<u8>, Vec<u8>)> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..20);
        (0..4u8, any::<u32>(), bytes(), bytes())
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_and_a_cut_does_not(
            version in any::<u64>(),
            steps in prop::collection::vec(some_step(), 0..8),
        ) {
            let steps: Vec<LogOperation<'_>> = steps.iter().map(|(kind, n, key, value)| match kind {
                0 => LogOperation::Put(KeyspaceId(*n), key, value),
                1 => LogOperation::Delete(KeyspaceId(*n), key),
                2 => LogOperation::Clear(KeyspaceId(*n)),
                _ => LogOperation::TakeSlots(*n),
            }).collect();
            let mut out = Vec::new();
            encode(&mut out, version, steps.iter().copied());
            prop_assert_eq!(decode(&out), Some((version, steps.clone())));
            if !steps.is_empty() {
                let cut = decode(&out[..out.len() - 1]);
                prop_assert!(cut.is_none_or(|(_, found)| found.len() < steps.len()));
            }
        }

        #[test]
        fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode(&noise);
        }
    }
}
