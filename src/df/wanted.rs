//! In which order a statement wants the rows of a table, and how many of them.

use crate::access::OrderBy;

/// Rows that a statement wants of one table, counted after all filters.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// First to last; empty if any order will do.
    pub order: Vec<OrderBy>,
    /// Which of them, in this order.
    pub what: What,
}

/// Which rows are wanted, of those in some order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum What {
    /// All of them.
    #[default]
    All,
    /// The first so many, of which some are passed over.
    First {
        /// All in all.
        rows: u64,
        /// Before the first one that anybody looks at.
        offset: u64,
    },
    /// The first so many in an order that only begins like this one.
    Led(u64),
    /// As many as a join above asks for, about so many.
    About(u64),
    /// All of the first so many groups by the columns of the order.
    Groups(u64),
    /// The first so many of those that a join finds here, in an order that may only begin like this one: see
    /// [`FirstFound`].
    Found(u64),
}

/// The first rows, in some order, of those that a join finds in a table. They are sorted above the join, so the table
/// may give them in any order; but the plan of a join that looks them up can be a better one if it gives them in this.
#[derive(Clone, Debug)]
pub struct FirstFound {
    /// First to last; what the rows are sorted by may have more columns.
    pub order: Vec<OrderBy>,
    /// How many (count).
    pub rows: u64,
}

/// How many rows a scan is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// All of them.
    #[default]
    All,
    /// The first so many.
    First(u64),
    /// As many as somebody above asks for, who stops when there are enough.
    About {
        /// At first.
        least: u64,
        /// All in all.
        expected: u64,
    },
}

/// Rows (count) that are expected to be equal in the columns in front, at the most, where a join above takes each.
const EQUAL_MAX: f64 = 1000.0;

impl Rows {
    /// How many are expected, if not all.
    pub fn expected(self) -> Option<u64> {
        match self {
            Rows::All => None,
            Rows::First(n) | Rows::About { expected: n, .. } => Some(n),
        }
    }
}

impl Wanted {
    /// What to ask a scan for, so that nobody needs to know how many rows there are.
    pub fn plainly(&self) -> (Vec<OrderBy>, Rows) {
        let rows = match self.what {
            What::Led(_) | What::Groups(_) | What::Found(_) => return Default::default(),
            What::All => Rows::All,
            What::First { rows, .. } => Rows::First(rows),
            What::About(n) => Rows::About { least: n, expected: n },
        };
        (self.order.clone(), rows)
    }

    /// Rows (count) that are passed over before the first one that anybody looks at.
    pub fn offset(&self) -> u64 {
        match self.what {
            What::First { offset, .. } => offset,
            _ => 0,
        }
    }

    /// What else it may be asked for, the best first, where that is not to be had in this order: rows of which some
    /// columns in front are in order, so that whoever sorts or groups them can stop early. `equal`: how many rows
    /// (count) are expected to be equal in such columns.
    pub fn otherwise(&self, equal: impl Fn(&[OrderBy]) -> f64) -> Vec<(Vec<OrderBy>, Rows)> {
        let (longest, n) = match self.what {
            What::All | What::Found(_) => return Vec::new(),
            What::First { rows: n, .. } | What::About(n) => (self.order.len().saturating_sub(1), n),
            What::Led(n) | What::Groups(n) => (self.order.len(), n),
        };
        // Whoever takes the first rows sees by one more that they are all there; so it is with groups.
        let least = n.saturating_add(1);
        let of_front = |columns: usize| {
            let front = self.order[..columns].to_vec();
            let equal = equal(&front).max(1.0);
            let rows = match self.what {
                What::About(_) if equal > EQUAL_MAX => return None,
                What::Groups(_) => {
                    let expected = (least as f64 * equal) as u64;
                    Rows::About { least: expected, expected }
                }
                _ => Rows::About { least, expected: least.saturating_add(equal as u64) },
            };
            Some((front, rows))
        };
        let shortest = if matches!(self.what, What::Groups(_)) { longest.max(1) } else { 1 };
        (shortest..=longest).rev().filter_map(of_front).collect()
    }
}
