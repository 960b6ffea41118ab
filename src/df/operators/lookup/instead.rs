//! Chooses the joins that become lookup joins.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result as DfResult;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, PlanProperties, ReplaceChildrenOptions,
};

use super::nested::finds_for_each;
use super::{JoinColumn, JoinKind, LookupBy, LookupJoinExec, ROWS_FIRST, ROWS_MAX};
use crate::access::COST;
use crate::df::below::{holds, passed_on, picked, scan_of, with_columns};
use crate::df::computed::shown;
use crate::df::explain::name;
use crate::df::operators::few_first::few_first;
use crate::df::operators::join_rows::rows_of;
use crate::df::operators::scan::{ByRows, ScanExec};
use crate::df::operators::{is_one_part, one_part};
use crate::df::tree::RewriteTree;
use crate::error::Result;
use crate::key::ColumnId;
use crate::plan::Field;
use crate::row::column_type_of;
use crate::value::ColumnType;

/// Most outer rows (count, expected) of a lookup in order, which needs all of them together.
const TOGETHER_EXPECTED: f64 = ROWS_MAX as f64 / 2.0;

/// Most work of lookups by ranges that run together, in the units of [`Access::work`](crate::access::Access::work).
const RANGES_WORK: f64 = 5_000.0;

/// So many times the wanted rows are many: to find these first, a cursor for each outer row is merged with the others.
pub(super) const MANY: f64 = 4.0;

/// How a join may look rows up.
#[derive(Clone, Copy)]
struct How {
    by: LookupBy,
    /// Expected number of outer rows; `None`: the planner's estimate.
    expected: Option<f64>,
    /// No operator above depends on the order of the rows.
    any_order: bool,
    /// All that is above up to a sort passes rows on, whatever their order.
    sorted_above: bool,
}

impl How {
    fn by(by: LookupBy, expected: Option<f64>) -> How {
        How { by, expected, any_order: true, sorted_above: false }
    }
}

/// Replaces hash joins by lookup joins where these read less.
pub fn instead_of_hashes(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let how = How::by(LookupBy::Rowkeys, None);
    let lookup = |join: &HashJoinExec| LookupJoinExec::of(join, how);
    plan.rewrite_up(|node| replaced(node, &|join| Ok(lookup(join)?.map(executable)))).data()
}

/// [`instead_of_hashes`] for a plan that was made for other parameters, so that either side may be the smaller one. No
/// dynamic filters are set up yet.
pub fn instead_of_hashes_either_way(
    plan: Arc<dyn ExecutionPlan>,
    by: LookupBy,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    either_way(plan, How::by(by, None), &|_| false)
}

/// `stays`: the join is better left as it is.
fn either_way(
    plan: Arc<dyn ExecutionPlan>,
    how: How,
    stays: &dyn Fn(&HashJoinExec) -> bool,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    plan.rewrite_up(|node| {
        replaced(node, &|join| {
            if stays(join) {
                return Ok(None);
            }
            match LookupJoinExec::of(join, how)? {
                None if JoinKind::of(join.join_type().swap()).is_some() => turned(join, how),
                lookup => Ok(lookup.map(executable)),
            }
        })
    })
    .data()
}

/// Replaces every hash join that can be a lookup join, as if there were few outer rows. [`are_worth_it`] decides for
/// each run.
pub fn instead_of_all_hashes(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let how = How::by(LookupBy::Ranges, Some(0.0));
    either_way(plan, how, &finds_for_each)
}

/// The plan with inner joins for right semi joins whose rows are only grouped: it does not matter how often each is there.
/// So outer rows can look them up.
pub fn once_is_enough(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let changed = plan.rewrite_up(|node| {
        let Some(groups) = node.downcast_ref::<AggregateExec>().filter(|node| node.aggr_expr().is_empty())
        else {
            return Ok(Transformed::no(node));
        };
        match as_inner(groups.input())? {
            Some(input) => over(&node, input).map(Transformed::yes),
            None => Ok(Transformed::no(node)),
        }
    });
    changed.data()
}

/// The right semi join on top of a plan, below projections, as an inner join of the same columns.
fn as_inner(plan: &Arc<dyn ExecutionPlan>) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if passed_on(&**plan).is_some() || plan.is::<ProjectionExec>() {
        let input = plan.children().first().map(|input| as_inner(input)).transpose()?.flatten();
        return input.map(|input| over(plan, input)).transpose();
    }
    let join = plan.downcast_ref::<HashJoinExec>();
    let join = join.filter(|join| *join.join_type() == JoinType::RightSemi && join.fetch().is_none());
    let Some(join) = join else { return Ok(None) };
    let (of_left, of_right) = (join.left().schema().fields().len(), join.right().schema().fields().len());
    let columns = join.projection.as_ref().map_or_else(|| (0..of_right).collect(), |picked| picked.to_vec());
    let columns = columns.into_iter().map(|at| of_left + at).collect();
    let inner = join.builder().with_type(JoinType::Inner).with_projection(Some(columns)).build()?;
    Ok(Some(Arc::new(inner)))
}

/// All joins of the plan are lookup joins.
pub fn are_all_lookups(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_left = |node: &dyn ExecutionPlan| node.is::<HashJoinExec>() || node.is::<NestedLoopJoinExec>();
    !holds(plan, &is_left)
}

/// Every lookup join of a bound plan costs less than reading its table.
pub fn are_worth_it(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    if let Some(join) = plan.downcast_ref::<LookupJoinExec>()
        && !join.is_worth_it()?
    {
        return Ok(false);
    }
    for child in plan.children() {
        if !are_worth_it(child)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// [`instead_of_hashes`] in the recursive term of a recursive query: there the rows of the previous step are the outer
/// rows, whatever the planner's estimate. Other joins would read their tables anew in each step.
pub fn in_recursions(plan: Arc<dyn ExecutionPlan>) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let how = How::by(LookupBy::Ranges, Some(1.0));
    let of_step = |join: &HashJoinExec| match (reads_step(join.left()), reads_step(join.right())) {
        (true, false) => Ok(LookupJoinExec::of(join, how)?.map(executable)),
        (false, true) if *join.join_type() == JoinType::Inner => turned(join, how),
        _ => Ok(None),
    };
    plan.rewrite_up(|node| {
        if !node.is::<RecursiveQueryExec>() {
            return Ok(Transformed::no(node));
        }
        let [first, again] = node.children()[..] else { return Ok(Transformed::no(node)) };
        let again = Arc::clone(again).rewrite_up(|node| replaced(node, &of_step))?;
        if !again.transformed {
            return Ok(Transformed::no(node));
        }
        let children = vec![Arc::clone(first), again.data];
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        node.replace_children(children, recompute).map(Transformed::yes)
    })
}

/// The plan reads the previous step of a recursive query.
fn reads_step(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<WorkTableExec>() || plan.children().into_iter().any(reads_step)
}

fn executable(lookup: LookupJoinExec) -> Arc<dyn ExecutionPlan> {
    Arc::new(lookup)
}

/// Gives the replacement of a hash join, if there is one.
type Instead<'i> = dyn Fn(&HashJoinExec) -> DfResult<Option<Arc<dyn ExecutionPlan>>> + 'i;

fn replaced(
    node: Arc<dyn ExecutionPlan>,
    instead: &Instead<'_>,
) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(node)) };
    let lookup = match unsorted(join)? {
        Some((join, order)) => {
            instead(&join)?.map(|lookup| Arc::new(SortExec::new(order, lookup)) as Arc<dyn ExecutionPlan>)
        }
        None => instead(join)?,
    };
    Ok(match (lookup, join.fetch()) {
        (None, _) => Transformed::no(node),
        (Some(lookup), None) => Transformed::yes(lookup),
        (Some(lookup), fetch) => {
            Transformed::yes(Arc::new(GlobalLimitExec::new(few_first(lookup, fetch)?, 0, fetch)))
        }
    })
}

/// The join without the sort of its right side, and its output order, if it has one for that reason. It must have all of
/// that sort's keys: a projection of the join may leave out some.
fn unsorted(join: &HashJoinExec) -> DfResult<Option<(HashJoinExec, LexOrdering)>> {
    let sort = join.right().downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none());
    let (Some(sort), Some(order)) = (sort, join.properties().output_ordering()) else { return Ok(None) };
    if order.len() < sort.expr().len() {
        return Ok(None);
    }
    let sides = vec![Arc::clone(join.left()), Arc::clone(sort.input())];
    Ok(Some((join.builder().with_new_children(sides)?.build()?, order.clone())))
}

/// A lookup join with the right side as outer rows.
fn turned(join: &HashJoinExec, how: How) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if worth_asking(join.right(), join.left(), how).is_none() {
        return Ok(None);
    }
    // An order of the join is that of its right side, whose rows then come in their own order.
    let how = How { any_order: join.properties().output_ordering().is_none(), ..how };
    swapped(join, |join, _| Ok(LookupJoinExec::of(join, how)?.map(executable)))
}

/// What `make` makes of the join with its sides swapped. A projection above that join restores the order of columns, if
/// need be; `make` is given it, too.
pub(super) fn swapped(
    join: &HashJoinExec,
    make: impl FnOnce(&HashJoinExec, Option<&Arc<dyn ExecutionPlan>>) -> DfResult<Option<Arc<dyn ExecutionPlan>>>,
) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    let swapped = join.swap_inputs(*join.partition_mode())?;
    match (hash_join_of(&swapped), swapped.is::<HashJoinExec>()) {
        (None, _) => Ok(None),
        (Some(join), true) => make(join, None),
        (Some(join), false) => make(join, Some(&swapped))?.map(|made| over(&swapped, made)).transpose(),
    }
}

/// The join, possibly below a projection.
pub(super) fn hash_join_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&HashJoinExec> {
    let below = plan.downcast_ref::<ProjectionExec>().map_or(plan, ProjectionExec::input);
    below.downcast_ref()
}

/// The operator over another input, its properties derived anew.
pub(super) fn over(
    plan: &Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
) -> DfResult<Arc<dyn ExecutionPlan>> {
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(vec![input], recompute)
}

/// Expected outer rows (count), if a lookup join may pay off for a table of this size. To prepare a hash join takes longer
/// than a few lookups, however small the table is.
fn worth_asking(rows: &Arc<dyn ExecutionPlan>, table: &Arc<dyn ExecutionPlan>, how: How) -> Option<f64> {
    let (scan, _) = picked(table)?;
    let entries = scan.bound().ok()?.spec.access.entries;
    let expected = how.expected.or_else(|| rows_of(rows))?;
    (expected * COST.fetch <= entries.max(COST.entries_min as f64)).then_some(expected)
}

impl LookupJoinExec {
    /// The lookups cost less than reading the table; lookups by range must also be few enough to run together.
    fn is_worth_it(&self) -> Result<bool> {
        let work = match self.by {
            LookupBy::Rowkeys => {
                let wanted = self.wanted.map_or(f64::INFINITY, |wanted| wanted as f64);
                rows_of(&self.rows).map(|rows| rows.min(wanted) * COST.fetch)
            }
            LookupBy::Ranges if self.is_better_in_order()? => None,
            LookupBy::Ranges => self.work().filter(|work| *work <= RANGES_WORK),
        };
        let (Some(work), Some(scan)) = (work, scan_of(&self.table)) else { return Ok(false) };
        Ok(work <= scan.entries_otherwise()?.max(COST.entries_min as f64))
    }

    /// A key has the rows that a sort above wants first, for each outer row.
    pub(super) fn can_come_in_order(&self) -> bool {
        let behind: Vec<ColumnId> = self.on.iter().map(|equal| equal.key).collect();
        scan_of(&self.table).is_some_and(|scan| scan.first_in_order(&behind).is_some())
    }

    /// It would find many more rows than a sort above wants, and a key has those first.
    fn is_better_in_order(&self) -> Result<bool> {
        let Some(scan) = scan_of(&self.table).filter(|_| !self.in_order && self.kind == JoinKind::Inner)
        else {
            return Ok(false);
        };
        let behind: Vec<ColumnId> = self.on.iter().map(|equal| equal.key).collect();
        let first = scan.first_in_order(&behind);
        let each = scan.request.guessed(scan.bound()?, &self.fields());
        Ok(match (first, each, rows_of(&self.rows)) {
            (Some(first), Some(each), Some(rows)) => {
                rows <= TOGETHER_EXPECTED && rows * each.rows > MANY * first.rows as f64
            }
            _ => false,
        })
    }

    /// The join as a lookup join of which the first `wanted` rows are enough.
    pub(super) fn of_first(join: &HashJoinExec, wanted: usize) -> DfResult<Option<LookupJoinExec>> {
        let any = How::by(LookupBy::Ranges, Some(wanted as f64));
        let how = How { any_order: false, sorted_above: true, ..any };
        if join.fetch().is_some() { Ok(None) } else { LookupJoinExec::of(join, how) }
    }

    /// The join over the same outer rows, sorted; the first `wanted` rows of its output are enough.
    pub(super) fn over_sorted(
        &self,
        rows: Arc<dyn ExecutionPlan>,
        wanted: usize,
    ) -> DfResult<LookupJoinExec> {
        let mut equivalence = self.properties.equivalence_properties().clone();
        equivalence.clear_orderings();
        if let Some(order) = rows.output_ordering() {
            let schema = equivalence.schema().clone();
            equivalence.add_ordering(order_above(order, &come_out_at(&self.output), &schema));
        }
        let properties = PlanProperties::clone(&self.properties).with_eq_properties(equivalence);
        let (together, wanted) = (wanted.clamp(ROWS_FIRST, ROWS_MAX), Some(wanted));
        Ok(LookupJoinExec { rows, together, wanted, properties: Arc::new(properties), ..self.clone() })
    }

    /// The join as a lookup join; `None` if that is impossible, or slower.
    fn of(join: &HashJoinExec, how: How) -> DfResult<Option<LookupJoinExec>> {
        let (rows, picked) = (join.left(), picked(join.right()));
        // A step of a recursion is read to its end.
        let is_stopped = how.expected.is_none();
        let Some(kind) = JoinKind::of(*join.join_type()) else { return Ok(None) };
        let keeps_order = join.properties().output_ordering().is_some() && !how.sorted_above;
        let is_plain = is_plain(join) && !keeps_order;
        let Some((scan, columns)) = picked.filter(|(scan, _)| is_plain && !scan.passes_over()) else {
            return Ok(None);
        };
        let Some(expected) = worth_asking(rows, join.right(), how) else { return Ok(None) };
        if scan.request.keyed().is_none() {
            return Ok(None);
        }
        let Some(on) = equal_columns(join.on(), &rows.schema(), scan, &columns) else { return Ok(None) };
        let behind: Vec<ColumnId> = on.iter().map(|equal| equal.key).collect();
        let in_order = how.by == LookupBy::Rowkeys
            && how.any_order
            && matches!(kind, JoinKind::Inner | JoinKind::Found)
            && expected <= TOGETHER_EXPECTED
            && scan.first_in_order(&behind).is_some();
        let finds_in_order = kind == JoinKind::Found && in_order;
        let (table, by) = if !finds_in_order && is_whole_key(&on, scan) {
            let words = on
                .iter()
                .map(|equal| format!("{}={}", shown(equal.of_table.name()), name(equal.of_row.name())));
            (scan.by_rows(ByRows { columns: words.collect(), rows: expected }), LookupBy::Rowkeys)
        } else if (in_order || how.by == LookupBy::Ranges && kind != JoinKind::Found)
            && on.iter().any(|equal| scan.request.leads(Field::Column(equal.key)))
        {
            let columns = on.iter().map(|equal| (Field::Column(equal.key), equal.of_table.name()));
            (Some(scan.by_values(columns)), LookupBy::Ranges)
        } else {
            return Ok(None);
        };
        let Some(table) = table else { return Ok(None) };
        let of_rows = if kind.shows_row() { rows.schema().fields().len() } else { 0 };
        let of_table = if kind.shows_found() { columns.len() } else { 0 };
        let output: Vec<usize> = match &join.projection {
            Some(output) => output.to_vec(),
            None => (0..of_rows + of_table).collect(),
        };
        // Operators above may rely on them: if two columns are equal, for one, an order by either is an order by both.
        let mut equivalence = join.properties().equivalence_properties().clone();
        let in_order = in_order && by == LookupBy::Ranges;
        // Declare the order only if the caller asked for it; the rest of the plan was made without it.
        let asks = how.by == LookupBy::Ranges && is_stopped;
        let declares = kind.shows_row() && (asks || !how.any_order);
        if let Some(order) = rows.output_ordering().filter(|_| declares) {
            equivalence.add_ordering(order_above(order, &come_out_at(&output), &join.schema()));
        }
        let of_scan = |column: usize| column.checked_sub(of_rows).map_or(column, |at| of_rows + columns[at]);
        Ok(Some(LookupJoinExec {
            rows: Arc::clone(rows),
            table: Arc::new(table),
            on: on.into(),
            by,
            together: if by == LookupBy::Ranges && is_stopped { ROWS_FIRST } else { ROWS_MAX },
            wanted: None,
            kind,
            in_order,
            output: output.into_iter().map(of_scan).collect(),
            properties: one_part(equivalence),
        }))
    }
}

/// The join condition is equality of columns and nothing else.
pub fn only_equates(join: &HashJoinExec) -> bool {
    join.filter().is_none() && nulls_match_nothing(join)
}

/// NULL equals nothing, and none makes the answer unknown, as in NOT IN.
pub fn nulls_match_nothing(join: &HashJoinExec) -> bool {
    !join.null_aware && join.null_equality() == NullEquality::NullEqualsNothing
}

/// [`only_equates`], and one thread reads the left side.
pub(super) fn is_plain(join: &HashJoinExec) -> bool {
    join.filter().is_none() && compares_plainly(join)
}

/// NULL equals nothing, and one thread reads the left side.
pub(super) fn compares_plainly(join: &HashJoinExec) -> bool {
    nulls_match_nothing(join) && is_one_part(join.left())
}

/// Where a column comes out.
fn come_out_at(output: &[usize]) -> impl Fn(usize) -> Option<usize> {
    |below| output.iter().position(|at| *at == below)
}

/// The order of outer rows as one of the output, up to the first key that does not come out. `at`: where a column does.
pub fn order_above(
    order: &LexOrdering,
    at: &dyn Fn(usize) -> Option<usize>,
    schema: &Schema,
) -> Vec<PhysicalSortExpr> {
    let moved = |below: usize| {
        let at = at(below)?;
        Some(Arc::new(Column::new(schema.field(at).name(), at)) as Arc<dyn PhysicalExpr>)
    };
    let above =
        |by: &PhysicalSortExpr| Some(PhysicalSortExpr::new(with_columns(&by.expr, &moved)?, by.options));
    order.iter().map_while(above).collect()
}

/// A pair of equal expressions: of the left side of a join, of its right side.
pub type EqualPair = (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>);

/// The equality conditions of a join, if all are between columns whose values are equal iff their bytes are. `columns`:
/// the scan's columns that the join sees.
pub(super) fn equal_columns(
    on: &[EqualPair],
    rows: &Schema,
    scan: &ScanExec,
    columns: &[usize],
) -> Option<Vec<JoinColumn>> {
    let table = scan.request.read_as_table()?;
    let column = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().cloned();
    let equal = |(of_row, of_table): &EqualPair| {
        let (of_row, at) = (column(of_row)?, *columns.get(column(of_table)?.index())?);
        let Field::Column(key) = scan.request.output_field(at)? else { return None };
        let ty = table.column(key).ty;
        let (row, found) = (rows.field(of_row.index()), scan.request.schema.field(at));
        let is_same =
            column_type_of(row).is_some_and(|row| given_as(ty, row)) && row.data_type() == found.data_type();
        let of_table = Column::new(found.name(), at);
        (ty.compares_as_bytes() && is_same).then_some(JoinColumn { of_row, of_table, key, ty })
    };
    on.iter().map(equal).collect()
}

/// A scan may give values of the first type out as the second one.
pub fn given_as(ty: ColumnType, given: ColumnType) -> bool {
    ty == given || ty.is_integer() && given.is_integer()
}

/// The join columns are exactly the columns of the table's rowkey.
fn is_whole_key(on: &[JoinColumn], scan: &ScanExec) -> bool {
    let key = &scan.request.table().key;
    let (mut asked, mut columns) = (on.iter().map(|equal| equal.key).collect::<Vec<_>>(), key.columns());
    asked.sort_unstable();
    columns.sort_unstable();
    asked == columns && !key.is_drawn()
}
