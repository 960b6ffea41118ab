//! Values in an order that a statement asks for.

use std::cmp::Ordering;

use arrow::compute::SortOptions;

use crate::value::Value;

/// A value by which rows are sorted.
pub struct SortKey {
    pub value: Value,
    pub options: SortOptions,
}

impl Ord for SortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let SortOptions { descending, nulls_first } = self.options;
        let reversed = |order: Ordering, is_reversed| if is_reversed { order.reverse() } else { order };
        match (self.value.is_null(), other.value.is_null()) {
            (false, false) => reversed(self.value.cmp(&other.value), descending),
            (a, b) => reversed(a.cmp(&b), nulls_first),
        }
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SortKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SortKey {}
