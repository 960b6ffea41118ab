//! A run: entries gathered in memory, then sorted.

use std::cmp::Ordering;
use std::sync::LazyLock;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::key::{KeyHead, Rowkey};

/// Entries of one keyspace, end to end in one buffer.
///
/// Sorting moves only their places, which hold the first 16 bytes of each key: these decide most comparisons without
/// reading the key itself.
#[derive(Default)]
pub struct Run {
    bytes: Vec<u8>,
    places: Vec<EntrySlot>,
}

#[derive(Clone, Copy)]
struct EntrySlot {
    head: KeyHead,
    start: usize,
    key_len: u32,
    value_len: u32,
}

impl Run {
    /// Adds an entry. Keys and values are shorter than 4 GiB.
    pub fn push(&mut self, key: &Rowkey, value: &[u8]) {
        let place = EntrySlot {
            head: KeyHead::of(key),
            start: self.bytes.len(),
            key_len: key.len() as u32,
            value_len: value.len() as u32,
        };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.places.push(place);
    }

    /// Adds the entries of another run behind these.
    pub fn append(&mut self, other: Run) {
        if self.places.is_empty() {
            *self = other;
            return;
        }
        let shift = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.places
            .extend(other.places.iter().map(|place| EntrySlot { start: place.start + shift, ..*place }));
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Memory used, in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<EntrySlot>()
    }

    /// Removes the entries, keeping the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// Sorts the entries by key, those with equal keys as they came, with several threads if there are any.
    fn sort(&mut self, threads: Option<&ThreadPool>) {
        let bytes = &self.bytes;
        let compare = |a: &EntrySlot, b: &EntrySlot| match a.head.cmp(&b.head) {
            Ordering::Equal => a.key(bytes).cmp(b.key(bytes)).then(a.start.cmp(&b.start)),
            order => order,
        };
        match threads {
            Some(threads) => threads.install(|| self.places.par_sort_unstable_by(compare)),
            None => self.places.sort_unstable_by(compare),
        }
    }

    /// Key and value of entry `at`, if it exists.
    pub fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        self.places.get(at).map(|place| (place.key(&self.bytes), place.value(&self.bytes)))
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.places.iter().map(|place| (place.key(&self.bytes), place.value(&self.bytes)))
    }
}

impl EntrySlot {
    fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.start..][..self.key_len as usize]
    }

    fn value<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.start + self.key_len as usize..][..self.value_len as usize]
    }
}

/// Sorts the entries of each run by key.
pub fn sort_all<'r>(runs: impl Iterator<Item = &'r mut Run>) {
    // If the system has no threads to give, the calling thread does the work.
    static THREADS: LazyLock<Option<ThreadPool>> =
        LazyLock::new(|| ThreadPoolBuilder::new().thread_name(|n| format!("rowkeydb-sort-{n}")).build().ok());
    runs.for_each(|run| run.sort(THREADS.as_ref()));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorted_by_key(entries in prop::collection::vec(
            (prop::collection::vec(prop::sample::select(vec![0u8, 1, 255]), 0..20), any::<u8>()), 0..60,
        )) {
            let mut run = Run::default();
            for (key, value) in &entries {
                run.push(&Rowkey::from(key.clone()), &[*value]);
            }
            sort_all(std::iter::once(&mut run));
            let mut expected = entries;
            expected.sort();
            let mut sorted: Vec<(Vec<u8>, u8)> = run.iter().map(|(k, v)| (k.to_vec(), v[0])).collect();
            prop_assert!(sorted.is_sorted_by_key(|(key, _)| key.clone()));
            sorted.sort();
            prop_assert_eq!(sorted, expected);
        }
    }
}
