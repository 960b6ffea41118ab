//! Filters of a cached plan: parameters get their values in each run.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{BinaryExpr, ColumnarValue, Expr};
use datafusion::physical_expr::create_physical_expr;

use crate::df::below::renamed;
use crate::df::comparison::{compare_value, exact};
use crate::df::errors::to_df;
use crate::df::expr::{FieldNames, comparison, flipped, predicate};
use crate::df::table::Binding;
use crate::df::tree::{RewriteTree, changed};
use crate::plan::{CmpOp, Field, LikePattern, PLAIN_ESCAPE, Predicate};
use crate::row::column_type_of;
use crate::schema::Ttl;
use crate::sql::parameter_place;
use crate::value::{ColumnType, US_PER_DAY, Value, decimal_to_double, is_hex};

/// A filter in our algebra with open parameters.
#[derive(Clone, Debug)]
pub enum Template {
    /// Has no parameters.
    Known(Predicate),
    /// A column compared with the parameter at this position. `with_time`: a date with a time, and nothing else beside
    /// them, such as a text that would then be read as a time.
    Compare { field: Field, op: CmpOp, ty: ColumnType, param: usize, with_time: bool },
    /// A column LIKE the parameter at this position.
    Like { field: Field, param: usize, case_insensitive: bool },
    /// Conjunction.
    All(Vec<Template>),
    /// Disjunction.
    Any(Vec<Template>),
    /// Negation.
    Not(Box<Template>),
    /// The row has not expired.
    Alive(Ttl),
    /// Any other filter.
    Expr(Expr),
}

impl Template {
    /// The template of a filter.
    pub fn new(filter: &Expr, names: &FieldNames) -> Template {
        if !has_params(filter) {
            return Template::Known(predicate(filter, names));
        }
        compared(filter, names)
            .or_else(|| listed(filter, names))
            .unwrap_or_else(|| Template::Expr(filter.clone()))
    }

    /// The filter reads these fields only, and has no opaque part.
    pub fn is_of(&self, is_one: &dyn Fn(Field) -> bool, names: &FieldNames) -> bool {
        match self {
            Template::Known(known) => !known.has_opaque() && known.fields().into_iter().all(is_one),
            Template::Compare { field, .. } | Template::Like { field, .. } => is_one(*field),
            Template::All(terms) | Template::Any(terms) => terms.iter().all(|term| term.is_of(is_one, names)),
            Template::Not(term) => term.is_of(is_one, names),
            Template::Alive(ttl) => is_one(Field::Column(ttl.written_at)),
            Template::Expr(filter) => filter.column_refs().into_iter().all(|column| {
                let known = names.of(&Expr::Column(column.clone()));
                known.is_some_and(|(field, _)| is_one(field))
            }),
        }
    }

    /// The filter for these parameters. `None` if a value does not suit, such as `'x'` for a date: then the query has to
    /// be planned with the value in it.
    pub fn fill(&self, names: &FieldNames, binding: &Binding) -> Option<Predicate> {
        let params = &*binding.params;
        match self {
            Template::Known(predicate) => Some(predicate.clone()),
            Template::Compare { field, op, ty, param, with_time } => {
                let value = params.get(*param)?;
                match suited(value, *ty) {
                    Some(value) => Some(Predicate::compare(*field, *op, value)),
                    None => between(*field, *ty, *op, value, *with_time),
                }
            }
            Template::Like { field, param, case_insensitive } => {
                let Value::Text(pattern) = params.get(*param)? else { return None };
                like(*field, pattern, *case_insensitive)
            }
            Template::All(terms) => filled(terms, names, binding).map(Predicate::and),
            Template::Any(terms) => filled(terms, names, binding).map(Predicate::or),
            Template::Not(term) => term.fill(names, binding).map(Predicate::not),
            Template::Alive(ttl) => Some(ttl.alive(binding.as_of_us)),
            Template::Expr(filter) => {
                let filled = predicate(&computed(with_params(filter, params)?)?, names);
                (!filled.has_opaque()).then_some(filled)
            }
        }
    }
}

fn filled(terms: &[Template], names: &FieldNames, binding: &Binding) -> Option<Vec<Predicate>> {
    terms.iter().map(|term| term.fill(names, binding)).collect()
}

/// A comparison with a value between two of the column's: `2.5` for an integer, ten o'clock for a date.
fn between(field: Field, ty: ColumnType, op: CmpOp, value: &Value, with_time: bool) -> Option<Predicate> {
    let is_beside = match value {
        Value::Int(_) | Value::Decimal(..) | Value::Double(_) => ty.is_exact(),
        Value::Timestamp(_) | Value::TimestampTz(_) => with_time,
        _ => false,
    };
    let compared = if is_beside { compare_value(field, ty, op, value.clone()) } else { None };
    // Several integers equal one double. A plan may rely on one value.
    let is_range = |found: &Predicate| match found.terms() {
        [_] => false,
        terms => terms.iter().all(|term| matches!(term, Predicate::Compare { .. })),
    };
    compared.filter(|found| op != CmpOp::Eq || !is_range(found))
}

/// `field LIKE pattern` with the default escape character; `None` if the pattern is invalid.
pub(in crate::df) fn like(field: Field, pattern: &str, case_insensitive: bool) -> Option<Predicate> {
    let pattern = LikePattern::new(pattern, Some(PLAIN_ESCAPE)).ok()?;
    Some(Predicate::like(field, pattern, case_insensitive))
}

/// The expression contains a parameter.
pub fn has_params(expr: &Expr) -> bool {
    expr.exists(|e| Ok(matches!(e, Expr::Placeholder(_)))).unwrap_or(true)
}

/// Positions of the parameters in an expression.
pub fn params_in(expr: &Expr) -> Vec<usize> {
    let mut found = Vec::new();
    // Looking at an expression cannot fail.
    let _ = expr.apply(|e| {
        if let Expr::Placeholder(param) = e {
            found.extend(number(param));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// `column = $1` or `$1 = column`, if both have the same type.
fn compared(filter: &Expr, names: &FieldNames) -> Option<Template> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
    let op = comparison(*op)?;
    match (&**left, &**right) {
        (column, param @ Expr::Placeholder(_)) => compare(column, op, param, names),
        (param, column) => compare(column, flipped(op), param, names),
    }
}

/// `column IN ($1, $2)`, if all have the same type.
fn listed(filter: &Expr, names: &FieldNames) -> Option<Template> {
    let Expr::InList(list) = filter else { return None };
    let any = list.list.iter().map(|item| compare(&list.expr, CmpOp::Eq, item, names));
    let any = Template::Any(any.collect::<Option<_>>()?);
    Some(if list.negated { Template::Not(Box::new(any)) } else { any })
}

fn compare(column: &Expr, op: CmpOp, param: &Expr, names: &FieldNames) -> Option<Template> {
    let Expr::Placeholder(placeholder) = param else { return None };
    let (field, ty) = names.of(column)?;
    let (param, wanted) = place(placeholder)?;
    let is_same = crate::row::arrow_type(ty) == crate::row::arrow_type(wanted);
    is_same.then_some(Template::Compare { field, op, ty, param, with_time: false })
}

/// Position of a parameter, and the type it is compared as.
pub(in crate::df) fn place(placeholder: &Placeholder) -> Option<(usize, ColumnType)> {
    Some((number(placeholder)?, column_type_of(placeholder.field.as_ref()?)?))
}

/// Position of a parameter, from 0.
pub(in crate::df) fn number(placeholder: &Placeholder) -> Option<usize> {
    parameter_place(&placeholder.id)
}

/// The value converted to this type without loss.
fn suited(value: &Value, ty: ColumnType) -> Option<Value> {
    suited_or_same(value, ty).map(Cow::into_owned)
}

/// [`suited`], without a copy if the value has the type already.
pub(in crate::df) fn suited_or_same(value: &Value, ty: ColumnType) -> Option<Cow<'_, Value>> {
    let is_same = matches!(
        (value, ty),
        (Value::Null, _)
            | (Value::Int(_), ColumnType::BigInt)
            | (Value::Timestamp(_), ColumnType::Timestamp)
            | (Value::TimestampTz(_), ColumnType::TimestampTz)
            | (Value::Date(_), ColumnType::Date)
            | (Value::Uuid(_), ColumnType::Uuid)
    );
    if is_same { Some(Cow::Borrowed(value)) } else { as_other(value, ty).map(Cow::Owned) }
}

fn as_other(value: &Value, ty: ColumnType) -> Option<Value> {
    match (value, ty) {
        (Value::Decimal(d, scale), ColumnType::Double) => Some(Value::Double(decimal_to_double(*d, *scale))),
        // A date is its midnight in every comparison with a time.
        (Value::Date(_), ColumnType::Timestamp | ColumnType::TimestampTz) => value.clone().cast(ty).ok(),
        // Whether it counts as bytes depends on the other side of the comparison.
        (Value::Text(text), ColumnType::Varbinary) if !is_hex(text) => None,
        // Whether it counts as a time depends on the others, too.
        (Value::Text(text), ColumnType::Date) if has_time_of_day(text) => None,
        (Value::Text(text), ty) if !ty.is_text() => {
            exact(ty, &crate::df::expressions::text::read(text, ty).ok()?)
        }
        _ => exact(ty, value),
    }
}

/// The text is a time that is no midnight.
fn has_time_of_day(text: &str) -> bool {
    // A date has ten characters at most.
    text.len() > 10
        && matches!(Value::parse(text, ColumnType::Timestamp), Ok(Value::Timestamp(us)) if us % US_PER_DAY != 0)
}

/// The expression with its parameters replaced by their values.
fn with_params(expr: &Expr, params: &[Value]) -> Option<Expr> {
    let mut suits = true;
    let replaced = expr.clone().rewrite_up(|e| {
        let Expr::Placeholder(placeholder) = &e else { return Ok(Transformed::no(e)) };
        let literal = param(placeholder, params);
        suits &= literal.is_some();
        Ok(changed(literal, e))
    });
    replaced.ok().filter(|_| suits).map(|e| e.data)
}

/// Evaluates the parts of an expression that need no row: `$1 - INTERVAL '1 day'`. `None` if that fails: then the
/// planner reports the error.
fn computed(expr: Expr) -> Option<Expr> {
    let computed = expr.rewrite_down(|e| {
        let is_settled =
            matches!(e, Expr::Literal(..) | Expr::Column(_)) || e.any_column_refs() || e.is_volatile();
        if is_settled {
            return Ok(Transformed::no(e));
        }
        let physical = create_physical_expr(
            &e,
            &DFSchema::empty(),
            &ExecutionProps::new(),
            &PhysicalPlanningContext::default(),
        )?;
        let one_row = renamed(Vec::new(), 1, &Arc::new(Schema::empty())).map_err(to_df)?;
        let value = match physical.evaluate(&one_row)? {
            ColumnarValue::Scalar(value) => value,
            ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0)?,
        };
        Ok(Transformed::yes(Expr::Literal(value, None)))
    });
    computed.ok().map(|computed| computed.data)
}

fn param(placeholder: &Placeholder, params: &[Value]) -> Option<Expr> {
    let (at, ty) = place(placeholder)?;
    let value = value_of(at, ty, placeholder.field.as_ref()?.data_type(), params)?;
    Some(Expr::Literal(value, None))
}

/// The value of the parameter at this position, compared as `ty`, which DataFusion calls `data_type`.
pub(in crate::df) fn value_of(
    at: usize,
    ty: ColumnType,
    data_type: &DataType,
    params: &[Value],
) -> Option<ScalarValue> {
    let scalar = crate::df::expr::scalar_of(&suited(params.get(at)?, ty)?).ok()?;
    scalar.cast_to(data_type).ok()
}
