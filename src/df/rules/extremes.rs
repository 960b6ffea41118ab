//! Queries that need few rows of a table: MIN and MAX from one end of a key, one row of each group, one row for each
//! value of a semi join.
//!
//! For `min(x)` without groups, only the row with the smallest x matters. So a top-1 sort by x goes below the
//! aggregate, and a source that gives the order drops the sort and stops at that row. Several such aggregates in one
//! SELECT become separate ones, cross-joined, if each is served this way.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::{Column, JoinType, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment, Sort};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator, Projection,
    SubqueryAlias, TableScan, Window,
};

use crate::access::{Each, OrderBy};
use crate::df::rewrite::{bare, below};
use crate::df::table::TableSource;
use crate::df::tree::{RewritePlan, changed};
use crate::df::wanted::{FirstFound, Wanted, WantedRows};
use crate::plan::Field;

/// Most extremes of one aggregate.
const EXTREMES_MAX: usize = 4;

/// `min(column)` or `max(column)`.
struct Extreme<'p> {
    call: &'p Expr,
    column: &'p Column,
    is_max: bool,
}

/// The same plan with the extremes read from one end.
pub fn from_one_end(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let changed = plan.rewrite_up_with_subqueries(|node| {
        let told = match &node {
            LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => {
                match rewritten(aggregate)? {
                    None => one_of_each_prefix(aggregate)?,
                    rewritten => rewritten,
                }
            }
            LogicalPlan::Aggregate(aggregate) => one_of_each(aggregate)?,
            LogicalPlan::Filter(filter) => first_of_each(filter)?,
            LogicalPlan::Join(join) => any_of_each(join)?,
            _ => None,
        };
        Ok(changed(told, node))
    })?;
    Ok(changed.data)
}

/// The column, if the expression is one, possibly aliased.
fn column_of(expr: &Expr) -> Option<&Column> {
    bare(expr).try_as_col()
}

/// A key of the order in which the row that matters comes first.
#[derive(Clone, Copy)]
struct FirstBy<'p> {
    column: &'p Column,
    descending: bool,
    /// NULLs stand where a key has them, or do not matter.
    nulls_fit: bool,
}

impl<'p> FirstBy<'p> {
    /// The keys of a sort without those by `groups`, which are the same in all rows of a group; `None` if one is not a
    /// column.
    fn of_sort(sorts: &'p [Sort], groups: &[&Column]) -> Option<Vec<FirstBy<'p>>> {
        let by = |sort: &'p Sort| {
            let column = column_of(&sort.expr)?;
            Some(FirstBy { column, descending: !sort.asc, nulls_fit: sort.nulls_first == sort.asc })
        };
        let sorts: Option<Vec<FirstBy<'p>>> = sorts.iter().map(by).collect();
        Some(sorts?.into_iter().filter(|by| !groups.contains(&by.column)).collect())
    }

    /// The order in which an aggregate's row comes first: of an extreme, of FIRST_VALUE or LAST_VALUE.
    fn of_call(call: &'p Expr, groups: &[&Column]) -> Option<Vec<FirstBy<'p>>> {
        if let Some(extreme) = extreme(call) {
            return Some(vec![extreme.first_by()]);
        }
        let Expr::AggregateFunction(AggregateFunction { func, params }) = bare(call) else { return None };
        if params.filter.is_some() || params.null_treatment == Some(NullTreatment::IgnoreNulls) {
            return None;
        }
        let mut order = FirstBy::of_sort(&params.order_by, groups)?;
        match func.name() {
            "first_value" => {}
            "last_value" => order.iter_mut().for_each(|by| by.descending = !by.descending),
            _ => return None,
        }
        Some(order)
    }

    /// The order as the source's; `None` if it has no such order. `columns` are the source's.
    fn order_of(order: &[FirstBy<'_>], source: &TableSource, columns: &[Column]) -> Option<Vec<OrderBy>> {
        let by = |(by, column): (&FirstBy<'_>, &Column)| {
            let (field, nullable) = source.field(&column.name)?;
            (by.nulls_fit || !nullable).then_some(OrderBy { field, descending: by.descending })
        };
        order.iter().zip(columns).map(by).collect()
    }
}

/// For groups whose aggregates all take the same row, if they have any: tells the source that one row of each is enough.
fn one_of_each(aggregate: &Aggregate) -> DfResult<Option<LogicalPlan>> {
    let groups: Option<Vec<&Column>> = aggregate.group_expr.iter().map(column_of).collect();
    let Some(groups) = groups else { return Ok(None) };
    let orders: Option<Vec<Vec<FirstBy<'_>>>> =
        aggregate.aggr_expr.iter().map(|call| FirstBy::of_call(call, &groups)).collect();
    let Some(mut orders) = orders else { return Ok(None) };
    let first = orders.pop().unwrap_or_default();
    let is_first = |order: &Vec<FirstBy<'_>>| {
        let same =
            |(a, b): (&FirstBy<'_>, &FirstBy<'_>)| (a.column, a.descending) == (b.column, b.descending);
        order.len() == first.len() && order.iter().zip(&first).all(same)
    };
    if !orders.iter().all(is_first) {
        return Ok(None);
    }
    let fits = |by: usize| orders.iter().all(|order| order[by].nulls_fit);
    let first: Vec<FirstBy<'_>> = first
        .into_iter()
        .enumerate()
        .map(|(at, by)| FirstBy { nulls_fit: by.nulls_fit && fits(at), ..by })
        .collect();
    let order = |source: &TableSource, columns: &[Column]| FirstBy::order_of(&first, source, columns);
    let columns: Vec<Column> =
        groups.iter().copied().chain(first.iter().map(|by| by.column)).cloned().collect();
    let enough = Enough { groups: groups.len(), order: &order, rows: 1, with_ties: false };
    let Some(input) = enough.of(&aggregate.input, &columns)? else { return Ok(None) };
    let (groups, calls) = (aggregate.group_expr.clone(), aggregate.aggr_expr.clone());
    Ok(Some(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), groups, calls)?)))
}

/// For one extreme without groups, of a column inside a key: tells the source that the first row of each group by the
/// columns in front is enough. The extreme of all is one of theirs.
fn one_of_each_prefix(aggregate: &Aggregate) -> DfResult<Option<LogicalPlan>> {
    let extremes: Option<Vec<Extreme<'_>>> = aggregate.aggr_expr.iter().map(extreme).collect();
    let Some([extreme]) = extremes.as_deref() else { return Ok(None) };
    let told = |scan: &TableScan, source: &TableSource, columns: &[Column]| {
        let [column] = columns else { return None };
        let order = FirstBy::order_of(&[extreme.first_by()], source, columns)?;
        let of = source.in_front_of(&column.name)?;
        Some(told_each(scan, source, Each { of, order, rows: 1, with_ties: false }))
    };
    let Some(input) = change_scan(&aggregate.input, std::slice::from_ref(extreme.column), &told)? else {
        return Ok(None);
    };
    let calls = aggregate.aggr_expr.clone();
    Ok(Some(LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), Vec::new(), calls)?)))
}

/// For a semi or anti join: tells the source that one row for each value is enough.
fn any_of_each(join: &Join) -> DfResult<Option<LogicalPlan>> {
    let asks = matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti) && join.filter.is_none();
    let columns: Option<Vec<Column>> = join.on.iter().map(|(_, right)| column_of(right).cloned()).collect();
    let Some(columns) = columns.filter(|columns| asks && !columns.is_empty()) else { return Ok(None) };
    let told = |scan: &TableScan, source: &TableSource, columns: &[Column]| {
        let of = fields_of(source, columns)?;
        Some(told_each(scan, source, Each { of, order: Vec::new(), rows: 1, with_ties: false }))
    };
    let right = change_scan(&join.right, &columns, &told)?;
    Ok(right.map(|right| LogicalPlan::Join(Join { right: Arc::new(right), ..join.clone() })))
}

/// `row_number() OVER (PARTITION BY p ORDER BY o) <= n`: tells the source that n rows of each p are enough, with `rank()`
/// also those that equal the last; for `row_number()` without p, or if it has one value, only the first n rows are read.
/// The window above stays as it is.
fn first_of_each(filter: &Filter) -> DfResult<Option<LogicalPlan>> {
    let window = match &*filter.input {
        // A projection may drop unused columns.
        LogicalPlan::Projection(projection) => &*projection.input,
        input => input,
    };
    let LogicalPlan::Window(window) = window else { return Ok(None) };
    let ([call], Some(number)) = (&window.window_expr[..], window.schema.columns().last().cloned()) else {
        return Ok(None);
    };
    let Expr::WindowFunction(call) = bare(call) else { return Ok(None) };
    if let LogicalPlan::Projection(projection) = &*filter.input
        && !projection.expr.contains(&Expr::Column(number.clone()))
    {
        return Ok(None);
    }
    let terms = split_conjunction(&filter.predicate);
    let rows = terms.into_iter().filter_map(|term| at_most(term, &number)).min();
    let (Some(rows), name @ ("row_number" | "rank")) = (rows, call.fun.name()) else { return Ok(None) };
    let with_ties = name == "rank";
    let columns: Option<Vec<&Column>> = call.params.partition_by.iter().map(column_of).collect();
    let Some(columns) = columns else { return Ok(None) };
    let input = if !with_ties && is_one_group(&window.input, &columns)? {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        Some(first_rows((*window.input).clone(), call.params.order_by.clone(), rows)?)
    } else {
        first_of_groups(&window.input, columns, &call.params.order_by, (rows, with_ties))?
    };
    let Some(input) = input else { return Ok(None) };
    let mut window = LogicalPlan::Window(Window::try_new(window.window_expr.clone(), Arc::new(input))?);
    if let LogicalPlan::Projection(_) = &*filter.input {
        window = filter.input.with_new_exprs(filter.input.expressions(), vec![window])?;
    }
    Ok(Some(LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), Arc::new(window))?)))
}

/// All rows have the same values in these columns.
fn is_one_group(plan: &LogicalPlan, columns: &[&Column]) -> DfResult<bool> {
    let columns: Vec<Column> = columns.iter().copied().cloned().collect();
    let fixed = |scan: &TableScan, source: &TableSource, columns: &[Column]| {
        source.has_one_value(columns, &scan.filters).then(|| scan.clone())
    };
    Ok(columns.is_empty() || change_scan(plan, &columns, &fixed)?.is_some())
}

/// The first rows in an order, or any if it is empty.
pub(super) fn first_rows(plan: LogicalPlan, order: Vec<Sort>, rows: usize) -> DfResult<LogicalPlan> {
    let plan = LogicalPlanBuilder::from(plan);
    let first =
        if order.is_empty() { plan.limit(0, Some(rows)) } else { plan.sort_with_limit(order, Some(rows)) };
    first?.build()
}

/// The first rows of each group of `columns`; whether those that equal the last of them are wanted, too.
fn first_of_groups(
    plan: &LogicalPlan,
    columns: Vec<&Column>,
    order: &[Sort],
    (rows, with_ties): (u64, bool),
) -> DfResult<Option<LogicalPlan>> {
    let Some(sorted) = FirstBy::of_sort(order, &columns) else { return Ok(None) };
    let groups = columns.len();
    let order = |source: &TableSource, columns: &[Column]| FirstBy::order_of(&sorted, source, columns);
    let columns: Vec<Column> =
        columns.into_iter().chain(sorted.iter().map(|by| by.column)).cloned().collect();
    Enough { groups, order: &order, rows, with_ties }.of(plan, &columns)
}

/// The upper bound (at least 1) that a condition sets on a row number.
fn at_most(term: &Expr, number: &Column) -> Option<u64> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = term else { return None };
    let is_number = |expr: &Expr| match expr {
        Expr::Cast(cast) => column_of(&cast.expr) == Some(number),
        expr => column_of(expr) == Some(number),
    };
    let limit = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::UInt64(Some(n)), _) => Some(*n),
        Expr::Literal(ScalarValue::Int64(Some(n)), _) => u64::try_from(*n).ok(),
        _ => None,
    };
    let (op, n) = match (limit(left), limit(right)) {
        (None, Some(n)) if is_number(left) => (*op, n),
        (Some(n), None) if is_number(right) => (op.swap()?, n),
        _ => return None,
    };
    match op {
        Operator::Lt => n.checked_sub(1),
        Operator::LtEq | Operator::Eq => Some(n),
        _ => None,
    }
    .filter(|n| *n > 0)
}

/// An order by some columns as the source's; `None` if it has no such order.
type OrderOf<'f> = dyn Fn(&TableSource, &[Column]) -> Option<Vec<OrderBy>> + 'f;

/// The first few rows of each group, in an order.
struct Enough<'f> {
    /// Number of leading columns that are grouping columns; the rest are sort keys.
    groups: usize,
    /// The order by the sort keys.
    order: &'f OrderOf<'f>,
    /// Rows (count) of each group.
    rows: u64,
    /// Those that equal the last of them in the order, too.
    with_ties: bool,
}

impl Enough<'_> {
    /// Tells the source of a plan over one table. In a join where one side has the groups, it tells the other side's
    /// table that the first few matches of each outer row are enough.
    fn of(&self, plan: &LogicalPlan, columns: &[Column]) -> DfResult<Option<LogicalPlan>> {
        let told = |scan: &TableScan, source: &TableSource, columns: &[Column]| {
            let (groups, order) = columns.split_at(self.groups);
            let (of, order) = (fields_of(source, groups)?, (self.order)(source, order)?);
            Some(told_each(scan, source, Each { of, order, rows: self.rows, with_ties: self.with_ties }))
        };
        match change_scan(plan, columns, &told)? {
            None if self.groups < columns.len() && !self.with_ties => self.of_each_row(plan, columns),
            told => Ok(told),
        }
    }

    fn of_each_row(&self, plan: &LogicalPlan, columns: &[Column]) -> DfResult<Option<LogicalPlan>> {
        let below: Option<Vec<Column>> = match plan {
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => columns_below(plan, columns),
            LogicalPlan::Join(join) => return self.of_rows_found(join, columns),
            _ => None,
        };
        let (Some(columns), [input]) = (below, &plan.inputs()[..]) else { return Ok(None) };
        let told = self.of_each_row(input, &columns)?;
        told.map(|input| plan.with_new_exprs(plan.expressions(), vec![input])).transpose()
    }

    fn of_rows_found(&self, join: &Join, columns: &[Column]) -> DfResult<Option<LogicalPlan>> {
        let (groups, order) = columns.split_at(self.groups);
        let has = |side: &LogicalPlan, columns: &[Column]| {
            columns.iter().all(|column| side.schema().has_column(column))
        };
        let told = |scan: &TableScan, source: &TableSource, columns: &[Column]| {
            let order = (self.order)(source, columns)?;
            let first = FirstFound { order, rows: self.rows };
            Some(source.changed_in(scan, |source| source.first_of_row = Some(first)))
        };
        let mut join = join.clone();
        // The other side of the table may be null-extended, not the table's.
        let finds_in = |table: &LogicalPlan, rows: &LogicalPlan, outer| {
            has(rows, groups)
                && !has(table, groups)
                && has(table, order)
                && [JoinType::Inner, outer].contains(&join.join_type)
        };
        let table = if finds_in(&join.right, &join.left, JoinType::Left) {
            &mut join.right
        } else if finds_in(&join.left, &join.right, JoinType::Right) {
            &mut join.left
        } else {
            return Ok(None);
        };
        let Some(of_table) = change_scan(table, order, &told)? else { return Ok(None) };
        *table = Arc::new(of_table);
        Ok(Some(LogicalPlan::Join(join)))
    }
}

/// Tells the scan's source that a few rows of each group are enough.
fn told_each(scan: &TableScan, source: &TableSource, each: Each) -> TableScan {
    source.changed_in(scan, |source| source.each = Some(each))
}

fn fields_of(source: &TableSource, columns: &[Column]) -> Option<Vec<Field>> {
    columns.iter().map(|column| Some(source.field(&column.name)?.0)).collect()
}

impl<'p> Extreme<'p> {
    /// The order in which it comes first.
    fn first_by(&self) -> FirstBy<'p> {
        // NULLs come first, but are no minimum.
        FirstBy { column: self.column, descending: self.is_max, nulls_fit: self.is_max }
    }
}

fn rewritten(aggregate: &Aggregate) -> DfResult<Option<LogicalPlan>> {
    let extremes: Option<Vec<Extreme<'_>>> = aggregate.aggr_expr.iter().map(extreme).collect();
    let Some(extremes) = extremes else { return Ok(None) };
    if extremes.is_empty() || extremes.len() > EXTREMES_MAX {
        return Ok(None);
    }
    let mut each = Vec::with_capacity(extremes.len());
    for extreme in &extremes {
        let Some(input) = first_row(&aggregate.input, extreme, extremes.len() == 1)? else { return Ok(None) };
        let one =
            LogicalPlanBuilder::from(input).aggregate(Vec::<Expr>::new(), vec![extreme.call.clone()])?;
        each.push(one.build()?);
    }
    let columns: Vec<Expr> = aggregate.schema.columns().into_iter().map(Expr::Column).collect();
    let mut each = each.into_iter();
    let Some(first) = each.next() else { return Ok(None) };
    if each.len() == 0 {
        return Ok(Some(first));
    }
    // Each has one row, so their cross join has one row, too.
    let joined = each.try_fold(LogicalPlanBuilder::from(first), |all, one| {
        all.join_on(one, JoinType::Inner, Vec::<Expr>::new())
    });
    Ok(Some(joined?.project(columns)?.build()?))
}

fn extreme(call: &Expr) -> Option<Extreme<'_>> {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = bare(call) else { return None };
    let is_max = match func.name() {
        "min" => false,
        "max" => true,
        _ => return None,
    };
    let [Expr::Column(column)] = &params.args[..] else { return None };
    // DISTINCT does not matter here; a FILTER does.
    (params.filter.is_none() && params.order_by.is_empty()).then_some(Extreme { call, column, is_max })
}

/// The input's first row by the column; `None` if the order does not come for free.
fn first_row(input: &LogicalPlan, extreme: &Extreme<'_>, alone: bool) -> DfResult<Option<LogicalPlan>> {
    let Some(input) = served(input, extreme, alone)? else { return Ok(None) };
    let sort = Expr::Column(extreme.column.clone()).sort(!extreme.is_max, !extreme.is_max);
    Ok(Some(first_rows(input, vec![sort], 1)?))
}

/// The input without NULLs of the column, if its table gives the order.
fn served(plan: &LogicalPlan, extreme: &Extreme<'_>, alone: bool) -> DfResult<Option<LogicalPlan>> {
    change_scan(plan, std::slice::from_ref(extreme.column), &|scan, source, columns| {
        let [column] = columns else { return None };
        let (field, nullable) = source.field(&column.name)?;
        let mut scan = scan.clone();
        if nullable {
            scan.filters.push(Expr::Column(column.clone()).is_not_null());
        }
        let wanted = Wanted {
            order: vec![OrderBy { field, descending: extreme.is_max }],
            what: WantedRows::First { rows: 1, offset: 0 },
        };
        let read = vec![source.schema().index_of(&column.name).ok()?];
        source.gives_first(wanted, Some(&read), &scan.filters, alone).then_some(scan)
    })
}

/// The input columns behind columns of a projection or an alias; `None` unless all are plain columns.
fn columns_below(plan: &LogicalPlan, columns: &[Column]) -> Option<Vec<Column>> {
    let under = |column: &Column| column_of(&below(&Expr::Column(column.clone()), plan)?).cloned();
    columns.iter().map(under).collect()
}

/// Changes a scan, given its source and the relevant columns; `None` if that is impossible.
pub(super) type ScanRewrite<'f> = dyn Fn(&TableScan, &TableSource, &[Column]) -> Option<TableScan> + 'f;

/// The plan with its scan changed, if it reads one of our tables. `columns` of the plan are passed to `change` as the
/// scan's columns; projections between may rename them.
pub(super) fn change_scan(
    plan: &LogicalPlan,
    columns: &[Column],
    change: &ScanRewrite<'_>,
) -> DfResult<Option<LogicalPlan>> {
    let changed = match plan {
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => match columns_below(plan, columns) {
            Some(columns) => change_scan(input, &columns, change)?,
            None => None,
        },
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
            let changed = TableSource::of(scan)?.and_then(|source| change(scan, &source, columns));
            return Ok(changed.map(LogicalPlan::TableScan));
        }
        _ => None,
    };
    changed.map(|input| plan.with_new_exprs(plan.expressions(), vec![input])).transpose()
}
