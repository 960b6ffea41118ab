//! Proofs of the planner's two promises, on every row of small domains: *a row that matches lies inside the
//! ranges*; *a row inside the ranges matches if and only if the residual is true for it*.
//!
//! Layouts, predicates and limits are random. Values are close to each other and hostile to encodings: texts
//! that are prefixes of each other, that end in pads and delimiters, that contain 00 and FF; both zeros;
//! times finer than formats; numbers too wide for pads.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestCaseError;

use super::ranges::{RangeLimits, search};
use super::testing::{B, COLUMNS, D, M, N, Row, S, T, TS, asc, desc, encode, layout, lit, name, rowkey};
use super::*;
use crate::key::{ColumnId, KeyLayout, KeyOrder, PartExpr, PartSpec, Tail, Transform};
use crate::value::{ColumnType, Value};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// The last day that a TIMESTAMP can hold.
const LAST_DAY: i64 = 2_932_896 * DAY;

/// Column values of rows.
fn domain(column: ColumnId) -> Vec<Value> {
    match COLUMNS[usize::from(column.0)].1 {
        ColumnType::Integer => [-3, 0, 1, 2, 10, 11, 99].map(Value::Int).to_vec(),
        ColumnType::Boolean => [false, true].map(Value::Boolean).to_vec(),
        ColumnType::Timestamp => [
            -SECOND,
            0,
            1,
            DAY - SECOND,
            DAY,
            32 * DAY,
            366 * DAY,
            LAST_DAY + DAY / 2,
            LAST_DAY + DAY - 9 * SECOND,
        ]
        .map(Value::Timestamp)
        .to_vec(),
        ColumnType::Double => [-1.5, -0.0, 0.0, 2.0, f64::INFINITY, f64::NAN].map(Value::Double).to_vec(),
        ColumnType::Decimal { .. } => [-15, 0, 5, 10, 100].map(|d| Value::Decimal(d, 1)).to_vec(),
        _ => ["", "0", "9", "09", "a", "aa", "ab", "a_", "b ", "a\0", "é"]
            .map(|t| Value::Text(t.into()))
            .to_vec(),
    }
}

/// Literals of predicates: values of rows, and others near them.
fn literal(column: ColumnId) -> impl Strategy<Value = Value> {
    let mut values = domain(column);
    values.extend(match COLUMNS[usize::from(column.0)].1 {
        ColumnType::Integer => [i64::MIN, -4, 5, 100, 1 << 31, i64::MAX].map(Value::Int).to_vec(),
        ColumnType::Boolean => vec![],
        ColumnType::Timestamp => [i64::MIN, 2, DAY / 2, DAY + 1, LAST_DAY + DAY - 10 * SECOND, i64::MAX]
            .map(Value::Timestamp)
            .to_vec(),
        ColumnType::Double => [f64::NEG_INFINITY, 0.5].map(Value::Double).to_vec(),
        ColumnType::Decimal { .. } => [-999, 7, 999].map(|d| Value::Decimal(d, 1)).to_vec(),
        _ => ["a b", "a^", "a_b", "aaaa", "\u{10FFFF}", "\0"].map(|t| Value::Text(t.into())).to_vec(),
    });
    select(values)
}

fn transform(column: ColumnId) -> BoxedStrategy<Transform> {
    let hashes = prop_oneof![
        Just(Transform::Md5Hex { column, from: 0, len: 1 }),
        Just(Transform::Md5(column)),
        Just(Transform::Md5Bucket { columns: vec![column], buckets: 3 }),
        Just(Transform::Random { buckets: 2 }),
    ];
    let plain = Just(Transform::Column(column));
    let of_type = match COLUMNS[usize::from(column.0)].1 {
        ColumnType::Integer | ColumnType::Decimal { .. } => {
            let mut all = vec![
                Transform::Lpad { column, width: 3, pad: '0' },
                Transform::Reverse { column, width: Some(3) },
                Transform::Reverse { column, width: None },
                Transform::ReverseBytes(column),
                Transform::Text(column),
            ];
            if column == N {
                all.push(Transform::MaxMinus { column, max: 50, width: Some(2) });
                all.push(Transform::MaxMinus { column, max: 50, width: None });
                all.push(Transform::Modulo { column, buckets: 3 });
            }
            select(all).boxed()
        }
        ColumnType::Varchar => select(vec![
            Transform::Lpad { column, width: 2, pad: '0' },
            Transform::Rpad { column, width: 2, pad: ' ' },
            Transform::Rpad { column, width: 2, pad: 'a' },
            Transform::Reverse { column, width: None },
            Transform::Reverse { column, width: Some(2) },
            Transform::Text(column),
            Transform::Code {
                column,
                codes: [("a", "x"), ("ab", "y"), ("é", "z")].map(|(n, c)| (n.into(), c.into())).to_vec(),
            },
        ])
        .boxed(),
        ColumnType::Timestamp => select(
            [
                "YYYY-MM-DD",
                "YYYYMMDDHH24MISS",
                "DD-MM-YYYY",
                "DD-MM-YYYY HH24:MI:SS",
                "DD-MM-YYYY HH12 AM MI SS",
                "MM.YYYY DD",
                "YYYY",
                "HH24",
            ]
            .map(|format| Transform::ToChar { column, format: format.into() })
            .to_vec(),
        )
        .boxed(),
        _ => plain.clone().boxed(),
    };
    prop_oneof![3 => plain, 3 => of_type, 2 => hashes].boxed()
}

fn part(columns: Vec<ColumnId>) -> impl Strategy<Value = PartSpec> {
    let several = Transform::Md5Bucket { columns: columns.clone(), buckets: 2 };
    let of_one = select(columns).prop_flat_map(transform);
    (prop_oneof![9 => of_one, 1 => Just(several)], prop::bool::weighted(0.25))
        .prop_map(|(transform, descending)| if descending { desc(transform) } else { asc(transform) })
}

/// A random layout over three columns, most often with two of them in the key.
#[derive(Clone, Debug)]
struct Case {
    columns: Vec<ColumnId>,
    nullable: [bool; COLUMNS.len()],
    parts: Vec<PartSpec>,
    role: LayoutRole,
    /// The index's pointer, as far as the planner knows it; if empty, a few arbitrary bytes follow the
    /// layout.
    pointer: Vec<PartSpec>,
    limits: RangeLimits,
    predicate: Predicate,
    on_rowkey: Option<(Vec<RowkeyTerm>, /* AND, or else OR */ bool)>,
    on_parts: Option<(Vec<PartTerm>, /* AND, or else OR */ bool)>,
}

/// A comparison of what a key part computes with what it computes for some row, cut and lengthened if that is a text.
#[derive(Clone, Debug)]
struct PartTerm {
    op: CmpOp,
    part: Index,
    row: Index,
    cut: usize,
    extra: &'static str,
}

/// A comparison with a rowkey made from that of a row, by cutting and lengthening it.
#[derive(Clone, Debug)]
struct RowkeyTerm {
    op: CmpOp,
    like: bool,
    row: Index,
    cut: Index,
    extra: Vec<u8>,
}

fn case() -> impl Strategy<Value = Case> {
    let columns = select(vec![
        vec![N, T, B],
        vec![T, N, TS],
        vec![TS, T, B],
        vec![D, N, T],
        vec![M, T, B],
        vec![T, S, B],
    ]);
    columns.prop_flat_map(|columns| {
        let parts =
            prop::collection::vec((part(columns.clone()), prop::option::weighted(0.3, delimiter())), 1..4);
        let whole = prop::bool::weighted(0.6);
        let layout = (parts, whole, prop::array::uniform7(prop::bool::weighted(0.4)), any::<bool>());
        let on_rowkey = (prop::collection::vec(rowkey_term(), 1..3), prop::bool::weighted(0.8));
        let pointer = prop::collection::vec((select(columns.clone()), any::<bool>()), 0..3);
        let layout = (layout, pointer);
        let on_parts = (prop::collection::vec(part_term(), 1..4), prop::bool::weighted(0.7));
        let others = (prop::option::weighted(0.2, on_rowkey), prop::option::weighted(0.4, on_parts));
        (layout, predicate(columns.clone()), limits(), others).prop_map(
            move |(((parts, whole, nullable, index), pointer), predicate, limits, others)| {
                let (on_rowkey, on_parts) = others;
                let role = if index { LayoutRole::Index } else { LayoutRole::Primary };
                let nullable = if index { nullable } else { [false; COLUMNS.len()] };
                let mut parts: Vec<PartSpec> = parts
                    .into_iter()
                    .flat_map(|(part, end)| [Some(part), end].into_iter().flatten())
                    .collect();
                if whole && role == LayoutRole::Primary {
                    // Without this, most salted keys would be refused.
                    let mut used: Vec<ColumnId> =
                        parts.iter().flat_map(|p| p.transform.columns()).copied().collect();
                    used.sort();
                    used.dedup();
                    parts.extend(used.into_iter().map(|c| asc(Transform::Column(c))));
                }
                let pointer = pointer.into_iter().map(|(column, descending)| match descending {
                    true => desc(Transform::Column(column)),
                    false => asc(Transform::Column(column)),
                });
                let pointer = pointer.filter(|_| index).collect();
                Case {
                    columns: columns.clone(),
                    nullable,
                    parts,
                    role,
                    pointer,
                    limits,
                    predicate,
                    on_rowkey,
                    on_parts,
                }
            },
        )
    })
}

fn delimiter() -> impl Strategy<Value = PartSpec> {
    select(vec!["_", "\u{1}", "__"]).prop_map(lit)
}

fn limits() -> impl Strategy<Value = RangeLimits> {
    let few = (1usize..6, 1usize..4)
        .prop_map(|(ranges_max, alternatives_max)| RangeLimits { ranges_max, alternatives_max });
    prop_oneof![3 => Just(RangeLimits::USUAL), 1 => few]
}

fn comparison() -> impl Strategy<Value = CmpOp> {
    select(vec![CmpOp::Eq, CmpOp::Eq, CmpOp::Ne, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge])
}

fn rowkey_term() -> impl Strategy<Value = RowkeyTerm> {
    let extra = prop::collection::vec(select(vec![0, b'a', b'_', 0xFF]), 0..2);
    (comparison(), prop::bool::weighted(0.2), any::<Index>(), any::<Index>(), extra)
        .prop_map(|(op, like, row, cut, extra)| RowkeyTerm { op, like, row, cut, extra })
}

fn part_term() -> impl Strategy<Value = PartTerm> {
    let changed = (
        prop_oneof![6 => Just(0), 1 => 1usize..4],
        select(vec!["", "", "", "", "0", "a", "\0", "\u{10FFFF}"]),
    );
    (comparison(), any::<Index>(), any::<Index>(), changed)
        .prop_map(|(op, part, row, (cut, extra))| PartTerm { op, part, row, cut, extra })
}

fn atom(column: ColumnId) -> BoxedStrategy<Predicate> {
    let field = Field::Column(column);
    let compare = (comparison(), literal(column)).prop_map(move |(op, v)| Predicate::compare(field, op, v));
    let list = prop::collection::vec(prop_oneof![9 => literal(column), 1 => Just(Value::Null)], 0..4)
        .prop_map(move |values| Predicate::is_in(field, values));
    let null = Just(Predicate::is_null(field));
    let opaque = Just(Predicate::Opaque("f(n)".into()));
    if COLUMNS[usize::from(column.0)].1 != ColumnType::Varchar {
        return prop_oneof![6 => compare, 2 => list, 1 => null, 1 => opaque].boxed();
    }
    let pattern =
        select(vec!["a%", "%a", "%", "a_", "%b%", "a%b", "0%", "%0", "a\\_%", "%_", "_a%b", "ab", "a %"]);
    let like = (pattern, prop::bool::weighted(0.1)).prop_map(move |(pattern, any_case)| {
        Predicate::like(field, LikePattern::new(pattern, Some('\\')).unwrap(), any_case)
    });
    prop_oneof![4 => compare, 2 => list, 4 => like, 1 => null].boxed()
}

fn tuple(columns: Vec<ColumnId>) -> impl Strategy<Value = Predicate> {
    let order = Just(columns).prop_shuffle();
    (order, comparison(), 1usize..4).prop_flat_map(|(mut columns, op, len)| {
        columns.truncate(len);
        let fields: Vec<Field> = columns.iter().copied().map(Field::Column).collect();
        let values: Vec<_> = columns.into_iter().map(literal).collect();
        values.prop_map(move |values| Predicate::tuple(fields.clone(), op, values).unwrap())
    })
}

fn predicate(columns: Vec<ColumnId>) -> impl Strategy<Value = Predicate> {
    let one = select(columns.clone()).prop_flat_map(atom);
    prop_oneof![9 => one, 1 => tuple(columns)].prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(Predicate::and),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Predicate::or),
            1 => inner.prop_map(Predicate::not),
        ]
    })
}

/// Formulas of one column or two, some of them increasing.
fn formula() -> impl Strategy<Value = Formula> {
    let call = |function, args, ty| Formula::Call { function, args, ty };
    let int = |i| Formula::Literal(Value::Int(i));
    let text = |text: &str| Formula::Literal(Value::Text(text.into()));
    let (n, t, ts, m) = (Formula::Column(N), Formula::Column(T), Formula::Column(TS), Formula::Column(M));
    let (whole, decimal) = (ColumnType::BigInt, ColumnType::Decimal { precision: 5, scale: 1 });
    let added = |of: &Formula, by| call(Function::Add, vec![of.clone(), int(by)], whole);
    select(vec![
        added(&n, 5),
        added(&added(&n, i64::MAX - 20), 5),
        call(Function::Subtract, vec![n.clone(), int(3)], whole),
        call(Function::Subtract, vec![int(3), n.clone()], whole),
        call(Function::Multiply, vec![n.clone(), int(2)], whole),
        call(Function::Multiply, vec![n.clone(), int(-2)], whole),
        call(Function::Multiply, vec![n.clone(), n.clone()], whole),
        call(Function::Abs, vec![n.clone()], whole),
        call(Function::Add, vec![m.clone(), int(1)], decimal),
        call(Function::Add, vec![m, n.clone()], decimal),
        call(Function::Cast, vec![n.clone()], ColumnType::Double),
        call(Function::Cast, vec![n], ColumnType::Varchar),
        call(Function::DateTrunc, vec![text("month"), ts.clone()], ColumnType::Timestamp),
        call(Function::DateTrunc, vec![text("minute"), ts], ColumnType::Timestamp),
        call(Function::Left, vec![t.clone(), int(1)], ColumnType::Varchar),
        call(Function::Substr, vec![t.clone(), int(1), int(2)], ColumnType::Varchar),
        call(Function::Substr, vec![t.clone(), int(2), int(1)], ColumnType::Varchar),
        call(Function::Upper, vec![t.clone()], ColumnType::Varchar),
        call(Function::Length, vec![t.clone()], whole),
        call(Function::Coalesce, vec![t.clone(), text("a")], ColumnType::Varchar),
        call(Function::Concat, vec![t.clone(), t], ColumnType::Varchar),
    ])
}

/// Every row of the domain that the layout can hold, with its key.
fn rows(case: &Case, layout: &KeyLayout) -> Vec<(Vec<u8>, Row)> {
    let mut all = vec![vec![Value::Null; COLUMNS.len()]];
    for &column in &case.columns {
        let at = usize::from(column.0);
        let mut values = domain(column);
        values.extend(case.nullable[at].then_some(Value::Null));
        let with = |row: &Vec<Value>, value: Value| {
            let mut row = row.clone();
            row[at] = value;
            row
        };
        all = all.iter().flat_map(|row| values.iter().map(move |v| with(row, v.clone()))).collect();
    }
    let pointers: [&[u8]; 4] = [b"", b"\0", b"0", b"\xFF\xFF"];
    let row = |(i, values): (usize, Vec<Value>)| {
        let mut key = encode(layout, &values, i as u64)?;
        let rowkey = rowkey(layout, &key);
        let pointer = match case.role {
            LayoutRole::Primary => vec![],
            LayoutRole::Index => pointers[i % pointers.len()].to_vec(),
        };
        key.extend_from_slice(&pointer);
        Some((key, Row { values, rowkey, pointer }))
    };
    all.into_iter().enumerate().filter_map(row).collect()
}

impl RowkeyTerm {
    /// `None` if the bytes are no valid rowkey of the layout's type.
    fn predicate(&self, layout: &KeyLayout, rows: &[(Vec<u8>, Row)]) -> Option<Predicate> {
        let mut bytes = match &self.row.get(rows).1.rowkey {
            Value::Text(text) => text.clone().into_bytes(),
            Value::Bytes(bytes) => bytes.clone(),
            _ => return None,
        };
        bytes.truncate(bytes.len() - self.cut.index(bytes.len() + 1) / 2);
        bytes.extend_from_slice(&self.extra);
        let text = String::from_utf8(bytes.clone());
        if self.like {
            // A `_` of the key may be one of its delimiters.
            let escaped = text.ok()?.replace(['%', '!'], "") + "%";
            let pattern = LikePattern::new(escaped, Some('!')).ok()?;
            return Some(Predicate::like(Field::Rowkey, pattern, false));
        }
        let value = if layout.is_text() { Value::Text(text.ok()?) } else { Value::Bytes(bytes) };
        Some(Predicate::compare(Field::Rowkey, self.op, value))
    }
}

impl PartTerm {
    /// `None` if no part of the layout computes anything.
    fn predicate(&self, layout: &KeyLayout, rows: &[(Vec<u8>, Row)]) -> Option<Predicate> {
        let parts: Vec<PartExpr> = layout.parts().iter().filter_map(PartExpr::of).collect();
        if parts.is_empty() {
            return None;
        }
        let part = self.part.get(&parts).clone();
        let row = &self.row.get(rows).1;
        let of: Vec<_> = part.columns().iter().map(|c| row.values[usize::from(c.0)].as_ref()).collect();
        let value = match part.value(&of) {
            Value::Null => return None,
            Value::Int(n) => Value::Int(n + self.cut as i64),
            Value::Text(text) => {
                let kept = text.chars().count().saturating_sub(self.cut);
                Value::Text(text.chars().take(kept).chain(self.extra.chars()).collect())
            }
            other => other,
        };
        Some(Predicate::Part { part: Arc::new(part), op: self.op, value })
    }
}

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

fn whole_predicate(case: &Case, layout: &KeyLayout, rows: &[(Vec<u8>, Row)]) -> Predicate {
    let joined = |terms: Vec<Predicate>, all: bool, other: Predicate| {
        let terms = terms.into_iter().chain([other]);
        if all { Predicate::and(terms) } else { Predicate::or(terms) }
    };
    let mut whole = case.predicate.clone();
    if let Some((terms, all)) = &case.on_parts {
        let mut terms: Vec<_> = terms.iter().filter_map(|term| term.predicate(layout, rows)).collect();
        // The column may also be free, or the condition denied.
        match terms.len() % 3 {
            0 => whole = Predicate::True,
            1 => terms = terms.into_iter().map(Predicate::not).collect(),
            _ => {}
        }
        whole = joined(terms, *all, whole);
    }
    let Some((terms, all)) = &case.on_rowkey else { return whole };
    let terms = terms.iter().filter_map(|term| term.predicate(layout, rows)).collect();
    joined(terms, *all, whole)
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
