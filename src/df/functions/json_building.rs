//! JSON made of values: `json_build_object('id', id, 'doc', doc)`, `json_build_array`, `to_json`, and the pieces of
//! `json_agg` and `json_object_agg`, which are calls of `string_agg` (`df::plain_calls`).
//!
//! Objects are written as PostgreSQL writes those of `json_build_object`, `{"a" : 1, "b" : [2, null]}`, and values as in
//! JSON Lines ([`write_json_cell`]): what is JSON already is nested.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringBuilder};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use super::json::merged;
use crate::df::errors::to_df;
use crate::df::expressions::text::our_cast;
use crate::df::rewrite::branches;
use crate::error::{Error, Result, sqlstate};
use crate::row::{column_type_of, field, write_json_cell, write_text_cell};
use crate::value::{ColumnType, json_type};

/// Text between two elements or members.
pub const BETWEEN: &str = ", ";

/// Aggregates of JSON: their names, the function that makes JSON of the joined parts, and that of a part.
pub const JSON_AGGREGATES: [(&[&str], &str, &str); 2] = [
    (&["json_agg", "jsonb_agg", "json_group_array", "jsonb_group_array"], "json_of_elements", "json_element"),
    (
        &["json_object_agg", "jsonb_object_agg", "json_group_object", "jsonb_group_object"],
        "json_of_members",
        "json_member",
    ),
];

/// Registers the functions in a session.
pub fn register(state: &mut SessionState) {
    let functions: [(Built, &[&str]); 7] = [
        (Built::Object, &["jsonb_build_object", "json_object"]),
        (Built::Array, &["jsonb_build_array", "json_array"]),
        (Built::Value, &["to_jsonb"]),
        (Built::Element, &[]),
        (Built::Member, &[]),
        (Built::ArrayOf, &[]),
        (Built::ObjectOf, &[]),
    ];
    for (built, aliases) in functions {
        let signature = Signature::user_defined(Volatility::Immutable);
        let function = ScalarUDF::new_from_impl(Building { built, signature });
        // Registering never fails: it replaces a function of the same name.
        let _ = state.register_udf(Arc::new(function.with_aliases(aliases.iter().copied())));
    }
}

/// What is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Built {
    /// An object of names and values.
    Object,
    /// An array of values.
    Array,
    /// A value; NULL of NULL.
    Value,
    /// A value as the element of an array.
    Element,
    /// A name and a value as the member of an object.
    Member,
    /// The array of elements that are joined already; NULL of NULL.
    ArrayOf,
    /// The object of such members.
    ObjectOf,
}

impl Built {
    fn name(self) -> &'static str {
        match self {
            Built::Object => "json_build_object",
            Built::Array => "json_build_array",
            Built::Value => "to_json",
            Built::Element => "json_element",
            Built::Member => "json_member",
            Built::ArrayOf => "json_of_elements",
            Built::ObjectOf => "json_of_members",
        }
    }

    /// Errors: it is not made of so many values.
    fn check(self, values: usize) -> Result<()> {
        let (takes, example, is_right) = match self {
            Built::Array => return Ok(()),
            Built::Object => (
                "a value for each name",
                "json_build_object('id', id, 'name', name)",
                values.is_multiple_of(2),
            ),
            Built::Member => ("a name and a value", "json_object_agg(name, value)", values == 2),
            _ => ("one value", "to_json(x)", values == 1),
        };
        if is_right {
            return Ok(());
        }
        Err(Error::invalid(format!("{} takes {takes}", self.name()))
            .hint(format!("write {example}"))
            .state(sqlstate::SYNTAX))
    }

    /// Elements and members are plain texts until they are joined.
    fn output(self) -> ColumnType {
        match self {
            Built::Element | Built::Member => ColumnType::Varchar,
            _ => ColumnType::Json,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Building {
    built: Built,
    signature: Signature,
}

impl ScalarUDFImpl for Building {
    fn name(&self) -> &str {
        self.built.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> DfResult<Vec<DataType>> {
        Ok(given.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        self.built.check(args.arg_fields.len()).map_err(to_df)?;
        Ok(Arc::new(field(self.name(), self.built.output(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let is_column = args.args.iter().any(|arg| matches!(arg, ColumnarValue::Array(_)));
        let rows = if is_column { args.number_rows } else { 1 };
        let arrays: DfResult<Vec<ArrayRef>> = args.args.iter().map(|arg| arg.to_array(rows)).collect();
        let arrays = arrays?;
        let values: Vec<Column> = arrays.iter().zip(&args.arg_fields).map(Column::of).collect();
        let built: Result<StringBuilder> = (0..rows).try_fold(StringBuilder::new(), |mut built, row| {
            built.append_option(self.built.of(&values, row)?);
            Ok(built)
        });
        let built = built.map_err(to_df)?.finish();
        Ok(match is_column {
            true => ColumnarValue::Array(Arc::new(built)),
            false => ColumnarValue::Scalar(ScalarValue::try_from_array(&built, 0)?),
        })
    }
}

/// An argument.
struct Column<'a> {
    array: &'a ArrayRef,
    field: &'a FieldRef,
}

impl<'a> Column<'a> {
    fn of((array, field): (&'a ArrayRef, &'a FieldRef)) -> Column<'a> {
        Column { array, field }
    }

    fn put(&self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        write_json_cell(out, self.array, row, self.field)
    }

    /// The text of a cell; `None` for NULL.
    fn text(&self, row: usize) -> Result<Option<String>> {
        let mut text = String::new();
        Ok(write_text_cell(&mut text, self.array, row)?.then_some(text))
    }
}

impl Built {
    /// What is built of a row; `None` for NULL.
    fn of(self, values: &[Column<'_>], row: usize) -> Result<Option<String>> {
        let mut out = Vec::new();
        match (self, values) {
            (Built::Object, pairs) => {
                enclosed(b"{}", pairs.chunks_exact(2), &mut out, |pair, out| put_member(pair, row, out))?;
            }
            (Built::Array, elements) => {
                enclosed(b"[]", elements.iter(), &mut out, |element, out| element.put(row, out))?;
            }
            // Arrow takes none of the NULLs without a type for one.
            (Built::Value, [value]) if value.array.is_null(row) || value.array.data_type().is_null() => {
                return Ok(None);
            }
            (Built::Value | Built::Element, [value]) => value.put(row, &mut out)?,
            (Built::Member, pair) => put_member(pair, row, &mut out)?,
            (Built::ArrayOf, [joined]) => return Ok(joined.text(row)?.map(|joined| format!("[{joined}]"))),
            (Built::ObjectOf, [joined]) => {
                return Ok(joined.text(row)?.map(|joined| format!("{{{joined}}}")));
            }
            _ => self.check(values.len())?,
        }
        String::from_utf8(out).map(Some).map_err(|e| Error::internal("JSON that is no text").caused_by(e))
    }
}

fn enclosed<T>(
    brackets: &[u8; 2],
    parts: impl Iterator<Item = T>,
    out: &mut Vec<u8>,
    put: impl Fn(T, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    out.push(brackets[0]);
    for (at, part) in parts.enumerate() {
        if at > 0 {
            out.extend_from_slice(BETWEEN.as_bytes());
        }
        put(part, out)?;
    }
    out.push(brackets[1]);
    Ok(())
}

fn put_member(pair: &[Column<'_>], row: usize, out: &mut Vec<u8>) -> Result<()> {
    let [name, value] = pair else { return Built::Member.check(pair.len()) };
    let name = name.text(row)?.ok_or_else(|| {
        Error::invalid("the name of a member of a JSON object is NULL")
            .hint("write coalesce(name, ''), or WHERE name IS NOT NULL")
            .state(sqlstate::NULL_NOT_ALLOWED)
    })?;
    out.extend_from_slice(serde_json::Value::String(name).to_string().as_bytes());
    out.extend_from_slice(b" : ");
    value.put(row, out)
}

/// Makes a choice among JSON values JSON, as `coalesce(doc, '{}')` is: a CASE does not keep the metadata of its branches,
/// so it would be quoted within JSON. Texts that are written out have to be JSON, too. JSON beside `||` is [`merged`].
/// Runs before type coercion.
pub fn chosen_json(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if let Some(merged) = merged(&expr, schema) {
        return Ok(Transformed::yes(merged));
    }
    let kinds: Vec<Chosen> = branches(&expr).into_iter().map(|branch| chosen(branch, schema)).collect();
    let is_json = kinds.contains(&Chosen::Json) && !kinds.contains(&Chosen::Other);
    Ok(match is_json {
        true => Transformed::yes(our_cast(&expr, ColumnType::Json, &DataType::Utf8)),
        false => Transformed::no(expr),
    })
}

/// Kinds of values to choose from.
#[derive(PartialEq)]
enum Chosen {
    Json,
    /// NULL, or a text literal that is JSON.
    Fitting,
    Other,
}

fn chosen(expr: &Expr, schema: &DFSchema) -> Chosen {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), None) if json_type(text).is_ok() => Chosen::Fitting,
        Expr::Literal(value, _) if value.is_null() => Chosen::Fitting,
        expr => match expr.to_field(schema) {
            Ok((_, field)) if column_type_of(&field) == Some(ColumnType::Json) => Chosen::Json,
            _ => Chosen::Other,
        },
    }
}
