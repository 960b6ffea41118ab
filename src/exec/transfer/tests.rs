//! All formats: what is written reads back, and what is invalid is named.

use std::fs;
use std::sync::{Arc, LazyLock};

use ::arrow::array::{ArrayRef, StringArray};
use ::arrow::datatypes::Schema;
use proptest::prelude::*;

use super::*;
use crate::row::testing::{column_type, value_of};
use crate::row::{ColumnBuilder, field};

fn target(columns: &[(&str, ColumnType)]) -> Vec<(String, ColumnType)> {
    columns.iter().map(|(name, ty)| ((*name).to_owned(), *ty)).collect()
}

fn payments() -> Vec<(String, ColumnType)> {
    let amount = ColumnType::Decimal { precision: 10, scale: 2 };
    target(&[("id", ColumnType::Integer), ("amount", amount), ("note", ColumnType::Varchar)])
}

fn csv() -> FileFormat {
    FileFormat::Csv(CsvOptions::default())
}

/// A reader of `bytes`.
fn reader(bytes: impl AsRef<[u8]>, format: &FileFormat, on_error: OnError) -> Result<RowChunks> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in");
    fs::write(&path, bytes).unwrap();
    open(&path, format, &payments(), on_error)
}

/// Rows as text, `-` where the file gives no value.
fn shown(rows: &[RowCells]) -> Vec<String> {
    let cell = |c: &Option<Value>| c.as_ref().map_or("-".to_owned(), Value::to_string);
    rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("|")).collect()
}

fn rows(bytes: impl AsRef<[u8]>, format: &FileFormat) -> Vec<String> {
    let mut reader = reader(bytes, format, OnError::Stop).unwrap();
    shown(&reader.next_chunk(100).unwrap().unwrap_or_default())
}

fn failure(bytes: impl AsRef<[u8]>, format: &FileFormat) -> Error {
    match reader(bytes, format, OnError::Stop) {
        Err(e) => e,
        Ok(mut reader) => reader.next_chunk(100).expect_err("the file is bad"),
    }
}

#[test]
fn csv_columns_go_by_name_and_the_missing_are_not_given() {
    let text = "\u{FEFF}Note,id\r\n\"a, b\",1\r\n,2\r\n\"\",3\r\n\r\n";
    assert_eq!(rows(text, &csv()), ["1|-|a, b", "2|-|NULL", "3|-|"]);
}

#[test]
fn a_header_that_is_one_name_tells_its_delimiter() {
    for (header, written) in [("id;amount\n", "';'"), ("id\tamount\n", "E'\\t'"), ("id|amount\n", "'|'")] {
        let error = failure(header, &csv());
        assert_eq!(error.fix(), Some(&format!("WITH (DELIMITER {written})")[..]), "{error}");
    }
    assert!(failure("idd\n", &csv()).fix().unwrap().contains("HEADER false"));
}

#[test]
fn csv_without_header_goes_by_position() {
    let options = CsvOptions { header: false, delimiter: b';', null: "\\N".into() };
    assert_eq!(rows("1;2.5;\n2;\\N;\"\\N\"\n", &FileFormat::Csv(options)), ["1|2.50|", "2|NULL|\\N"]);
}

#[test]
fn an_empty_file_has_no_rows() {
    for format in [csv(), FileFormat::Jsonl] {
        assert!(rows("", &format).is_empty());
    }
}

#[test]
fn jsonl_keeps_digits_and_tells_null_from_missing() {
    let text = "{\"id\": 1, \"amount\": 12345678.10}\n\n{\"NOTE\": null, \"id\": 2}\n";
    assert_eq!(rows(text, &FileFormat::Jsonl), ["1|12345678.10|-", "2|-|NULL"]);
}

#[test]
fn errors_name_line_column_value_and_reason() {
    let cases: [(&[u8], FileFormat, &str); 9] = [
        (b"id,amount\n1,2\n2,abc\n", csv(), "line 3, column amount: 'abc' is not a DECIMAL(10,2)"),
        (
            b"note,id\n\"a\nb\",1\nx,99999999999\n",
            csv(),
            "line 4, column id: '99999999999' is out of range for INTEGER",
        ),
        (b"id,amount\n1\n", csv(), "line 2: 1 value for 2 columns"),
        (b"id,price\n", csv(), "there is no column price to copy into"),
        (b"id,ID\n", csv(), "the file has column ID twice"),
        (b"id,note\n1,\xFF\n", csv(), "line 2, column note: the text is not UTF-8"),
        (b"{\"id\":1}\n{\"id\":\"x\"}", FileFormat::Jsonl, "line 2, column id: 'x' is not an INTEGER"),
        (b"{\"id\":1}\n{\"price\":1}", FileFormat::Jsonl, "line 2: there is no column price to copy into"),
        (b"{\"id\":1}\n\n{\"id\":", FileFormat::Jsonl, "line 3 is not a JSON object"),
    ];
    for (bytes, format, what) in cases {
        assert_eq!(failure(bytes, &format).what(), what);
    }
    let error = failure("id,amount\n1,1e9\n", &csv());
    assert_eq!(error.reason(), Some("DECIMAL(10,2) has room for 8 digits before the point"));
    assert_eq!(error.sqlstate(), sqlstate::OUT_OF_RANGE);
}

#[test]
fn skipped_rows_are_counted_and_the_first_is_remembered() {
    let mut reader = reader("id\n1\nx\n2\ny\n3\n", &csv(), OnError::Skip).unwrap();
    // Of two that are examined.
    for row in ["1|-|-", "2|-|-", "3|-|-"] {
        assert_eq!(shown(&reader.next_chunk(2).unwrap().unwrap()), [row]);
    }
    assert!(reader.next_chunk(2).unwrap().is_none());
    assert_eq!((reader.skipped(), reader.bytes_read()), (2, 13));
    assert_eq!(reader.first_skipped().unwrap().what(), "line 3, column id: 'x' is not an INTEGER");
}

#[test]
fn what_is_no_parquet_is_refused() {
    let error = failure("id,amount\n1,2\n", &FileFormat::Parquet);
    assert_eq!(error.what(), "the Parquet file cannot be used");
    assert_eq!(error.kind(), Kind::Invalid);
}

/// Writes `rows` of `columns` to a file and gives it to `then`.
fn written<T>(
    columns: &[(String, ColumnType)],
    rows: &[Vec<Value>],
    format: &FileFormat,
    then: impl FnOnce(&Path) -> T,
) -> T {
    let fields: Vec<_> = columns.iter().map(|(name, ty)| field(name, *ty, true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let column = |(at, (_, ty)): (usize, &(String, ColumnType))| {
        let mut builder = ColumnBuilder::new(*ty, rows.len());
        rows.iter().try_for_each(|row| builder.append(row[at].as_ref())).unwrap();
        builder.finish().unwrap()
    };
    let arrays = columns.iter().enumerate().map(column).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut writer = create(&path, format, schema).unwrap();
    writer.write(&batch).unwrap();
    assert!(!path.exists());
    writer.finish().unwrap();
    then(&path)
}

#[test]
fn a_json_null_that_json_lines_write_as_null_is_counted() {
    let schema = Arc::new(Schema::new(vec![field("doc", ColumnType::Json, true)]));
    let texts = [Some("null"), None, Some(" null\n"), Some("\"null\""), Some("[null]")];
    let column: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    let batch = RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for (format, lost) in [(FileFormat::Jsonl, 2), (csv(), 0), (FileFormat::Parquet, 0)] {
        let mut writer = create(&directory.path().join("out"), &format, schema.clone()).unwrap();
        writer.write(&batch).unwrap();
        assert_eq!(writer.finish().unwrap(), lost, "{format:?}");
    }
}

#[test]
fn a_text_like_the_null_string_is_no_null() {
    let columns = target(&[("a", ColumnType::Varchar), ("b", ColumnType::Varchar)]);
    let row = |a: &str| vec![Value::Text(a.into()), Value::Null];
    let written = |null: &str, text: &str| {
        let format = FileFormat::Text(TextOptions { null: null.into(), ..TextOptions::default() });
        written(&columns, &[row(text)], &format, |path| fs::read_to_string(path).unwrap())
    };
    assert_eq!(written("x", "x"), "\\x78\tx\n");
    assert_eq!(written("NULL", "NULL"), "\\x4eULL\tNULL\n");
    assert_eq!(written("\\t", "\t"), "\\x09\t\\t\n");
    assert_eq!(written("", ""), "\t\n");
}

#[test]
fn text_options_that_contradict_are_refused() {
    for (delimiter, null) in
        [(b't', "\\N"), (b'\\', "\\N"), (b'.', ""), (b'\t', "a\tb"), (b'|', "x\\"), (b'|', "\\.")]
    {
        let format = FileFormat::Text(TextOptions { delimiter, null: null.into() });
        assert!(reader("1\t2\tx\n", &format, OnError::Stop).is_err(), "{format:?}");
    }
}

#[test]
fn text_files_look_as_they_should() {
    let columns = target(&[
        ("id", ColumnType::BigInt),
        ("the \"time\"", ColumnType::TimestampTz),
        ("note", ColumnType::Varchar),
        ("doc", ColumnType::Json),
    ]);
    let text = |t: &str| Value::Text(t.into());
    let rows = [
        vec![Value::Int(i64::MAX), Value::TimestampTz(0), text("a,\"b\""), text("{\"x\": 1.0}")],
        vec![Value::Int(2), Value::Null, text(""), Value::Null],
    ];
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(
        written(&columns, &rows, &csv(), read),
        "id,\"the \"\"time\"\"\",note,doc\n\
         9223372036854775807,1970-01-01 00:00:00+00,\"a,\"\"b\"\"\",\"{\"\"x\"\": 1.0}\"\n\
         2,,\"\",\n"
    );
    assert_eq!(
        written(&columns, &rows, &FileFormat::Jsonl, read),
        "{\"id\":9223372036854775807,\"the \\\"time\\\"\":\"1970-01-01T00:00:00Z\",\"note\":\"a,\\\"b\\\"\",\"doc\":{\"x\": 1.0}}\n\
         {\"id\":2,\"the \\\"time\\\"\":null,\"note\":\"\",\"doc\":null}\n"
    );
}

#[test]
fn a_value_that_begins_like_a_file_is_kept() {
    let columns = target(&[("note", ColumnType::Varchar)]);
    let rows = [vec![Value::Text("\u{FEFF}".into())], vec![Value::Text("\u{FEFF}b".into())]];
    let format = FileFormat::Csv(CsvOptions { header: false, ..CsvOptions::default() });
    let read = written(&columns, &rows, &format, |path| {
        assert_eq!(fs::read_to_string(path).unwrap(), "\"\u{FEFF}\"\n\"\u{FEFF}b\"\n");
        open(path, &format, &columns, OnError::Stop).and_then(|mut reader| reader.next_chunk(100))
    });
    let expected: Vec<RowCells> = rows.iter().map(|row| row.iter().cloned().map(Some).collect()).collect();
    assert_eq!(read.unwrap().unwrap_or_default(), expected);
}

/// The bytes of a file of two payments.
fn small_parquet() -> Vec<u8> {
    let row = vec![Value::Int(1), Value::Decimal(2, 2), Value::Text("three".into())];
    written(&payments(), &[row.clone(), row], &FileFormat::Parquet, |path| fs::read(path).unwrap())
}

/// One to four columns of any type, and rows of them.
fn table() -> impl Strategy<Value = (Vec<(String, ColumnType)>, Vec<Vec<Value>>)> {
    prop::collection::vec(column_type(), 1..5).prop_flat_map(|types| {
        let cell = |ty: &ColumnType| prop_oneof![1 => Just(Value::Null), 4 => value_of(*ty)];
        let row: Vec<_> = types.iter().map(cell).collect();
        let named = types.iter().enumerate().map(|(at, ty)| (format!("c{at}"), *ty)).collect();
        (Just(named), prop::collection::vec(row, 0..6))
    })
}

/// In JSON lines, line breaks in JSON become spaces; everything else comes back unchanged.
fn expected(rows: Vec<Vec<Value>>, columns: &[(String, ColumnType)], format: &FileFormat) -> Vec<RowCells> {
    let cell = |(value, (_, ty)): (Value, &(String, ColumnType))| match value {
        Value::Text(text) if *ty == ColumnType::Json && *format == FileFormat::Jsonl => {
            Some(Value::Text(text.replace('\n', " ")))
        }
        value => Some(value),
    };
    rows.into_iter().map(|row| row.into_iter().zip(columns).map(cell).collect()).collect()
}

/// Options of the text format; some of them are refused.
fn text_options() -> impl Strategy<Value = FileFormat> {
    let delimiter = prop::sample::select(b"\t\t\t|;,N X.x7\\\n".to_vec());
    let null = prop::sample::select(vec![
        "\\N", "\\N", "", "x", "X", "1", "NULL", "\\t", "a\tb", "\\", "\\\\", "\\.", "é",
    ]);
    (delimiter, null)
        .prop_map(|(delimiter, null)| FileFormat::Text(TextOptions { delimiter, null: null.to_owned() }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_written_as_text_reads_back((columns, rows) in table(), format in text_options()) {
        let directory = tempfile::tempdir().unwrap();
        let schema = Arc::new(Schema::new(columns.iter().map(|(name, ty)| field(name, *ty, true)).collect::<Vec<_>>()));
        let Ok(_) = create(&directory.path().join("out"), &format, schema) else {
            prop_assert!(reader("", &format, OnError::Stop).is_err(), "{format:?}");
            return Ok(());
        };
        let read = written(&columns, &rows, &format, |path| {
            open(path, &format, &columns, OnError::Stop).and_then(|mut r| r.next_chunk(100))
        });
        let is_null = matches!(&format, FileFormat::Text(options) if options.null.is_empty());
        let cell = |value: Value| Some(if is_null && value == Value::Text(String::new()) { Value::Null } else { value });
        let expected: Vec<RowCells> = rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect();
        prop_assert_eq!(read.unwrap().unwrap_or_default(), expected, "{:?}", format);
    }

    #[test]
    fn what_is_written_reads_back((columns, rows) in table()) {
        for format in [csv(), FileFormat::Jsonl, FileFormat::Parquet] {
            let read = written(&columns, &rows, &format, |path| {
                open(path, &format, &columns, OnError::Stop).and_then(|mut r| r.next_chunk(100))
            });
            let expected = expected(rows.clone(), &columns, &format);
            prop_assert_eq!(read.unwrap().unwrap_or_default(), expected, "{:?}", format);
        }
    }

    #[test]
    fn damaged_parquet_never_panics(at: prop::sample::Index, with in 1u8..) {
        static SOUND: LazyLock<Vec<u8>> = LazyLock::new(small_parquet);
        let mut damaged = SOUND.clone();
        let at = at.index(damaged.len());
        damaged[at] ^= with;
        if let Ok(mut reader) = reader(damaged, &FileFormat::Parquet, OnError::Skip) {
            let _ = reader.next_chunk(100);
        }
    }
}
