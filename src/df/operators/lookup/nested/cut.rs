//! Which of the rows go on, and in which order, when some of the tables are joined, or all of them.
//!
//! The newest posts of a forum are twenty posts first, and each has its comments counted then.

use std::cmp::Ordering as Order;

use arrow::compute::SortOptions;

use crate::error::Result;
use crate::exec::joined::{ColumnOf, JoinedRows};
use crate::value::Value;

/// A sort, a limit, or both.
#[derive(Debug)]
pub struct Cut {
    /// So many joins (count) are below it.
    pub joins: usize,
    /// The rows are sorted by these.
    pub order: Vec<(ColumnOf, SortOptions)>,
    /// Rows come in the order of so many of these (count), which are columns of the first table.
    pub led: usize,
    /// Rows (count) that are passed over, and those behind them that go on at the most.
    skip: usize,
    fetch: usize,
}

impl Cut {
    /// All rows behind so many joins, as they come.
    pub fn all(joins: usize) -> Cut {
        Cut { joins, order: Vec::new(), led: 0, skip: 0, fetch: usize::MAX }
    }

    /// All of them in an order, of which they come in the first so many columns (count).
    pub fn sorted(joins: usize, order: Vec<(ColumnOf, SortOptions)>, led: usize) -> Cut {
        let of_first = order.iter().take(led).take_while(|(of, _)| of.table == 0).count();
        Cut { order, led: of_first, ..Cut::all(joins) }
    }

    /// All rows go on, as they come.
    pub fn cuts_nothing(&self) -> bool {
        self.order.is_empty() && self.skip == 0 && self.fetch == usize::MAX
    }

    /// Of the rows that went on so far, some are passed over, and only so many behind those go on.
    pub fn limit(&mut self, skip: usize, fetch: Option<usize>) {
        self.skip = self.skip.saturating_add(skip);
        self.fetch = fetch.into_iter().fold(self.fetch.saturating_sub(skip), usize::min);
    }

    /// Rows (count) that are enough; those that are sorted are all wanted first.
    pub fn wanted(&self) -> usize {
        if self.order.is_empty() { self.skip.saturating_add(self.fetch) } else { usize::MAX }
    }

    /// It needs not all rows that are to be sorted, or none are.
    pub fn may_end(&self) -> bool {
        self.order.is_empty() || self.led > 0 && self.fetch < usize::MAX
    }

    /// A row of the first table with these values, and all behind it, comes behind the last one that goes on of `rows`.
    pub fn ends_before(&self, rows: &JoinedRows, value: impl Fn(usize) -> Result<Value>) -> Result<bool> {
        let enough = self.skip.saturating_add(self.fetch);
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

    /// Leaves the rows that go on.
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

    /// Which of two rows comes first, by the values that they are sorted by.
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
