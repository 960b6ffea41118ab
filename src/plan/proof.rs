//! Proofs of the planner's two promises, on every row of small domains: *a row that matches lies inside the
//! ranges*; *a row inside the ranges matches if and only if the residual is true for it*.
//!
//! Layouts, predicates and limits are random. Values are close to each other and hostile to encodings: texts
//! that are prefixes of each other, that end in pads and delimiters, that contain 00 and FF; both zeros;
//! times finer than formats; numbers too wide for pads.

mod cases;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use self::cases::{Case, case, domain, formula, predicate, rows, whole_predicate};
use super::ranges::{RangeLimits, search};
use super::testing::{B, COLUMNS, M, N, Row, S, T, TS, asc, layout, name};
use super::*;
use crate::key::{ColumnId, KeyLayout, KeyOrder, Tail, Transform};
use crate::value::Value;

/// Tests the promises on one case; `None` if the layout is invalid.
fn check(case: &Case) -> Result<Option<()>, TestCaseError> {
    let tail = match case.role {
        LayoutRole::Primary => Tail::Nothing,
        LayoutRole::Index => Tail::Pointer,
    };
    let Ok(own) = layout(case.parts.clone(), case.nullable, tail) else { return Ok(None) };
    let case = &match &case.pointer[..] {
        [] => case.clone(),
        _ => Case { role: LayoutRole::Primary, ..case.clone() },
    };
    let layout = match layout(case.pointer.clone(), [false; COLUMNS.len()], Tail::Nothing) {
        Ok(pointer) => own.followed_by(&pointer, pointer.parts().len()),
        Err(_) => own,
    };
    let rows = rows(case, &layout);
    if rows.is_empty() {
        return Ok(None);
    }
    let predicate = whole_predicate(case, &layout, &rows);
    let found = super::short::short_ranges(&predicate, &layout, case.role)
        .unwrap_or_else(|| search(&predicate, &layout, case.role, case.limits));
    prop_assert!(found.ranges.as_slice().len() <= case.limits.ranges_max, "too many: {:?}", found);
    prop_assert!(!found.points || found.ranges.as_slice().iter().all(|r| r.as_point().is_some()));
    for (key, row) in &rows {
        let matches = predicate.eval(row).unwrap() == Some(true);
        let inside = found.ranges.contains(key);
        let says = || {
            let (all, left) = (predicate.show(&name), found.residual.show(&name));
            format!(
                "{all}\nrow {:?}\nkey {}\nranges {:?}\nresidual {left}",
                row.values,
                key.escape_ascii(),
                found.ranges
            )
        };
        prop_assert!(inside || !matches, "a matching row is outside: {}", says());
        let kept = inside && found.residual.eval(row).unwrap() == Some(true);
        prop_assert_eq!(kept, matches, "ranges and residual disagree with the predicate: {}", says());
        for (column, value) in found.fixed.iter().filter(|_| matches) {
            prop_assert_eq!(&row.values[usize::from(column.0)], value, "not fixed: {}", says());
        }
        for (column, values) in found.listed.iter().filter(|_| matches) {
            prop_assert!(values.contains(&row.values[usize::from(column.0)]), "not listed: {}", says());
        }
    }
    check_short(case, &layout, &rows)?;
    if let Some(skipping) = &found.skipping {
        check_skipping(skipping, &found, &predicate, &rows)?;
    }
    check_order(&found, &layout, &predicate, rows)?;
    Ok(Some(()))
}

/// The short way must give the same ranges as the general search: for values of rows and for others, for
/// equalities on all key columns or the first few, with and without an interval on one column.
fn check_short(case: &Case, layout: &KeyLayout, rows: &[(Vec<u8>, Row)]) -> Result<(), TestCaseError> {
    let others = rows.iter().rev().map(|(_, row)| row);
    let known = layout.decodable();
    for (n, ((_, row), other)) in rows.iter().zip(others).enumerate() {
        let equals = |(i, id): (usize, &ColumnId)| {
            let from = if i % 2 == 0 { row } else { other };
            Predicate::compare(Field::Column(*id), CmpOp::Eq, from.values[usize::from(id.0)].clone())
        };
        let take = known.len() - n % (known.len() + 1);
        let beside = Predicate::compare(Field::Column(S), CmpOp::Gt, Value::Text("b".into()));
        let beside = (n % 3 == 0).then_some(beside);
        let bound = |(i, op): (usize, CmpOp)| {
            let id = *known.get(i)?;
            let from = if i % 2 == n % 2 { row } else { other };
            Some(Predicate::compare(Field::Column(id), op, from.values[usize::from(id.0)].clone()))
        };
        let lower = [CmpOp::Gt, CmpOp::Ge][n % 2];
        let upper = [CmpOp::Lt, CmpOp::Le][n / 2 % 2];
        let between = match n % 5 {
            0 => vec![],
            1 => vec![(take, lower)],
            2 => vec![(take, upper)],
            3 => vec![(take, lower), (take, upper)],
            // The interval may also be on a column that equals something, or that follows one not known.
            _ => vec![(n % known.len().max(1), lower), (take, upper)],
        };
        let between = between.into_iter().filter_map(bound);
        let equal = known.iter().enumerate().map(equals).take(take);
        let predicate = Predicate::and(equal.chain(between).chain(beside));
        if let Some(found) = super::short::short_ranges(&predicate, layout, case.role) {
            let mut searched = search(&predicate, layout, case.role, RangeLimits::USUAL);
            let columns = layout.parts().iter().flat_map(|part| part.columns());
            if columns.count() > layout.columns().len() {
                // A part that repeats a part before it, behind an unknown one: jumps would pass nothing.
                searched.skipping = None;
                // It may hold none of the values: the search alone looks at that.
                if searched.ranges.is_empty() {
                    let is_found = |row: &Row| predicate.eval(row).unwrap() == Some(true);
                    prop_assert!(!rows.iter().any(|(_, row)| is_found(row)), "{}", predicate.show(&name));
                    continue;
                }
            }
            prop_assert_eq!(found, searched, "{} {:?}", predicate.show(&name), layout);
        }
    }
    Ok(())
}

/// Skipping must pass over no row that matches, advance with every jump, and leave the right residual.
fn check_skipping(
    Skipping { skip, residual, .. }: &Skipping,
    found: &Ranges,
    predicate: &Predicate,
    rows: &[(Vec<u8>, Row)],
) -> Result<(), TestCaseError> {
    let matches = |row: &Row| predicate.eval(row).unwrap() == Some(true);
    let matching: Vec<&Vec<u8>> = rows.iter().filter(|(_, row)| matches(row)).map(|(key, _)| key).collect();
    let mut starts = Vec::new();
    for (key, row) in rows {
        let possible = skip.is_possible(key, &mut starts);
        let says = || {
            let (all, left) = (predicate.show(&name), residual.show(&name));
            format!("{all}\nrow {:?}\nkey {}\n{skip:?}\nresidual {left}", row.values, key.escape_ascii())
        };
        let kept = found.ranges.contains(key) && possible && residual.eval(row).unwrap() == Some(true);
        prop_assert_eq!(kept, matches(row), "jumps and residual disagree with the predicate: {}", says());
        if possible {
            continue;
        }
        let (next, previous) = (skip.next(key, &starts), skip.previous(key, &starts));
        prop_assert!(next.as_ref().is_none_or(|next| **next > **key), "no way on: {}", says());
        prop_assert!(previous.as_ref().is_none_or(|end| **end <= **key), "no way back: {}", says());
        for &other in &matching {
            let jumped = other > key && next.as_ref().is_none_or(|next| **next > **other);
            prop_assert!(!jumped, "jumps over {} to {next:?}: {}", other.escape_ascii(), says());
            let jumped = other < key && previous.as_ref().is_none_or(|end| **end <= **other);
            prop_assert!(!jumped, "jumps back over {} to {previous:?}: {}", other.escape_ascii(), says());
        }
    }
    check_jumps(skip, rows)
}

/// Getting over all keys must take at most [`Skip::jumps_max`] jumps, in either direction. Between two jumps
/// a walk looks at a few entries at most (`exec::jump`).
fn check_jumps(skip: &Skip, rows: &[(Vec<u8>, Row)]) -> Result<(), TestCaseError> {
    let mut keys: Vec<&[u8]> = rows.iter().map(|(key, _)| &key[..]).collect();
    keys.sort_unstable();
    keys.dedup();
    let most = skip.jumps_max(&keys);
    let mut starts = Vec::new();
    let (mut forward, mut at) = (0, 0);
    while at < keys.len() {
        if skip.is_possible(keys[at], &mut starts) {
            at += 1;
            continue;
        }
        forward += 1;
        let Some(next) = skip.next(keys[at], &starts) else { break };
        at = keys.partition_point(|key| *key < &next[..]);
    }
    let (mut backward, mut left) = (0, keys.len());
    while left > 0 {
        if skip.is_possible(keys[left - 1], &mut starts) {
            left -= 1;
            continue;
        }
        backward += 1;
        let Some(end) = skip.previous(keys[left - 1], &starts) else { break };
        left = keys.partition_point(|key| *key < &end[..]);
    }
    prop_assert!(
        forward.max(backward) <= most,
        "{} and {} jumps, not {}: {:?}",
        forward,
        backward,
        most,
        skip
    );
    Ok(())
}

/// Reading in key order, or merging the fan-out, must yield matching rows in the promised order.
fn check_order(
    found: &Ranges,
    layout: &KeyLayout,
    predicate: &Predicate,
    rows: Vec<(Vec<u8>, Row)>,
) -> Result<(), TestCaseError> {
    let mut rows: Vec<(Vec<u8>, Row)> =
        rows.into_iter().filter(|(_, row)| predicate.eval(row).unwrap() == Some(true)).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let is_fixed = |c| found.fixed.contains_key(&c);
    check_sorted(&rows, &ordering(layout, 0, &is_fixed))?;
    for parts in 1..layout.parts().len() {
        let intervals = ShortIntervals { within: predicate, most: 64 };
        let Some(fan_out) = found.fan_out(layout, parts, intervals) else { continue };
        let streams = fan_out.streams(&found.ranges);
        prop_assert_eq!(fan_out.is_single(&found.ranges), streams.len() < 2);
        for (key, _) in &rows {
            let holders = streams.iter().filter(|s| s.ranges.contains(key)).count();
            prop_assert_eq!(holders, 1, "key {} in streams of {:?}", key.escape_ascii(), fan_out);
        }
        let behind = |key: &[u8]| {
            let stream = streams.iter().find(|s| s.ranges.contains(key));
            key[stream.map_or(0, |s| s.prefix_len)..].to_vec()
        };
        rows.sort_by_cached_key(|(key, _)| behind(key));
        check_sorted(&rows, &ordering(layout, parts, &is_fixed))?;
    }
    Ok(())
}

fn check_sorted(rows: &[(Vec<u8>, Row)], order: &[(ColumnId, KeyOrder)]) -> Result<(), TestCaseError> {
    for pair in rows.windows(2) {
        let compare = |(column, direction): &(ColumnId, KeyOrder)| {
            let value = |row: &Row| row.values[usize::from(column.0)].clone();
            let forward = value(&pair[0].1).cmp(&value(&pair[1].1));
            if *direction == KeyOrder::Ascending { forward } else { forward.reverse() }
        };
        let first = order.iter().map(compare).find(|o| o.is_ne());
        prop_assert!(
            first.is_none_or(|o| o.is_lt()),
            "rows {:?} and {:?} are not in order {:?}",
            pair[0].1.values,
            pair[1].1.values,
            order
        );
    }
    Ok(())
}

/// A bound longer than its pad is cut, and may then end in the pad character, as no value does.
#[test]
fn a_bound_cut_to_its_pad_holds_no_value() {
    let t = |op, text: &str| Predicate::compare(Field::Column(T), op, Value::Text(text.into()));
    let case = Case {
        columns: vec![N, T, B],
        nullable: [false; COLUMNS.len()],
        parts: vec![asc(Transform::Rpad { column: T, width: 2, pad: ' ' })],
        role: LayoutRole::Primary,
        pointer: vec![],
        limits: RangeLimits::USUAL,
        predicate: Predicate::and([t(CmpOp::Ge, "a "), t(CmpOp::Lt, "a b")]),
        on_rowkey: None,
        on_parts: None,
    };
    assert!(check(&case).unwrap().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: u32::MAX, ..ProptestConfig::default() })]

    #[test]
    fn ranges_and_residual_are_the_predicate(case in case()) {
        prop_assume!(check(&case)?.is_some());
    }

    #[test]
    fn what_implies_holds_wherever_the_other_does(
        known in predicate(vec![N, T, B]), wanted in predicate(vec![N, T, B]),
    ) {
        let implies = known.implies(&wanted);
        prop_assert!(known.has_opaque() || known.implies(&known));
        for n in domain(N).into_iter().chain([Value::Null]) {
            for t in domain(T).into_iter().chain([Value::Null]) {
                for b in domain(B).into_iter().chain([Value::Null]) {
                    let mut values = vec![Value::Null; COLUMNS.len()];
                    for (column, value) in [(N, &n), (T, &t), (B, &b)] {
                        values[usize::from(column.0)] = value.clone();
                    }
                    let row = Row { values, rowkey: Value::Null, pointer: vec![] };
                    let (mine, theirs) = (known.eval(&row).unwrap(), wanted.eval(&row).unwrap());
                    prop_assert!(!implies || mine != Some(true) || theirs == Some(true), "{:?}", row.values);
                    if !known.has_opaque() {
                        prop_assert_eq!(known.clone().not().eval(&row).unwrap(), mine.map(|m| !m));
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_implied_for_a_formula_holds_wherever_the_condition_does(
        formula in formula(), known in predicate(vec![N, T, TS, M]),
    ) {
        let Some(implied) = formula.implied(S, &possible_values(&known)) else { return Ok(()) };
        let columns: Vec<ColumnId> = [N, T, TS, M].to_vec();
        let mut all = vec![vec![Value::Null; COLUMNS.len()]];
        for column in columns {
            let with = |values: &Vec<Value>| {
                let filled = |value| {
                    let mut values = values.clone();
                    values[usize::from(column.0)] = value;
                    values
                };
                domain(column).into_iter().chain([Value::Null]).map(filled).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        for values in all {
            let mut row = Row { values, rowkey: Value::Null, pointer: vec![] };
            if known.eval(&row).unwrap() == Some(true) && let Ok(value) = formula.eval(&row) {
                row.values[usize::from(S.0)] = value;
                prop_assert_eq!(implied.eval(&row).unwrap(), Some(true), "{:?} of {:?}", implied, row.values);
            }
        }
    }
}
