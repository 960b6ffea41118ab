//! Random cases: layouts, the rows that they can hold, limits and predicates.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::key::{ColumnId, KeyLayout, PartExpr, PartSpec, Transform};
use crate::plan::ranges::RangeLimits;
use crate::plan::testing::{B, COLUMNS, D, M, N, Row, S, T, TS, asc, desc, encode, lit, rowkey};
use crate::plan::*;
use crate::value::{ColumnType, Value};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// The last day that a TIMESTAMP can hold.
const LAST_DAY: i64 = 2_932_896 * DAY;

/// Column values of rows.
pub(super) fn domain(column: ColumnId) -> Vec<Value> {
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
pub(super) struct Case {
    pub(super) columns: Vec<ColumnId>,
    pub(super) nullable: [bool; COLUMNS.len()],
    pub(super) parts: Vec<PartSpec>,
    pub(super) role: LayoutRole,
    /// The index's pointer, as far as the planner knows it; if empty, a few arbitrary bytes follow the
    /// layout.
    pub(super) pointer: Vec<PartSpec>,
    pub(super) limits: RangeLimits,
    pub(super) predicate: Predicate,
    pub(super) on_rowkey: Option<(Vec<RowkeyTerm>, /* AND, or else OR */ bool)>,
    pub(super) on_parts: Option<(Vec<PartTerm>, /* AND, or else OR */ bool)>,
}

/// A comparison of what a key part computes with what it computes for some row, cut and lengthened if that is a text.
#[derive(Clone, Debug)]
pub(super) struct PartTerm {
    op: CmpOp,
    part: Index,
    row: Index,
    cut: usize,
    extra: &'static str,
}

/// A comparison with a rowkey made from that of a row, by cutting and lengthening it.
#[derive(Clone, Debug)]
pub(super) struct RowkeyTerm {
    op: CmpOp,
    like: bool,
    row: Index,
    cut: Index,
    extra: Vec<u8>,
}

pub(super) fn case() -> impl Strategy<Value = Case> {
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

pub(super) fn predicate(columns: Vec<ColumnId>) -> impl Strategy<Value = Predicate> {
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
pub(super) fn formula() -> impl Strategy<Value = Formula> {
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
pub(super) fn rows(case: &Case, layout: &KeyLayout) -> Vec<(Vec<u8>, Row)> {
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

pub(super) fn whole_predicate(case: &Case, layout: &KeyLayout, rows: &[(Vec<u8>, Row)]) -> Predicate {
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
