//! A filter whose parameters get their values when the plan runs.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{BinaryExpr, ColumnarValue, Expr};
use datafusion::physical_expr::create_physical_expr;

use super::plan::renamed;
use crate::df::errors::to_df;
use crate::df::expr::{FieldNames, comparison, exact, flipped, predicate};
use crate::df::table::Binding;
use crate::df::tree::RewriteTree;
use crate::plan::{CmpOp, Field, LikePattern, PLAIN_ESCAPE, Predicate};
use crate::row::column_type_of;
use crate::schema::Ttl;
use crate::value::{ColumnType, Value, decimal_to_double};

/// A filter in our own algebra, but for the values of its parameters.
#[derive(Clone, Debug)]
pub enum Template {
    /// It has no parameters.
    Known(Predicate),
    /// A column compared with a parameter, which is at this place among them.
    Compare { field: Field, op: CmpOp, ty: ColumnType, param: usize },
    /// A column that looks like the pattern at this place among the parameters.
    Like { field: Field, param: usize, case_insensitive: bool },
    /// All of these.
    All(Vec<Template>),
    /// One of these at least.
    Any(Vec<Template>),
    /// The opposite.
    Not(Box<Template>),
    /// The row is still there.
    Alive(Ttl),
    /// Anything else.
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

    /// It asks for nothing but such fields, and all that it asks is known.
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

    /// The filter for these parameters. `None` if one of them has no value that suits, such as `2.5` for an
    /// integer or `'x'` for a date: then the filter is to be planned with the value in it.
    pub fn fill(&self, names: &FieldNames, binding: &Binding) -> Option<Predicate> {
        let params = &*binding.params;
        match self {
            Template::Known(predicate) => Some(predicate.clone()),
            Template::Compare { field, op, ty, param } => {
                let value = suited(params.get(*param)?, *ty)?;
                Some(Predicate::compare(*field, *op, value))
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

/// A column that looks like a pattern without an escape character of its own; `None` if the pattern is none.
pub(in crate::df) fn like(field: Field, pattern: &str, case_insensitive: bool) -> Option<Predicate> {
    let pattern = LikePattern::new(pattern, Some(PLAIN_ESCAPE)).ok()?;
    Some(Predicate::like(field, pattern, case_insensitive))
}

/// Holds a parameter.
pub fn has_params(expr: &Expr) -> bool {
    expr.exists(|e| Ok(matches!(e, Expr::Placeholder(_)))).unwrap_or(true)
}

/// `column = $1`, or the other way round, if both are of one type.
fn compared(filter: &Expr, names: &FieldNames) -> Option<Template> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
    let op = comparison(*op)?;
    match (&**left, &**right) {
        (column, param @ Expr::Placeholder(_)) => compare(column, op, param, names),
        (param, column) => compare(column, flipped(op), param, names),
    }
}

/// `column IN ($1, $2)`, if all are of one type.
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
    is_same.then_some(Template::Compare { field, op, ty, param })
}

/// Where a parameter's value is, and the type it is compared as.
pub(in crate::df) fn place(placeholder: &Placeholder) -> Option<(usize, ColumnType)> {
    Some((number(placeholder)?, column_type_of(placeholder.field.as_ref()?)?))
}

/// Where a parameter's value is, from 0 on.
pub(in crate::df) fn number(placeholder: &Placeholder) -> Option<usize> {
    number_of(&placeholder.id)
}

/// The place in `$1`, from 0 on.
pub(in crate::df) fn number_of(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// The same value as one of this type.
fn suited(value: &Value, ty: ColumnType) -> Option<Value> {
    suited_or_same(value, ty).map(Cow::into_owned)
}

/// [`suited`], without a copy of a value that is one of this type.
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
        // Its midnight: beside a time, a date is that wherever it stands.
        (Value::Date(_), ColumnType::Timestamp | ColumnType::TimestampTz) => value.clone().cast(ty).ok(),
        // Whether it may be bytes depends on what it is compared with.
        (Value::Text(text), ColumnType::Varbinary) if !text.starts_with("\\x") => None,
        (Value::Text(text), ty) if !ty.is_text() => {
            exact(ty, &crate::df::expressions::text::read(text, ty).ok()?)
        }
        _ => exact(ty, value),
    }
}

/// The expression with values for its parameters.
fn with_params(expr: &Expr, params: &[Value]) -> Option<Expr> {
    let mut suits = true;
    let replaced = expr.clone().rewrite_up(|e| {
        let Expr::Placeholder(placeholder) = &e else { return Ok(Transformed::no(e)) };
        let literal = param(placeholder, params);
        suits &= literal.is_some();
        Ok(literal.map_or(Transformed::no(e), Transformed::yes))
    });
    replaced.ok().filter(|_| suits).map(|e| e.data)
}

/// The expression with the value of what needs no row in its place: `$1 - INTERVAL '1 day'`. `None` if that cannot be
/// computed: then the planner will say why.
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

/// The value of the parameter at this place, compared as one of a type, which DataFusion calls `data_type`.
pub(in crate::df) fn value_of(
    at: usize,
    ty: ColumnType,
    data_type: &DataType,
    params: &[Value],
) -> Option<ScalarValue> {
    let scalar = crate::df::query::scalar_of(&suited(params.get(at)?, ty)?).ok()?;
    scalar.cast_to(data_type).ok()
}
