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

/// Proves the key of an entry that is not asked for, and only bounds what is. If the checksum does not hold, because one
/// flipped bit of the value, or of the checksum itself, keeps it from holding, the key is the one that was written.
///
/// Errors: `Corrupt`, naming keyspace and key, when the key may be what is wrong.
#[inline]
pub(super) fn prove_key(keyspace: KeyspaceId, key: &[u8], stored: &[u8]) -> Result<()> {
    match unseal(keyspace, key, stored) {
        Err(e) if !is_damage_behind(keyspace, key, stored) => Err(e),
        _ => Ok(()),
    }
}

/// Of longer values, in bytes, no flipped bit is looked for: that takes a checksum of the whole for each bit.
const SEARCHED_BYTES: usize = 4096;

/// Whether one flipped bit behind the key explains the damage.
#[cold]
fn is_damage_behind(keyspace: KeyspaceId, key: &[u8], stored: &[u8]) -> bool {
    let Some((value, sum)) = stored.split_last_chunk::<CHECKSUM_BYTES>() else { return false };
    if checksum_undamaged(keyspace, key, stored).is_some() {
        return true;
    }
    let (mut value, sum) = (value.to_vec(), u32::from_le_bytes(*sum));
    value.len() <= SEARCHED_BYTES
        && (0..8 * value.len()).any(|bit| {
            let (at, flip) = (bit / 8, 1u8 << (bit % 8));
            value[at] ^= flip;
            let holds = checksum(keyspace, key, &value) == sum;
            value[at] ^= flip;
            holds
        })
}

/// The checksum that an entry was written with, as far as can be told.
pub(super) fn checksum_written(keyspace: KeyspaceId, key: &[u8], stored: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let undamaged = checksum_undamaged(keyspace, key, stored);
    undamaged.or_else(|| stored.last_chunk().copied()).unwrap_or_default()
}

/// The checksum that an entry was written with, if one bit of it was flipped since; `None` if that is not what is wrong.
fn checksum_undamaged(keyspace: KeyspaceId, key: &[u8], stored: &[u8]) -> Option<[u8; CHECKSUM_BYTES]> {
    let (value, sum) = stored.split_last_chunk::<CHECKSUM_BYTES>()?;
    let wanted = checksum(keyspace, key, value);
    let is_one_bit = (wanted ^ u32::from_le_bytes(*sum)).is_power_of_two();
    is_one_bit.then(|| wanted.to_le_bytes())
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
        fn a_flipped_bit_is_found_in_the_value_or_the_checksum_and_never_taken_for_one_in_the_key(
            key in prop::collection::vec(any::<u8>(), 1..20),
            value in prop::collection::vec(any::<u8>(), 0..40),
            at in any::<prop::sample::Index>(),
            bit in 0u32..8,
        ) {
            let keyspace = KeyspaceId(7);
            let mut stored = Vec::new();
            seal(&mut stored, keyspace, &key, &value);
            let sum = *stored.last_chunk::<CHECKSUM_BYTES>().unwrap();
            prop_assert!(prove_key(keyspace, &key, &stored).is_ok());
            let mut other = key.clone();
            other[at.index(key.len())] ^= 1u8 << bit;
            prop_assert!(prove_key(keyspace, &other, &stored).is_err());
            let at = at.index(stored.len());
            stored[at] ^= 1u8 << bit;
            prop_assert!(prove_key(keyspace, &key, &stored).is_ok());
            prop_assert!(prove_key(keyspace, &other, &stored).is_err());
            let is_in_sum = at >= value.len();
            prop_assert_eq!(checksum_undamaged(keyspace, &key, &stored), is_in_sum.then_some(sum));
        }

        #[test]
        fn noise_is_corrupt(noise in prop::collection::vec(any::<u8>(), 0..8)) {
            prop_assume!(unseal(KeyspaceId(1), b"k", &noise).is_err());
            prop_assert_eq!(unseal(KeyspaceId(1), b"k", &noise).unwrap_err().kind(), Kind::Corrupt);
        }
    }
}
