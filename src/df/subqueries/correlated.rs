//! Decorrelates subqueries that DataFusion cannot.
//!
//! DataFusion 55.2 turns the simple ones into joins: EXISTS and IN in a WHERE, and totals of the rows where a column
//! equals an expression of the outer row, in a WHERE or a SELECT list. [`Correlated`] leaves those alone and does the
//! others, node by node, innermost first: it expands IN, ANY and ALL ([`membership`](super::membership)), counts the
//! rows of an EXISTS that cannot become a join ([`exists`](super::exists)), and joins the values of all other
//! subqueries to the outer rows ([`Domain`]).

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Spans};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DfResult;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Distinct, DistinctOn, Expr, ExprSchemable, Filter, Join, JoinType, LogicalPlan,
    LogicalPlanBuilder, Operator, SortExpr, Subquery, SubqueryAlias, lit,
};
use datafusion::optimizer::analyzer::AnalyzerRule;

use super::domain::{Domain, fixed};
use super::exists::counted;
use super::first_found::FirstRowsFound;
use super::first_rows::first_rows;
use super::membership::{in_one_set, is_joined_well, spell_out};
use super::or_null::as_written;
use super::own_names::own_names;
use super::totals_found::TotalsFound;
use crate::df::rewrite::{rename_kept, widens};
use crate::df::tree::{RewritePlan, RewriteTree, changed};
use crate::df::with_queries::{draws, shared_rows};

/// The rule. Runs after type coercion.
#[derive(Debug)]
pub struct Correlated;

impl AnalyzerRule for Correlated {
    fn name(&self) -> &str {
        "correlated"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DfResult<LogicalPlan> {
        let names = UniqueNames::default();
        let plan = plan.rewrite_down_with_subqueries(filter_before_lateral)?.data;
        let plan = plan.rewrite_down_with_subqueries(first_rows)?.data;
        let plan = plan.rewrite_down_with_subqueries(without_doubt)?.data;
        let mut has_changed = false;
        let plan = plan.rewrite_up_with_subqueries(|plan| {
            // Values that a join below adds are nullable, which the next subquery has to know.
            let plan = if has_changed { plan.recompute_schema()? } else { plan };
            let settled = settled(plan, &names)?;
            has_changed |= settled.transformed;
            Ok(settled)
        })?;
        if !has_changed {
            return Ok(plan.data);
        }
        plan.data.rewrite_up_with_subqueries(|plan| plan.recompute_schema().map(Transformed::yes)).data()
    }
}

/// Unique names within a plan, for columns that joins add.
#[derive(Debug, Default)]
pub struct UniqueNames(Cell<usize>);

impl UniqueNames {
    /// The next name.
    pub fn next(&self, what: &str) -> String {
        self.0.set(self.0.get() + 1);
        format!("__{what}_{}", self.0.get())
    }
}

/// Rewrites a node so that DataFusion can do its subqueries.
pub fn settled(plan: LogicalPlan, names: &UniqueNames) -> DfResult<Transformed<LogicalPlan>> {
    if let LogicalPlan::Join(join) = &plan {
        let joined = lateral(join, names)?;
        return Ok(joined.map_or(Transformed::no(plan), Transformed::yes));
    }
    let [input] = plan.inputs()[..] else { return Ok(Transformed::no(plan)) };
    if matches!(plan, LogicalPlan::Subquery(_)) || !plan.expressions().iter().any(has_subquery) {
        return Ok(Transformed::no(plan));
    }
    let (mut input, kept) = (input.clone(), NamePreserver::new(&plan));
    let plan = match plan {
        LogicalPlan::Distinct(Distinct::On(distinct)) => return first_of_computed(distinct, names),
        LogicalPlan::Filter(filter) => {
            let terms = split_conjunction_owned(filter.predicate).into_iter();
            let (plain, terms): (Vec<Expr>, Vec<Expr>) = terms.partition(is_plain);
            // Drop unwanted rows before subqueries are evaluated for them.
            if let Some(plain) = conjunction(plain) {
                input = LogicalPlanBuilder::from(input).filter(plain)?.build()?;
            }
            let mut simple = Vec::with_capacity(terms.len());
            for term in terms {
                let term = in_one_set(term, input.schema())?;
                if is_joined_well(&term) {
                    simple.push(term);
                    continue;
                }
                for term in split_conjunction_owned(spell_out(term, input.schema(), true, names)?) {
                    simple.push(simpler_term(term, &input, names)?);
                }
            }
            let Some(predicate) = conjunction(simple) else { return Ok(Transformed::yes(input)) };
            LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input.clone()))?)
        }
        plan => plan
            .rewrite_own_expressions(|expr| {
                rename_kept(expr, &kept, &mut |expr| {
                    expr.rewrite_up(|expr| simpler(expr, &input, names, &|_| false))
                })
            })?
            .data
            .recompute_schema()?,
    };
    with_values(plan, input, names).map(Transformed::yes)
}

/// DISTINCT ON with subqueries: they are computed as columns below, as the operator itself supports none.
fn first_of_computed(distinct: DistinctOn, names: &UniqueNames) -> DfResult<Transformed<LogicalPlan>> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, .. } = distinct;
    let mut below: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut computed: Vec<(Expr, Expr)> = Vec::new();
    let mut column_of = |expr: Expr| {
        if !has_subquery(&expr) {
            return expr;
        }
        let output = expr.schema_name().to_string();
        let value = expr.unalias();
        let known = computed.iter().find(|(known, _)| *known == value).map(|(_, column)| column.clone());
        let column = known.unwrap_or_else(|| {
            let name = names.next("value");
            below.push(value.clone().alias(&name));
            computed.push((value, Expr::Column(Column::from_name(&name))));
            Expr::Column(Column::from_name(name))
        });
        column.alias(output)
    };
    let on_expr = on_expr.into_iter().map(|expr| column_of(expr).unalias()).collect();
    let select_expr = select_expr.into_iter().map(&mut column_of).collect();
    let sort_expr = sort_expr.map(|sort| {
        sort.into_iter().map(|by| SortExpr { expr: column_of(by.expr).unalias(), ..by }).collect()
    });
    let rows = LogicalPlanBuilder::from(input).project(below)?.build()?;
    let rows = Arc::new(settled(rows, names)?.data);
    let distinct = DistinctOn::try_new(on_expr, select_expr, sort_expr, rows)?;
    Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::On(distinct))))
}

/// [`simpler`] for a term of a WHERE.
fn simpler_term(term: Expr, input: &LogicalPlan, names: &UniqueNames) -> DfResult<Expr> {
    let inner = if let Expr::Not(inner) = &term { inner } else { &term };
    let is_whole = matches!(inner, Expr::Exists(_));
    // Where it is not the whole term, DataFusion's join marks the rows that find some, for which it reads all that there
    // is to find. A value of each row takes less, if it has a key.
    let joins = |plan: &LogicalPlan| pulls_up(plan, false) && (is_whole || !pulls_up(plan, true));
    term.rewrite_up(|expr| simpler(expr, input, names, &joins)).data()
}

/// Rewrites IN, ANY, ALL and EXISTS into what DataFusion supports, or into a value. `joins`: an EXISTS of this plan
/// becomes a join.
fn simpler(
    expr: Expr,
    input: &LogicalPlan,
    names: &UniqueNames,
    joins: &dyn Fn(&LogicalPlan) -> bool,
) -> DfResult<Transformed<Expr>> {
    let expr = match expr {
        Expr::InSubquery(_) | Expr::SetComparison(_) => spell_out(expr, input.schema(), false, names)?,
        expr => expr,
    };
    expr.rewrite_up(|expr| match expr {
        Expr::Exists(Exists { subquery, negated }) => {
            let is_joined = |plan: &LogicalPlan| is_within(plan, input.schema()) && joins(plan);
            let expr = counted(subquery, negated, &is_joined)?;
            Ok(Transformed::yes(expr))
        }
        expr => Ok(Transformed::no(expr)),
    })
}

/// Joins the values of subqueries to the input rows of a node, where DataFusion would not.
fn with_values(plan: LogicalPlan, input: LogicalPlan, names: &UniqueNames) -> DfResult<LogicalPlan> {
    let is_joined = |subquery: &Subquery| {
        matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Projection(_))
            && is_within(&subquery.subquery, input.schema())
            && is_pulled_up_total(&subquery.subquery)
            && !draws(&subquery.subquery)
    };
    let exprs = plan.expressions();
    let queries = queries_in(&exprs);
    // Columns of the input that are of no use once this subquery has its value, too.
    let unused = |now: &Subquery, found: &[(Subquery, Expr)]| {
        if !matches!(plan, LogicalPlan::Projection(_)) {
            return None;
        }
        let is_open = |query: &&&Subquery| **query != now && !found.iter().any(|(known, _)| known == **query);
        let open = queries.iter().filter(is_open).flat_map(|query| taken_by(&query.subquery, &input));
        let used = exprs.iter().flat_map(Expr::column_refs).cloned();
        let used: HashSet<Column> = used.chain(open.map(|(_, column)| column)).collect();
        Some(input.schema().columns().into_iter().filter(|column| !used.contains(column)).collect())
    };
    let (rows, number) = prepared(&queries, &input, &|query| unused(query, &[]), &is_joined, names)?;
    let (mut joined, mut found) = (rows.clone(), Vec::<(Subquery, Expr)>::new());
    let mut is_changed = false;
    let mut replaced = |expr: Expr| {
        expr.rewrite_up(|expr| {
            if let Expr::Exists(Exists { subquery, negated }) = &expr
                && let Some(apart) = own_names(&subquery.subquery, names)?
            {
                is_changed = true;
                let (subquery, negated) = (subquery_of(apart), *negated);
                return Ok(Transformed::yes(Expr::Exists(Exists { subquery, negated })));
            }
            let Expr::ScalarSubquery(subquery) = &expr else { return Ok(Transformed::no(expr)) };
            let taken = taken_by(&subquery.subquery, &input);
            // What it named is the left side of a LATERAL inside.
            if !subquery.outer_ref_columns.is_empty() && outer_columns(&subquery.subquery).is_empty() {
                is_changed = true;
                let plan = LogicalPlan::clone(&subquery.subquery);
                return Ok(Transformed::yes(Expr::ScalarSubquery(subquery_of(plan))));
            }
            // DataFusion 55.2 sorts by a value but fails to see that a window is sorted by the same.
            let is_column = taken.is_empty() && matches!(plan, LogicalPlan::Window(_));
            if taken.is_empty() && !is_column {
                return Ok(Transformed::no(expr));
            }
            if is_joined(subquery) {
                let apart = own_names(&subquery.subquery, names)?;
                is_changed |= apart.is_some();
                return Ok(changed(apart.map(|apart| Expr::ScalarSubquery(subquery_of(apart))), expr));
            }
            let number = number.clone().filter(|_| draws(&subquery.subquery));
            if number.is_none()
                && let Some((_, value)) = found.iter().find(|(known, _)| known == subquery)
            {
                return Ok(Transformed::yes(value.clone()));
            }
            let query = &*as_written(&subquery.subquery)?;
            let found_along_key = match is_column || number.is_some() {
                true => None,
                false => value_of_found(query, &joined, unused(subquery, &found), names)?,
            };
            let (with_value, value) = match found_along_key {
                Some(found) => found,
                None if is_column => with_column(joined.clone(), expr.clone(), names.next("value"))?,
                None => Domain::of(query, &rows, taken.into_iter().chain(number).collect(), names)?
                    .value_of(query, joined.clone())?,
            };
            joined = with_value;
            found.push((subquery.clone(), value.clone()));
            Ok(Transformed::yes(value))
        })
    };
    let kept = NamePreserver::new(&plan);
    let exprs = exprs.iter().map(|expr| rename_kept(expr.clone(), &kept, &mut replaced).data());
    let exprs: Vec<Expr> = exprs.collect::<DfResult<_>>()?;
    if found.is_empty() && !is_changed {
        return Ok(plan);
    }
    let columns = plan.schema().columns();
    let plan = plan.with_new_exprs(exprs, vec![joined])?;
    if plan.schema().columns() == columns {
        return Ok(plan);
    }
    LogicalPlanBuilder::from(plan).project(columns.into_iter().map(Expr::Column))?.build()
}

/// The scalar subqueries of these expressions.
fn queries_in(exprs: &[Expr]) -> Vec<&Subquery> {
    let mut queries = Vec::new();
    for expr in exprs {
        // The closure never fails.
        let _ = expr.apply(|expr| {
            queries.extend(if let Expr::ScalarSubquery(query) = expr { Some(query) } else { None });
            Ok(TreeNodeRecursion::Continue)
        });
    }
    queries
}

/// Columns of `rows` that a subquery beside them uses.
fn taken_by(subquery: &LogicalPlan, rows: &LogicalPlan) -> Vec<(FieldRef, Column)> {
    let mut taken = outer_columns(subquery);
    taken.retain(|(_, column)| rows.schema().has_column(column));
    taken
}

/// The rows that the values of subqueries in these expressions are joined to. They are computed once, if one of them
/// reads them again; and numbered, if one of them draws numbers for each row.
fn prepared(
    queries: &[&Subquery],
    rows: &LogicalPlan,
    unused: &dyn Fn(&Subquery) -> Option<Vec<Column>>,
    is_joined: &dyn Fn(&Subquery) -> bool,
    names: &UniqueNames,
) -> DfResult<(LogicalPlan, Option<(FieldRef, Column)>)> {
    let (mut are_read_again, mut are_drawn_for) = (false, false);
    let tried = UniqueNames::default();
    for subquery in queries {
        let (query, taken) = (&*as_written(&subquery.subquery)?, taken_by(&subquery.subquery, rows));
        if !taken.is_empty() && !is_joined(subquery) {
            are_drawn_for |= draws(query);
            are_read_again |= Domain::told(query, &taken, &tried).is_none()
                && value_of_found(query, rows, unused(subquery), &tried)?.is_none();
        }
    }
    match (are_drawn_for, are_read_again) {
        (true, _) => numbered(rows.clone(), names),
        (false, true) => Ok((fixed(rows.clone(), names)?, None)),
        (false, false) => Ok((rows.clone(), None)),
    }
}

/// The rows with a number that tells them apart, unless they belong to a row of a further query around.
fn numbered(rows: LogicalPlan, names: &UniqueNames) -> DfResult<(LogicalPlan, Option<(FieldRef, Column)>)> {
    if !outer_columns(&rows).is_empty() {
        return Ok((rows, None));
    }
    let name = names.next("number");
    let rows = LogicalPlanBuilder::from(rows).window([row_number().alias(&name)])?.build()?;
    let column = Column::from_name(name);
    let field = Arc::clone(rows.schema().field_from_column(&column)?);
    Ok((shared_rows(rows, names.next("rows")), Some((field, column))))
}

/// Joins rows to the value of the first row that each finds along a key, or of totals of all that it finds. With
/// totals, the `unused` columns of the rows do not come out; `None`: this is not known.
fn value_of_found(
    subquery: &LogicalPlan,
    rows: &LogicalPlan,
    unused: Option<Vec<Column>>,
    names: &UniqueNames,
) -> DfResult<Option<(LogicalPlan, Expr)>> {
    if let Some(first) = FirstRowsFound::of(subquery)?.filter(FirstRowsFound::is_one) {
        let Some((rows, found)) = first.beside(rows, JoinType::Left, names)? else { return Ok(None) };
        return Ok(found.into_iter().next().map(|value| (rows, Expr::Column(value))));
    }
    let Some(unused) = unused else { return Ok(None) };
    TotalsFound::of(subquery)?.map_or(Ok(None), |totals| totals.beside(rows, &unused, names))
}

/// Adds a value to the rows as a column, and returns that column.
fn with_column(rows: LogicalPlan, value: Expr, name: String) -> DfResult<(LogicalPlan, Expr)> {
    let column = Expr::Column(Column::from_name(&name));
    let columns = rows.schema().columns().into_iter().map(Expr::Column).chain([value.alias(name)]);
    let columns: Vec<Expr> = columns.collect();
    Ok((LogicalPlanBuilder::from(rows).project(columns)?.build()?, column))
}

/// Columns of the left side that the LATERAL of a join uses.
fn taken_beside(join: &Join) -> Vec<(FieldRef, Column)> {
    let mut taken = taken_by_laterals(&join.right);
    taken.retain(|(_, column)| join.left.schema().has_column(column));
    taken
}

/// Columns that the LATERALs of a FROM take from around it. What a subquery without the word takes is none of its
/// neighbours', whatever their names are.
fn taken_by_laterals(plan: &LogicalPlan) -> Vec<(FieldRef, Column)> {
    match plan {
        LogicalPlan::Subquery(subquery) => outer_columns(&subquery.subquery),
        plan => plan.inputs().into_iter().flat_map(taken_by_laterals).collect(),
    }
}

/// Rewrites a join with a LATERAL that DataFusion would get wrong; `None` for others.
fn lateral(join: &Join, names: &UniqueNames) -> DfResult<Option<LogicalPlan>> {
    let mut taken = taken_beside(join);
    if taken.is_empty() {
        return plain_join(join);
    }
    if matches!(join.join_type, JoinType::Inner | JoinType::Left)
        && let Some(made) = Domain::of_each_row(join, names)?
    {
        return Ok(Some(made));
    }
    let is_drawn = draws(&join.right);
    let is_joined = || !is_drawn && pulls_up(&join.right, false);
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left) || is_joined() {
        return Ok(None);
    }
    if !is_drawn
        && join.on.is_empty()
        && join.filter.as_ref().is_none_or(|on| *on == lit(true))
        && let Some(first) = FirstRowsFound::of(&join.right)?
        && let Some((rows, found)) = first.beside(&join.left, join.join_type, names)?
    {
        let of_left = join.left.schema().columns().into_iter().map(Expr::Column);
        let of_right = found.into_iter().map(Expr::Column).zip(join.right.schema().columns());
        let of_right = of_right.map(|(value, column)| value.alias_qualified(column.relation, column.name));
        return LogicalPlanBuilder::from(rows).project(of_left.chain(of_right))?.build().map(Some);
    }
    if let Some(domain) = Domain::told(&join.right, &taken, names).filter(|_| !is_drawn) {
        return domain.beside(join).map(Some);
    }
    let left = LogicalPlan::clone(&join.left);
    let (left, number) = if is_drawn { numbered(left, names)? } else { (fixed(left, names)?, None) };
    taken.extend(number);
    let join = Join { left: Arc::new(left), ..join.clone() };
    Domain::distinct(&join.left, taken, names)?.beside(&join).map(Some)
}

/// A LATERAL that uses nothing of the left side as the table that it is: DataFusion 55.2 takes the outer columns of one
/// inside it for its own.
fn plain_join(join: &Join) -> DfResult<Option<LogicalPlan>> {
    let right = match &*join.right {
        LogicalPlan::Subquery(subquery) => Arc::clone(&subquery.subquery),
        LogicalPlan::SubqueryAlias(alias) => {
            let LogicalPlan::Subquery(subquery) = &*alias.input else { return Ok(None) };
            let input = Arc::clone(&subquery.subquery);
            Arc::new(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(input, alias.alias.clone())?))
        }
        _ => return Ok(None),
    };
    Ok(Some(LogicalPlan::Join(Join { right, ..join.clone() })))
}

/// Moves conditions on the rows beside a LATERAL below the join.
fn filter_before_lateral(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(Filter { predicate, input, .. }) = &plan else {
        return Ok(Transformed::no(plan));
    };
    let LogicalPlan::Join(join) = &**input else { return Ok(Transformed::no(plan)) };
    if taken_beside(join).is_empty() || !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
        return Ok(Transformed::no(plan));
    }
    let is_beside = |term: &Expr| {
        is_plain(term) && term.column_refs().iter().all(|column| join.left.schema().has_column(column))
    };
    let terms = split_conjunction_owned(predicate.clone()).into_iter();
    let (beside, rest): (Vec<Expr>, Vec<Expr>) = terms.partition(is_beside);
    let Some(beside) = conjunction(beside) else { return Ok(Transformed::no(plan)) };
    let left = Arc::new(LogicalPlan::Filter(Filter::try_new(beside, Arc::clone(&join.left))?));
    let joined = LogicalPlan::Join(Join { left, ..join.clone() });
    Ok(Transformed::yes(match conjunction(rest) {
        Some(rest) => LogicalPlan::Filter(Filter::try_new(rest, Arc::new(joined))?),
        None => joined,
    }))
}

/// `(a = b) IS NOT FALSE` as `a = b` where neither is NULL, as `(a, b) NOT IN (SELECT ..)` has it: only equal columns
/// become a join.
fn without_doubt(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(Filter { predicate, input, .. }) = &plan else {
        return Ok(Transformed::no(plan));
    };
    if !predicate.exists(|expr| Ok(matches!(expr, Expr::IsNotFalse(_))))? {
        return Ok(Transformed::no(plan));
    }
    let sure = predicate.clone().rewrite_up(|expr| match expr {
        Expr::IsNotFalse(inner) if !inner.nullable(input.schema())? => Ok(Transformed::yes(*inner)),
        expr => Ok(Transformed::no(expr)),
    })?;
    sure.map_data(|sure| Ok(LogicalPlan::Filter(Filter::try_new(sure, Arc::clone(input))?)))
}

/// The condition depends on the row only, and is deterministic.
fn is_plain(term: &Expr) -> bool {
    !has_subquery(term) && !term.is_volatile() && !term.contains_outer()
}

/// A subquery expression of this plan.
pub fn subquery_of(plan: LogicalPlan) -> Subquery {
    let outer =
        outer_columns(&plan).into_iter().map(|(field, column)| Expr::OuterReferenceColumn(field, column));
    Subquery { outer_ref_columns: outer.collect(), subquery: Arc::new(plan), spans: Spans::new() }
}

/// The subquery inside a subquery expression.
pub fn subquery_in(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. })
        | Expr::ScalarSubquery(subquery) => Some(subquery),
        _ => None,
    }
}

/// The same, to be replaced.
pub fn subquery_mut(expr: &mut Expr) -> Option<&mut Subquery> {
    match expr {
        Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. })
        | Expr::ScalarSubquery(subquery) => Some(subquery),
        _ => None,
    }
}

/// The expression contains a subquery.
pub fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|e| Ok(subquery_in(e).is_some())).unwrap_or(true)
}

/// The distinct outer columns that a plan uses.
pub fn outer_columns(plan: &LogicalPlan) -> Vec<(FieldRef, Column)> {
    let mut found = Vec::new();
    let mut see = |column: (FieldRef, Column)| {
        if !found.contains(&column) {
            found.push(column);
        }
    };
    let inputs = plan.inputs();
    for expr in plan.expressions() {
        of_expr(&expr, &inputs).into_iter().for_each(&mut see);
    }
    for (n, input) in inputs.iter().enumerate() {
        let mut taken = outer_columns(input);
        if n > 0 && !taken.is_empty() {
            // The left side of a LATERAL is inside the plan.
            let beside = taken_by_laterals(input);
            taken.retain(|taken| !(beside.contains(taken) && inputs[0].schema().has_column(&taken.1)));
        }
        taken.into_iter().for_each(&mut see);
    }
    found
}

/// The outer columns that an expression of a node uses.
fn of_expr(expr: &Expr, inputs: &[&LogicalPlan]) -> Vec<(FieldRef, Column)> {
    let mut found = Vec::new();
    // The closure never fails.
    let _ = expr.apply(|expr| {
        if let Expr::OuterReferenceColumn(field, column) = expr {
            found.push((Arc::clone(field), column.clone()));
        } else if let Some(subquery) = subquery_in(expr) {
            let is_near = |column: &Column| inputs.iter().any(|input| input.schema().has_column(column));
            found.extend(outer_columns(&subquery.subquery).into_iter().filter(|(_, c)| !is_near(c)));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// All outer columns of a subquery are in this schema.
fn is_within(plan: &LogicalPlan, schema: &DFSchema) -> bool {
    outer_columns(plan).iter().all(|(_, column)| schema.has_column(column))
}

/// The plan is an aggregate that DataFusion can decorrelate by grouping.
pub fn is_pulled_up_total(plan: &LogicalPlan) -> bool {
    match plan {
        // Not below an alias, where it loses the column that tells whether there are rows.
        LogicalPlan::Projection(_) => !takes(plan) && is_pulled_up_total(plan.inputs()[0]),
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.is_empty() && !takes(plan) && pulls_up(&aggregate.input, true)
        }
        _ => false,
    }
}

/// DataFusion can move all correlated conditions of the plan's WHERE into a join. Below an aggregate, these must be
/// equalities of a column.
fn pulls_up(plan: &LogicalPlan, under_totals: bool) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => {
            let terms = split_conjunction(&filter.predicate).into_iter();
            let mut terms = terms.filter(|term| takes_outer(term, &filter.input)).peekable();
            // Of conditions in two filters, one above the other, it loses columns.
            let has_terms = terms.peek().is_some();
            let schema = filter.input.schema();
            terms.all(|term| !has_subquery(term) && (!under_totals || is_key(term, schema)))
                && pulls_up(&filter.input, under_totals)
                && (!has_terms || outer_columns(&filter.input).is_empty())
        }
        LogicalPlan::Projection(_) | LogicalPlan::Subquery(_) => {
            !takes(plan) && pulls_up(plan.inputs()[0], under_totals)
        }
        // Not below an alias, which renames columns.
        plan => outer_columns(plan).is_empty(),
    }
}

/// An expression over `input` uses outer columns.
pub fn takes_outer(expr: &Expr, input: &LogicalPlan) -> bool {
    !of_expr(expr, &[input]).is_empty()
}

/// The node itself uses outer columns.
pub fn takes(plan: &LogicalPlan) -> bool {
    let inputs = plan.inputs();
    plan.expressions().iter().any(|expr| !of_expr(expr, &inputs).is_empty())
}

/// `column = expression of the outer row`. DataFusion groups by the column, though it joins by what that is cast to: an
/// outer row must equal one value of it at most.
fn is_key(term: &Expr, schema: &DFSchema) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = term else { return false };
    let is_column = |side: &Expr, other: &Expr| {
        let column = match side {
            Expr::Cast(Cast { expr, .. }) => expr,
            side => side,
        };
        let types = [column, side, other].map(|expr| expr.get_type(schema));
        let [Ok(of_column), Ok(of_side), Ok(of_other)] = types else { return false };
        let are_apart = |from: &DataType, to: &DataType| from == to || stay_apart(from, to);
        matches!(column, Expr::Column(_))
            && !other.any_column_refs()
            && are_apart(&of_column, &of_side)
            && (are_apart(&of_side, &of_other) || stay_apart(&of_other, &of_side))
    };
    is_column(left, right) || is_column(right, left)
}

/// Different values of the first type are different ones of the second.
fn stay_apart(from: &DataType, to: &DataType) -> bool {
    let digits = match from {
        DataType::Int16 => 5,
        DataType::Int32 => 10,
        DataType::Int64 => 19,
        _ => 0,
    };
    match to {
        DataType::Float64 => (1..=10).contains(&digits),
        DataType::Decimal128(all, behind) => digits > 0 && i16::from(*all) - i16::from(*behind) >= digits,
        DataType::Timestamp(TimeUnit::Microsecond, _) => *from == DataType::Date32,
        to => widens(from, to),
    }
}
