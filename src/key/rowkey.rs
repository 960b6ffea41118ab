//! Rowkeys: the bytes under which a row is stored.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// Longest key in bytes: two keys of this length fit a 4 KiB page of LMDB. All engines have the same limit,
/// so that a schema works with each of them.
pub const KEY_BYTES_MAX: usize = 1982;

/// Owned key bytes, ordered by `memcmp`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Rowkey(Vec<u8>);

impl Rowkey {
    /// A key of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Rowkey(bytes.into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, owned.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The smallest key greater than this one: it has one more 00 byte.
    #[must_use]
    pub fn successor(&self) -> Rowkey {
        let mut bytes = Vec::with_capacity(self.0.len() + 1);
        bytes.extend_from_slice(&self.0);
        bytes.push(0);
        Rowkey(bytes)
    }
}

/// The first 16 bytes of a key as numbers, padded with zeros. They sort as keys do; keys with equal heads
/// need a full comparison.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHead([u64; 2]);

impl KeyHead {
    /// The head of a key.
    pub fn of(key: &[u8]) -> KeyHead {
        KeyHead([number(key), number(key.get(8..).unwrap_or_default())])
    }
}

impl Ord for KeyHead {
    /// Branchless, because heads are sorted.
    #[inline]
    fn cmp(&self, other: &KeyHead) -> Ordering {
        let number = |KeyHead([first, rest]): &KeyHead| u128::from(*first) << 64 | u128::from(*rest);
        number(self).cmp(&number(other))
    }
}

impl PartialOrd for KeyHead {
    #[inline]
    fn partial_cmp(&self, other: &KeyHead) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Sorts items by space and key; items with equal keys keep their order. Most comparisons only look at heads,
/// which lie next to each other in memory.
pub fn in_key_order<T, S: Ord>(
    items: impl Iterator<Item = T>,
    place: impl for<'t> Fn(&'t T) -> (S, &'t [u8]),
) -> Vec<T> {
    let headed = |item| {
        let (space, key) = place(&item);
        ((space, KeyHead::of(key)), item)
    };
    let mut headed: Vec<((S, KeyHead), T)> = items.map(headed).collect();
    headed.sort_by(|(a, of_a), (b, of_b)| a.cmp(b).then_with(|| place(of_a).1.cmp(place(of_b).1)));
    headed.into_iter().map(|(_, item)| item).collect()
}

/// The first eight bytes as a number that sorts as they do.
fn number(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut chunk = [0; 8];
            chunk[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(chunk)
        }
    }
}

/// The smallest byte string greater than every one that starts with `prefix`; `None` if `prefix` is
/// empty or all FF.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Lower-case hex, two digits per byte.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for &b in bytes {
        out.push(DIGITS[usize::from(b >> 4)].into());
        out.push(DIGITS[usize::from(b & 15)].into());
    }
    out
}

impl Deref for Rowkey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Rowkey {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Rowkey {
    fn from(bytes: Vec<u8>) -> Self {
        Rowkey(bytes)
    }
}

impl From<&[u8]> for Rowkey {
    fn from(bytes: &[u8]) -> Self {
        Rowkey(bytes.to_vec())
    }
}

impl<const N: usize> From<&[u8; N]> for Rowkey {
    fn from(bytes: &[u8; N]) -> Self {
        Rowkey(bytes.to_vec())
    }
}

impl From<String> for Rowkey {
    fn from(text: String) -> Self {
        Rowkey(text.into_bytes())
    }
}

impl From<&str> for Rowkey {
    fn from(text: &str) -> Self {
        Rowkey(text.as_bytes().to_vec())
    }
}

/// Printable ASCII as it is, every other byte as `\xNN`.
impl fmt::Debug for Rowkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn heads_sort_as_keys_do(
            same in prop::collection::vec(any::<u8>(), 0..20),
            a in prop::collection::vec(0..2u8, 0..4),
            b in prop::collection::vec(0..2u8, 0..4),
        ) {
            let [a, b] = [[&same[..], &a].concat(), [&same[..], &b].concat()];
            let heads = KeyHead::of(&a).cmp(&KeyHead::of(&b));
            prop_assert!(heads.is_eq() || heads == a.cmp(&b));
            let first = |key: &[u8]| [key, &[0; 16]].concat()[..16].to_vec();
            prop_assert_eq!(heads, first(&a).cmp(&first(&b)));
        }
    }

    proptest! {
        #[test]
        fn items_come_by_space_and_key_and_those_of_one_key_as_they_came(
            same in prop::collection::vec(any::<u8>(), 0..20),
            places in prop::collection::vec((0..2u32, prop::collection::vec(0..2u8, 0..3)), 0..20),
        ) {
            let items = places.iter().enumerate().map(|(n, (space, end))| (*space, [&same[..], end].concat(), n));
            let mut expected: Vec<_> = items.clone().collect();
            expected.sort();
            prop_assert_eq!(in_key_order(items, |(space, key, _)| (*space, &key[..])), expected);
        }
    }

    #[test]
    fn prefix_end_skips_trailing_ff() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(&[1, 0xFF, 0xFF]), Some(vec![2]));
        assert_eq!(prefix_end(&[0xFF]), None);
        assert_eq!(prefix_end(&[]), None);
    }

    #[test]
    fn successor_is_the_next_key() {
        assert!(Rowkey::from("a").successor() > Rowkey::from("a"));
        assert!(Rowkey::from("a").successor() < Rowkey::new(vec![b'a', 0, 0]));
    }
}
