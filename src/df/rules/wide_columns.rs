//! Joins integers of different widths by columns.
//!
//! Where `f.a = a.id` compares an INTEGER with a BIGINT, DataFusion joins by `CAST(f.a AS BIGINT)`, which is no column:
//! neither lookups nor orders see a key. But a scan may as well give its integers out as wider ones. So the column comes
//! out a second time, as a BIGINT, and passes through all nodes up to the join, which compares it.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchemaRef};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::logical_plan::TableScanBuilder;
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, Join, JoinType, LogicalPlan, Projection, Sort, SubqueryAlias, TableScan, Window,
    cast,
};

use crate::df::rewrite::{bare, below};
use crate::df::table::TableSource;
use crate::df::tree::{RewritePlan, changed};

/// A plan that gives out one more column, and that column.
type Widened = (LogicalPlan, Column);

/// The rule. Runs before unused columns are removed, in each pass of the optimizer: later ones find what the first has
/// decorrelated.
pub fn wide_columns(plan: LogicalPlan) -> DfResult<Transformed<LogicalPlan>> {
    let mut cuts = Cuts::default();
    plan.rewrite_up_with_subqueries(|node| {
        let raised = cuts.raised(&node)?;
        let wider = match raised.as_ref().unwrap_or(&node) {
            LogicalPlan::Join(join) => widened(join)?,
            _ => None,
        };
        match wider.or(raised) {
            Some(wider) => Ok(changed(cuts.cut(wider, &node)?, node)),
            None => Ok(Transformed::no(node)),
        }
    })
}

/// The projections that drop the additional columns again, by their schemas. They rise through nodes that name their
/// columns, so that rules see one join right above the other.
#[derive(Default)]
struct Cuts(Vec<DFSchemaRef>);

impl Cuts {
    /// The node without such projections right below; `None` if there are none.
    fn raised(&self, node: &LogicalPlan) -> DfResult<Option<LogicalPlan>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let passes = matches!(
            node,
            LogicalPlan::Projection(_)
                | LogicalPlan::Aggregate(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Limit(_)
                | LogicalPlan::Join(_)
        );
        let inputs: Vec<&LogicalPlan> = node.inputs().into_iter().map(|input| self.uncut(input)).collect();
        let has_cuts = inputs.iter().zip(node.inputs()).any(|(uncut, input)| !std::ptr::eq(*uncut, input));
        // A name on both sides would be ambiguous above the join.
        let are_apart = |sides: [&LogicalPlan; 2]| {
            let [left, right] = sides.map(LogicalPlan::schema);
            !left.columns().iter().any(|column| right.has_column(column))
        };
        if !passes || !has_cuts || inputs[..].try_into().is_ok_and(|sides| !are_apart(sides)) {
            return Ok(None);
        }
        let inputs = inputs.into_iter().cloned().collect();
        node.with_new_exprs(node.expressions(), inputs).map(Some)
    }

    fn uncut<'p>(&self, plan: &'p LogicalPlan) -> &'p LogicalPlan {
        match plan {
            LogicalPlan::Projection(cut) if self.0.iter().any(|known| Arc::ptr_eq(known, &cut.schema)) => {
                &cut.input
            }
            _ => plan,
        }
    }

    /// The plan with the columns of `node` only; `None` if their names do not tell them.
    fn cut(&mut self, plan: LogicalPlan, node: &LogicalPlan) -> DfResult<Option<LogicalPlan>> {
        let (all, kept) = (plan.schema(), node.schema().columns());
        if all.fields().len() == kept.len() {
            return Ok(Some(plan));
        }
        // A column without a table's name would be any column that is called so.
        let is_it = |column: &Column, other: &Column| {
            other.name == column.name && (column.relation.is_none() || other.relation == column.relation)
        };
        let all = all.columns();
        let is_told = |column: &Column| all.iter().filter(|other| is_it(column, other)).count() == 1;
        if !kept.iter().all(is_told) {
            return Ok(None);
        }
        let cut = Projection::try_new(kept.into_iter().map(Expr::Column).collect(), Arc::new(plan))?;
        self.0.push(Arc::clone(&cut.schema));
        Ok(Some(LogicalPlan::Projection(cut)))
    }
}

/// The join with columns in place of widening casts; `None` if it has none, or they are of no table's columns.
fn widened(join: &Join) -> DfResult<Option<LogicalPlan>> {
    let Join { mut left, mut right, mut on, .. } = join.clone();
    let mut is_changed = false;
    for (of_left, of_right) in &mut on {
        for (key, side) in [(of_left, &mut left), (of_right, &mut right)] {
            match &*key {
                Expr::Column(column) => {
                    let Some(wider) = computed_below(side, column)? else { continue };
                    *side = Arc::new(wider);
                }
                widening => {
                    let Some((wider, column)) = in_place_of(widening, side)? else { continue };
                    (*side, *key) = (Arc::new(wider), Expr::Column(column));
                }
            }
            is_changed = true;
        }
    }
    let wider = || LogicalPlan::Join(Join { left, right, on, ..join.clone() }).recompute_schema();
    is_changed.then(wider).transpose()
}

/// The column in place of a widening cast over `plan`, which then has this column, too; `None` for what is no such cast.
fn in_place_of(expr: &Expr, plan: &LogicalPlan) -> DfResult<Option<Widened>> {
    let Expr::Cast(Cast { expr, field }) = expr else { return Ok(None) };
    match (&**expr, field.data_type()) {
        (Expr::Column(column), wide) if wide.is_signed_integer() => carried(plan, column, wide),
        _ => Ok(None),
    }
}

/// The plan with a column in place of the widening cast that a projection below computes under this name; `None` if there
/// is no such cast.
fn computed_below(plan: &LogicalPlan, column: &Column) -> DfResult<Option<LogicalPlan>> {
    let input = match plan {
        LogicalPlan::Projection(projection) => {
            let Some(at) = plan.schema().maybe_index_of_column(column) else { return Ok(None) };
            match bare(&projection.expr[at]) {
                Expr::Column(column) => computed_below(&projection.input, column)?,
                widening => {
                    let Some((input, wider)) = in_place_of(widening, &projection.input)? else {
                        return Ok(None);
                    };
                    let mut columns = projection.expr.clone();
                    let (of, field) = projection.schema.qualified_field(at);
                    columns[at] = Expr::Column(wider).alias_qualified(of.cloned(), field.name());
                    let projection = Projection::try_new(columns, Arc::new(input))?;
                    return Ok(Some(LogicalPlan::Projection(projection)));
                }
            }
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
        | LogicalPlan::Aggregate(Aggregate { input, .. }) => {
            match below(&Expr::Column(column.clone()), plan) {
                Some(Expr::Column(column)) => computed_below(input, &column)?,
                _ => return Ok(None),
            }
        }
        LogicalPlan::Filter(Filter { input, .. })
        | LogicalPlan::Sort(Sort { input, .. })
        | LogicalPlan::Window(Window { input, .. }) => computed_below(input, column)?,
        _ => return Ok(None),
    };
    input.map(|input| plan.with_new_exprs(plan.expressions(), vec![input])).transpose()
}

/// The plan with a column of a table as a column of wider integers, too; `None` if the column is anything else.
fn carried(plan: &LogicalPlan, column: &Column, wide: &DataType) -> DfResult<Option<Widened>> {
    let input_of = |input: &LogicalPlan, column: &Column| carried(input, column, wide);
    match plan {
        LogicalPlan::TableScan(scan) => read(scan, column, wide),
        LogicalPlan::Filter(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => {
            let inputs = plan.inputs();
            let [input] = inputs[..] else { return Ok(None) };
            let Some((input, column)) = input_of(input, column)? else { return Ok(None) };
            Ok(Some((plan.with_new_exprs(plan.expressions(), vec![input])?, column)))
        }
        LogicalPlan::Projection(projection) => {
            let Some(Expr::Column(column)) = below(&Expr::Column(column.clone()), plan) else {
                return Ok(None);
            };
            let Some((input, column)) = input_of(&projection.input, &column)? else { return Ok(None) };
            let mut columns = projection.expr.clone();
            let wider = Expr::Column(column.clone());
            if !columns.contains(&wider) {
                columns.push(wider);
            }
            let projection = Projection::try_new(columns, Arc::new(input))?;
            Ok(Some((LogicalPlan::Projection(projection), column)))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let Some(Expr::Column(column)) = below(&Expr::Column(column.clone()), plan) else {
                return Ok(None);
            };
            let Some((input, column)) = input_of(&alias.input, &column)? else { return Ok(None) };
            let is_called_so = |other: &Column| other.name == column.name;
            if input.schema().columns().into_iter().filter(is_called_so).count() > 1 {
                return Ok(None);
            }
            let name = alias.alias.clone();
            let alias = SubqueryAlias::try_new(Arc::new(input), name.clone())?;
            Ok(Some((LogicalPlan::SubqueryAlias(alias), Column::new(Some(name), column.name))))
        }
        LogicalPlan::Join(join) => {
            use JoinType::{LeftAnti, LeftMark, LeftSemi, RightAnti, RightMark, RightSemi};
            let shows_left = !matches!(join.join_type, RightAnti | RightMark | RightSemi);
            let shows_right = !matches!(join.join_type, LeftAnti | LeftMark | LeftSemi);
            let (mut left, mut right) = (Arc::clone(&join.left), Arc::clone(&join.right));
            let side = match column {
                _ if shows_left && left.schema().has_column(column) => &mut left,
                _ if shows_right && right.schema().has_column(column) => &mut right,
                _ => return Ok(None),
            };
            let Some((wider, column)) = input_of(side, column)? else { return Ok(None) };
            *side = Arc::new(wider);
            let both = left.schema().has_column(&column) && right.schema().has_column(&column);
            let join = LogicalPlan::Join(Join { left, right, ..join.clone() }).recompute_schema()?;
            Ok((!both).then_some((join, column)))
        }
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate, column, wide),
        _ => Ok(None),
    }
}

/// A scan of the column as wider integers, too.
fn read(scan: &TableScan, column: &Column, wide: &DataType) -> DfResult<Option<Widened>> {
    let Some((source, at)) = TableSource::of(scan)?.and_then(|source| source.with_wide(&column.name, wide))
    else {
        return Ok(None);
    };
    let mut projection = scan.projection.clone();
    if let Some(columns) = projection.as_mut().filter(|columns| !columns.contains(&at)) {
        columns.push(at);
    }
    let scan = TableScanBuilder::new(scan.table_name.clone(), provider_as_source(Arc::new(source)))
        .with_projection(projection)
        .with_filters(scan.filters.clone())
        .with_fetch(scan.fetch)
        .build()?;
    let wider = scan.source.schema().field(at).name().clone();
    let wider = Column::new(Some(scan.table_name.clone()), wider);
    Ok(Some((LogicalPlan::TableScan(scan), wider)))
}

/// Groups by the wider column, which makes the same groups; the narrow one is computed from it, for whoever needs it.
fn grouped(aggregate: &Aggregate, column: &Column, wide: &DataType) -> DfResult<Option<Widened>> {
    let Some(at) = aggregate.schema.maybe_index_of_column(column) else { return Ok(None) };
    let Some(Expr::Column(group)) = aggregate.group_expr.get(at) else { return Ok(None) };
    let Some((input, wider)) = carried(&aggregate.input, group, wide)? else { return Ok(None) };
    if aggregate.group_expr.contains(&Expr::Column(wider.clone())) {
        // For another column that has the same values.
        return Ok(Some((LogicalPlan::Aggregate(aggregate.clone()), wider)));
    }
    let mut groups = aggregate.group_expr.clone();
    groups[at] = Expr::Column(wider.clone());
    let grouped = Aggregate::try_new(Arc::new(input), groups, aggregate.aggr_expr.clone())?;
    let columns = aggregate.schema.iter().enumerate().map(|(place, (of, field))| match place == at {
        true => {
            let narrow = cast(Expr::Column(wider.clone()), field.data_type().clone());
            narrow.alias_qualified(of.cloned(), field.name())
        }
        false => Expr::Column(Column::new(of.cloned(), field.name())),
    });
    let columns = columns.chain([Expr::Column(wider.clone())]).collect();
    let projection = Projection::try_new(columns, Arc::new(LogicalPlan::Aggregate(grouped)))?;
    Ok(Some((LogicalPlan::Projection(projection), wider)))
}
