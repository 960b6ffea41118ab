//! SQL functions that DataFusion lacks or that differ here: the key transforms, explained keys, and more.

mod age;
mod avg;
mod coalesce;
mod date_bin;
mod date_trunc;
pub(super) mod described;
pub(super) mod exact_sum;
mod interval_sum;
mod json;
pub(super) mod json_building;
mod min_max;
mod moments;
mod moving;
mod now;
mod percentiles;
mod places;
pub(super) mod replacement;
pub(super) mod series;
mod string_agg;
pub(super) mod table_functions;
mod tpch;

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::functions_aggregate::median::Median;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::functions_aggregate::percentile_cont::PercentileCont;
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, WindowUDF,
};

use self::age::Age;
use self::avg::RoundedAvg;
use self::coalesce::Coalesce;
use self::date_bin::DateBin;
use self::date_trunc::DateTrunc;
use self::exact_sum::ExactSum;
use self::min_max::OfGroups;
use self::moments::OfMoments;
use self::now::Now;
use self::percentiles::Exact;
use self::places::{PLACES, Place};
use self::replacement::{REPLACEMENT, regexp_replacement};
use self::string_agg::SortedStrings;
use crate::catalog::{Catalog, Relation, index_of};
use crate::design::keys::KeyspaceLayout;
use crate::df::errors::to_df;
use crate::df::expressions::intervals::IntervalProducts;
use crate::df::expressions::text;
use crate::error::{Error, Result, sqlstate};
use crate::key::{md5_bucket, put_md5_digits};
use crate::row::{ColumnBuilder, arrow_type, as_values, column_type_of, field, ref_at};
use crate::value::{ColumnType, TimePattern, US_PER_DAY, Value, ValueRef, timestamp_of};

/// Longest result of `lpad` and `rpad`, in characters.
const PADDED_CHARS_MAX: usize = 1 << 20;

/// Longest result of `repeat`, in bytes. DataFusion's allows 2 GiB, copies that several times, and cannot be cancelled
/// meanwhile.
const REPEATED_BYTES_MAX: usize = 64 << 20;

/// Registers the functions in a session.
pub fn register(state: &mut SessionState) {
    for aggregate in [
        AggregateUDF::new_from_impl(ExactSum::default()),
        AggregateUDF::new_from_impl(RoundedAvg::default()),
        AggregateUDF::new_from_impl(SortedStrings::default()),
        AggregateUDF::new_from_impl(OfGroups(Min::new())),
        AggregateUDF::new_from_impl(OfGroups(Max::new())),
        AggregateUDF::new_from_impl(Exact(PercentileCont::new())),
        AggregateUDF::new_from_impl(Exact(Median::new())),
    ] {
        let _ = state.register_udaf(Arc::new(aggregate));
    }
    for aggregate in OfMoments::all(&|name| state.udaf(name)) {
        let _ = state.register_udaf(Arc::new(AggregateUDF::new_from_impl(aggregate)));
    }
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(DateBin::default())));
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(DateTrunc::default())));
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(Age::default())));
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(Coalesce::default())));
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(Now::default())));
    let aliases = [("sign", "signum"), ("ceiling", "ceil"), ("gen_random_uuid", "uuid"), ("char", "chr")];
    for (alias, name) in aliases {
        if let Ok(function) = state.udf(name) {
            let _ = state.register_udf(Arc::new((*function).clone().with_aliases([alias])));
        }
    }
    for (alias, name) in [("every", "bool_and"), ("group_concat", "string_agg")] {
        if let Ok(function) = state.udaf(name) {
            let _ = state.register_udaf(Arc::new((*function).clone().with_aliases([alias])));
        }
    }
    for place in PLACES {
        if let Ok(function) = state.udwf(place) {
            let _ = state.register_udwf(Arc::new(WindowUDF::new_from_impl(Place(function))));
        }
    }
    let _ = state.register_expr_planner(Arc::new(IntervalProducts));
    let _ = state.register_expr_planner(Arc::new(text::TruthOperands));
    for cast in text::casts() {
        let _ = state.register_udf(Arc::new(cast));
    }
    let functions: [(&'static str, Plain, ColumnType); 15] = [
        ("to_char", to_char, ColumnType::Varchar),
        ("md5_bucket", bucket, ColumnType::Varchar),
        ("code", code, ColumnType::Varchar),
        ("octet_length", octet_length, ColumnType::BigInt),
        ("length", length, ColumnType::BigInt),
        ("md5", md5, ColumnType::Varchar),
        ("lpad", lpad, ColumnType::Varchar),
        ("rpad", rpad, ColumnType::Varchar),
        ("repeat", repeat, ColumnType::Varchar),
        ("typeof", type_of, ColumnType::Varchar),
        ("pg_typeof", pg_type_of, ColumnType::Varchar),
        ("make_timestamp", make_timestamp, ColumnType::Timestamp),
        (TIME_OF_PATTERN, time_of_pattern, ColumnType::Timestamp),
        (DATE_OF_PATTERN, date_of_pattern, ColumnType::Date),
        (REPLACEMENT, regexp_replacement, ColumnType::Varchar),
    ];
    for (name, body, output) in functions {
        // Registering never fails: it replaces a function of the same name.
        let _ = state.register_udf(Arc::new(row_function(name, body, output)));
    }
    json::register(state);
    json_building::register(state);
    series::register(state);
    state.register_udtf("tpch", Arc::new(tpch::Tpch));
    let facts: [(&'static str, Plain); 6] = [
        ("version", |_, _| Ok(ValueRef::Text(concat!("RowkeyDB ", env!("CARGO_PKG_VERSION"))))),
        // There are no users: who opens the folder may do anything.
        ("current_user", |_, _| Ok(ValueRef::Text("rowkeydb"))),
        ("session_user", |_, _| Ok(ValueRef::Text("rowkeydb"))),
        ("current_database", |_, _| Ok(ValueRef::Text("rowkeydb"))),
        ("current_catalog", |_, _| Ok(ValueRef::Text("rowkeydb"))),
        ("current_schema", |_, _| Ok(ValueRef::Text("public"))),
    ];
    for (name, body) in facts {
        let signature = Signature::nullary(Volatility::Immutable);
        let fact = RowFunction { signature, ..RowFunction::new(name, body, ColumnType::Varchar) };
        let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(fact)));
    }
}

/// `to_timestamp` with a pattern of PostgreSQL's: DataFusion's takes strftime's.
pub const TIME_OF_PATTERN: &str = "time_of_pattern";

/// `to_date` with such a pattern.
pub const DATE_OF_PATTERN: &str = "date_of_pattern";

/// `typeof(x)`, in SQLite's words where it has the type.
fn type_of<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let ([value], [field]) = (args, &buffers.fields[..]) else { return Err(one_value("typeof")) };
    Ok(ValueRef::Text(match value {
        ValueRef::Null => "null",
        ValueRef::Boolean(_) => "boolean",
        ValueRef::Int(_) => "integer",
        ValueRef::Double(_) => "real",
        ValueRef::Decimal(..) => "decimal",
        ValueRef::Text(_) => match column_type_of(field) {
            Some(ColumnType::Uuid) => "uuid",
            Some(ColumnType::Json) => "json",
            _ if matches!(field.data_type(), DataType::Interval(_)) => "interval",
            _ => "text",
        },
        ValueRef::Bytes(_) => "blob",
        ValueRef::Date(_) => "date",
        ValueRef::Timestamp(_) => "timestamp",
        ValueRef::TimestampTz(_) => "timestamptz",
        ValueRef::Uuid(_) => "uuid",
    }))
}

/// `pg_typeof(x)`: the type of the expression in PostgreSQL's words.
fn pg_type_of<'a>(_: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let [field] = &buffers.fields[..] else { return Err(one_value("pg_typeof")) };
    let name = match (column_type_of(field), field.data_type()) {
        (_, DataType::Null) => "unknown",
        (Some(ColumnType::Boolean), _) => "boolean",
        (Some(ColumnType::SmallInt), _) => "smallint",
        (Some(ColumnType::Integer), _) => "integer",
        (Some(ColumnType::BigInt), _) => "bigint",
        (Some(ColumnType::Real), _) => "real",
        (Some(ColumnType::Double), _) => "double precision",
        (Some(ColumnType::Decimal { .. }), _) => "numeric",
        (Some(ColumnType::Varchar), _) => "text",
        (Some(ColumnType::Varbinary), _) => "bytea",
        (Some(ColumnType::Date), _) => "date",
        (Some(ColumnType::Timestamp), _) => "timestamp without time zone",
        (Some(ColumnType::TimestampTz), _) => "timestamp with time zone",
        (Some(ColumnType::Uuid), _) => "uuid",
        (Some(ColumnType::Json), _) => "json",
        (None, DataType::Interval(_) | DataType::Duration(_)) => "interval",
        (None, DataType::Time32(_) | DataType::Time64(_)) => "time without time zone",
        (None, _) => "anyelement",
    };
    Ok(ValueRef::Text(name))
}

fn one_value(name: &str) -> Error {
    Error::invalid(format!("{name} takes one value")).hint(format!("write {name}(x)"))
}

/// A scalar function computed row by row.
pub fn row_function(name: &'static str, body: Plain, output: ColumnType) -> ScalarUDF {
    ScalarUDF::new_from_impl(RowFunction::new(name, body, output))
}

/// `rowkey_explain('orders', rowkey)`: a key of a table or an index of this catalog, part by part.
pub fn rowkey_explain(catalog: &Catalog) -> Arc<ScalarUDF> {
    let catalog = catalog.clone();
    Arc::new(ScalarUDF::new_from_impl(RowFunction {
        name: ROWKEY_EXPLAIN,
        body: Body(Arc::new(Explained(catalog))),
        output: ColumnType::Varchar,
        // The result depends on the definitions, so no plan with it is kept.
        signature: Signature::variadic_any(Volatility::Stable),
    }))
}

/// Name of that function.
pub const ROWKEY_EXPLAIN: &str = "rowkey_explain";

struct Explained(Catalog);

impl RowBody for Explained {
    fn of<'a>(&self, args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
        let Explained(catalog) = self;
        let (name, key) = match args {
            [_, ValueRef::Null] | [ValueRef::Null, _] => return Ok(ValueRef::Null),
            [ValueRef::Text(name), key] => (*name, key.to_value()),
            _ => {
                return Err(Error::invalid(
                    "rowkey_explain takes the name of a table or an index, and a key",
                )
                .hint("rowkey_explain('orders', rowkey)"));
            }
        };
        let relation = catalog.find(name).ok_or_else(|| catalog.unknown(name))?;
        let mut words = |table, keyspace: KeyspaceLayout<'_>| {
            buffers.text = keyspace.in_words(table, &keyspace.key(&key)?);
            Ok::<(), Error>(())
        };
        match &relation {
            Relation::Table(table) => words(table, KeyspaceLayout::of_table(table))?,
            Relation::Index(table, id) => {
                words(table, KeyspaceLayout::of_index(table, index_of(table, *id)?))?;
            }
            Relation::View(_) => {
                return Err(Error::invalid(format!("\"{name}\" is a view, whose rows have no keys"))
                    .state(sqlstate::WRONG_OBJECT));
            }
        }
        Ok(ValueRef::Text(&buffers.text))
    }
}

/// Computes a function from the arguments of one row; the result may be in the buffers.
pub type Plain = for<'a> fn(&[ValueRef<'a>], &'a mut FunctionBuffers) -> Result<ValueRef<'a>>;

/// Buffers for a function's result, cleared for each row except for its cache.
#[derive(Default)]
pub struct FunctionBuffers {
    /// Text of the result.
    pub text: String,
    /// Text of an argument.
    inner: String,
    /// Types of the arguments.
    fields: Vec<FieldRef>,
    /// The last format, parsed: nearly always the one of all rows.
    format: Option<(String, TimePattern)>,
}

/// The body of a row function.
trait RowBody: Send + Sync {
    fn of<'a>(&self, args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>>;
}

impl RowBody for Plain {
    fn of<'a>(&self, args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
        self(args, buffers)
    }
}

struct Body(Arc<dyn RowBody>);

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

/// A scalar function computed row by row, without an allocation for each row.
#[derive(Debug)]
struct RowFunction {
    name: &'static str,
    body: Body,
    output: ColumnType,
    signature: Signature,
}

impl RowFunction {
    fn new(name: &'static str, body: Plain, output: ColumnType) -> RowFunction {
        let signature = Signature::variadic_any(Volatility::Immutable);
        RowFunction { name, body: Body(Arc::new(body)), output, signature }
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(arrow_type(self.output))
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> DfResult<FieldRef> {
        Ok(Arc::new(field(self.name, self.output, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        // Constant arguments are read once.
        let varies = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Array(_));
        let is_column = args.args.iter().any(varies);
        let rows = if is_column { args.number_rows } else { 1 };
        let mut arrays = Vec::with_capacity(args.args.len());
        for arg in &args.args {
            arrays.push((as_values(&arg.to_array(1)?).map_err(to_df)?, varies(arg)));
        }
        let mut out = ColumnBuilder::new(self.output, rows);
        let mut buffers = FunctionBuffers { fields: args.arg_fields.clone(), ..Default::default() };
        let mut row = vec![ValueRef::Null; arrays.len()];
        for i in 0..rows {
            for (value, (array, varies)) in row.iter_mut().zip(&arrays) {
                if *varies || i == 0 {
                    *value = ref_at(array, i).map_err(to_df)?;
                }
            }
            buffers.text.clear();
            buffers.inner.clear();
            self.body.0.of(&row, &mut buffers).and_then(|value| out.append(value)).map_err(to_df)?;
        }
        let values = out.finish().map_err(to_df)?;
        Ok(match is_column {
            true => ColumnarValue::Array(values),
            false => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
        })
    }
}

/// `to_char(time, 'YYYY-MM-DD')`, with the formats of key layouts, and those of other widths.
fn to_char<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null, _] | [_, ValueRef::Null] => Ok(ValueRef::Null),
        [
            time @ (ValueRef::Date(_) | ValueRef::Timestamp(_) | ValueRef::TimestampTz(_)),
            ValueRef::Text(pattern),
        ] => {
            let FunctionBuffers { text, format, .. } = buffers;
            let shown = pattern_of("to_char", pattern, format)?.show(*time, text);
            shown.ok_or_else(|| Error::invalid(format!("{time} is out of range")))?;
            Ok(ValueRef::Text(text))
        }
        _ => Err(Error::invalid("to_char takes a date or timestamp and a format")
            .hint("to_char(ts, 'YYYY-MM-DD HH24:MI:SS')")),
    }
}

/// A pattern, parsed anew unless it is the last one.
fn pattern_of<'a>(
    name: &str,
    pattern: &str,
    known: &'a mut Option<(String, TimePattern)>,
) -> Result<&'a TimePattern> {
    let (_, parsed) = match known.take() {
        Some(last) if last.0 == pattern => known.insert(last),
        _ => {
            let parsed = TimePattern::parse(pattern).map_err(|why| {
                Error::invalid(format!("{name} does not know this format"))
                    .why(why)
                    .hint(format!("{name}(x, 'DD Mon YYYY HH24:MI:SS')"))
                    .state(sqlstate::INVALID_DATETIME)
            })?;
            known.insert((pattern.to_owned(), parsed))
        }
    };
    Ok(parsed)
}

/// `to_timestamp('03/02/2017 09:00', 'DD/MM/YYYY HH24:MI')`.
fn time_of_pattern<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    Ok(read_time("to_timestamp", args, buffers)?.map_or(ValueRef::Null, ValueRef::Timestamp))
}

/// `to_date('03/02/2017', 'DD/MM/YYYY')`.
fn date_of_pattern<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    Ok(match read_time("to_date", args, buffers)?.map(|us| i32::try_from(us.div_euclid(US_PER_DAY))) {
        Some(Ok(days)) => ValueRef::Date(days),
        Some(Err(_)) | None => ValueRef::Null,
    })
}

/// Microseconds since 1970; `None` for NULL.
fn read_time(name: &str, args: &[ValueRef<'_>], buffers: &mut FunctionBuffers) -> Result<Option<i64>> {
    match args {
        [ValueRef::Null, _] | [_, ValueRef::Null] => Ok(None),
        [ValueRef::Text(text), ValueRef::Text(pattern)] => {
            let read = pattern_of(name, pattern, &mut buffers.format)?.read(text);
            read.map(Some).map_err(|why| {
                Error::invalid(format!("'{text}' is not a time of format '{pattern}'"))
                    .why(why)
                    .state(sqlstate::INVALID_TEXT)
            })
        }
        _ => Err(Error::invalid(format!("{name} takes a text and a format"))
            .hint(format!("{name}('31/12/2024', 'DD/MM/YYYY')"))),
    }
}

/// `make_timestamp(year, month, day, hour, minute, seconds)`.
fn make_timestamp<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    use ValueRef::Int;
    let usage = || {
        Error::invalid("make_timestamp takes a year, a month, a day, an hour, a minute and seconds")
            .hint("make_timestamp(2024, 12, 31, 23, 59, 59.5)")
    };
    if args.len() == 6 && args.iter().any(|arg| arg.is_null()) {
        return Ok(ValueRef::Null);
    }
    let [Int(year), Int(month), Int(day), Int(hour), Int(minute), seconds] = args else {
        return Err(usage());
    };
    let micros = match seconds.to_value().cast(ColumnType::Decimal { precision: 20, scale: 6 })? {
        Value::Decimal(micros, _) => micros,
        _ => return Err(usage()),
    };
    let time = timestamp_of([*year, *month, *day, *hour, *minute], micros);
    time.map(ValueRef::Timestamp).ok_or_else(|| {
        Error::invalid(format!(
            "there is no time {year:04}-{month:02}-{day:02} {hour:02}:{minute:02} and {seconds} seconds"
        ))
        .state(sqlstate::DATETIME_OVERFLOW)
    })
}

/// `md5_bucket(value, ..., n)`: the bucket of the values, as in key layouts.
fn bucket<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let usage = || {
        Error::invalid("md5_bucket takes one value or more and a number of buckets")
            .hint("md5_bucket(user_id, 16)")
    };
    let Some((ValueRef::Int(n), values)) = args.split_last() else { return Err(usage()) };
    let n = u32::try_from(*n).ok().filter(|n| *n > 0 && !values.is_empty()).ok_or_else(usage)?;
    if values.iter().any(|value| value.is_null()) {
        return Ok(ValueRef::Null);
    }
    buffers.text = md5_bucket(values.iter().copied(), n);
    Ok(ValueRef::Text(&buffers.text))
}

/// `octet_length(text or bytes)`: its size in bytes. DataFusion's own does not take bytes.
fn octet_length<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null] => Ok(ValueRef::Null),
        [ValueRef::Text(text)] => Ok(ValueRef::Int(text.len() as i64)),
        [ValueRef::Bytes(bytes)] => Ok(ValueRef::Int(bytes.len() as i64)),
        _ => Err(Error::invalid("octet_length takes a text or bytes").hint("octet_length(rowkey)")),
    }
}

/// `length(text or bytes)`: characters of a text, bytes of a VARBINARY, as in PostgreSQL and SQLite.
fn length<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null] => Ok(ValueRef::Null),
        [ValueRef::Bytes(bytes)] => Ok(ValueRef::Int(bytes.len() as i64)),
        [value] => Ok(ValueRef::Int(text_of(*value, &mut buffers.inner).chars().count() as i64)),
        _ => Err(Error::invalid("length takes one value").hint("length(name)")),
    }
}

/// `md5(value)`: the digest of the value's text form, as in key layouts.
fn md5<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null] => Ok(ValueRef::Null),
        [value] => {
            put_md5_digits(*value, &mut buffers.text);
            Ok(ValueRef::Text(&buffers.text))
        }
        _ => Err(Error::invalid("md5 takes one value").hint("md5(user_id)")),
    }
}

/// The text of a value; values of other types are written to `out`.
fn text_of<'a>(value: ValueRef<'a>, out: &'a mut String) -> &'a str {
    if let ValueRef::Text(text) = value {
        return text;
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "{value}");
    out
}

fn lpad<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    padded("lpad", args, buffers)
}

fn rpad<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    padded("rpad", args, buffers)
}

/// `lpad(value, width [, fill])`: numbers are padded with zeros, as in key layouts. A longer text is cut; a longer
/// number is not.
fn padded<'a>(name: &str, args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let usage = || {
        Error::invalid(format!("{name} takes a value, a width and what to fill up with"))
            .hint(format!("{name}(id, 6), {name}(name, 20, ' ')"))
    };
    let (value, width, fill) = match args {
        [value, ValueRef::Int(width)] => (*value, *width, None),
        [value, ValueRef::Int(width), ValueRef::Text(fill)] => (*value, *width, Some(*fill)),
        args if (2..=3).contains(&args.len()) && args.iter().any(|arg| arg.is_null()) => {
            return Ok(ValueRef::Null);
        }
        _ => return Err(usage()),
    };
    let is_left = name == "lpad";
    let is_number = matches!(value, ValueRef::Int(_) | ValueRef::Decimal(..) | ValueRef::Double(_));
    let fill = fill.unwrap_or(if is_number && is_left { "0" } else { " " });
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    if width > PADDED_CHARS_MAX {
        return Err(Error::invalid(format!("{name} to {width} characters is too much"))
            .why(format!("the most is {PADDED_CHARS_MAX}"))
            .state(sqlstate::LIMIT));
    }
    let FunctionBuffers { text: out, inner, .. } = buffers;
    let text = text_of(value, inner);
    let len = text.chars().count();
    if len >= width {
        let end = text.char_indices().nth(width).filter(|_| !is_number);
        return Ok(ValueRef::Text(end.map_or(text, |(end, _)| &text[..end])));
    }
    let pad = fill.chars().cycle().take(width - len);
    // The sign of a number stays in front of its zeros.
    let signed = is_left && is_number && fill == "0" && text.starts_with('-');
    let (sign, text) = text.split_at(usize::from(signed));
    if is_left {
        out.push_str(sign);
        out.extend(pad);
        out.push_str(text);
    } else {
        out.push_str(text);
        out.extend(pad);
    }
    Ok(ValueRef::Text(out))
}

/// `repeat(text, times)`: empty if `times` is negative.
fn repeat<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let (text, times) = match args {
        [a, b] if a.is_null() || b.is_null() => return Ok(ValueRef::Null),
        [text, ValueRef::Int(times)] => (text.to_string(), usize::try_from(*times).unwrap_or(0)),
        _ => {
            return Err(Error::invalid("repeat takes a text and a number of times").hint("repeat('ab', 3)"));
        }
    };
    if text.len().saturating_mul(times) > REPEATED_BYTES_MAX {
        return Err(Error::invalid(format!("{} bytes repeated {times} times is too much", text.len()))
            .why(format!("the most is {REPEATED_BYTES_MAX} bytes"))
            .state(sqlstate::LIMIT));
    }
    buffers.text = text.repeat(times);
    Ok(ValueRef::Text(&buffers.text))
}

/// `code(name, 'Taobao=tb, Tmall=tm')`.
fn code<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null, _] => Ok(ValueRef::Null),
        [ValueRef::Text(name), ValueRef::Text(codes)] => {
            let pairs = crate::sql::parse_codes(codes)?;
            let found = pairs.into_iter().find(|(n, _)| n == name);
            let (_, code) = found.ok_or_else(|| {
                Error::invalid(format!("\"{name}\" has no code")).hint(format!("the codes are {codes}"))
            })?;
            buffers.text = code;
            Ok(ValueRef::Text(&buffers.text))
        }
        _ => Err(Error::invalid("code takes a name and its codes").hint("code(shop, 'Taobao=tb, Tmall=tm')")),
    }
}
