//! Tests of refusals and warnings: layouts, and values on write, each with its message.

use super::testing::*;
use super::{ColumnId, KeyLayout, PartSpec, Tail, Transform};
use crate::error::{Error, sqlstate};
use crate::value::{ColumnType as Ty, Value};

fn table() -> Table {
    Table::new(&[
        ("id", Ty::BigInt),
        ("note", Ty::Varchar),
        ("day", Ty::Date),
        ("ts", Ty::Timestamp),
        ("doc", Ty::Json),
        ("price", Ty::Double),
        ("blob", Ty::Varbinary),
        ("total", Ty::Decimal { precision: 6, scale: 2 }),
    ])
}

const ID: ColumnId = ColumnId(0);
const NOTE: ColumnId = ColumnId(1);

/// The refusal of a primary key, as shown to the user, and the part it names.
fn refused(parts: Vec<PartSpec>) -> (String, usize) {
    let error = table().layout(parts, Tail::Nothing).unwrap_err();
    let part = error.part;
    let error = Error::from(error);
    assert_eq!(error.sqlstate(), sqlstate::INVALID_TABLE_DEFINITION);
    (error.to_string(), part)
}

#[test]
fn parts_without_an_end() {
    let codes = || sql("code(note, 'a=x, b=yy')", code(1, &[("a", "x"), ("b", "yy")]));
    let (message, part) = refused(vec![codes(), sql("day", col(2))]);
    assert_eq!(
        (message.as_str(), part),
        (
            "error: rowkey part \"note\" has no end\n  why: it is variable-width and \"day\" follows it\n \
             hint: make all codes equally long, put a delimiter literal after it, or move it last",
            0
        )
    );
    let number = sql("cast(id as varchar)", text_of(0));
    let (message, part) = refused(vec![asc(lit("k")), number, sql("day", col(2))]);
    assert!(message.contains("write lpad(id, n), ") && part == 1, "{message}");
    // At the end, delimited, or before an index's pointer, they are accepted; what is text is given an end.
    let table = table();
    table.primary(vec![asc(col(2)), asc(text_of(0))]);
    table.primary(vec![asc(text_of(0)), asc(lit("_")), asc(col(2))]);
    table.layout(vec![asc(text_of(0))], Tail::Pointer).unwrap();
    table.primary(vec![asc(reverse(1, None)), asc(col(2))]);
    table.primary(vec![asc(reverse(0, None)), asc(col(2))]);
}

#[test]
fn keys_that_do_not_tell_rows_apart() {
    let (message, part) = refused(vec![sql("left(md5(id), 4)", md5_hex(0, 0, 4))]);
    assert_eq!(
        (message.as_str(), part),
        (
            "error: rowkey part left(md5(id), 4) does not tell rows apart\n  \
             why: different values of \"id\" share its bytes, and \"id\" is nowhere else in the key\n \
             hint: add \"id\" itself after it",
            0
        )
    );
    for lossy in [
        Transform::Modulo { column: ID, buckets: 16 },
        Transform::Md5Bucket { columns: vec![ID], buckets: 16 },
        to_char(3, "YYYY-MM"),
        to_char(3, "HH24:MI"),
    ] {
        let (message, part) = refused(vec![asc(col(1)), asc(lit("_")), asc(lossy)]);
        assert!(message.contains("does not tell rows apart") && part == 2, "{message}");
    }
    // A whole hash and padded text are accepted as the author's choice; an index need not tell rows apart.
    let table = table();
    table.primary(vec![asc(Transform::Md5(ID))]);
    table.primary(vec![asc(lpad(1, 5))]);
    table.primary(vec![asc(to_char(3, "DD-MM-YYYY HH24:MI:SS"))]);
    table.layout(vec![asc(md5_hex(0, 0, 4))], Tail::Pointer).unwrap();
}

#[test]
fn keys_without_a_column() {
    for parts in [vec![], vec![asc(lit("x"))], vec![asc(Transform::Random { buckets: 16 })]] {
        assert!(refused(parts).0.contains("holds no column"));
    }
}

#[test]
fn forms_that_do_not_take_their_column() {
    let cases = [
        (col(4), "is JSON", "use md5(doc)"),
        (lpad(5, 4), "\"price\" is DOUBLE", "use \"price\" itself"),
        (lpad(2, 10), "\"day\" is DATE", "to_char(day, 'YYYY-MM-DD HH24:MI:SS')"),
        (lpad(6, 4), "\"blob\" is VARBINARY", "itself"),
        (rpad(0, 4, ' '), "\"id\" is BIGINT", "use lpad(id, n) for numbers"),
        (text_of(5), "\"price\" is DOUBLE", "itself"),
        (reverse(3, 20), "\"ts\" is TIMESTAMP", "to_char(ts"),
        (Transform::ReverseBytes(NOTE), "\"note\" is VARCHAR", "use reverse(note)"),
        (max_minus(9, 1, None), "\"note\" is VARCHAR", "\"note\" DESC"),
        (Transform::Modulo { column: ColumnId(3), buckets: 4 }, "\"ts\" is TIMESTAMP", "md5_bucket(ts, n)"),
        (to_char(0, "YYYY"), "\"id\" is BIGINT", "lpad(id, n)"),
        (code(0, &[("a", "b")]), "\"id\" is BIGINT", "itself"),
    ];
    for (transform, why, hint) in cases {
        let (message, part) = refused(vec![sql("the part", transform), sql("id", col(0))]);
        assert!(message.starts_with("error: rowkey part the part cannot be used"), "{message}");
        assert!(message.contains(why) && message.contains(hint) && part == 0, "{message}");
    }
}

#[test]
fn forms_with_parameters_that_cannot_work() {
    let bucket = |buckets| Transform::Modulo { column: ID, buckets };
    let cases = [
        (lpad(0, 0), "no value fits a width below 1"),
        (rpad(1, 0, ' '), "no value fits a width below 1"),
        (lpad(7, 3), "no value fits a width below 4"),
        (Transform::Lpad { column: ID, width: 4, pad: '1' }, "a number is padded with '0'"),
        (Transform::Lpad { column: ID, width: 4, pad: 'é' }, "a number is padded with '0'"),
        (rpad(1, 4, '\0'), "NUL"),
        (md5_hex(0, 0, 0), "32 hex digits"),
        (md5_hex(0, 0, 33), "32 hex digits"),
        (md5_hex(0, 30, 4), "32 hex digits"),
        (bucket(0), "1 to 1000000"),
        (bucket(1_000_001), "1 to 1000000"),
        (Transform::Random { buckets: 0 }, "1 to 1000000"),
        (Transform::Md5Bucket { columns: vec![], buckets: 4 }, "hashes no column"),
        (to_char(3, "Month DD"), "'Month' is not a pattern of fixed width; use YYYY, YY, MM"),
        (to_char(3, "--"), "shows no part of a time"),
        (code(1, &[]), "lists no codes"),
        (code(1, &[("a", "x"), ("b", "x")]), "share a name or a code"),
        (code(1, &[("a", "x"), ("a", "y")]), "share a name or a code"),
        (code(1, &[("a", "")]), "empty"),
        (lit(""), "marks nothing"),
        (lit("\0"), "NUL"),
    ];
    for (transform, why) in cases {
        let (message, part) = refused(vec![asc(transform), asc(col(0)), asc(col(1)), asc(col(3))]);
        assert!(message.contains(why) && message.contains("hint:") && part == 0, "{message}");
    }
}

#[test]
fn delimiters_that_cannot_work() {
    let (message, _) = refused(vec![asc(col(0)), desc(lit("_"))]);
    assert!(message.contains("leave DESC out"), "{message}");
    let (message, part) = refused(vec![desc(reverse(1, None)), asc(lit("_")), asc(col(0))]);
    assert!(message.contains("cannot be descending") && part == 0, "{message}");
    for codes in [[("a", "x_"), ("b", "yyy")], [("a", "x-_"), ("b", "y")]] {
        let (message, _) = refused(vec![asc(code(1, &codes)), asc(lit("_")), asc(col(0))]);
        assert!(message.contains("cannot be told from its delimiter"), "{message}");
    }
    // Next to fixed-width parts a delimiter may be anything, even a digit.
    table().primary(vec![asc(lpad(0, 6)), asc(lit("0")), asc(col(2))]);
}

/// The refusal of a write, as shown to the user.
fn broken(layout: &KeyLayout, row: &[Value]) -> (String, &'static str) {
    let error = table().try_key(layout, row).unwrap_err();
    (error.to_string(), error.sqlstate())
}

#[test]
fn values_that_keys_cannot_hold() {
    let at = |us: i64| vec![Value::Int(1), text("n"), Value::Date(0), Value::Timestamp(us)];
    let id = |n: i64| vec![Value::Int(n)];
    let note = |t: &str| vec![Value::Int(1), text(t)];
    let delimited = || vec![asc(col(1)), asc(lit("_")), asc(col(0))];
    let seconds = || vec![sql("to_char(ts, 'YYYY-MM-DD HH24:MI:SS')", to_char(3, "YYYY-MM-DD HH24:MI:SS"))];
    let codes = || vec![asc(code(1, &[("Taobao", "tb"), ("Tmall", "tm")])), asc(col(0))];
    let (key, long, range) = (sqlstate::KEY_RULE, sqlstate::TOO_LONG, sqlstate::OUT_OF_RANGE);
    let cases: Vec<(Vec<PartSpec>, Vec<Value>, &str, &str)> = vec![
        (vec![asc(lpad(0, 4))], id(12345), "4 wide and the value takes 5", long),
        (vec![asc(lpad(0, 4))], id(-1), "holds digits only", key),
        (vec![asc(lpad(1, 4))], note("abcde"), "4 wide and the value takes 5", long),
        (vec![asc(lpad(1, 4))], note("a\0"), "NUL", key),
        (vec![asc(rpad(1, 4, ' '))], note("ab "), "filled up with ' '", key),
        (vec![asc(rpad(1, 4, ' '))], note("ééééé"), "4 wide and the value takes 5", long),
        (vec![asc(reverse(0, 4))], id(12345), "4 wide", long),
        (vec![asc(max_minus(999, 0, 3))], id(1000), "greater than 999", key),
        (vec![asc(max_minus(999, 0, 3))], id(-1), "3 wide and the value takes 4", long),
        (vec![asc(max_minus(i64::MAX, 0, None))], id(-1), "64 bits", range),
        (delimited(), note("a_b"), "the delimiter '_' ends the part", key),
        (delimited(), note("a\0b"), "NUL", key),
        (vec![asc(col(1)), asc(lit("ab")), asc(col(0))], note("xa"), "", ""),
        (vec![asc(col(1)), asc(lit("aa")), asc(col(0))], note("xa"), "the delimiter 'aa' ends the part", key),
        (seconds(), at(1), "the time is finer", key),
        (seconds(), at(253_402_300_800_000_000), "years 0000 to 9999", key),
        (codes(), note("eBay"), "codes only for Taobao, Tmall", key),
        (
            vec![asc(text_of(2))],
            vec![Value::Int(1), text(""), Value::Date(i32::MAX)],
            "outside the calendar",
            range,
        ),
        (vec![asc(col(0))], vec![Value::Null], "NOT NULL", sqlstate::NOT_NULL),
        (vec![asc(col(0))], vec![text("x")], "the column is BIGINT", sqlstate::DATATYPE_MISMATCH),
    ];
    for (parts, row, why, state) in cases {
        let layout = table().primary(parts);
        if why.is_empty() {
            table().key(&layout, &row);
            continue;
        }
        let (message, found) = broken(&layout, &row);
        assert!(message.contains(why) && message.contains("hint:"), "{message}");
        assert_eq!(found, state, "{message}");
    }
}

#[test]
fn a_refused_write_names_column_value_and_rule() {
    let layout = table().primary(vec![sql("lpad(id, 4)", lpad(0, 4))]);
    assert_eq!(
        broken(&layout, &[Value::Int(12345)]).0,
        "error: value 12345 of \"id\" does not fit the rowkey part lpad(id, 4)\n  \
         why: the part is 4 wide and the value takes 5\n \
         hint: shorten the value, or create the table with a part at least 5 wide"
    );
    let layout = table().primary(vec![sql("note", col(1)), asc(lit("_")), asc(col(0))]);
    let (message, _) = broken(&layout, &[Value::Int(1), text(&"_é".repeat(999))]);
    assert!(message.len() < 400 && message.contains('…'), "{message}");
}

/// No row can hold such a value, so equality with it matches nothing, and nothing is appended.
#[test]
fn equality_with_an_impossible_value() {
    let layout = table().primary(vec![asc(lpad(0, 4))]);
    let mut out = b"kept".to_vec();
    layout.parts()[0].bytes_of(&|_| &Value::Int(12345), &mut out).unwrap_err();
    assert_eq!(out, b"kept");
    let reals = Table::new(&[("r", Ty::Real)]);
    let layout = reals.primary(vec![asc(col(0))]);
    assert_eq!(
        reals.key(&layout, &[Value::Double(0.1)]),
        reals.key(&layout, &[Value::Double(0.1f32.into())])
    );
    layout.parts()[0].bytes_of(&|_| &Value::Double(0.1), &mut out).unwrap_err();
}

fn warned(table: &Table, parts: Vec<PartSpec>, tail: Tail) -> Vec<String> {
    let layout = table.layout(parts, tail).unwrap();
    table.warnings(&layout).into_iter().map(|w| format!("{}: {}", w.part, w.what)).collect()
}

#[test]
fn warnings() {
    let table = Table::new(&[
        ("identity", Ty::BigInt),
        ("note", Ty::Varchar),
        ("ts", Ty::Timestamp),
        ("n", Ty::Integer),
    ]);
    let warned = |parts| warned(&table, parts, Tail::Pointer);
    let grows = "0: keys grow with \"ts\": all new rows go to one end of the table";
    assert_eq!(warned(vec![asc(col(2))]), [grows]);
    assert_eq!(warned(vec![desc(col(2))]), [grows]);
    assert_eq!(warned(vec![asc(max_minus(i64::MAX, 2, None))]), [grows]);
    assert_eq!(warned(vec![asc(to_char(2, "YYYY-MM"))]), [grows]);
    assert_eq!(
        warned(vec![asc(lit("k")), asc(lpad(0, 9))]),
        ["1: keys grow with \"identity\": all new rows go to one end of the table"]
    );
    for spread in [reverse(0, 9), Transform::ReverseBytes(ColumnId(2)), col(3), col(1), rpad(1, 100, ' ')] {
        assert_eq!(warned(vec![asc(spread)]), Vec::<String>::new());
    }
    let cases = [
        (to_char(2, "DD-MM-YYYY"), "the part does not sort by time"),
        (reverse(2, None), "the part scatters times: a scan may fetch unwanted rows"),
        (text_of(3), "the part is unpadded: 11 sorts before 2"),
        (lpad(1, 4), "the part makes '9' and '09' one key"),
        (Transform::Lpad { column: ColumnId(1), width: 4, pad: '_' }, "the part makes '9' and '_9' one key"),
        (reverse(1, 4), "the part makes '9' and '09' one key"),
        (rpad(1, 101, ' '), "keys take 101 bytes or more, 101 of them for the part"),
    ];
    for (transform, expected) in cases {
        assert_eq!(warned(vec![sql("the part", transform)]), [format!("0: {expected}")]);
    }
    let salts = [
        (
            Transform::Modulo { column: ColumnId(3), buckets: 16 },
            "the part makes a range scan read 16 ranges",
        ),
        (Transform::Random { buckets: 4 }, "the part makes a range scan read 4 ranges"),
        (md5_hex(3, 0, 4), "the part makes a range scan read the whole table"),
    ];
    for (transform, expected) in salts {
        assert_eq!(warned(vec![sql("the part", transform), asc(col(3))])[..1], [format!("0: {expected}")]);
    }
    let drawn = warned(vec![sql("random(4)", Transform::Random { buckets: 4 }), asc(col(3))]);
    assert_eq!(drawn[1..], ["0: up to 4 rows can have the same n: random(4) is drawn for each"]);
    let long = vec![asc(rpad(1, 90, ' ')), asc(rpad(1, 95, ' ')), asc(rpad(1, 99, ' '))];
    let warned_of_long = warned(long);
    assert!(warned_of_long[2].starts_with("2: keys take 284 bytes"));
    assert!(warned_of_long[..2].iter().all(|warning| warning.ends_with(" adds nothing to the key")));
}
