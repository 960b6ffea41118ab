//! Scalar subqueries whose values are computed first, and are parameters of the rest then.
//!
//! `SELECT .. FROM event WHERE id = (SELECT max(id) FROM event)` is the two queries `SELECT max(id) FROM event` and `..
//! WHERE id = $1`. Each finds its rows like a prepared statement, and runs without operators if it can; in one plan, an
//! operator waits for the other.
//!
//! That is done where a WHERE or HAVING compares a value with one of the same kind, by an operator or IN, which a subquery
//! gives whatever the rows around it are. It is another form of a plan, tried first: a run in which a subquery gives NULL
//! or several rows, or reads much, takes the plan as a whole.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::ExprSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{InSubquery, Placeholder};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, Operator, Subquery};

use super::plan::{BoundPlan, UnboundPlan};
use crate::access::Guards;
use crate::df::expr::comparison;
use crate::df::subqueries::correlated::outer_columns;
use crate::df::subqueries::of_no_table::is_total;
use crate::df::table::Binding;
use crate::df::tree::RewriteTree;
use crate::df::with_queries::{draws, reads_shared};
use crate::error::Result;

/// The plans of subqueries, and the plan in which their values are the parameters behind those of the statement.
#[derive(Debug)]
pub struct ValuesFirst {
    pub subqueries: Vec<UnboundPlan>,
    pub rest: UnboundPlan,
}

impl ValuesFirst {
    /// A run of the rest; `None` as for [`UnboundPlan::bind`], or if some value is not to be had like this.
    pub fn bind(&self, binding: &Binding) -> Result<Option<BoundPlan>> {
        // Limits on reads are those of the statement.
        if binding.guards != Guards::default() {
            return Ok(None);
        }
        let mut params = binding.params.to_vec();
        for subquery in &self.subqueries {
            let Some(value) = subquery.value(binding)? else { return Ok(None) };
            params.push(value);
        }
        self.rest.bind(&Binding { params: params.into(), ..binding.clone() })
    }
}

/// The plan with parameters behind the first `params` instead of some subqueries, and these.
pub fn taken_out(plan: LogicalPlan, params: usize) -> DfResult<(LogicalPlan, Vec<LogicalPlan>)> {
    let mut taken = Vec::new();
    let rest = plan.rewrite_up(|node| {
        let LogicalPlan::Filter(Filter { predicate, input, .. }) = &node else {
            return Ok(Transformed::no(node));
        };
        let before = taken.len();
        let terms = split_conjunction_owned(predicate.clone()).into_iter();
        let terms = terms.map(|term| without_subquery(term, input.schema(), params, &mut taken));
        let predicate = conjunction(terms);
        match predicate.filter(|_| taken.len() > before) {
            Some(predicate) => {
                let filter = Filter::try_new(predicate, Arc::clone(input))?;
                Ok(Transformed::yes(LogicalPlan::Filter(filter)))
            }
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok((rest.data, taken))
}

/// The comparison with a parameter instead of a subquery, which is `taken`.
fn without_subquery(term: Expr, rows: &dyn ExprSchema, params: usize, taken: &mut Vec<LogicalPlan>) -> Expr {
    let term = match term {
        Expr::InSubquery(InSubquery { expr, subquery, negated: false }) if is_total(&subquery.subquery) => {
            let right = Box::new(Expr::ScalarSubquery(subquery));
            Expr::BinaryExpr(BinaryExpr { left: expr, op: Operator::Eq, right })
        }
        term => term,
    };
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = term else { return term };
    if comparison(op).is_none() {
        return Expr::BinaryExpr(BinaryExpr { left, op, right });
    }
    let mut side = |side: Box<Expr>, other: &Expr| {
        let Expr::ScalarSubquery(subquery) = &*side else { return side };
        let Some(ty) = other.get_type(rows).ok().filter(|ty| gives_value(subquery, ty)) else { return side };
        taken.push(LogicalPlan::clone(&subquery.subquery));
        let id = format!("${}", params + taken.len());
        let field = Some(Arc::new(Field::new(&id, ty, true)));
        Box::new(Expr::Placeholder(Placeholder::new_with_field(id, field)))
    };
    let left = side(left, &right);
    let right = side(right, &left);
    Expr::BinaryExpr(BinaryExpr { left, op, right })
}

/// The subquery has one value in each run, of the same kind as this type.
fn gives_value(subquery: &Subquery, ty: &DataType) -> bool {
    let plan = &*subquery.subquery;
    let is_exact = |ty: &DataType| ty.is_signed_integer() || matches!(ty, DataType::Decimal128(..));
    let is_of_kind = |given: &DataType| given == ty || is_exact(given) && is_exact(ty);
    let fields = plan.schema().fields();
    matches!(&fields[..], [field] if is_of_kind(field.data_type()))
        && outer_columns(plan).is_empty()
        && !draws(plan)
        && !reads_shared(plan)
}
