//! SQL functions beyond DataFusion's: the key transforms, usable in any expression, and keys explained.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::age::Age;
use super::coalesce::Coalesce;
use super::date_trunc::DateTrunc;
use super::errors::to_df;
use super::exact_sum::ExactSum;
use super::intervals::IntervalProducts;
use super::min_max::OfGroups;
use super::text;
use crate::catalog::{Catalog, Relation};
use crate::design::keys::Keyspace;
use crate::error::{Error, Result, sqlstate};
use crate::key::{TimeFormat, md5_bucket, md5_digits};
use crate::row::any_value_at;
use crate::value::Value;

/// Widest text that `lpad` and `rpad` make.
const PADDED_CHARS_MAX: usize = 1 << 20;

/// Longest text that `repeat` makes, in bytes. DataFusion's goes up to 2 GiB, copies that several times, and nobody can
/// stop it meanwhile.
const REPEATED_BYTES_MAX: usize = 64 << 20;

/// Adds the functions to a session.
pub fn register(state: &mut SessionState) {
    for aggregate in [
        AggregateUDF::new_from_impl(ExactSum::default()),
        AggregateUDF::new_from_impl(OfGroups(Min::new())),
        AggregateUDF::new_from_impl(OfGroups(Max::new())),
    ] {
        let _ = state.register_udaf(Arc::new(aggregate));
    }
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(DateTrunc::default())));
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(Age::default())));
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(Coalesce::default())));
    for (alias, name) in [("sign", "signum"), ("gen_random_uuid", "uuid")] {
        if let Ok(function) = state.udf(name) {
            let _ = state.register_udf(Arc::new((*function).clone().with_aliases([alias])));
        }
    }
    for (alias, name) in [("every", "bool_and"), ("variance", "var"), ("group_concat", "string_agg")] {
        if let Ok(function) = state.udaf(name) {
            let _ = state.register_udaf(Arc::new((*function).clone().with_aliases([alias])));
        }
    }
    let _ = state.register_expr_planner(Arc::new(IntervalProducts));
    for cast in text::casts() {
        let _ = state.register_udf(Arc::new(cast));
    }
    let functions: [(&'static str, Plain, DataType); 10] = [
        ("to_char", to_char, DataType::Utf8),
        ("md5_bucket", bucket, DataType::Utf8),
        ("code", code, DataType::Utf8),
        ("octet_length", octet_length, DataType::Int64),
        ("length", length, DataType::Int64),
        ("md5", md5, DataType::Utf8),
        ("lpad", lpad, DataType::Utf8),
        ("rpad", rpad, DataType::Utf8),
        ("repeat", repeat, DataType::Utf8),
        ("typeof", type_of, DataType::Utf8),
    ];
    for (name, body, output) in functions {
        // The registry refuses nothing: a function of that name is replaced.
        let _ = state.register_udf(Arc::new(row_function(name, body, output)));
    }
    let signature = Signature::nullary(Volatility::Immutable);
    let version = RowFunction { signature, ..RowFunction::new("version", version, DataType::Utf8) };
    let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(version)));
}

/// `version()`.
fn version(_: &[Value]) -> Result<Value> {
    Ok(concat!("RowkeyDB ", env!("CARGO_PKG_VERSION")).into())
}

/// `typeof(x)`, in SQLite's words as far as it has the type.
fn type_of(args: &[Value]) -> Result<Value> {
    let [value] = args else { return Err(Error::invalid("typeof takes one value")) };
    let name = match value {
        Value::Null => "null",
        Value::Boolean(_) => "boolean",
        Value::Int(_) => "integer",
        Value::Double(_) => "real",
        Value::Decimal(..) => "decimal",
        Value::Text(_) => "text",
        Value::Bytes(_) => "blob",
        Value::Date(_) => "date",
        Value::Timestamp(_) => "timestamp",
        Value::TimestampTz(_) => "timestamptz",
        Value::Uuid(_) => "uuid",
    };
    Ok(name.into())
}

/// A function of the values of one row.
pub fn row_function(name: &'static str, body: Plain, output: DataType) -> ScalarUDF {
    ScalarUDF::new_from_impl(RowFunction::new(name, body, output))
}

/// `rowkey_explain('orders', rowkey)`: a key of a table or an index of this catalog, part by part.
pub fn rowkey_explain(catalog: &Catalog) -> Arc<ScalarUDF> {
    let catalog = catalog.clone();
    Arc::new(ScalarUDF::new_from_impl(RowFunction {
        name: ROWKEY_EXPLAIN,
        body: Body(Arc::new(move |args| explained(&catalog, args))),
        output: DataType::Utf8,
        // What it says changes with the definitions, so no plan with it is kept.
        signature: Signature::variadic_any(Volatility::Stable),
    }))
}

/// Its name.
pub const ROWKEY_EXPLAIN: &str = "rowkey_explain";

fn explained(catalog: &Catalog, args: &[Value]) -> Result<Value> {
    let (name, key) = match args {
        [_, Value::Null] | [Value::Null, _] => return Ok(Value::Null),
        [Value::Text(name), key] => (name, key),
        _ => {
            return Err(Error::invalid("rowkey_explain takes the name of a table or an index, and a key")
                .hint("rowkey_explain('orders', rowkey)"));
        }
    };
    let relation = catalog.find(name).ok_or_else(|| catalog.unknown(name))?;
    let words =
        |table, keyspace: Keyspace<'_>| Ok(Value::Text(keyspace.in_words(table, &keyspace.key(key)?)));
    match &relation {
        Relation::Table(table) => words(table, Keyspace::of_table(table)),
        Relation::Index(table, id) => match table.index_by_id(*id) {
            Some(index) => words(table, Keyspace::of_index(table, index)),
            None => Err(Error::internal("an index without its definition")),
        },
        Relation::View(_) => Err(Error::invalid(format!("\"{name}\" is a view, whose rows have no keys"))
            .state(sqlstate::WRONG_OBJECT)),
    }
}

pub type Plain = fn(&[Value]) -> Result<Value>;
type Any = dyn Fn(&[Value]) -> Result<Value> + Send + Sync;

/// What a function does with the values of one row.
struct Body(Arc<Any>);

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

/// A function of the values of one row, giving text or what text can be cast to.
#[derive(Debug)]
struct RowFunction {
    name: &'static str,
    body: Body,
    output: DataType,
    signature: Signature,
}

impl RowFunction {
    fn new(name: &'static str, body: Plain, output: DataType) -> RowFunction {
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
        Ok(self.output.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        // Arguments that are the same for all rows are looked at once.
        let varies = args.args.iter().any(|arg| matches!(arg, ColumnarValue::Array(_)));
        let rows = if varies { args.number_rows } else { 1 };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<DfResult<Vec<_>>>()?;
        let mut out = StringBuilder::new();
        let mut row = Vec::with_capacity(arrays.len());
        for i in 0..rows {
            row.clear();
            for array in &arrays {
                row.push(read(array, i).map_err(to_df)?);
            }
            match (self.body.0)(&row).map_err(to_df)? {
                Value::Null => out.append_null(),
                value => out.append_value(value.to_string()),
            }
        }
        let values = cast(&out.finish(), &self.output)?;
        Ok(match varies {
            true => ColumnarValue::Array(values),
            false => ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?),
        })
    }
}

fn read(array: &dyn Array, row: usize) -> Result<Value> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return Ok(Value::Null);
    }
    any_value_at(array, row)
}

/// `to_char(time, 'YYYY-MM-DD')`, with the formats of key layouts.
fn to_char(args: &[Value]) -> Result<Value> {
    match args {
        [Value::Null, _] | [_, Value::Null] => Ok(Value::Null),
        [time @ (Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_)), Value::Text(format)] => {
            let format = TimeFormat::parse(format)
                .map_err(|why| Error::invalid("to_char does not know this format").why(why))?;
            format
                .format(time)
                .map(Value::Text)
                .ok_or_else(|| Error::invalid(format!("{time} is out of range")))
        }
        _ => Err(Error::invalid("to_char takes a date or timestamp and a format")
            .hint("to_char(ts, 'YYYY-MM-DD HH24:MI:SS')")),
    }
}

/// `md5_bucket(value, ..., n)`: the bucket of the values, as in key layouts.
fn bucket(args: &[Value]) -> Result<Value> {
    let usage = || {
        Error::invalid("md5_bucket takes one value or more and a number of buckets")
            .hint("md5_bucket(user_id, 16)")
    };
    let Some((Value::Int(n), values)) = args.split_last() else { return Err(usage()) };
    let n = u32::try_from(*n).ok().filter(|n| *n > 0 && !values.is_empty()).ok_or_else(usage)?;
    if values.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    Ok(Value::Text(md5_bucket(values.iter().map(Value::as_ref), n)))
}

/// `octet_length(text or bytes)`: bytes it takes. DataFusion's own does not take bytes.
fn octet_length(args: &[Value]) -> Result<Value> {
    match args {
        [Value::Null] => Ok(Value::Null),
        [Value::Text(text)] => Ok(Value::Int(text.len() as i64)),
        [Value::Bytes(bytes)] => Ok(Value::Int(bytes.len() as i64)),
        _ => Err(Error::invalid("octet_length takes a text or bytes").hint("octet_length(rowkey)")),
    }
}

/// `length(text or bytes)`: characters of a text, bytes of bytes, as in PostgreSQL and SQLite.
fn length(args: &[Value]) -> Result<Value> {
    match args {
        [Value::Null] => Ok(Value::Null),
        [Value::Bytes(bytes)] => Ok(Value::Int(bytes.len() as i64)),
        [value] => Ok(Value::Int(value.to_string().chars().count() as i64)),
        _ => Err(Error::invalid("length takes one value").hint("length(name)")),
    }
}

/// `md5(value)`: of the value's text form, as in key layouts.
fn md5(args: &[Value]) -> Result<Value> {
    match args {
        [Value::Null] => Ok(Value::Null),
        [value] => Ok(Value::Text(md5_digits(value.as_ref()))),
        _ => Err(Error::invalid("md5 takes one value").hint("md5(user_id)")),
    }
}

fn lpad(args: &[Value]) -> Result<Value> {
    padded("lpad", args, |text, pad| pad + text)
}

fn rpad(args: &[Value]) -> Result<Value> {
    padded("rpad", args, |text, pad| format!("{text}{pad}"))
}

/// `lpad(value, width [, fill])`: in key layouts a number is filled up with zeros, so it is here. A longer
/// text is cut; a longer number is not.
fn padded(name: &str, args: &[Value], join: fn(&str, String) -> String) -> Result<Value> {
    let usage = || {
        Error::invalid(format!("{name} takes a value, a width and what to fill up with"))
            .hint(format!("{name}(id, 6), {name}(name, 20, ' ')"))
    };
    let (value, width, fill) = match args {
        [value, Value::Int(width)] => (value, *width, None),
        [value, Value::Int(width), Value::Text(fill)] => (value, *width, Some(fill.as_str())),
        args if (2..=3).contains(&args.len()) && args.iter().any(Value::is_null) => return Ok(Value::Null),
        _ => return Err(usage()),
    };
    let is_number = matches!(value, Value::Int(_) | Value::Decimal(..) | Value::Double(_));
    let fill = fill.unwrap_or(if is_number && name == "lpad" { "0" } else { " " });
    if value.is_null() {
        return Ok(Value::Null);
    }
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    if width > PADDED_CHARS_MAX {
        return Err(Error::invalid(format!("{name} to {width} characters is too much"))
            .why(format!("the most is {PADDED_CHARS_MAX}"))
            .state(sqlstate::LIMIT));
    }
    let text = value.to_string();
    let len = text.chars().count();
    if len >= width {
        return Ok(Value::Text(if is_number { text } else { text.chars().take(width).collect() }));
    }
    let pad: String = fill.chars().cycle().take(width - len).collect();
    // The sign of a number stays in front of its zeros.
    match text.strip_prefix('-') {
        Some(digits) if is_number && name == "lpad" && fill == "0" => {
            Ok(Value::Text(format!("-{pad}{digits}")))
        }
        _ => Ok(Value::Text(join(&text, pad))),
    }
}

/// `repeat(text, times)`: no times at all if that is negative.
fn repeat(args: &[Value]) -> Result<Value> {
    let (text, times) = match args {
        [a, b] if a.is_null() || b.is_null() => return Ok(Value::Null),
        [text, Value::Int(times)] => (text.to_string(), usize::try_from(*times).unwrap_or(0)),
        _ => {
            return Err(Error::invalid("repeat takes a text and a number of times").hint("repeat('ab', 3)"));
        }
    };
    if text.len().saturating_mul(times) > REPEATED_BYTES_MAX {
        return Err(Error::invalid(format!("{} bytes repeated {times} times is too much", text.len()))
            .why(format!("the most is {REPEATED_BYTES_MAX} bytes"))
            .state(sqlstate::LIMIT));
    }
    Ok(Value::Text(text.repeat(times)))
}

/// `code(name, 'Taobao=tb, Tmall=tm')`.
fn code(args: &[Value]) -> Result<Value> {
    match args {
        [Value::Null, _] => Ok(Value::Null),
        [Value::Text(name), Value::Text(codes)] => {
            let pairs = crate::sql::parse_codes(codes)?;
            let found = pairs.iter().find(|(n, _)| n == name);
            found.map(|(_, c)| Value::Text(c.clone())).ok_or_else(|| {
                Error::invalid(format!("\"{name}\" has no code")).hint(format!("the codes are {codes}"))
            })
        }
        _ => Err(Error::invalid("code takes a name and its codes").hint("code(shop, 'Taobao=tb, Tmall=tm')")),
    }
}
