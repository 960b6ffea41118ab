//! Chooses the joins that become seek joins.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{JoinSide, JoinType};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, build_join_schema};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, PlanProperties};

use super::{SeekJoinExec, SeekTarget, SeekTerm, words};
use crate::access::{COST, Path};
use crate::df::below::{column, picked, place, with_columns};
use crate::df::expr::comparison;
use crate::df::operators::few_first::few_first;
use crate::df::operators::join_rows::rows_of;
use crate::df::operators::lookup::{EqualPair, JoinKind, given_as, nulls_match_nothing, order_above};
use crate::df::operators::scan::ScanExec;
use crate::df::operators::{is_one_part, one_part};
use crate::df::tree::RewriteTree;
use crate::df::wanted::FirstFound;
use crate::key::ColumnId;
use crate::plan::{CmpOp, Field, Predicate};
use crate::row::{arrow_type, column_type_of};

/// Cost of a seek, in entries walked; and a factor on the entries it reads, as one thread does it all.
const ROW: f64 = 80.0;
const FOUND: f64 = 2.0;

/// Cost of a nested loop per pair, in entries walked.
const PAIR: f64 = 0.05;

/// Cost of a hash join per equal pair, in entries walked.
const EQUAL_PAIR: f64 = 0.5;

/// Most places (count) in which a row seeks.
const PLACES_MAX: usize = 8;

/// Outer rows (count) if there is no estimate.
const ROWS_UNKNOWN: f64 = 1000.0;

/// When a join becomes a seek join.
#[derive(Clone, Copy, Default)]
struct How {
    /// There are few outer rows, so it does in any case.
    are_few: bool,
    /// Their order is declared as that of the join; else the rest of the plan was made without it.
    shows_order: bool,
}

/// Replaces joins that compare pairs by seek joins, where these cost less.
pub fn instead_of_pairs(plan: Arc<dyn ExecutionPlan>) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    replaced(plan, How::default())
}

/// Replaces every join that can be a seek join, as if there were few outer rows.
pub fn instead_of_all_pairs(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    replaced(plan, How { are_few: true, shows_order: false }).data()
}

/// [`instead_of_all_pairs`]; the joins declare that they keep the order of the outer rows.
pub fn in_order_of_rows(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    replaced(plan, How { are_few: true, shows_order: true }).data()
}

fn replaced(plan: Arc<dyn ExecutionPlan>, how: How) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    plan.rewrite_up(|node| {
        let (join, fetch) = if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
            (PairwiseJoin::of_loop(join), None)
        } else if let Some(join) = node.downcast_ref::<HashJoinExec>() {
            (PairwiseJoin::of_hash(join), join.fetch())
        } else {
            (None, None)
        };
        let Some(seek) = join.map(|join| join.seek(how)).transpose()?.flatten() else {
            return Ok(Transformed::no(node));
        };
        let seek: Arc<dyn ExecutionPlan> = Arc::new(seek);
        Ok(Transformed::yes(match fetch {
            None => seek,
            fetch => Arc::new(GlobalLimitExec::new(few_first(seek, fetch)?, 0, fetch)),
        }))
    })
}

/// A join of DataFusion that compares pairs of rows.
struct PairwiseJoin<'j> {
    sides: [&'j Arc<dyn ExecutionPlan>; 2],
    join_type: JoinType,
    /// Only pairs with these columns equal are compared; empty: all pairs.
    on: &'j [EqualPair],
    filter: Option<&'j JoinFilter>,
    projection: Option<&'j [usize]>,
    properties: &'j Arc<PlanProperties>,
}

impl<'j> PairwiseJoin<'j> {
    fn of_loop(join: &'j NestedLoopJoinExec) -> Option<PairwiseJoin<'j>> {
        Some(PairwiseJoin {
            sides: [join.left(), join.right()],
            join_type: *join.join_type(),
            on: &[],
            filter: Some(join.filter()?),
            projection: join.projection().as_deref(),
            properties: join.properties(),
        })
    }

    fn of_hash(join: &'j HashJoinExec) -> Option<PairwiseJoin<'j>> {
        nulls_match_nothing(join).then(|| PairwiseJoin {
            sides: [join.left(), join.right()],
            join_type: *join.join_type(),
            on: join.on(),
            filter: join.filter(),
            projection: join.projection.as_deref(),
            properties: join.properties(),
        })
    }

    /// The join as a seek join from either side, if that costs less, or there are few outer rows.
    fn seek(&self, how: How) -> DfResult<Option<SeekJoinExec>> {
        let work = |side| self.seek_for(side, how);
        let sides = [JoinSide::Left, JoinSide::Right].into_iter().filter_map(|side| work(side).transpose());
        let mut best: Option<(SeekJoinExec, f64)> = None;
        for found in sides {
            let (seek, work) = found?;
            if best.as_ref().is_none_or(|(_, least)| work < *least) {
                best = Some((seek, work));
            }
        }
        Ok(best.map(|(seek, _)| seek))
    }

    /// The seek join with one side as outer rows, and its cost; `None` if that is impossible, or costs more and these
    /// are not few.
    fn seek_for(&self, rows_are: JoinSide, how: How) -> DfResult<Option<(SeekJoinExec, f64)>> {
        let Some((kind, sides)) = self.sides_for(rows_are) else { return Ok(None) };
        let (rows, scan) = (sides.rows, sides.scan);
        let Some(mut terms) = sides.equal(self.on) else { return Ok(None) };
        let (ranged, mut rest) = self.filter.map_or_else(Default::default, |filter| sides.ranged(filter));
        terms.extend(ranged);
        let common = terms.len();
        let places = sides.places(terms, &mut rest, self.filter);
        let is_exact = rest.is_empty();
        // Casts of the table's columns are compared only, not computed.
        if !is_exact && sides.wide.contains(&true) {
            return Ok(None);
        }
        let Some(output) = self.output(&sides) else { return Ok(None) };
        let first = match kind {
            JoinKind::Semi | JoinKind::Anti => Some(FirstFound::any_one()),
            JoinKind::Inner | JoinKind::Left => scan.request.first_of_row.clone(),
            _ => None,
        };
        let is_one = places.len() == 1;
        let keys = places.iter().map(|terms| sides.key(terms, first.as_ref(), is_one));
        let Some(keys) = keys.collect::<Option<Vec<SeekKeys>>>() else { return Ok(None) };
        // A residual filter may reject the first rows; and the first in one of several places need not be the first of
        // all.
        let first = first.filter(|first| is_exact && (keys.len() == 1 || first.order.is_empty()));
        let rows_expected = rows_of(rows).unwrap_or(ROWS_UNKNOWN);
        let (found, work_of_row) = of_a_row(&keys, first.as_ref());
        let work = rows_expected * work_of_row;
        if !how.are_few && work >= self.work(rows_expected, &sides)? {
            return Ok(None);
        }
        let filter = self.filter.zip(conjunction_of(rest)).map(|(filter, rest)| {
            let indices = filter.column_indices().iter().map(|index| sides.of_scan(index)).collect();
            JoinFilter::new(rest, indices, Arc::clone(filter.schema()))
        });
        let each = match kind {
            JoinKind::Semi | JoinKind::Anti => 1.0,
            JoinKind::Left => found.max(1.0),
            _ => found,
        };
        let place = |(terms, key): (Vec<SeekTerm>, SeekKeys)| SeekTarget {
            terms: terms.into(),
            common,
            paths: key.paths.into(),
        };
        let places: Arc<[SeekTarget]> = places.into_iter().zip(keys).map(place).collect();
        let mut equivalence = self.properties.equivalence_properties().clone();
        if let Some(order) = rows.output_ordering().filter(|_| how.shows_order) {
            let at =
                |row: usize| output.iter().position(|column| column.side == rows_are && column.index == row);
            let order = order_above(order, &at, equivalence.schema());
            equivalence.add_ordering(order);
        }
        let seek = SeekJoinExec {
            rows: Arc::clone(rows),
            table: Arc::new(scan.for_each_row(words(&places, rows))),
            places,
            filter,
            rows_are,
            kind,
            first,
            each,
            work_of_row,
            output,
            properties: one_part(equivalence),
        };
        Ok(Some((seek, work)))
    }

    /// The outer rows, and the table in which they could seek; `None` if a seek join cannot stand for the join.
    fn sides_for(&self, rows_are: JoinSide) -> Option<(JoinKind, Sides<'j>)> {
        let (rows, table, join_type) = match rows_are {
            JoinSide::Left => (self.sides[0], self.sides[1], self.join_type),
            _ => (self.sides[1], self.sides[0], self.join_type.swap()),
        };
        let kind = JoinKind::of(join_type).filter(|kind| *kind != JoinKind::Found)?;
        let (scan, columns, wide) = picked_or_widened(table)?;
        // A seek join does not keep the table's order, not even as the minor one.
        let keeps_order = match rows_are {
            JoinSide::Right => table.output_ordering().is_none(),
            _ => self.properties.output_ordering().is_none(),
        };
        let is_plain = scan.is_whole() && !scan.passes_over() && scan.fetch().is_none();
        let takes_all = scan.request.takes_all() && scan.request.keyed().is_some();
        let is_one = is_one_part(rows);
        (keeps_order && is_plain && takes_all && is_one)
            .then_some((kind, Sides { rows_are, rows, scan, columns, wide }))
    }

    /// The output columns; `None` if one is a cast of a column of the table.
    fn output(&self, sides: &Sides<'_>) -> Option<Arc<[ColumnIndex]>> {
        let [left, right] = self.sides.map(|side| side.schema());
        let (_, indices) = build_join_schema(&left, &right, &self.join_type);
        let all = 0..indices.len();
        let output = self.projection.map_or_else(|| all.collect(), <[usize]>::to_vec);
        let column = |at: usize| (!sides.is_wide(&indices[at])).then(|| sides.of_scan(&indices[at]));
        output.into_iter().map(column).collect()
    }

    /// Cost of the join as it is, in entries walked.
    fn work(&self, rows: f64, sides: &Sides<'_>) -> DfResult<f64> {
        let Ok(bound) = sides.scan.bound() else { return Ok(0.0) };
        let whole = bound.spec.access.work();
        if self.on.is_empty() {
            return Ok(whole + rows * bound.rows * PAIR);
        }
        // A hash join passes its keys to the scan.
        let equal = sides.equal(self.on).unwrap_or_default();
        let fields: Vec<Field> = equal.iter().map(|term| term.field).collect();
        Ok(match sides.scan.request.guessed(bound, &fields) {
            Some(each) => {
                let pairs = rows * each.rows.min(bound.rows);
                whole.min(rows * (sides.scan.request.planning_of_one() + each.work)) + pairs * EQUAL_PAIR
            }
            None => whole,
        })
    }
}

/// Rows (count) that an outer row finds by these keys, and what it costs to find them.
fn of_a_row(keys: &[SeekKeys], first: Option<&FirstFound>) -> (f64, f64) {
    let (mut found, mut work) = (0.0, 0.0);
    for key in keys {
        let of_key = first.map_or(key.entries, |first| key.entries.min(first.rows as f64));
        let looked_at = if key.all_pass { of_key } else { key.entries };
        found += of_key;
        work += ROW + FOUND * looked_at * key.entry;
    }
    (found, work)
}

/// The disjuncts of a condition.
fn sides_of_or(expr: &Arc<dyn PhysicalExpr>) -> Vec<&Arc<dyn PhysicalExpr>> {
    match expr.downcast_ref::<BinaryExpr>() {
        Some(or) if *or.op() == Operator::Or => {
            [or.left(), or.right()].into_iter().flat_map(sides_of_or).collect()
        }
        _ => vec![expr],
    }
}

/// The integer that is cast to BIGINT, to be compared with one.
fn not_widened(expr: &Arc<dyn PhysicalExpr>) -> &Arc<dyn PhysicalExpr> {
    match expr.downcast_ref::<CastExpr>() {
        Some(cast) if *cast.cast_type() == DataType::Int64 && place(cast.expr()).is_some() => cast.expr(),
        _ => expr,
    }
}

/// The scan behind a side of a join, the place of each of the side's columns there, and whether it is cast to BIGINT
/// on the way: DataFusion computes below a join what one side of its filter compares.
fn picked_or_widened(table: &Arc<dyn ExecutionPlan>) -> Option<(&ScanExec, Vec<usize>, Vec<bool>)> {
    let Some(projection) = table.downcast_ref::<ProjectionExec>() else {
        let (scan, columns) = picked(table)?;
        let wide = vec![false; columns.len()];
        return Some((scan, columns, wide));
    };
    let (scan, below) = picked(projection.input())?;
    let of = |expr| Some((*below.get(place(not_widened(expr))?)?, place(expr).is_none()));
    let columns: Option<Vec<(usize, bool)>> =
        projection.expr().iter().map(|output| of(&output.expr)).collect();
    let (columns, wide) = columns?.into_iter().unzip();
    Some((scan, columns, wide))
}

fn conjunction_of(terms: Vec<Arc<dyn PhysicalExpr>>) -> Option<Arc<dyn PhysicalExpr>> {
    (!terms.is_empty()).then(|| conjunction(terms))
}

/// The outer rows, and the table that they seek in.
struct Sides<'j> {
    rows_are: JoinSide,
    rows: &'j Arc<dyn ExecutionPlan>,
    scan: &'j ScanExec,
    /// Columns of the scan that the join sees.
    columns: Vec<usize>,
    /// Those that it sees cast to BIGINT.
    wide: Vec<bool>,
}

/// The keys in which a row seeks at one place.
struct SeekKeys {
    paths: Vec<Path>,
    /// The table's other conditions reject none of the rows.
    all_pass: bool,
    /// Expected entries (count) for each outer row, and the cost of each.
    entries: f64,
    entry: f64,
}

impl Sides<'_> {
    /// A column of the join as one of the outer rows or of the scan.
    fn of_scan(&self, index: &ColumnIndex) -> ColumnIndex {
        match index.side == self.rows_are {
            true => index.clone(),
            false => ColumnIndex { index: self.columns[index.index], side: index.side },
        }
    }

    /// The column is a cast of one of the scan.
    fn is_wide(&self, index: &ColumnIndex) -> bool {
        index.side != self.rows_are && self.wide.get(index.index) == Some(&true)
    }

    /// The equality conditions as terms; `None` if one is not on a column of the table.
    fn equal(&self, on: &[EqualPair]) -> Option<Vec<SeekTerm>> {
        let term = |(left, right): &EqualPair| {
            let (of_row, of_table) = match self.rows_are {
                JoinSide::Left => (left, right),
                _ => (right, left),
            };
            let column = place(of_table)?;
            self.term(column, CmpOp::Eq, Arc::clone(of_row))
        };
        on.iter().map(term).collect()
    }

    /// Splits a filter into comparisons of a column of the table with the outer row, and the rest.
    fn ranged(&self, filter: &JoinFilter) -> (Vec<SeekTerm>, Vec<Arc<dyn PhysicalExpr>>) {
        let (mut terms, mut rest) = (Vec::new(), Vec::new());
        for term in split_conjunction(filter.expression()) {
            match self.compared(term, filter) {
                Some(term) => terms.push(term),
                None => rest.push(Arc::clone(term)),
            }
        }
        (terms, rest)
    }

    /// The terms of each place where rows seek. That is one place with the common terms, unless `rest` has an OR of
    /// which each side gives a place. Such an OR is removed from `rest` if the places cover it completely.
    fn places(
        &self,
        common: Vec<SeekTerm>,
        rest: &mut Vec<Arc<dyn PhysicalExpr>>,
        filter: Option<&JoinFilter>,
    ) -> Vec<Vec<SeekTerm>> {
        let found = filter.and_then(|filter| {
            rest.iter().enumerate().find_map(|(at, or)| Some((at, self.places_of(or, &common, filter)?)))
        });
        match found {
            None => vec![common],
            Some((at, (places, is_all))) => {
                if is_all {
                    rest.remove(at);
                }
                places
            }
        }
    }

    /// The terms of each side of an OR, after the common ones, and whether they cover the OR completely; `None` if a
    /// side gives no place.
    fn places_of(
        &self,
        or: &Arc<dyn PhysicalExpr>,
        common: &[SeekTerm],
        filter: &JoinFilter,
    ) -> Option<(Vec<Vec<SeekTerm>>, bool)> {
        let (mut places, mut is_all) = (Vec::new(), true);
        for side in sides_of_or(or) {
            let mut terms = common.to_vec();
            for condition in split_conjunction(side) {
                match self.compared(condition, filter) {
                    Some(term) => terms.push(term),
                    None => is_all = false,
                }
            }
            if terms.len() == common.len() {
                return None;
            }
            places.push(terms);
        }
        (2..=PLACES_MAX).contains(&places.len()).then_some((places, is_all))
    }

    fn compared(&self, term: &Arc<dyn PhysicalExpr>, filter: &JoinFilter) -> Option<SeekTerm> {
        let compared = term.downcast_ref::<BinaryExpr>()?;
        if *compared.op() == Operator::Or {
            return self.equal_to_any(compared, filter);
        }
        if let Some(term) = self.by_day(compared, filter) {
            return Some(term);
        }
        let index = |expr: &Arc<dyn PhysicalExpr>| filter.column_indices().get(place(not_widened(expr))?);
        let of_table = |expr| index(expr).filter(|index| index.side != self.rows_are);
        let (column, op, value) = match (of_table(compared.left()), of_table(compared.right())) {
            (Some(column), None) => (column, *compared.op(), compared.right()),
            (None, Some(column)) => (column, compared.op().swap()?, compared.left()),
            _ => return None,
        };
        let op = comparison(op).filter(|op| *op != CmpOp::Ne)?;
        self.term(column.index, op, self.of_row(value, filter)?)
    }

    /// The day of the table's time that is not before a date of the row, or is: it is its time that is not before the
    /// midnight, or is. `expressions::dates` compares days where either could be part of a key.
    fn by_day(&self, compared: &BinaryExpr, filter: &JoinFilter) -> Option<SeekTerm> {
        let (day, op, date) = match compared.op() {
            Operator::GtEq | Operator::Lt => (compared.left(), *compared.op(), compared.right()),
            Operator::LtEq | Operator::Gt => (compared.right(), compared.op().swap()?, compared.left()),
            _ => return None,
        };
        let day = day.downcast_ref::<CastExpr>().filter(|day| *day.cast_type() == DataType::Date32)?;
        let index = filter.column_indices().get(place(day.expr())?)?;
        let time = day.expr().data_type(filter.schema()).ok()?;
        let is_time = matches!(time, DataType::Timestamp(TimeUnit::Microsecond, _));
        if index.side == self.rows_are || !is_time {
            return None;
        }
        let midnight = Arc::new(CastExpr::new(self.of_row(date, filter)?, time, None));
        self.term(index.index, comparison(op)?, midnight)
    }

    /// `table.a = row.x OR table.a = row.y` as one term.
    fn equal_to_any(&self, or: &BinaryExpr, filter: &JoinFilter) -> Option<SeekTerm> {
        let [mut left, right] = [self.compared(or.left(), filter)?, self.compared(or.right(), filter)?];
        let is_equality = |term: &SeekTerm| term.op == CmpOp::Eq && !term.is_wide;
        let are_equal = is_equality(&left) && is_equality(&right) && left.field == right.field;
        // An expression could fail for a row that matches by its other value.
        if !are_equal || place(&left.value).is_none() {
            return None;
        }
        left.or.push(place(&right.value)?);
        left.or.extend(right.or);
        Some(left)
    }

    /// A value in a filter as an expression over the outer row's columns; `None` if it reads anything else.
    fn of_row(&self, value: &Arc<dyn PhysicalExpr>, filter: &JoinFilter) -> Option<Arc<dyn PhysicalExpr>> {
        let columns = collect_columns(value);
        let is_of_row = |column: &Column| {
            filter.column_indices().get(column.index()).is_some_and(|index| index.side == self.rows_are)
        };
        if columns.is_empty() || !columns.iter().all(is_of_row) || is_volatile(value) {
            return None;
        }
        with_columns(value, &|at| Some(column(self.rows, filter.column_indices().get(at)?.index)))
    }

    /// Compares a column of the table, by its position in the join, with a value of the outer row; `None` unless the
    /// values compare like their bytes.
    fn term(&self, column: usize, op: CmpOp, value: Arc<dyn PhysicalExpr>) -> Option<SeekTerm> {
        let request = &self.scan.request;
        let at = *self.columns.get(column)?;
        let field = request.output_field(at)?;
        let Field::Column(id) = field else { return None };
        let ty = request.table().column(id).ty;
        let found = request.schema.field(at);
        let given = value.return_field(&self.rows.schema()).ok()?;
        let of_value = given.data_type();
        let is_wide = ty.is_integer() && of_value.is_signed_integer() && *of_value != arrow_type(ty);
        let is_given = |field| column_type_of(field).is_some_and(|of| given_as(ty, of));
        let is_same = is_given(found) && is_given(&given) && (is_wide || of_value == found.data_type());
        let column = found.name().clone();
        let term = || SeekTerm { column, field, ty, is_wide, op, value, or: Vec::new() };
        (ty.compares_as_bytes() && is_same).then(term)
    }

    /// The best keys for a place. They have the columns that are equal as a prefix, followed by a column that has a
    /// bound, or that gives the order of the `first` rows. With equalities only, a single place is left to lookup
    /// joins.
    fn key(&self, terms: &[SeekTerm], first: Option<&FirstFound>, is_one: bool) -> Option<SeekKeys> {
        let request = &self.scan.request;
        let bound = self.scan.bound().ok()?;
        let column = |field: Field| match field {
            Field::Column(id) => Some(id),
            _ => None,
        };
        let equals_one = |term: &&SeekTerm| term.op == CmpOp::Eq && term.or.is_empty();
        let of_terms = terms.iter().filter(equals_one).filter_map(|term| column(term.field));
        let equal: Vec<ColumnId> = of_terms.chain(request.fixed().iter().copied()).collect();
        let ranged = terms.iter().filter(|term| !equals_one(term)).filter_map(|term| column(term.field));
        let mut ranged: Vec<ColumnId> = ranged.collect();
        if ranged.is_empty() {
            ranged.extend(first.and_then(|first| column(first.order.first()?.field)));
        }
        // The last equality takes the part of a list with one value.
        let is_point = ranged.is_empty() && !is_one;
        if is_point {
            ranged.extend(terms.iter().filter_map(|term| column(term.field)));
        }
        let keys = ranged.into_iter().filter_map(|ranged| {
            let is_any =
                |term: &&SeekTerm| term.field == Field::Column(ranged) && (is_point || !term.or.is_empty());
            let any = terms.iter().find(is_any);
            let equal: Vec<ColumnId> =
                equal.iter().copied().filter(|id| !is_point || *id != ranged).collect();
            let behind = request.ranges_behind(&equal, (ranged, any.is_some()), bound);
            let before = &behind.first()?.before;
            let has = |ops: [CmpOp; 2]| {
                terms.iter().any(|term| term.field == Field::Column(ranged) && ops.contains(&term.op))
            };
            let of_any = any.map(|term| (1 + term.or.len()) as f64 * request.share_of_equals(&[term.field]));
            let share = match (has([CmpOp::Gt, CmpOp::Ge]), has([CmpOp::Lt, CmpOp::Le])) {
                (true, true) => COST.between_share,
                (false, false) => 1.0,
                _ => COST.range_share,
            } * of_any.unwrap_or(1.0);
            let of_some = behind.iter().any(|behind| behind.of_some);
            let all = if of_some { bound.rows } else { request.entries(&bound.binding) };
            let is_in_key = |term: &Predicate| match term {
                Predicate::Compare { field, op: CmpOp::Eq, .. } if before.contains(field) => true,
                Predicate::Compare { field, op, .. } => {
                    *field == Field::Column(ranged) && !matches!(op, CmpOp::Eq | CmpOp::Ne)
                }
                _ => false,
            };
            let is_of_key = |term: &SeekTerm| {
                term.field == Field::Column(ranged) || term.op == CmpOp::Eq && before.contains(&term.field)
            };
            let is_covered = matches!(bound.spec.access.path, Path::IndexOnly(_) | Path::Primary);
            Some(SeekKeys {
                entries: all.max(COST.entries_min as f64) * request.share_of_equals(before) * share,
                entry: if is_covered { COST.entry } else { COST.entry + COST.fetch },
                all_pass: terms.iter().all(is_of_key)
                    && (of_some || bound.need.predicate.clone().conjuncts().iter().all(is_in_key)),
                paths: behind.iter().map(|behind| behind.path).collect(),
            })
        });
        keys.min_by(|a, b| a.entries.total_cmp(&b.entries))
    }
}
