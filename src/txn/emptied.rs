//! The keys among which a transaction is known to have left nothing.

use parking_lot::Mutex;

use crate::key::{End, KeyRange};
use crate::store::Direction;

/// A range in which a walk has found only what the transaction has deleted, so that the next one need not pass that
/// again: otherwise, to take the first row of a queue takes longer with every row taken. It holds until something is put
/// there.
#[derive(Default)]
pub(super) struct Emptied(Mutex<Option<KeyRange>>);

impl Clone for Emptied {
    fn clone(&self) -> Emptied {
        Emptied(Mutex::new(self.0.lock().clone()))
    }
}

impl Emptied {
    /// Something is put there.
    pub(super) fn put(&mut self, key: &[u8]) {
        self.0.get_mut().take_if(|known| known.contains(key));
    }

    /// The part of a range that a walk in this direction still has to see.
    pub(super) fn left_of(&self, mut range: KeyRange, direction: Direction) -> KeyRange {
        if let Some(known) = &*self.0.lock() {
            let before = || End::Before(known.start.clone());
            match (direction, &known.end) {
                (Direction::Forward, End::Before(behind)) if known.contains(&range.start) => {
                    range.start = behind.clone();
                }
                (Direction::Forward, End::Open) if known.contains(&range.start) => {
                    range.end = End::Before(range.start.clone());
                }
                (Direction::Reverse, behind) if range.end <= *behind && range.end > before() => {
                    range.end = before();
                }
                _ => {}
            }
        }
        range
    }

    /// Keeps a range that a walk has passed. One that begins or ends where the known one does not extends it.
    pub(super) fn note(&self, passed: KeyRange) {
        let mut known = self.0.lock();
        match &mut *known {
            Some(known) if known.end == End::Before(passed.start.clone()) => known.end = passed.end,
            Some(known) if passed.end == End::Before(known.start.clone()) => known.start = passed.start,
            known => *known = Some(passed),
        }
    }
}
