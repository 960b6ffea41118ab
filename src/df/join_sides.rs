//! The two sides of a join: which rows come out of it, and which columns.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Join;
use datafusion::physical_plan::joins::HashJoinExec;

/// Do rows of the left and of the right side come out unchanged, or not at all? A filter on columns of such a side may
/// as well be below the join.
pub fn keeps(join: JoinType) -> [bool; 2] {
    use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
    [
        matches!(join, Inner | Left | LeftSemi | LeftAnti | LeftMark),
        matches!(join, Inner | Right | RightSemi | RightAnti | RightMark),
    ]
}

/// The join of the same rows, as one of another type.
pub fn as_type(join: &Join, ty: JoinType) -> DfResult<Join> {
    let (left, right) = (Arc::clone(&join.left), Arc::clone(&join.right));
    let (on, filter) = (join.on.clone(), join.filter.clone());
    Join::try_new(left, right, on, filter, ty, join.join_constraint, join.null_equality, false)
}

/// The columns that an inner or outer join outputs: those of its left side are numbered first.
pub fn outputs(join: &HashJoinExec) -> Vec<usize> {
    let all = || join.left().schema().fields().len() + join.right().schema().fields().len();
    join.projection.as_ref().map_or_else(|| (0..all()).collect(), |output| output.to_vec())
}

/// The side of a join (0 or 1) and the column there behind an output column.
pub fn output_of(join: &HashJoinExec, at: usize) -> Option<(usize, usize)> {
    use JoinType::{LeftAnti, LeftMark, LeftSemi, RightAnti, RightMark, RightSemi};
    let at = match &join.projection {
        Some(output) => *output.get(at)?,
        None => at,
    };
    let left = join.left().schema().fields().len();
    let right = join.right().schema().fields().len();
    match join.join_type() {
        LeftSemi | LeftAnti | LeftMark => (at < left).then_some((0, at)),
        RightSemi | RightAnti | RightMark => (at < right).then_some((1, at)),
        _ if at < left => Some((0, at)),
        _ => (at - left < right).then_some((1, at - left)),
    }
}
