//! Functions of JSON. PostgreSQL's operators `->`, `->>`, `#>` and `#>>` are calls of four of them.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::error::Result as DfResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, ScalarUDF, lit};
use sqlparser::ast::BinaryOperator;

use super::{FunctionBuffers, Plain, row_function};
use crate::df::errors::to_df;
use crate::error::{Error, Result, sqlstate};
use crate::row::column_type_of;
use crate::value::{
    self, ColumnType, JsonStep, ValueRef, json_array_length, json_part, json_path, json_text, json_type,
};

/// Registers the functions and operators in a session.
pub fn register(state: &mut SessionState) {
    let functions: [([&'static str; 2], Plain, ColumnType); 8] = [
        (["json_get", "jsonb_get"], get, ColumnType::Json),
        (["json_get_text", "jsonb_get_text"], get_text, ColumnType::Varchar),
        (["json_extract_path", "jsonb_extract_path"], extract_path, ColumnType::Json),
        (["json_extract_path_text", "jsonb_extract_path_text"], extract_path_text, ColumnType::Varchar),
        (["json_contains", "jsonb_contains"], json_contains, ColumnType::Boolean),
        (["json_concat", "jsonb_concat"], concat, ColumnType::Json),
        (["json_array_length", "jsonb_array_length"], array_length, ColumnType::BigInt),
        (["json_typeof", "jsonb_typeof"], type_of, ColumnType::Varchar),
    ];
    let functions = functions.map(|([name, alias], body, output)| {
        Arc::new(row_function(name, body, output).with_aliases([alias]))
    });
    for function in &functions {
        // Registering never fails: it replaces a function of the same name.
        let _ = state.register_udf(Arc::clone(function));
    }
    let [get, get_text, path, path_text, contains, ..] = functions;
    let _ = state.register_expr_planner(Arc::new(Operators { get, get_text, path, path_text, contains }));
}

/// Plans the operators.
#[derive(Debug)]
struct Operators {
    get: Arc<ScalarUDF>,
    get_text: Arc<ScalarUDF>,
    path: Arc<ScalarUDF>,
    path_text: Arc<ScalarUDF>,
    contains: Arc<ScalarUDF>,
}

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        operation: RawBinaryExpr,
        _: &DFSchema,
    ) -> DfResult<PlannerResult<RawBinaryExpr>> {
        let (function, is_path) = match operation.op {
            BinaryOperator::Arrow => (&self.get, false),
            BinaryOperator::LongArrow => (&self.get_text, false),
            BinaryOperator::HashArrow => (&self.path, true),
            BinaryOperator::HashLongArrow => (&self.path_text, true),
            BinaryOperator::AtArrow => (&self.contains, false),
            BinaryOperator::ArrowAt => {
                let RawBinaryExpr { left, right, op: _ } = operation;
                let call = ScalarFunction::new_udf(Arc::clone(&self.contains), vec![right, left]);
                return Ok(PlannerResult::Planned(Expr::ScalarFunction(call)));
            }
            BinaryOperator::AtAt
            | BinaryOperator::AtQuestion
            | BinaryOperator::HashMinus
            | BinaryOperator::Question
            | BinaryOperator::QuestionAnd
            | BinaryOperator::QuestionPipe => {
                return Err(to_df(
                    Error::unsupported(format!("there is no operator {}", operation.op))
                        .hint("compare parts of a JSON value, as in doc ->> 'city' = 'Oslo'"),
                ));
            }
            _ => return Ok(PlannerResult::Original(operation)),
        };
        let RawBinaryExpr { left, right, op } = operation;
        let mut args = vec![left];
        match is_path {
            true => args.extend(steps(&right, &op).map_err(to_df)?.into_iter().map(lit)),
            false => args.push(right),
        }
        let call = ScalarFunction::new_udf(Arc::clone(function), args);
        Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
    }
}

/// The merge that `||` is if one side is JSON. Beside a text that is computed, JSON is a text, too, as in PostgreSQL.
pub fn merged(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) = expr else { return None };
    let type_of = |side: &Expr| side.to_field(schema).ok().and_then(|(_, field)| column_type_of(&field));
    let is_json = |side: &Expr| type_of(side) == Some(ColumnType::Json);
    let is_given = |side: &Expr| matches!(side, Expr::Literal(..) | Expr::Placeholder(_));
    let is_text = |side: &Expr| !is_given(side) && type_of(side) == Some(ColumnType::Varchar);
    let merges = (is_json(left) && !is_text(right)) || (is_json(right) && !is_text(left));
    merges.then(|| {
        let function = Arc::new(row_function("json_concat", concat, ColumnType::Json));
        let args = vec![(**left).clone(), (**right).clone()];
        Expr::ScalarFunction(ScalarFunction::new_udf(function, args))
    })
}

/// The steps of a path that stands behind an operator.
fn steps(path: &Expr, op: &BinaryOperator) -> Result<Vec<String>> {
    let steps = path.as_literal().and_then(|path| json_path(path.try_as_str()??));
    steps.ok_or_else(|| {
        Error::invalid(format!("{op} takes a path"))
            .why("a path is a text literal, such as '{address,city}' or '{tags,0}'")
            .hint("json_extract_path_text(doc, a, b) computes its steps")
            .state(sqlstate::SYNTAX)
    })
}

fn get<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [json, step] => Ok(part("->", *json, &[*step], false)?.map_or(ValueRef::Null, ValueRef::Text)),
        _ => Err(usage("json_get", "json_get(doc, 'name')")),
    }
}

fn get_text<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [json, step] => Ok(as_text(part("->>", *json, &[*step], false)?, buffers)),
        _ => Err(usage("json_get_text", "json_get_text(doc, 'name')")),
    }
}

fn extract_path<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let name = "json_extract_path";
    match args {
        [json, steps @ ..] => Ok(part(name, *json, steps, true)?.map_or(ValueRef::Null, ValueRef::Text)),
        [] => Err(usage(name, "json_extract_path(doc, 'address', 'city')")),
    }
}

fn extract_path_text<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let name = "json_extract_path_text";
    match args {
        [json, steps @ ..] => Ok(as_text(part(name, *json, steps, true)?, buffers)),
        [] => Err(usage(name, "json_extract_path_text(doc, 'address', 'city')")),
    }
}

/// `json @> part`.
fn json_contains<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let [json, part] = args else { return Err(usage("json_contains", "json_contains(doc, '{\"a\": 1}')")) };
    match (json_of("@>", *json)?, json_of("@>", *part)?) {
        (Some(json), Some(part)) => {
            value::json_contains(json, part).map(ValueRef::Boolean).map_err(|e| no_json("@>", &e))
        }
        _ => Ok(ValueRef::Null),
    }
}

/// `json || json`.
fn concat<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let [left, right] = args else { return Err(usage("json_concat", "json_concat(doc, '{\"a\": 1}')")) };
    let (Some(left), Some(right)) = (json_of("||", *left)?, json_of("||", *right)?) else {
        return Ok(ValueRef::Null);
    };
    buffers.text = value::json_merged(left, right)
        .map_err(|e| no_json("||", &e).hint("CAST(doc AS TEXT) || 'x' puts texts together"))?;
    Ok(ValueRef::Text(&buffers.text))
}

/// `json_array_length(json)`: NULL for what is no array.
fn array_length<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let name = "json_array_length";
    let [json] = args else { return Err(usage(name, "json_array_length(doc -> 'tags')")) };
    let Some(json) = json_of(name, *json)? else { return Ok(ValueRef::Null) };
    let length = json_array_length(json).map_err(|e| no_json(name, &e))?;
    Ok(length.map_or(ValueRef::Null, |length| ValueRef::Int(length as i64)))
}

/// `json_typeof(json)`.
fn type_of<'a>(args: &[ValueRef<'a>], _: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    let name = "json_typeof";
    let [json] = args else { return Err(usage(name, "json_typeof(doc -> 'tags')")) };
    let Some(json) = json_of(name, *json)? else { return Ok(ValueRef::Null) };
    json_type(json).map(ValueRef::Text).map_err(|e| no_json(name, &e))
}

/// The part of a JSON value that the steps lead to; `None` if there is none, or an argument is NULL.
fn part<'a>(
    name: &str,
    json: ValueRef<'a>,
    steps: &[ValueRef<'a>],
    of_path: bool,
) -> Result<Option<&'a str>> {
    let Some(json) = json_of(name, json)? else { return Ok(None) };
    if steps.is_empty() {
        json_type(json).map_err(|e| no_json(name, &e))?;
    }
    let is_no_step = |step: &&ValueRef| !step.is_null() && JsonStep::new(**step, of_path).is_none();
    if let Some(step) = steps.iter().find(is_no_step) {
        return Err(Error::invalid(format!("{step} is no step into a JSON value"))
            .why("a step is the name of a member, or the number of an element")
            .state(sqlstate::DATATYPE_MISMATCH));
    }
    let steps = steps.iter().map(|step| JsonStep::new(*step, of_path));
    json_part(json, steps).map_err(|e| no_json(name, &e))
}

fn as_text<'a>(part: Option<&'a str>, buffers: &'a mut FunctionBuffers) -> ValueRef<'a> {
    match part.and_then(json_text) {
        None => ValueRef::Null,
        Some(Cow::Borrowed(text)) => ValueRef::Text(text),
        Some(Cow::Owned(text)) => {
            buffers.text = text;
            ValueRef::Text(&buffers.text)
        }
    }
}

/// The text of a JSON value, which may be a plain text, too; `None` for NULL.
pub(super) fn json_of<'a>(name: &str, json: ValueRef<'a>) -> Result<Option<&'a str>> {
    match json {
        ValueRef::Null => Ok(None),
        ValueRef::Text(json) => Ok(Some(json)),
        other => Err(Error::invalid(format!("{name} takes JSON, not {other}"))
            .why("JSON is a text, such as '{\"city\": \"Oslo\"}'")
            .state(sqlstate::DATATYPE_MISMATCH)),
    }
}

pub(super) fn no_json(name: &str, e: &serde_json::Error) -> Error {
    Error::invalid(format!("{name} takes JSON, and this text is none"))
        .why(e.to_string())
        .state(sqlstate::INVALID_JSON)
}

fn usage(name: &str, example: &str) -> Error {
    Error::invalid(format!("{name} takes other arguments")).hint(format!("write {example}"))
}
