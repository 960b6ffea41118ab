//! Values as stored: the caller's bytes, followed by a checksum of keyspace, key and value.
//!
//! | bytes | holds |
//! |---|---|
//! | n | the value |
//! | 4 | the lower half, little-endian, of XXH3-64 of the value, seeded with XXH3-64 of the key, seeded with the keyspace |
//!
//! Example: keyspace 7, key `k`, value `hello`: the checksum is eacb81ae, so `68 65 6c 6c 6f ae 81 cb ea` is
//! stored.
//!
//! LMDB has no checksums of its own. Ours covers the key too, so a value under the wrong key is detected. Entries are
//! short, and for short ones XXH3 takes less than half as long as a CRC; checksums are a large part of the cost of a
//! cursor step.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, Result};
use crate::store::{DamagedEntry, KeyspaceId};

/// Length of the checksum, in bytes.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// Replaces the content of `out` by `value` in its stored form.
pub(super) fn seal(out: &mut Vec<u8>, keyspace: KeyspaceId, key: &[u8], value: &[u8]) {
    out.clear();
    out.reserve(value.len() + CHECKSUM_BYTES);
    out.extend_from_slice(value);
    out.extend_from_slice(&checksum(keyspace, key, value).to_le_bytes());
}

/// The value in `stored`.
///
/// Errors: `Corrupt`, naming keyspace and key, when the checksum does not hold.
#[inline]
pub(super) fn unseal<'a>(keyspace: KeyspaceId, key: &[u8], stored: &'a [u8]) -> Result<&'a [u8]> {
    match stored.split_last_chunk::<CHECKSUM_BYTES>() {
        Some((value, sum)) if u32::from_le_bytes(*sum) == checksum(keyspace, key, value) => Ok(value),
        _ => Err(damaged(keyspace, key)),
    }
}

#[cold]
fn damaged(keyspace: KeyspaceId, key: &[u8]) -> Error {
    let entry = DamagedEntry { keyspace, key: key.to_vec() };
    Error::damaged(format!("{entry} is damaged"), "its checksum does not match its bytes").caused_by(entry)
}

fn checksum(keyspace: KeyspaceId, key: &[u8], value: &[u8]) -> u32 {
    xxh3_64_with_seed(value, xxh3_64_with_seed(key, keyspace.0.into())) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::key::hex;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_the_table() {
        let mut out = Vec::new();
        seal(&mut out, KeyspaceId(7), b"k", b"hello");
        assert_eq!(hex(&out), "68656c6c6fae81cbea");
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_and_any_flipped_bit_shows(
            keyspace in any::<u32>(),
            key in prop::collection::vec(any::<u8>(), 1..20),
            value in prop::collection::vec(any::<u8>(), 0..40),
            at in any::<prop::sample::Index>(),
            bit in 0u32..8,
        ) {
            let keyspace = KeyspaceId(keyspace);
            let mut stored = vec![1, 2, 3];
            seal(&mut stored, keyspace, &key, &value);
            prop_assert_eq!(unseal(keyspace, &key, &stored).unwrap(), &value[..]);
            let at = at.index(stored.len());
            stored[at] ^= 1u8 << bit;
            prop_assert_eq!(unseal(keyspace, &key, &stored).unwrap_err().kind(), Kind::Corrupt);
        }

        #[test]
        fn noise_is_corrupt(noise in prop::collection::vec(any::<u8>(), 0..8)) {
            prop_assume!(unseal(KeyspaceId(1), b"k", &noise).is_err());
            prop_assert_eq!(unseal(KeyspaceId(1), b"k", &noise).unwrap_err().kind(), Kind::Corrupt);
        }
    }
}
