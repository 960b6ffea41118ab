//! Golden tests: exact key bytes, as printed in the seed documents, and of every form.

use super::hex;
use super::testing::*;
use super::{ColumnId, KeyLayout, PartSpec, Tail, Transform};
use crate::value::{ColumnType as Ty, Value};

fn ints(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().map(|&n| Value::Int(n)).collect()
}

/// "A timestamp value of 1364248490 has an MD5 hash that ends with ffe5. By making the key for that row
/// ffe51364248490, you avoid hotspotting." (MapR, table rowkey design)
#[test]
fn salted_timestamp() {
    let table = Table::new(&[("ts", Ty::BigInt)]);
    let layout = table.primary(vec![asc(md5_hex(0, 28, 4)), asc(text_of(0))]);
    let row = ints(&[1_364_248_490]);
    assert_eq!(table.text_key(&layout, &row), "ffe51364248490");
    // "You can derive the original timestamp by dropping those digits."
    layout.decode(b"ffe51364248490", &mut |_, v| assert_eq!(v.to_value(), row[0])).unwrap();
    // In binary the same column takes 8 bytes after the salt.
    let binary = table.primary(vec![asc(md5_hex(0, 28, 4)), asc(col(0))]);
    assert_eq!(hex(&table.key(&binary, &row)), "66666535800000005150c7aa");
}

/// `[md5(userid).subStr(0,4)][userId][orderid]` (HBase rowkey notes, question 3).
#[test]
fn salted_user() {
    let table = Table::new(&[("user_id", Ty::Varchar), ("order_id", Ty::BigInt)]);
    let layout = table.primary(vec![asc(md5_hex(0, 0, 4)), asc(col(0)), asc(lit("_")), asc(lpad(1, 6))]);
    assert_eq!(table.text_key(&layout, &[text("a"), Value::Int(7)]), "0cc1a_000007");
}

/// "the ordering will be {005,09,1,11,2,22,3,ASH,Ash}"; "with length=4 ... {0001,0002,0003,0005,0009,0011,0022}"
/// (row key design, order and padding).
#[test]
fn padding_restores_order() {
    let names = Table::new(&[("id", Ty::Varchar)]);
    let raw = names.primary(vec![asc(col(0))]);
    let sorted = |layout: &KeyLayout, ids: &[&str]| {
        let mut keys: Vec<String> = ids.iter().map(|id| names.text_key(layout, &[text(id)])).collect();
        keys.sort();
        keys.join(" ")
    };
    let ids = ["1", "09", "005", "2", "Ash", "ASH", "3", "22", "11"];
    assert_eq!(sorted(&raw, &ids), "005 09 1 11 2 22 3 ASH Ash");
    let padded = names.primary(vec![asc(lpad(0, 4))]);
    let ids = ["1", "09", "005", "2", "3", "22", "11"];
    assert_eq!(sorted(&padded, &ids), "0001 0002 0003 0005 0009 0011 0022");
    let numbers = Table::new(&[("id", Ty::Integer)]);
    let padded = numbers.primary(vec![asc(lpad(0, 4))]);
    assert_eq!(numbers.text_key(&padded, &ints(&[9])), "0009");
}

/// "if the CustomerID is 123 then after padding it, the CustomerID will be transformed to 000123";
/// "Key Value = 999999 - 123 = 999876", "(100) = 999899" (row key design, padding and descending order).
#[test]
fn padded_and_descending_customers() {
    let table = Table::new(&[("customer_id", Ty::Integer)]);
    let up = table.primary(vec![asc(lpad(0, 6))]);
    let down = table.primary(vec![asc(max_minus(999_999, 0, 6))]);
    assert_eq!(table.text_key(&up, &ints(&[123])), "000123");
    assert_eq!(table.text_key(&down, &ints(&[123])), "999876");
    assert_eq!(table.text_key(&down, &ints(&[100])), "999899");
}

/// "Key Value = Reverse(Pad(OrderID,'0'))" (row key design, hotspotting).
#[test]
fn reversed_padded_order() {
    let table = Table::new(&[("order_id", Ty::BigInt)]);
    let layout = table.primary(vec![asc(reverse(0, 12))]);
    assert_eq!(table.text_key(&layout, &ints(&[240_001_000_000])), "000000100042");
}

fn payments() -> (Table, KeyLayout, KeyLayout) {
    let table = Table::new(&[
        ("payment_time", Ty::Timestamp),
        ("customer_id", Ty::Integer),
        ("payment_id", Ty::Integer),
    ]);
    let time = || asc(to_char(0, "DD-MM-YYYY HH24:MI:SS"));
    let (customer, payment, bar) = (|| asc(lpad(1, 6)), || asc(lpad(2, 9)), || asc(lit("_")));
    let by_date = table.primary(vec![time(), bar(), customer(), bar(), payment()]);
    let by_customer = table.primary(vec![customer(), bar(), time(), bar(), payment()]);
    (table, by_date, by_customer)
}

/// Every key and result set of "Concatenated Row Keys" (row key design); the document's last row of the
/// first table repeats its first.
#[test]
fn concatenated_keys() {
    let (table, by_date, by_customer) = payments();
    let rows = [
        ("2017-01-01 09:00:00", 123, 12_345_678),
        ("2017-01-01 09:00:30", 156, 12_345_679),
        ("2017-01-01 09:00:40", 129, 12_345_680),
        ("2017-01-01 09:05:00", 163, 12_345_681),
        ("2017-01-01 16:06:30", 123, 12_345_682),
        ("2017-01-01 09:07:00", 23, 12_345_683),
    ];
    let keys = |layout: &KeyLayout| {
        let row = |&(at, customer, payment)| [time(at), Value::Int(customer), Value::Int(payment)];
        let mut keys: Vec<String> = rows.iter().map(|r| table.text_key(layout, &row(r))).collect();
        keys.sort();
        keys
    };
    let between = |keys: &[String], start: &str, end: &str| -> Vec<String> {
        // The document's end keys include everything that starts with them.
        let inside = |k: &&String| k.as_str() >= start && (k.as_str() <= end || k.starts_with(end));
        keys.iter().filter(inside).cloned().collect()
    };

    let dated = keys(&by_date);
    assert_eq!(
        between(&dated, "01-01-2017 00:00:00_000123", "01-01-2017 16:59:59_000123"),
        [
            "01-01-2017 09:00:00_000123_012345678",
            "01-01-2017 09:00:30_000156_012345679",
            "01-01-2017 09:00:40_000129_012345680",
            "01-01-2017 09:05:00_000163_012345681",
            "01-01-2017 09:07:00_000023_012345683",
            "01-01-2017 16:06:30_000123_012345682",
        ]
    );
    assert_eq!(between(&dated, "01-01-2017 00:00:00", "01-01-2017 09:05:59").len(), 4);

    let theirs = keys(&by_customer);
    assert_eq!(
        theirs,
        [
            "000023_01-01-2017 09:07:00_012345683",
            "000123_01-01-2017 09:00:00_012345678",
            "000123_01-01-2017 16:06:30_012345682",
            "000129_01-01-2017 09:00:40_012345680",
            "000156_01-01-2017 09:00:30_012345679",
            "000163_01-01-2017 09:05:00_012345681",
        ]
    );
    let of_123 = &theirs[1..3];
    assert_eq!(between(&theirs, "000123_01-01-2017 00:00:00", "000123_01-01-2017 16:59:59"), of_123);
    assert_eq!(between(&theirs, "000123", "000123"), of_123);
    assert_eq!(between(&theirs, "000123_01-01-2017", "000123_01-01-2017"), of_123);
    let (start, end) = ("000123_01-01-2017 00:00:00_000000000", "000123_01-01-2017 23:59:59_999999999");
    assert_eq!(between(&theirs, start, end), of_123);
}

/// "long bytes length: 8 ... long as string length: 10 ... md5 digest bytes length: 16" (HBase, byte patterns).
#[test]
fn byte_patterns() {
    let table = Table::new(&[("l", Ty::BigInt)]);
    let row = ints(&[1_234_567_890]);
    let len = |t: Transform| table.key(&table.primary(vec![asc(t)]), &row).len();
    assert_eq!((len(col(0)), len(text_of(0)), len(Transform::Md5(ColumnId(0)))), (8, 10, 16));
}

/// "If a record for which the value of column1 is host12 is available, the record is also returned"; fixed by
/// `[rpad(column1,'x',20)]` or `[column1][_]` (HBase rowkey notes, question 5).
#[test]
fn host1_is_not_host12() {
    let table = Table::new(&[("host", Ty::Varchar), ("n", Ty::Integer)]);
    let raw = ["host1", "host12", "host2"];
    assert!(raw[0] <= raw[1] && raw[1] < raw[2], "a raw scan of ['host1', 'host2') finds host12");
    for first in [vec![asc(col(0))], vec![asc(col(0)), asc(lit("_"))], vec![asc(rpad(0, 20, 'x'))]] {
        let layout = table.primary([first, vec![asc(col(1))]].concat());
        let is_host1 = super::Interval {
            lower: std::ops::Bound::Included(text("host1")),
            upper: std::ops::Bound::Included(text("host1")),
        };
        let image = layout.parts()[0].image(&is_host1).unwrap();
        assert!(image.tight);
        for host in raw {
            let key = table.key(&layout, &[text(host), Value::Int(-1)]);
            assert_eq!(image.range.contains(&key), host == "host1", "{host}");
        }
    }
}

/// `timestamp = Long.MAX_VALUE - timestamp; [hostname][log-event][timestamp]` (HBase rowkey notes, log data).
#[test]
fn newest_first() {
    let table = Table::new(&[("host", Ty::Varchar), ("event", Ty::Varchar), ("ts", Ty::BigInt)]);
    let layout = table.primary(vec![asc(col(0)), asc(col(1)), asc(max_minus(i64::MAX, 2, None))]);
    let key = |ts| table.key(&layout, &[text("h"), text("e"), Value::Int(ts)]);
    assert!(key(1_364_248_490) < key(1_364_248_489));
    assert_eq!(hex(&key(1)), "680001650001fffffffffffffffe");
}

/// `long bucket = timestamp % numBuckets; [bucket][timestamp][hostname][log-event]` (HBase rowkey notes).
#[test]
fn buckets() {
    let table = Table::new(&[("ts", Ty::BigInt), ("host", Ty::Varchar)]);
    let modulo = Transform::Modulo { column: ColumnId(0), buckets: 16 };
    let layout = table.primary(vec![asc(modulo), asc(lpad(0, 10)), asc(col(1))]);
    assert_eq!(table.text_key(&layout, &[Value::Int(1_364_248_490), text("h")]), "101364248490h");
    let all = layout.parts()[0].fan_out(usize::MAX).unwrap();
    assert_eq!((all.len(), &all[0][..], &all[15][..]), (16, &b"00"[..], &b"15"[..]));
    // A negative number has a bucket too.
    let modulo = Transform::Modulo { column: ColumnId(0), buckets: 16 };
    let layout = table.primary(vec![asc(modulo), asc(text_of(0))]);
    assert_eq!(table.text_key(&layout, &[Value::Int(-1), text("h")]), "15-1");
}

/// "'Taobao' is replaced with tb" (HBase rowkey notes, question 4).
#[test]
fn codes_for_names() {
    let table = Table::new(&[("shop", Ty::Varchar), ("n", Ty::Integer)]);
    let layout = table.primary(vec![asc(code(0, &[("Taobao", "tb"), ("Tmall", "tm")])), asc(lpad(1, 3))]);
    assert_eq!(table.text_key(&layout, &[text("Taobao"), Value::Int(5)]), "tb005");
}

/// The table of byte formats in the module docs.
#[test]
fn one_of_every_form() {
    let mut table = Table::new(&[
        ("id", Ty::Integer),
        ("name", Ty::Varchar),
        ("day", Ty::Date),
        ("ts", Ty::Timestamp),
        ("note", Ty::Varchar),
        ("n", Ty::Integer),
    ]);
    table.0[4].2 = true;
    table.0[5].2 = true;
    let bucket = Transform::Md5Bucket { columns: vec![ColumnId(0), ColumnId(1)], buckets: 16 };
    let row = [
        Value::Int(7),
        text("ab"),
        Value::Date(17_167),
        time("2017-01-01 09:00:00"),
        Value::Null,
        Value::Null,
    ];
    let id = || asc(col(0));
    let cases: Vec<(Vec<PartSpec>, &str)> = vec![
        (vec![id()], "80000007"),
        (vec![desc(col(0))], "7ffffff8"),
        (vec![id(), asc(col(1))], "80000007 6162"),
        (vec![asc(col(1)), id()], "61620001 80000007"),
        (vec![desc(col(1)), id()], "9e9dfffe 80000007"),
        (vec![asc(col(1)), asc(lit("_")), id()], "6162 5f 80000007"),
        (vec![asc(lpad(0, 3))], "303037"),
        (vec![asc(rpad(1, 4, ' '))], "61622020"),
        (vec![asc(reverse(0, 3))], "373030"),
        (vec![asc(reverse(1, None))], "6261"),
        (vec![asc(Transform::ReverseBytes(ColumnId(0)))], "07000080"),
        (vec![asc(max_minus(9, 0, None))], "8000000000000002"),
        (vec![asc(max_minus(99, 0, 2))], "3932"),
        (vec![asc(md5_hex(0, 0, 2)), id()], "3866 80000007"),
        (vec![asc(Transform::Md5(ColumnId(0)))], "8f14e45fceea167a5a36dedd4bea2543"),
        (vec![asc(Transform::Modulo { column: ColumnId(0), buckets: 5 }), id()], "32 80000007"),
        (vec![asc(bucket)], "3039"),
        (vec![asc(Transform::Random { buckets: 16 }), id()], "3035 80000007"),
        (vec![asc(to_char(3, "YYYYMMDD HH24"))], "3230313730313031203039"),
        (vec![asc(col(2))], "8000430f"),
        (vec![asc(col(3))], "80054504a8ef6400"),
        (vec![asc(code(1, &[("ab", "x")]))], "78"),
        (vec![asc(text_of(0))], "37"),
        (vec![asc(col(5)), id()], "00 80000007"),
        (vec![desc(col(5)), id()], "ff 80000007"),
        (vec![asc(lpad(5, 2)), id()], "0000 80000007"),
        (vec![asc(max_minus(99, 5, 2)), id()], "ffff 80000007"),
        (vec![asc(col(4)), asc(lit("_")), id()], "00 5f 80000007"),
        (vec![id(), asc(col(4))], "80000007 00"),
    ];
    for (parts, expected) in cases {
        let label = format!("{parts:?}");
        // A bucket alone cannot be a primary key, so make it an index.
        let layout =
            table.layout(parts.clone(), Tail::Nothing).or_else(|_| table.layout(parts, Tail::Pointer));
        let layout = layout.unwrap();
        let key = table.key(&layout, &row);
        assert_eq!(hex(&key), expected.replace(' ', ""), "{label}");
        let ends: Vec<usize> = expected
            .split(' ')
            .scan(0, |at, part| {
                *at += part.len() / 2;
                Some(*at)
            })
            .collect();
        assert_eq!(layout.split(&key).unwrap(), ends, "{label}");
        let documented: Vec<&str> =
            expected.split(' ').filter(|&b| b != "80000007" || b == expected).collect();
        assert!(include_str!("mod.rs").contains(&format!("| `{}` |", documented.join(" "))), "{label}");
    }
}

#[test]
fn keys_for_people() {
    let table = Table::new(&[("id", Ty::BigInt), ("name", Ty::Varchar), ("ts", Ty::Timestamp)]);
    let row = [Value::Int(7), text("abc"), time("2017-01-01 09:00:00")];
    let mixed = table.primary(vec![asc(col(0)), asc(col(1)), desc(col(2))]);
    let key = table.key(&mixed, &row);
    assert_eq!(mixed.show(&key), "7/'abc'/2017-01-01 09:00:00");
    assert_eq!(mixed.show(&key[..8]), "7");
    assert_eq!(mixed.show(&key[..10]), "7/'ab'");
    assert_eq!(mixed.show(&key[..14]), "7/'abc'/x'7f'");
    assert_eq!(mixed.show(&[&key[..], b"!"].concat()), "7/'abc'/2017-01-01 09:00:00/'!'");
    assert_eq!(mixed.show(&[0xFF]), "x'ff'");
    let texts = table.primary(vec![asc(lpad(0, 4)), asc(lit("_")), asc(col(1))]);
    assert_eq!(texts.show(&table.key(&texts, &row)), "0007_abc");
    assert_eq!(texts.show(b"00"), "00");
}

/// A layout survives serialization.
#[test]
fn layouts_come_back_from_json() {
    let (_, by_date, _) = payments();
    let json = serde_json::to_string(&by_date).unwrap();
    assert_eq!(serde_json::from_str::<KeyLayout>(&json).unwrap(), by_date);
}
