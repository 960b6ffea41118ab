use super::*;
use crate::error::Kind;
use crate::row::testing::{same, typed_value};
use crate::value::Value;
use proptest::prelude::*;

type Column = (ColumnId, ColumnType, Value);

fn packed(columns: &[Column]) -> Vec<u8> {
    let mut out = Vec::new();
    let columns = columns.iter().map(|(id, ty, value)| (*id, *ty, value.as_ref()));
    pack(columns, &mut out).expect("columns ascend and fit");
    out
}

#[test]
fn the_worked_example_holds() {
    let columns = [
        (ColumnId(1), ColumnType::Integer, Value::Int(300)),
        (ColumnId(3), ColumnType::Varchar, Value::Text("paid".into())),
        (ColumnId(5), ColumnType::Double, Value::Null),
        (ColumnId(7), ColumnType::Boolean, Value::Boolean(true)),
    ];
    let bytes = packed(&columns);
    assert_eq!(crate::key::hex(&bytes), "01030103070206072c017061696401");
    let row = PackedRow::new(&bytes).unwrap();
    for (id, ty, value) in &columns {
        assert_eq!(row.get(*id, *ty).unwrap().unwrap_or(ValueRef::Null), value.as_ref());
    }
    assert_eq!(row.columns().map(|c| c.0).collect::<Vec<_>>(), [1, 3, 7]);
    assert!(row.get(ColumnId(2), ColumnType::Integer).unwrap().is_none());
}

#[test]
fn numbers_take_as_few_bytes_as_keep_the_sign() {
    let known = [(0, 0), (1, 1), (-1, 1), (127, 1), (128, 2), (-128, 1), (-129, 2), (i64::MIN, 8)];
    let each_length = (1..=8).flat_map(|bytes| {
        let most = i64::MAX >> (64 - 8 * bytes);
        [(most, bytes), (!most, bytes), (0x0102_0304_0506_0708 & most, bytes)]
    });
    for (i, bytes) in known.into_iter().chain(each_length) {
        let (mut narrow, mut wide) = (Vec::new(), Vec::new());
        encode_int(i, &mut narrow);
        encode_wide(i.into(), &mut wide);
        assert_eq!((narrow.len(), decode_int(&narrow)), (bytes, Some(i)));
        assert_eq!(narrow, wide);
    }
    let mut one = Vec::new();
    encode_float(&1f64.to_be_bytes(), &mut one);
    assert_eq!(one, [0x3F, 0xF0]);
}

#[test]
fn wide_rows_use_wide_numbers() {
    for (id, len) in [(254, 255), (255, 255), (254, 256), (65_535, 65_536)] {
        let columns = [
            (ColumnId(0), ColumnType::Integer, Value::Int(-1)),
            (ColumnId(id), ColumnType::Varbinary, Value::Bytes(vec![7; len - 1])),
        ];
        let bytes = packed(&columns);
        let row = PackedRow::new(&bytes).unwrap();
        let value = row.get(ColumnId(id), ColumnType::Varbinary).unwrap();
        assert_eq!(value.map(ValueRef::to_value), Some(columns[1].2.clone()), "id {id}, {len} bytes");
    }
}

#[test]
fn mistakes_of_the_caller_are_internal_errors() {
    let one = (ColumnId(1), ColumnType::Integer, ValueRef::Int(1));
    let cases = [
        vec![one, one],
        vec![(ColumnId(1), ColumnType::Varchar, ValueRef::Int(1))],
        vec![(ColumnId(1), ColumnType::Decimal { precision: 9, scale: 2 }, ValueRef::Decimal(1, 3))],
    ];
    for columns in cases {
        assert_eq!(pack(columns, &mut Vec::new()).unwrap_err().kind(), Kind::Internal);
    }
}

#[test]
fn damage_is_reported() {
    let text = (ColumnId(1), ColumnType::Varchar, Value::Text("é".into()));
    let good = packed(&[text]);
    assert_eq!(good, [1, 1, 1, 2, 0xC3, 0xA9]);
    for bad in [
        &[][..],
        &[0],
        &[1],
        &[1, 9],
        &[0x81, 0],
        &[0x19, 0],
        &[0x21, 0],
        &[0x41, 0],
        &[1, 1, 1, 3, 0xC3, 0xA9],
        &[1, 0, 9],
    ] {
        assert_eq!(PackedRow::new(bad).unwrap_err().kind(), Kind::Corrupt, "{bad:?}");
    }
    let split = [1, 1, 1, 1, 0xC3];
    let error = PackedRow::new(&split).unwrap().get(ColumnId(1), ColumnType::Varchar).unwrap_err();
    assert_eq!(error.reason(), Some("column 1 holds no VARCHAR: 'c3'"));
}

fn columns() -> impl Strategy<Value = Vec<Column>> {
    let ids = prop_oneof![0u16..20, 0u16..300, any::<u16>()];
    prop::collection::btree_map(ids, typed_value(), 0..20)
        .prop_map(|map| map.into_iter().map(|(id, (ty, value))| (ColumnId(id), ty, value)).collect())
}

/// Decodes everything; the results do not matter.
fn read_all(bytes: &[u8], types: &[ColumnType]) {
    if let Ok(row) = PackedRow::new(bytes) {
        for (column, ty) in row.columns().zip(types.iter().cycle()) {
            let _ = row.get(column, *ty);
        }
    }
}

proptest! {
    #[test]
    fn rows_come_back(columns in columns()) {
        let bytes = packed(&columns);
        let row = PackedRow::new(&bytes).unwrap();
        for (id, ty, value) in &columns {
            let read = row.get(*id, *ty).unwrap().unwrap_or(ValueRef::Null).to_value();
            prop_assert!(same(&read, value), "{:?} is not {:?}", read, value);
        }
    }

    #[test]
    fn a_row_that_is_packed_again_has_what_changed(
        columns in columns(),
        changes in prop::collection::vec(prop::option::of(any::<bool>()), 20),
    ) {
        // Each column is kept, becomes NULL, or gets a value of another row.
        let new: Vec<Column> = columns.iter().zip(&changes).map(|((id, ty, value), change)| match change {
            Some(true) => (*id, ColumnType::Boolean, Value::Boolean(true)),
            Some(false) => (*id, *ty, Value::Null),
            None => (*id, *ty, value.clone()),
        }).collect();
        let old = packed(&columns);
        let given = new.iter().zip(&changes).map(|((id, ty, value), change)| {
            (*id, change.map(|_| (*ty, value.as_ref())))
        });
        let mut again = b"before".to_vec();
        repack(&PackedRow::new(&old).unwrap(), given, &mut again).unwrap();
        prop_assert_eq!(&again[6..], &packed(&new)[..]);
    }

    #[test]
    fn a_row_that_is_overwritten_is_the_one_that_is_packed_again(
        columns in columns(),
        others in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 20),
    ) {
        // Some columns get the value that another one of their type has.
        let other = |(at, (changes, from)): (usize, &(bool, prop::sample::Index))| {
            let (id, ty, value) = columns.get(at).filter(|_| *changes)?;
            let of_type: Vec<_> = columns.iter().filter(|(_, other, _)| other == ty).collect();
            let new = from.get(&of_type).2.clone();
            Some((*id, *ty, value.clone(), new))
        };
        let changes: Vec<_> = others.iter().enumerate().filter_map(other).collect();
        let old = packed(&columns);
        let row = PackedRow::new(&old).unwrap();
        let given = columns.iter().map(|(id, ..)| {
            let new = changes.iter().find(|(of, ..)| of == id);
            (*id, new.map(|(_, ty, _, new)| (*ty, new.as_ref())))
        });
        let mut again = Vec::new();
        repack(&row, given, &mut again).unwrap();
        let mut over = b"before".to_vec();
        let new = changes.iter().map(|(id, ty, _, new)| (*id, *ty, new.as_ref()));
        let fits = overwrite(&row, new, &mut over).unwrap();
        prop_assert_eq!(&over[..6], b"before");
        prop_assert_eq!(&over[6..], if fits { &again[..] } else { &[] });
        let is_same = changes.iter().all(|(_, _, value, new)| value == new && !value.is_null());
        prop_assert!(fits || !is_same, "the same values fit");
    }

    #[test]
    fn noise_never_panics(
        head in any::<u8>(),
        noise in prop::collection::vec(any::<u8>(), 0..40),
        types in prop::collection::vec(typed_value().prop_map(|(ty, _)| ty), 1..8),
    ) {
        read_all(&noise, &types);
        // A plausible head lets the decoder get further.
        read_all(&[&[head & 0x3C | VERSION, 3, 1, 2, 3][..], &noise].concat(), &types);
    }

    #[test]
    fn flipped_bytes_never_panic(columns in columns(), at: prop::sample::Index, with in 1u8..) {
        let mut bytes = packed(&columns);
        let at = at.index(bytes.len());
        bytes[at] ^= with;
        read_all(&bytes, &columns.iter().map(|c| c.1).chain([ColumnType::Integer]).collect::<Vec<_>>());
    }
}
