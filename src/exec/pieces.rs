//! Cuts key ranges into pieces, which several threads walk at the same time.
//!
//! A store does not tell the middle of a range. So a range is cut at the first existing key behind the midpoint of
//! its first and last key, taken as numbers, and so are the halves. Numbers, times, digits and hashes give even
//! pieces; uneven pieces cost time, but never correctness.

use crate::error::Result;
use crate::key::{End, KeyRange, Rowkey};
use crate::store::{Direction, KeyspaceId, Reader};

/// Number of pieces to aim at (count), whatever the number of threads: more are more even, but cost three seeks each.
pub const PIECES: usize = 8;

/// The pieces of `ranges` that thread `part` of `parts` walks, in key order. Every thread that asks over one snapshot
/// gets the same cuts, so each key is in exactly one thread's pieces.
pub fn pieces_of(
    reader: &dyn Reader,
    keyspace: KeyspaceId,
    ranges: Vec<KeyRange>,
    (part, parts): (usize, usize),
) -> Result<Vec<KeyRange>> {
    let mut pieces = ranges;
    let mut before = 0;
    while pieces.len() < PIECES && pieces.len() > before {
        before = pieces.len();
        let mut halves = Vec::with_capacity(before * 2);
        for piece in pieces {
            match middle(reader, keyspace, &piece)? {
                None => halves.push(piece),
                Some(key) => {
                    halves.push(KeyRange { start: piece.start, end: End::Before(key.clone()) });
                    halves.push(KeyRange { start: key, end: piece.end });
                }
            }
        }
        pieces = halves;
    }
    Ok(pieces.into_iter().skip(part).step_by(parts).collect())
}

/// A key behind the range's first key, near its middle; `None` if there is none.
fn middle(reader: &dyn Reader, keyspace: KeyspaceId, range: &KeyRange) -> Result<Option<Rowkey>> {
    let key_at = |range: &KeyRange, direction| -> Result<Option<Rowkey>> {
        let mut cursor = reader.cursor(keyspace, range, direction)?;
        Ok(cursor.next()?.map(|(key, _)| key.into()))
    };
    let Some(first) = key_at(range, Direction::Forward)? else { return Ok(None) };
    let Some(last) = key_at(range, Direction::Reverse)? else { return Ok(None) };
    let behind = KeyRange { start: halfway(&first, &last), end: range.end.clone() };
    Ok(key_at(&behind, Direction::Forward)?.filter(|key| *key > first))
}

/// The bytes halfway between `first` and `last`, which is not smaller.
fn halfway(first: &[u8], last: &[u8]) -> Rowkey {
    let same = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        key[same..].iter().zip(&mut bytes).for_each(|(byte, place)| *place = *byte);
        u64::from_be_bytes(bytes)
    };
    let (a, b) = (number(first), number(last));
    let middle = a + b.saturating_sub(a).div_ceil(2);
    Rowkey::new([&first[..same], &middle.to_be_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::{MemoryStore, Store, WriteBatch};

    const T: KeyspaceId = KeyspaceId(1);

    fn store(keys: impl IntoIterator<Item = Vec<u8>>) -> MemoryStore {
        let mut batch = WriteBatch::default();
        keys.into_iter().for_each(|key| batch.put(T, key, Vec::new()));
        let store = MemoryStore::new();
        store.commit(batch).unwrap();
        store
    }

    /// The keys that each of `parts` threads walks.
    fn walked(store: &MemoryStore, ranges: &[KeyRange], parts: usize) -> Vec<Vec<Vec<u8>>> {
        let snapshot = store.snapshot().unwrap();
        let reader = snapshot.reader().unwrap();
        let keys = |part| {
            let mut keys = Vec::new();
            for piece in pieces_of(&*reader, T, ranges.to_vec(), (part, parts)).unwrap() {
                let mut cursor = reader.cursor(T, &piece, Direction::Forward).unwrap();
                while let Some((key, _)) = cursor.next().unwrap() {
                    keys.push(key.to_vec());
                }
            }
            keys
        };
        (0..parts).map(keys).collect()
    }

    #[test]
    fn numbers_and_digits_come_out_about_even() {
        let digits = store((0..10_000).map(|n| format!("orders/{n:06}").into_bytes()));
        let numbers = store((0..10_000u64).map(|n| (n * 977).to_be_bytes().to_vec()));
        for store in [digits, numbers] {
            let walked = walked(&store, &[KeyRange::all()], 2);
            assert!(walked.iter().all(|keys| (4_000..=6_000).contains(&keys.len())));
        }
    }

    proptest! {
        #[test]
        fn every_key_is_walked_once(
            keys in prop::collection::btree_set(
                prop::collection::vec(prop::sample::select(vec![0u8, 1, 127, 255]), 1..12), 0..60,
            ),
            cuts in prop::collection::btree_set(prop::collection::vec(any::<u8>(), 1..3), 0..4),
            parts in 1usize..5,
        ) {
            let cuts: Vec<Vec<u8>> = cuts.into_iter().collect();
            let ranges: Vec<KeyRange> =
                cuts.windows(2).map(|pair| KeyRange::new(pair[0].clone(), pair[1].clone())).collect();
            let inside = |key: &&Vec<u8>| ranges.iter().any(|range| range.contains(key));
            let expected: Vec<Vec<u8>> = keys.iter().filter(inside).cloned().collect();
            let mut all: Vec<Vec<u8>> = walked(&store(keys.clone()), &ranges, parts).concat();
            all.sort();
            prop_assert_eq!(all, expected);
        }
    }
}
