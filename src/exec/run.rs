//! A run: entries gathered in memory, then sorted.

use std::cmp::Ordering;
use std::sync::LazyLock;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::key::{KeyHead, Rowkey};

/// Bytes of a buffer, at least and at most, unless an entry needs more. A single one that grew would be copied, time and
/// again.
const BUFFER_BYTES: (usize, usize) = if cfg!(test) { (16, 64) } else { (16 << 10, 1 << 20) };

/// Entries of one keyspace, end to end in buffers.
///
/// Sorting moves only their places, which hold the first 16 bytes of each key: these decide most comparisons without
/// reading the key itself.
#[derive(Default)]
pub struct Run {
    /// Each with the entries that follow those of the one before.
    buffers: Vec<Vec<u8>>,
    /// Bytes (count) in all of them.
    bytes: usize,
    places: Vec<EntrySlot>,
}

#[derive(Clone, Copy)]
struct EntrySlot {
    head: KeyHead,
    /// Where it is: the buffer, and the position there.
    buffer: u32,
    start: u32,
    key_len: u32,
    value_len: u32,
}

impl Run {
    /// Adds an entry. Keys and values are shorter than 4 GiB.
    pub fn push(&mut self, key: &Rowkey, value: &[u8]) {
        let bytes = key.len() + value.len();
        let has_room = |buffer: &Vec<u8>| buffer.capacity() - buffer.len() >= bytes;
        if !self.buffers.last().is_some_and(has_room) {
            let (least, most) = BUFFER_BYTES;
            self.buffers.push(Vec::with_capacity(bytes.max(self.bytes.clamp(least, most))));
        }
        let number = self.buffers.len() - 1;
        let buffer = &mut self.buffers[number];
        self.places.push(EntrySlot {
            head: KeyHead::of(key),
            buffer: number as u32,
            start: buffer.len() as u32,
            key_len: key.len() as u32,
            value_len: value.len() as u32,
        });
        buffer.extend_from_slice(key);
        buffer.extend_from_slice(value);
        self.bytes += bytes;
    }

    /// Adds the entries of another run behind these.
    pub fn append(&mut self, other: Run) {
        if self.places.is_empty() {
            *self = other;
            return;
        }
        let shift = self.buffers.len() as u32;
        self.buffers.extend(other.buffers);
        self.bytes += other.bytes;
        self.places
            .extend(other.places.iter().map(|place| EntrySlot { buffer: place.buffer + shift, ..*place }));
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Memory used, in bytes.
    pub fn size(&self) -> usize {
        self.bytes + self.places.len() * size_of::<EntrySlot>()
    }

    /// Removes the entries, keeping a part of the memory.
    pub fn clear(&mut self) {
        self.buffers.truncate(1);
        self.buffers.iter_mut().for_each(Vec::clear);
        self.bytes = 0;
        self.places.clear();
    }

    /// Sorts the entries by key, those with equal keys as they came, with several threads if there are any.
    fn sort(&mut self, threads: Option<&ThreadPool>) {
        let buffers = &self.buffers;
        let compare = |a: &EntrySlot, b: &EntrySlot| match a.head.cmp(&b.head) {
            Ordering::Equal => {
                let came = |slot: &EntrySlot| (slot.buffer, slot.start);
                a.key(buffers).cmp(b.key(buffers)).then_with(|| came(a).cmp(&came(b)))
            }
            order => order,
        };
        match threads {
            Some(threads) => threads.install(|| self.places.par_sort_unstable_by(compare)),
            None => self.places.sort_unstable_by(compare),
        }
    }

    /// Key and value of entry `at`, if it exists.
    pub fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        self.places.get(at).map(|place| (place.key(&self.buffers), place.value(&self.buffers)))
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.places.iter().map(|place| (place.key(&self.buffers), place.value(&self.buffers)))
    }
}

impl EntrySlot {
    fn key<'b>(&self, buffers: &'b [Vec<u8>]) -> &'b [u8] {
        &buffers[self.buffer as usize][self.start as usize..][..self.key_len as usize]
    }

    fn value<'b>(&self, buffers: &'b [Vec<u8>]) -> &'b [u8] {
        let start = self.start as usize + self.key_len as usize;
        &buffers[self.buffer as usize][start..][..self.value_len as usize]
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
