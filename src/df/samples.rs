//! What looking at the data has found out, for all runs of a cached plan.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A sample of data that has grown, or shrunk, this many times no longer holds.
const GROWN: f64 = 2.0;

/// What was found out, by what was asked.
pub struct Samples<K, V>(Arc<Mutex<Vec<Sample<K, V>>>>);

struct Sample<K, V> {
    asked: K,
    /// Entries (count) of the data at the time.
    entries: f64,
    found: V,
}

impl<K, V> Clone for Samples<K, V> {
    fn clone(&self) -> Self {
        Samples(Arc::clone(&self.0))
    }
}

impl<K, V> Default for Samples<K, V> {
    fn default() -> Self {
        Samples(Arc::default())
    }
}

impl<K: PartialEq, V: Copy> Samples<K, V> {
    /// What was found, if the data has about as many entries as then.
    pub fn known(&self, asked: &K, entries: f64) -> Option<V> {
        let holds = |then: f64| entries.max(then) <= GROWN * entries.min(then).max(1.0);
        let samples = self.all();
        let sample = samples.iter().find(|sample| sample.asked == *asked && holds(sample.entries));
        sample.map(|sample| sample.found)
    }

    /// Keeps what was found in data of so many entries.
    pub fn keep(&self, asked: K, entries: f64, found: V) {
        let mut samples = self.all();
        samples.retain(|sample| sample.asked != asked);
        samples.push(Sample { asked, entries, found });
    }

    fn all(&self) -> MutexGuard<'_, Vec<Sample<K, V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_counted_again_when_the_table_has_grown() {
        let samples = Samples::default();
        let mut counted = 0;
        let rows_found = |rows: f64| {
            samples.known(&"column", rows).unwrap_or_else(|| {
                counted += 1;
                let found = (rows > 0.0).then_some(rows / 10.0);
                samples.keep("column", rows, found);
                found
            })
        };
        let found = [0.0, 0.0, 100.0, 150.0, 1000.0, 600.0, 400.0].map(rows_found);
        assert_eq!(found, [None, None, Some(10.0), Some(10.0), Some(100.0), Some(100.0), Some(40.0)]);
        assert_eq!(counted, 4);
    }
}
