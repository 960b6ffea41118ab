//! GROUP BY in the forms that the planner knows: rows, the empty one among them, and ROLLUP and CUBE of what is there
//! twice, or of rows.

use sqlparser::ast::{Expr, GroupByExpr};

use super::outputs::column_name;
use super::shape::Copies;
use crate::error::Result;

/// Elements of a CUBE that is written out, at most: each doubles its sets.
const CUBE_MAX: usize = 12;

/// Writes a GROUP BY out: `(a, b)` is `a, b`, and `()` is one group of all rows if nothing stands beside it.
///
/// Errors: too many copies.
pub(super) fn written_out(by: &mut GroupByExpr, copies: &mut Copies) -> Result<()> {
    let GroupByExpr::Expressions(groups, _) = by else { return Ok(()) };
    if groups.iter().any(|group| matches!(group, Expr::Tuple(_))) {
        let each = std::mem::take(groups).into_iter().flat_map(|group| match group {
            Expr::Tuple(of) => of,
            group => vec![group],
        });
        *groups = each.collect();
        if groups.is_empty() {
            *groups = vec![Expr::GroupingSets(vec![Vec::new()])];
        }
    }
    groups.iter_mut().try_for_each(|group| as_sets(group, copies))
}

/// Lists the sets of a ROLLUP or CUBE that the planner refuses.
fn as_sets(group: &mut Expr, copies: &mut Copies) -> Result<()> {
    let (Expr::Rollup(elements) | Expr::Cube(elements)) = &*group else { return Ok(()) };
    let is_same = |a: &Vec<Expr>, b: &Vec<Expr>| match (&a[..], &b[..]) {
        // `id` and `t.id` may be one column.
        ([a], [b]) => a == b || column_name(a).is_some_and(|name| column_name(b) == Some(name)),
        _ => a == b,
    };
    let again = |(at, element): (usize, &Vec<Expr>)| elements[..at].iter().any(|e| is_same(e, element));
    let is_plain =
        elements.iter().all(|element| element.len() == 1) && !elements.iter().enumerate().any(again);
    let is_cube = matches!(group, Expr::Cube(_));
    if is_plain || is_cube && elements.len() > CUBE_MAX {
        return Ok(());
    }
    let n = elements.len();
    let times = if is_cube { 1 << (n - 1) } else { n };
    elements.iter().flatten().try_for_each(|expr| copies.count(expr, times))?;
    let among = |set: usize| (0..n).filter(|at| set >> at & 1 == 1).collect();
    let sets: Vec<Vec<usize>> = match is_cube {
        true => (0..1 << n).rev().map(among).collect(),
        false => (0..=n).rev().map(|len| (0..len).collect()).collect(),
    };
    let exprs = |set: &Vec<usize>| set.iter().flat_map(|at| elements[*at].clone()).collect();
    *group = Expr::GroupingSets(sets.iter().map(exprs).collect());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::sql::parse;

    #[test]
    fn groups_that_the_planner_does_not_know_are_written_out() {
        for (from, to) in [
            ("(a, b), c", "a, b, c"),
            ("a, ()", "a"),
            ("()", "GROUPING SETS (())"),
            ("ROLLUP (a, b)", "ROLLUP (a, b)"),
            ("ROLLUP (a, a)", "GROUPING SETS ((a, a), (a), ())"),
            ("ROLLUP (a, t.A)", "GROUPING SETS ((a, t.A), (a), ())"),
            ("ROLLUP (a, (b, c))", "GROUPING SETS ((a, b, c), (a), ())"),
            ("CUBE (a, b)", "CUBE (a, b)"),
            ("CUBE (a, (b, c))", "GROUPING SETS ((a, b, c), (b, c), (a), ())"),
        ] {
            let written = parse(&format!("SELECT 1 FROM t GROUP BY {from}")).unwrap().to_string();
            assert_eq!(written, format!("SELECT 1 FROM t GROUP BY {to}"), "{from}");
        }
    }
}
