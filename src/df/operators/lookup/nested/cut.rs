//! Sorts and limits between nested lookup joins.
//!
//! For the newest twenty posts of a forum with their comments counted, the twenty posts are cut first, and only their
//! comments are looked up.

use std::cmp::Ordering as Order;

use arrow::compute::SortOptions;

use crate::error::Result;
use crate::exec::next_rows::{ColumnOf, JoinedRows};
use crate::value::Value;

/// A sort, a limit, or both.
#[derive(Debug)]
pub struct SortLimit {
    /// Number of joins below it.
    pub joins: usize,
    /// The sort keys.
    pub order: Vec<(ColumnOf, SortOptions)>,
    /// Number of leading sort keys, all of them columns of the first table, by which rows come sorted already.
    pub led: usize,
    /// OFFSET and LIMIT (rows).
    skip: usize,
    fetch: usize,
}

impl SortLimit {
    /// Passes all rows on after so many joins.
    pub fn all(joins: usize) -> SortLimit {
        SortLimit { joins, order: Vec::new(), led: 0, skip: 0, fetch: usize::MAX }
    }

    /// Sorts all rows, which come sorted by the first `led` keys.
    pub fn sorted(joins: usize, order: Vec<(ColumnOf, SortOptions)>, led: usize) -> SortLimit {
        let of_first = order.iter().take(led).take_while(|(of, _)| of.table == 0).count();
        SortLimit { order, led: of_first, ..SortLimit::all(joins) }
    }

    /// It neither sorts nor limits.
    pub fn cuts_nothing(&self) -> bool {
        self.order.is_empty() && self.skip == 0 && self.fetch == usize::MAX
    }

    /// Applies another OFFSET and LIMIT to what is left so far.
    pub fn limit(&mut self, skip: usize, fetch: Option<usize>) {
        self.skip = self.skip.saturating_add(skip);
        self.fetch = fetch.into_iter().fold(self.fetch.saturating_sub(skip), usize::min);
    }

    /// Input rows (count) that are enough; a sort needs all of them.
    pub fn wanted(&self) -> usize {
        if self.order.is_empty() { self.enough() } else { usize::MAX }
    }

    /// Input rows (count) that it has to see, at least.
    pub fn least(&self) -> usize {
        match self.may_end() {
            true => self.enough().saturating_add(usize::from(!self.order.is_empty())),
            false => usize::MAX,
        }
    }

    /// Output rows (count), and those that OFFSET skips.
    pub fn enough(&self) -> usize {
        self.skip.saturating_add(self.fetch)
    }

    /// It can end before it has seen all rows.
    pub fn may_end(&self) -> bool {
        self.order.is_empty() || self.led > 0 && self.fetch < usize::MAX
    }

    /// A first-table row with these values, and every row after it, sorts behind the last of `rows` that stays.
    pub fn ends_before(&self, rows: &JoinedRows, value: impl Fn(usize) -> Result<Value>) -> Result<bool> {
        let enough = self.enough();
        let Some(last) = enough.checked_sub(1).filter(|_| self.led > 0 && rows.len() >= enough) else {
            return Ok(false);
        };
        for (of, _) in &self.order[..self.led] {
            if rows.value_of(last, *of)?.cmp(&value(of.column)?) != Order::Equal {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Applies the sort and the limit to these rows.
    pub fn of(&self, rows: &mut JoinedRows) -> Result<()> {
        if !self.order.is_empty() {
            rows.sort(|rows, row| self.sort_key(rows, row), |a, b| self.compared(a, b))?;
        }
        rows.cut(self.skip, self.fetch);
        Ok(())
    }

    fn sort_key(&self, rows: &JoinedRows, row: usize) -> Result<Vec<Value>> {
        self.order.iter().map(|(of, _)| rows.value_of(row, *of)).collect()
    }

    /// Compares two rows by their sort keys.
    fn compared(&self, a: &[Value], b: &[Value]) -> Order {
        let reversed = |order: Order, is_reversed| if is_reversed { order.reverse() } else { order };
        let each =
            a.iter().zip(b).zip(&self.order).map(|((a, b), (_, by))| match (a.is_null(), b.is_null()) {
                (false, false) => reversed(a.cmp(b), by.descending),
                (a, b) => reversed(a.cmp(&b), by.nulls_first),
            });
        each.fold(Order::Equal, Order::then)
    }
}
