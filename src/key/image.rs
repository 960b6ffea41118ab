//! Intervals of a column's values as ranges of a part's bytes.

use std::ops::Bound;

use super::range::KeyRange;
use crate::value::Value;

/// An interval of non-NULL values of one column, all of the column's type.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Where it starts.
    pub lower: Bound<Value>,
    /// Where it ends.
    pub upper: Bound<Value>,
}

/// The bytes, from one part onward, of every row whose column lies in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Relative to the part's start, and over whatever follows the part; may be empty. An open end
    /// means the end of the part's own space: the caller closes it with what precedes the part.
    pub range: KeyRange,
    /// No other row lies inside.
    pub tight: bool,
}
