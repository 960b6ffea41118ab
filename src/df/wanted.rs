//! The order and the number of rows that a statement wants of a table.

use crate::access::OrderBy;

/// Rows that a statement wants of one table, counted after all filters.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Sort keys, the major one first; empty if any order will do.
    pub order: Vec<OrderBy>,
    /// Which rows, in this order.
    pub what: WantedRows,
}

/// Which rows are wanted, in some order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WantedRows {
    /// All of them.
    #[default]
    All,
    /// The first rows, possibly after an offset.
    First {
        /// Offset included (count).
        rows: u64,
        /// Rows to skip (count).
        offset: u64,
    },
    /// The first so many in an order that only starts like this one.
    Led(u64),
    /// As many as a join above consumes, about so many.
    About(u64),
    /// All rows of the first so many groups, by the columns of the order.
    Groups(u64),
    /// The first so many of the rows that a join finds here, in an order that may only start like this one: see
    /// [`FirstFound`].
    Found(u64),
}

/// The first rows, in some order, of those that a join finds in a table. They are sorted above the join, so the table
/// may give them in any order; but a lookup join may have a better plan if it gets them in this one.
#[derive(Clone, Debug)]
pub struct FirstFound {
    /// Sort keys, the major one first; the sort itself may have more.
    pub order: Vec<OrderBy>,
    /// How many (count).
    pub rows: u64,
}

impl FirstFound {
    /// One of them, whichever it is.
    pub fn any_one() -> FirstFound {
        FirstFound { order: Vec::new(), rows: 1 }
    }
}

/// Number of rows that a scan is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowGoal {
    /// All of them.
    #[default]
    All,
    /// The first so many.
    First(u64),
    /// Unlimited: the consumer stops the scan when it has enough.
    About {
        /// At least: the first batch.
        least: u64,
        /// In total, as expected.
        expected: u64,
    },
}

/// Most ties (rows) in a prefix of the order below a join, which has to process each of them.
const EQUAL_MAX: f64 = 1000.0;

impl RowGoal {
    /// The expected number of rows, unless it is all.
    pub fn expected(self) -> Option<u64> {
        match self {
            RowGoal::All => None,
            RowGoal::First(n) | RowGoal::About { expected: n, .. } => Some(n),
        }
    }
}

impl Wanted {
    /// Order and rows to ask a scan for, where no estimate of the number of rows is needed.
    pub fn plainly(&self) -> (Vec<OrderBy>, RowGoal) {
        let rows = match self.what {
            WantedRows::Led(_) | WantedRows::Groups(_) | WantedRows::Found(_) => return Default::default(),
            WantedRows::All => RowGoal::All,
            WantedRows::First { rows, .. } => RowGoal::First(rows),
            WantedRows::About(n) => RowGoal::About { least: n, expected: n },
        };
        (self.order.clone(), rows)
    }

    /// Rows (count) to skip.
    pub fn offset(&self) -> u64 {
        match self.what {
            WantedRows::First { offset, .. } => offset,
            _ => 0,
        }
    }

    /// Alternatives, best first, if the full order is not to be had cheaply: rows sorted by a prefix of the order only,
    /// so that the sort or aggregate above can stop early. `equal`: rows (count) expected to be equal in such a prefix.
    pub fn otherwise(&self, equal: impl Fn(&[OrderBy]) -> f64) -> Vec<(Vec<OrderBy>, RowGoal)> {
        let (longest, n) = match self.what {
            WantedRows::All | WantedRows::Found(_) => return Vec::new(),
            WantedRows::First { rows: n, .. } | WantedRows::About(n) => {
                (self.order.len().saturating_sub(1), n)
            }
            WantedRows::Led(n) | WantedRows::Groups(n) => (self.order.len(), n),
        };
        // One more: only the next row (or group) shows that the wanted ones are complete.
        let least = n.saturating_add(1);
        let of_front = |columns: usize| {
            let front = self.order[..columns].to_vec();
            let equal = equal(&front).max(1.0);
            let rows = match self.what {
                WantedRows::About(_) if equal > EQUAL_MAX => return None,
                WantedRows::Groups(_) => {
                    let expected = (least as f64 * equal) as u64;
                    RowGoal::About { least: expected, expected }
                }
                _ => RowGoal::About { least, expected: least.saturating_add(equal as u64) },
            };
            Some((front, rows))
        };
        let shortest = if matches!(self.what, WantedRows::Groups(_)) { longest.max(1) } else { 1 };
        (shortest..=longest).rev().filter_map(of_front).collect()
    }
}
