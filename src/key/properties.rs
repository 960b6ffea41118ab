//! Property tests for every transform, type, direction and ending: brute force over small domains of hostile
//! values, and keys sampled by proptest.

use std::ops::Bound;

use proptest::prelude::*;
use proptest::sample::select;

use super::testing::*;
use super::*;
use crate::value::{ColumnType as Ty, Value, ValueRef};

const MONEY: Ty = Ty::Decimal { precision: 4, scale: 2 };
const HUGE: Ty = Ty::Decimal { precision: 38, scale: 0 };

/// Values of a type that tend to break codecs, without NULL.
fn domain(ty: Ty) -> Vec<Value> {
    let ints = |min, max| {
        let mut all: Vec<i64> =
            (-3..=12).chain([99, 100, 101, 255, 256, 999, 1000, min, min + 1, max - 1, max]).collect();
        all.sort();
        all.into_iter().map(Value::Int).collect()
    };
    match ty {
        Ty::Boolean => vec![Value::Boolean(false), Value::Boolean(true)],
        Ty::SmallInt => ints(i16::MIN.into(), i16::MAX.into()),
        Ty::Integer => ints(i32::MIN.into(), i32::MAX.into()),
        Ty::BigInt => ints(i64::MIN, i64::MAX),
        Ty::Real | Ty::Double => {
            [f64::NEG_INFINITY, -2.5, -1.0, -1e-45, 0.0, 1e-45, 0.5, 1.0, 65504.0, f64::INFINITY, f64::NAN]
                .into_iter()
                .map(|d| Value::Double(if ty == Ty::Real { f64::from(d as f32) } else { d }))
                .collect()
        }
        Ty::Decimal { scale, precision } => {
            let max = 10i128.pow(precision.into()) - 1;
            (-3..=3)
                .chain([99, 100, 101, 999, max - 1, max, -max])
                .map(|n| Value::Decimal(n, scale))
                .collect()
        }
        Ty::Varchar => texts().into_iter().map(Value::Text).collect(),
        Ty::Varbinary => {
            let bytes = [0u8, 1, 254, 255];
            let short =
                bytes.into_iter().flat_map(|a| [vec![a]].into_iter().chain(bytes.map(|b| vec![a, b])));
            [vec![], vec![0; 5], vec![255; 5]].into_iter().chain(short).map(Value::Bytes).collect()
        }
        Ty::Date => [
            -719_529,
            -719_528,
            -1,
            0,
            1,
            30,
            31,
            364,
            365,
            17_166,
            17_167,
            2_932_896,
            2_932_897,
            i32::MIN,
            i32::MAX,
        ]
        .into_iter()
        .map(Value::Date)
        .collect(),
        Ty::Timestamp => moments().into_iter().map(Value::Timestamp).collect(),
        Ty::TimestampTz => moments().into_iter().map(Value::TimestampTz).collect(),
        Ty::Uuid => [0, 1, 0x7F, 0x80, 0xFF].into_iter().map(|b| Value::Uuid([b; 16])).collect(),
        Ty::Json => vec![text("{}")],
    }
}

/// Microseconds around the edges of seconds, days, months and the calendar.
fn moments() -> Vec<i64> {
    const DAY: i64 = 86_400_000_000;
    let edges = [
        0,
        DAY,
        31 * DAY,
        59 * DAY,
        17_167 * DAY,
        17_167 * DAY + 9 * 3_600_000_000,
        3_600_000_000,
        60_000_000,
        1_000_000,
        1000,
    ];
    let calendar = [-719_528 * DAY, 2_932_897 * DAY];
    let around = edges.into_iter().chain(calendar).flat_map(|t| [t - 1, t, t + 1]);
    around.chain([i64::MIN, i64::MAX]).collect()
}

fn texts() -> Vec<String> {
    let chars = ["a", "b", "_", "0", "9", " ", "x", "\0", "\u{1}", "é", "\u{10FFFF}"];
    let pairs = chars.iter().flat_map(|a| chars.map(|b| format!("{a}{b}")));
    let longer = [
        "abc", "abx", "a_b", "aab", "a  b", "a ", "000", "009", "a\0\0", "a\0\u{1}", "aéxé", "éééé", "abcde",
        "xxxxx",
    ];
    [""].into_iter().chain(chars).chain(longer).map(str::to_owned).chain(pairs).collect()
}

/// Every transform with every type that it might accept; CREATE refuses the rest.
fn forms() -> Vec<(Transform, Ty)> {
    let c = ColumnId(0);
    let types = [
        Ty::Boolean,
        Ty::SmallInt,
        Ty::Integer,
        Ty::BigInt,
        Ty::Real,
        Ty::Double,
        MONEY,
        HUGE,
        Ty::Varchar,
        Ty::Varbinary,
        Ty::Date,
        Ty::Timestamp,
        Ty::TimestampTz,
        Ty::Uuid,
    ];
    let mut transforms = vec![
        col(0),
        text_of(0),
        lpad(0, 3),
        lpad(0, 5),
        Transform::Lpad { column: c, width: 6, pad: ' ' },
        Transform::Lpad { column: c, width: 6, pad: 'x' },
        rpad(0, 3, ' '),
        rpad(0, 4, 'x'),
        rpad(0, 4, 'é'),
        reverse(0, None),
        reverse(0, 4),
        Transform::ReverseBytes(c),
        max_minus(999, 0, 3),
        max_minus(1, 0, 4),
        max_minus(i64::MAX, 0, None),
        max_minus(0, 0, None),
        md5_hex(0, 0, 4),
        md5_hex(0, 31, 1),
        Transform::Md5(c),
        Transform::Modulo { column: c, buckets: 11 },
        Transform::Md5Bucket { columns: vec![c], buckets: 3 },
        code(0, &[("a", "tb"), ("b", "tm"), ("é", "aa")]),
        code(0, &[("a", "t"), ("b", "tm"), ("é", "tmm")]),
    ];
    for format in [
        "YYYY",
        "YYYY-MM",
        "YYYYMMDD",
        "YYYY-MM-DD HH24:MI:SS",
        "YYYY-DDD HH24",
        "YYYY-MM-DD\"T\"HH24:MI:SS.US",
        "DD-MM-YYYY HH24:MI:SS",
        "YYYY-MM-DD HH12:MI:SS.MS AM",
        "YYYY-MM-DD MI",
        "HH24:MI",
        "YY/MM/DD",
    ] {
        transforms.push(to_char(0, format));
    }
    transforms.into_iter().flat_map(|t| types.map(|ty| (t.clone(), ty))).collect()
}

/// What follows the part under test.
#[derive(Clone, Copy, Debug)]
enum Next {
    Nothing,
    Pointer,
    Column,
    Delimiter(&'static str),
}

/// A layout whose first part is under test; column 1 is the INTEGER that may follow.
#[derive(Debug)]
struct Case {
    ty: Ty,
    nullable: bool,
    layout: KeyLayout,
    next: Next,
}

impl Case {
    fn table(ty: Ty, nullable: bool) -> Table {
        Table(vec![("c", ty, nullable), ("next", Ty::Integer, false)])
    }

    /// The domain, including NULL if nullable, with the keys of those values that have one. Each value gets
    /// several keys, with small and great bytes after it.
    fn keys(&self) -> Vec<(Value, Vec<u8>)> {
        let table = Case::table(self.ty, self.nullable);
        let mut values = domain(self.ty);
        if self.nullable {
            values.push(Value::Null);
        }
        let mut out = Vec::new();
        for value in values {
            for next in [i32::MIN, 0x5F5F_5F5F, i32::MAX] {
                let row = [value.clone(), Value::Int(next.into())];
                let Ok(mut key) = table.try_key(&self.layout, &row) else { continue };
                if matches!(self.next, Next::Pointer) {
                    key.extend((next ^ i32::MIN).to_be_bytes());
                }
                out.push((value.clone(), key));
            }
        }
        out
    }

    fn part(&self) -> &KeyPart {
        &self.layout.parts()[0]
    }
}

/// All layouts that CREATE accepts.
fn all_cases() -> Vec<(Transform, Ty, bool, bool, Next)> {
    let mut out = Vec::new();
    for (transform, ty) in forms() {
        for next in [
            Next::Nothing,
            Next::Pointer,
            Next::Column,
            Next::Delimiter("_"),
            Next::Delimiter("ab"),
            Next::Delimiter("\u{1}"),
            Next::Delimiter("é"),
        ] {
            for (nullable, descending) in [(false, false), (false, true), (true, false), (true, true)] {
                let case = (transform.clone(), ty, nullable, descending, next);
                if build(&case).is_some() {
                    out.push(case);
                }
            }
        }
    }
    out
}

fn build((transform, ty, nullable, descending, next): &(Transform, Ty, bool, bool, Next)) -> Option<Case> {
    let first = PartSpec { descending: *descending, ..asc(transform.clone()) };
    let (parts, tail) = match next {
        Next::Nothing => (vec![first], Tail::Nothing),
        Next::Pointer => (vec![first], Tail::Pointer),
        // An index also accepts parts that do not tell rows apart.
        Next::Column => (vec![first, asc(col(1))], Tail::Pointer),
        Next::Delimiter(d) => (vec![first, asc(lit(d)), asc(col(1))], Tail::Pointer),
    };
    let layout = Case::table(*ty, *nullable).layout(parts, tail).ok()?;
    Some(Case { ty: *ty, nullable: *nullable, layout, next: *next })
}

fn case() -> impl Strategy<Value = Case> {
    select(all_cases()).prop_map(|case| build(&case).unwrap())
}

/// Bounds: values of the domain, and others between those that a type or part can hold.
fn bound_values(ty: Ty) -> Vec<Value> {
    let mut all = domain(ty);
    match ty {
        Ty::Decimal { .. } => all.extend([-15, -5, 5, 1005, i128::MAX].map(|n| Value::Decimal(n, 3))),
        Ty::Real => all.extend([-0.1, 0.1, 1e300, 65504.1].map(Value::Double)),
        Ty::Double => all.push(Value::Double(-0.0)),
        Ty::Integer => all.extend([Value::Int(i64::MAX), Value::Decimal(15, 1)]),
        _ => {}
    }
    all
}

fn interval(ty: Ty) -> BoxedStrategy<Interval> {
    let bound = || {
        let value = select(bound_values(ty));
        prop_oneof![
            4 => value.clone().prop_map(Bound::Included),
            4 => value.prop_map(Bound::Excluded),
            1 => Just(Bound::Unbounded),
        ]
    };
    let any = (bound(), bound()).prop_map(|(lower, upper)| Interval { lower, upper });
    let point = select(bound_values(ty))
        .prop_map(|v| Interval { lower: Bound::Included(v.clone()), upper: Bound::Included(v) });
    if ty != Ty::Varchar {
        return prop_oneof![6 => any, 1 => point].boxed();
    }
    let like = select(texts()).prop_map(|prefix| starting_with(&prefix));
    prop_oneof![4 => any, 1 => point, 2 => like].boxed()
}

fn holds(interval: &Interval, value: &Value) -> bool {
    let above = match &interval.lower {
        Bound::Included(v) => value >= v,
        Bound::Excluded(v) => value > v,
        Bound::Unbounded => true,
    };
    let below = match &interval.upper {
        Bound::Included(v) => value <= v,
        Bound::Excluded(v) => value < v,
        Bound::Unbounded => true,
    };
    // The planner coerces bounds before comparing; here integers are compared with decimal bounds directly.
    let exact = |v: &Value| match v {
        Value::Decimal(d, 1) => Some(*d),
        _ => None,
    };
    if let Value::Int(i) = value {
        let i = i128::from(*i) * 10;
        let above = match &interval.lower {
            Bound::Included(v) | Bound::Excluded(v) if exact(v).is_some() => i > exact(v).unwrap(),
            _ => above,
        };
        let below = match &interval.upper {
            Bound::Included(v) | Bound::Excluded(v) if exact(v).is_some() => i < exact(v).unwrap(),
            _ => below,
        };
        return above && below;
    }
    !value.is_null() && above && below
}

fn case_and_interval() -> impl Strategy<Value = (Case, Interval)> {
    case().prop_flat_map(|case| {
        let interval = interval(case.ty);
        (Just(case), interval)
    })
}

impl Clone for Case {
    fn clone(&self) -> Self {
        Case { layout: self.layout.clone(), ..*self }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn images_hold_their_interval((case, interval) in case_and_interval()) {
        let Some(image) = case.part().image(&interval) else { return Ok(()) };
        check_image(&image, &case.keys(), |value| holds(&interval, value));
    }

    #[test]
    fn noise_never_panics(case in case(), noise in prop::collection::vec(any::<u8>(), 0..40), at: usize) {
        let look = |key: &[u8]| {
            let ends = case.layout.split(key);
            assert_eq!(case.layout.len_in(key), ends.clone().map(|ends| ends.last().copied().unwrap_or(0)));
            if let Ok(len) = case.layout.decode(key, &mut |_, _| {}) {
                assert_eq!(Ok(len), case.layout.len_in(key));
            }
            case.layout.show(key);
        };
        look(&noise);
        let keys = case.keys();
        if !keys.is_empty() {
            let mut key = keys[at % keys.len()].1.clone();
            let place = at % (key.len() + 1);
            key.splice(place..place, noise.into_iter().take(2));
            look(&key);
            look(&key[..place]);
        }
    }
}

/// `LIKE 'x%'` and `LIKE '%x'` for every layout that has them.
#[test]
fn like_images_hold_their_texts() {
    for spec in all_cases().into_iter().filter(|(_, ty, ..)| *ty == Ty::Varchar) {
        let case = build(&spec).unwrap();
        let keys = case.keys();
        for pattern in texts() {
            let of_value =
                |v: &Value, holds: fn(&str, &str) -> bool| matches!(v, Value::Text(t) if holds(t, &pattern));
            if let Some(image) = case.part().image(&starting_with(&pattern)) {
                check_image(&image, &keys, |v| of_value(v, |t, p| t.starts_with(p)));
            }
            if let Some(image) = case.part().suffix_image(&pattern) {
                check_image(&image, &keys, |v| of_value(v, |t, p| t.ends_with(p)));
            }
        }
    }
}

fn check_image(image: &Image, keys: &[(Value, Vec<u8>)], holds: impl Fn(&Value) -> bool) {
    for (value, key) in keys {
        let (inside, found) = (holds(value), image.range.contains(key));
        assert!(found || !inside, "{value:?} is outside {image:?}");
        assert!(inside || !found || !image.tight, "{value:?} is inside {image:?}");
    }
}

/// The interval of `LIKE 'prefix%'`.
fn starting_with(prefix: &str) -> Interval {
    let upper = text_successor(prefix).map_or(Bound::Unbounded, |end| Bound::Excluded(Value::Text(end)));
    Interval { lower: Bound::Included(text(prefix)), upper }
}

/// Every layout, not a sample, because the planner relies on facts.
#[test]
fn facts_hold() {
    for spec in all_cases() {
        let case = build(&spec).unwrap();
        let (part, facts, keys) = (case.part(), case.part().facts(), case.keys());
        for (value, key) in &keys {
            let ends = case.layout.split(key).unwrap();
            let mut own = Vec::new();
            part.bytes_of(&|_| value, &mut own).unwrap();
            assert_eq!(own, key[..ends[0]], "{spec:?} {value:?}");
            assert!(facts.width.is_none_or(|w| w == own.len()), "{spec:?} {value:?}");
            if value.is_null() {
                assert_eq!(part.null_bytes().as_ref(), Some(&own));
            }
            if let Some(all) = part.fan_out(usize::MAX) {
                assert!(all.is_sorted() && all.contains(&own), "{spec:?} {value:?}");
            }
            if facts.injective {
                only_this_value(&case, value, own, &keys);
            }
        }
        if let Some(order) = facts.order {
            for ((a, x), (b, y)) in keys.iter().zip(keys.iter().skip(1)).chain(far_pairs(&keys)) {
                let expected = match order {
                    KeyOrder::Ascending => a.cmp(b),
                    KeyOrder::Descending => b.cmp(a),
                };
                assert!(expected.is_eq() || x.cmp(y) == expected, "{spec:?} {a:?} {b:?}");
            }
        }
    }
}

type Pair<'k> = (&'k (Value, Vec<u8>), &'k (Value, Vec<u8>));

fn far_pairs(keys: &[(Value, Vec<u8>)]) -> impl Iterator<Item = Pair<'_>> {
    keys.iter().flat_map(move |a| keys.iter().step_by(7).map(move |b| (a, b)))
}

/// The range of `= value`: its bytes and, if there is one, the delimiter; at the end of the key, a point.
fn only_this_value(case: &Case, value: &Value, own: Vec<u8>, keys: &[(Value, Vec<u8>)]) {
    let range = match case.next {
        Next::Nothing => KeyRange::point(own),
        Next::Delimiter(d) => KeyRange::prefix([&own[..], d.as_bytes()].concat()),
        Next::Pointer | Next::Column => KeyRange::prefix(own),
    };
    for (other, key) in keys.iter().step_by(2) {
        assert_eq!(range.contains(key), value == other, "{case:?} {value:?} {other:?}");
    }
}

#[test]
fn decodable_columns_come_back() {
    for spec in all_cases() {
        let case = build(&spec).unwrap();
        let keeps = case.part().facts().decodable;
        assert_eq!(case.layout.decodable().contains(&ColumnId(0)), keeps);
        for (value, key) in case.keys() {
            let mut seen = 0;
            let len = case
                .layout
                .decode(&key, &mut |column, given| {
                    if column == ColumnId(0) {
                        seen += 1;
                        assert_eq!(given, value.as_ref(), "{spec:?}");
                        assert_eq!(given.to_string(), value.to_string(), "{spec:?}");
                    }
                })
                .unwrap();
            assert_eq!(seen, usize::from(keeps), "{spec:?} {value:?}");
            let expected = if keeps { &value } else { &Value::Null };
            assert_eq!(case.layout.value_in(&key, ColumnId(0)).unwrap(), *expected, "{spec:?}");
            let pointer = if matches!(case.next, Next::Pointer) { 4 } else { 0 };
            assert_eq!(len, key.len() - pointer);
        }
    }
}

/// A composite key of plain columns (type, nullable, descending), and two rows.
type Tuples = (Vec<(Ty, bool, bool)>, Vec<Value>, Vec<Value>);

fn tuples() -> impl Strategy<Value = Tuples> {
    let ty =
        select(vec![Ty::Boolean, Ty::SmallInt, Ty::Double, MONEY, Ty::Varchar, Ty::Varbinary, Ty::Timestamp]);
    prop::collection::vec((ty, any::<bool>(), any::<bool>()), 1..4).prop_flat_map(|columns| {
        let value = |&(ty, nullable, _): &(Ty, bool, bool)| {
            let mut values = domain(ty);
            values.extend(nullable.then_some(Value::Null));
            select(values)
        };
        let row: Vec<_> = columns.iter().map(value).collect();
        (Just(columns), row.clone(), row)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn tuples_sort_as_their_values((columns, a, b) in tuples(), pointer: bool) {
        let table = Table(columns.iter().map(|&(ty, nullable, _)| ("c", ty, nullable)).collect());
        let part = |(n, c): (usize, &(Ty, bool, bool))| PartSpec { descending: c.2, ..asc(col(n as u16)) };
        let parts = columns.iter().enumerate().map(part).collect();
        let layout = table.layout(parts, if pointer { Tail::Pointer } else { Tail::Nothing }).unwrap();
        let turned = columns.iter().map(|c| c.2);
        let expected = a.iter().zip(&b).zip(turned).map(|((x, y), descending)| if descending { y.cmp(x) } else { x.cmp(y) });
        let expected = expected.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then);
        prop_assert_eq!(table.key(&layout, &a).cmp(&table.key(&layout, &b)), expected);
        let mut back = Vec::new();
        layout.decode(&table.key(&layout, &a), &mut |_, v: ValueRef<'_>| back.push(v.to_value())).unwrap();
        prop_assert_eq!(back, a);
    }
}
