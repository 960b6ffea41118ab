//! Keeps the values that a reader has lent.

use std::cell::{Cell, OnceCell};

/// An arena: values stay in place as long as it lives, in boxes of 1, 2, 4, 8, .. values.
pub(super) struct Lent<T> {
    boxes: [OnceCell<Box<[OnceCell<T>]>>; 32],
    len: Cell<usize>,
}

impl<T> Default for Lent<T> {
    fn default() -> Self {
        Lent { boxes: [const { OnceCell::new() }; 32], len: Cell::new(0) }
    }
}

impl<T> Lent<T> {
    pub(super) fn lend(&self, value: T) -> &T {
        let place = self.len.get() + 1;
        self.len.set(place);
        let size = place.ilog2();
        let cells =
            self.boxes[size as usize].get_or_init(|| (0..1 << size).map(|_| OnceCell::new()).collect());
        cells[place - (1 << size)].get_or_init(|| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_stays_as_it_is() {
        let lent = Lent::default();
        let values: Vec<&[u8; 4]> = (0..1000u32).map(|n| lent.lend(n.to_le_bytes())).collect();
        assert!(values.iter().zip(0..1000u32).all(|(value, n)| **value == n.to_le_bytes()));
    }
}
