//! Searches the cheapest order of inner joins.
//!
//! The joins are taken apart into tables (or what stands in their place) and sets of equal columns. Then the best way to
//! join each subset is found by adding one table to the best way of a smaller one: it is read whole, or looked up for each
//! row so far, whichever costs less. Sizes are estimated by keys ([`ScanRequest::matches`]) and by numbers of distinct
//! values.
//!
//! [`ScanRequest::matches`]: crate::df::table::ScanRequest::matches

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as DfResult;
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;

use super::{Plan, is_plain};
use crate::access::COST;
use crate::df::below::{column, picked, picked_as, picks, place};
use crate::df::operators::join_rows::rows_of;
use crate::df::operators::scan::ScanExec;
use crate::df::table::Matches;
use crate::df::tree::{RewriteTree, changed};
use crate::plan::Field;

/// Most tables (count) that are put in order: there are 2 to the power of that subsets.
const TABLES_MAX: usize = 10;

/// How many times cheaper another order must be: estimates err.
const CHEAPER: f64 = 2.0;

/// A column of a table, both by position.
type Place = (usize, usize);

/// Columns of one table, by position.
type Columns = Vec<usize>;

/// The plan with all inner joins in the cheapest order. Each join is looked at once, those below it before.
pub fn in_best_order(plan: Plan) -> DfResult<Transformed<Plan>> {
    plan.rewrite_up(|node| Ok(changed(reordered(&node)?, node)))
}

/// The joins in another order, if that is far cheaper; `None` for anything but three or more tables.
fn reordered(plan: &Plan) -> DfResult<Option<Plan>> {
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
    let mut joins = Joins::default();
    let Some(output) = joins.take_apart(plan) else { return Ok(None) };
    if !(3..=TABLES_MAX).contains(&joins.tables.len()) || joins.has_two_of_one_table() {
        return Ok(None);
    }
    let Some(given) = joins.given(plan, &mut 0) else { return Ok(None) };
    let Some(best) = joins.best() else { return Ok(None) };
    if best.cost * CHEAPER > given.cost {
        return Ok(None);
    }
    joins.build(&best.order, &output, plan, *join.partition_mode()).map(Some)
}

/// Inner joins, taken apart.
#[derive(Default)]
struct Joins<'p> {
    tables: Vec<Table<'p>>,
    /// Sets of columns that are equal.
    equal: Vec<Vec<Place>>,
    /// [`Table::matches`] of each table, by columns: the same is asked for many subsets.
    known: RefCell<HashMap<(usize, Columns), Option<Matches>>>,
}

struct Table<'p> {
    plan: &'p Plan,
    /// The scan, and the place there of each column, unless the table is computed.
    scan: Option<(&'p ScanExec, Vec<usize>)>,
    /// Expected rows, and the cost of reading them all.
    rows: f64,
    cost: f64,
}

/// Some tables, joined.
#[derive(Clone)]
struct Joined {
    /// The order in which they are joined.
    order: Vec<usize>,
    /// Expected rows, and the cost of all up to here.
    rows: f64,
    cost: f64,
}

impl<'p> Joins<'p> {
    /// Adds the tables below a plan, and gives its output columns. `None`: the size of a table is unknown, or its consumer
    /// stops it.
    fn take_apart(&mut self, plan: &'p Plan) -> Option<Vec<Place>> {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>()
            && let Some(columns) = picks(projection)
            && join_below(projection.input()).is_some()
        {
            let below = self.take_apart(projection.input())?;
            return columns.into_iter().map(|at| below.get(at).copied()).collect();
        }
        let Some(join) = join_below(plan) else { return self.add(plan) };
        let left = self.take_apart(join.left())?;
        let right = self.take_apart(join.right())?;
        for (of_left, of_right) in join.on() {
            self.equate(*left.get(place(of_left)?)?, *right.get(place(of_right)?)?);
        }
        let all: Vec<Place> = left.into_iter().chain(right).collect();
        match &join.projection {
            None => Some(all),
            Some(output) => output.iter().map(|at| all.get(*at).copied()).collect(),
        }
    }

    fn add(&mut self, plan: &'p Plan) -> Option<Vec<Place>> {
        let scan = picked(plan);
        let rows = rows_of(plan)?;
        // The consumer of this one stops it: joined elsewhere, it would be read to its end.
        if scan.as_ref().is_some_and(|(scan, _)| scan.may_stop()) {
            return None;
        }
        let cost = scan.as_ref().and_then(|(scan, _)| scan.expected_work()).unwrap_or(rows);
        let table = self.tables.len();
        self.tables.push(Table { plan, scan, rows, cost });
        Some((0..plan.schema().fields().len()).map(|at| (table, at)).collect())
    }

    fn equate(&mut self, a: Place, b: Place) {
        let (mut joined, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.equal).into_iter().partition(|set| set.contains(&a) || set.contains(&b));
        let mut all = joined.pop().unwrap_or_default();
        all.extend(joined.into_iter().flatten());
        all.extend([a, b]);
        all.sort_unstable();
        all.dedup();
        self.equal = rest;
        self.equal.push(all);
    }

    /// Some set of equal columns has two of one table: joining others first would not make them equal.
    fn has_two_of_one_table(&self) -> bool {
        self.equal.iter().any(|set| set.windows(2).any(|pair| pair[0].0 == pair[1].0))
    }

    /// What the joins cost in the order that the plan has. `next`: the number of the next table.
    fn given(&self, plan: &Plan, next: &mut usize) -> Option<Joined> {
        if let Some(projection) = plan.downcast_ref::<ProjectionExec>()
            && picks(projection).is_some()
            && join_below(projection.input()).is_some()
        {
            return self.given(projection.input(), next);
        }
        let Some(join) = join_below(plan) else {
            let table = *next;
            *next += 1;
            return Some(self.first(table));
        };
        let left = self.given(join.left(), next)?;
        let right = self.given(join.right(), next)?;
        let order = || left.order.iter().chain(&right.order).copied().collect();
        let one_by_one = match (&left.order[..], &right.order[..]) {
            ([of_left], [of_right]) => [self.then(&left, *of_right), self.then(&right, *of_left)],
            (_, [of_right]) => [self.then(&left, *of_right), None],
            ([of_left], _) => [None, self.then(&right, *of_left)],
            _ => [None, None],
        };
        let cheapest = one_by_one.into_iter().flatten().min_by(|a, b| a.cost.total_cmp(&b.cost));
        Some(cheapest.unwrap_or_else(|| {
            let rows = left.rows.max(right.rows);
            Joined { order: order(), rows, cost: left.cost + right.cost + rows }
        }))
    }

    /// The cheapest way to join all tables one after the other.
    fn best(&self) -> Option<Joined> {
        let all = (1_usize << self.tables.len()) - 1;
        let mut best: Vec<Option<Joined>> = vec![None; all + 1];
        for table in 0..self.tables.len() {
            best[1 << table] = Some(self.first(table));
        }
        for subset in 1..=all {
            let Some(joined) = best[subset].clone() else { continue };
            for table in (0..self.tables.len()).filter(|table| subset & 1 << table == 0) {
                let Some(then) = self.then(&joined, table) else { continue };
                let known = &mut best[subset | 1 << table];
                if known.as_ref().is_none_or(|known| then.cost < known.cost) {
                    *known = Some(then);
                }
            }
        }
        best.pop().flatten()
    }

    fn first(&self, table: usize) -> Joined {
        let Table { rows, cost, .. } = self.tables[table];
        Joined { order: vec![table], rows, cost }
    }

    /// The same tables and one more; `None`: it has no column that equals one of theirs.
    fn then(&self, joined: &Joined, table: usize) -> Option<Joined> {
        let on = self.on(&joined.order, table);
        if on.is_empty() {
            return None;
        }
        let added = &self.tables[table];
        let each = self.matches(table, on.iter().map(|(_, at)| *at).collect());
        // The other way around: what a row of the added table finds in one of the others.
        let back = joined.order.iter().filter_map(|other| {
            let of_other: Option<Vec<usize>> =
                on.iter().map(|(set, _)| self.column_of(*set, *other)).collect();
            let found = self.matches(*other, of_other?)?.rows;
            Some(added.rows * found * (joined.rows / self.tables[*other].rows.max(1.0)).min(1.0))
        });
        let values = on.iter().filter_map(|(set, _)| {
            let members = self.equal[*set].iter();
            let known = members.filter(|(of, _)| *of == table || joined.order.contains(of));
            known.filter_map(|(of, at)| self.tables[*of].distinct(*at)).reduce(f64::max)
        });
        let by_values = values.reduce(f64::max).map(|values| joined.rows * added.rows / values.max(1.0));
        let forward = each.map(|each| joined.rows * each.rows.min(added.rows));
        let known = forward.into_iter().chain(back).chain(by_values).reduce(f64::min);
        let rows = known.unwrap_or_else(|| joined.rows.max(added.rows));
        let looked_up = each.map_or(f64::INFINITY, |each| joined.rows * (COST.seek + each.work));
        let order = joined.order.iter().copied().chain([table]).collect();
        Some(Joined { order, rows, cost: joined.cost + looked_up.min(added.cost) + rows })
    }

    fn matches(&self, table: usize, columns: Columns) -> Option<Matches> {
        let mut known = self.known.borrow_mut();
        *known
            .entry((table, columns))
            .or_insert_with_key(|(table, columns)| self.tables[*table].matches(columns))
    }

    /// The sets of equal columns that a table shares with others, each with its column there.
    fn on(&self, others: &[usize], table: usize) -> Vec<(usize, usize)> {
        let shared = |set: &usize| self.equal[*set].iter().any(|(of, _)| others.contains(of));
        let with_column = |set: usize| Some((set, self.column_of(set, table)?));
        (0..self.equal.len()).filter(shared).filter_map(with_column).collect()
    }

    fn column_of(&self, set: usize, table: usize) -> Option<usize> {
        self.equal[set].iter().find(|(of, _)| *of == table).map(|(_, at)| *at)
    }

    /// The joins in this order, with the output columns of `given`.
    fn build(&self, order: &[usize], output: &[Place], given: &Plan, mode: PartitionMode) -> DfResult<Plan> {
        let mut plan = Arc::clone(self.tables[order[0]].plan);
        // Where each table's columns begin.
        let mut begins = vec![0; self.tables.len()];
        for (at, table) in order.iter().enumerate().skip(1) {
            let added = self.tables[*table].plan;
            let on = self.on(&order[..at], *table).into_iter().filter_map(|(set, of_added)| {
                let (of, there) = self.equal[set].iter().find(|(of, _)| order[..at].contains(of))?;
                Some((column(&plan, begins[*of] + there), column(added, of_added)))
            });
            let on = on.collect();
            begins[*table] = plan.schema().fields().len();
            let join = HashJoinExecBuilder::new(plan, Arc::clone(added), on, JoinType::Inner);
            plan = Arc::new(join.with_partition_mode(mode).build()?);
        }
        picked_as(plan, output.iter().map(|(of, at)| begins[*of] + at), &given.schema())
    }
}

impl Table<'_> {
    /// Expected rows with one value in each of these columns, and the cost of reading them; `None`: no key has them.
    fn matches(&self, columns: &[usize]) -> Option<Matches> {
        let (scan, places) = self.scan.as_ref()?;
        let fields = columns.iter().map(|at| scan.request.output_field(*places.get(*at)?));
        scan.request.matches(scan.bound().ok()?, &fields.collect::<Option<Vec<_>>>()?)
    }

    /// Distinct values (count) of a column, if known.
    fn distinct(&self, at: usize) -> Option<f64> {
        let (scan, places) = self.scan.as_ref()?;
        let field: Field = scan.request.output_field(*places.get(at)?)?;
        scan.request.distinct(&scan.bound().ok()?.binding, field)
    }
}

/// The plan as an inner join by equal columns, or as such a join below projections.
fn join_below(plan: &Plan) -> Option<&HashJoinExec> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return picks(projection).and_then(|_| join_below(projection.input()));
    }
    let join = plan.downcast_ref::<HashJoinExec>()?;
    let is_column = |(left, right): &(_, _)| place(left).is_some() && place(right).is_some();
    (is_plain(join) && *join.join_type() == JoinType::Inner && join.on().iter().all(is_column))
        .then_some(join)
}
