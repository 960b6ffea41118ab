//! Plans that the calling thread runs by itself, without DataFusion's streams.
//!
//! These are scans, their totals, few groups, a row of no table, several of these in sequence, and lookup joins
//! ([`crate::df::operators::lookup`]).

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;

use super::beside::Beside;
use super::few_groups::FewGroups;
use super::few_rows::FewRows;
use super::row_map::RowMap;
use super::totals::{Totals, TotalsRun};
use crate::access::Guards;
use crate::df::below::{passed_on, picked};
use crate::df::contained::Stage;
use crate::df::operators::lookup::{Lookups, NestedRun};
use crate::df::operators::scan::ScanExec;
use crate::df::table::Binding;
use crate::error::Result;
use crate::exec::next_rows::NextRows;
use crate::exec::scan::{PARALLEL_WORK, Scan};
use crate::exec::watch::PlanText;

/// A plan that runs without operators, so that none needs a reset.
#[derive(Debug)]
pub enum Single {
    /// A scan.
    Scan(ScanExec),
    /// The totals of a scan.
    Totals(Arc<Totals>),
    /// The groups of a scan.
    Groups(Arc<FewGroups>),
    /// Few rows of a scan, and simple operators on top.
    Few(Arc<FewRows>),
    /// The totals of several scans in one row.
    Beside(Arc<Beside>),
    /// A row of no table.
    NoTable(Arc<RowMap>),
    /// Several plans, one after the other (UNION ALL).
    Several(Vec<Single>),
}

impl Single {
    /// The plan as one of these, with the columns of `schema`, if it is nothing more.
    pub fn of(root: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<Single> {
        if let Some((scan, columns)) = picked(root).filter(|(scan, _)| scan.is_whole()) {
            return Some(Single::Scan(scan.pick(&columns, schema)));
        }
        if let Some(input) = passed_on(&**root) {
            return Single::of(input, schema);
        }
        if let Some(union) = root.downcast_ref::<UnionExec>() {
            let several = union.inputs().iter().map(|input| Single::of(input, schema));
            return several.collect::<Option<_>>().map(Single::Several);
        }
        let totals = Totals::of(root, schema).map(|totals| Single::Totals(Arc::new(totals)));
        let groups = || FewGroups::of(root, schema).map(|groups| Single::Groups(Arc::new(groups)));
        let no_table = || RowMap::new(root, None).map(|row| Single::NoTable(Arc::new(row)));
        let beside = || Beside::of(root, schema).map(|beside| Single::Beside(Arc::new(beside)));
        let few = || FewRows::of(root, schema).map(|few| Single::Few(Arc::new(few)));
        totals.or_else(groups).or_else(no_table).or_else(beside).or_else(few)
    }

    /// A run of the plan; `None` if a parameter does not suit, or operators do better.
    pub fn run(&self, binding: &Binding) -> Result<Option<Box<Alone>>> {
        Ok(match self {
            // Only operators enforce the session's limits on reads of several, or of those that are read here.
            Single::Groups(_) | Single::Few(_) | Single::Beside(_) | Single::Several(_)
                if binding.guards != Guards::default() =>
            {
                None
            }
            Single::Scan(scan) => Alone::of_scan(scan.run(binding, &Arc::default())?),
            Single::Totals(totals) => totals.run(binding)?.map(|run| Box::new(Alone::Totals(run))),
            Single::Groups(groups) => groups.run(binding)?.map(Box::new),
            Single::Few(few) => few.run(binding)?.map(Box::new),
            Single::Beside(beside) => beside.run(binding)?.map(Box::new),
            Single::NoTable(row) => {
                let text = || ("a row of no table".to_owned(), None);
                let row = row.apply(None, &binding.params)?;
                row.map(|row| Box::new(Alone::Rows(Some(row), Arc::new(text))))
            }
            Single::Several(several) => {
                let mut all = VecDeque::with_capacity(several.len());
                for single in several {
                    match single.run(binding)? {
                        Some(one) if !one.is_long() => all.push_back(*one),
                        _ => return Ok(None),
                    }
                }
                Some(Box::new(Alone::Several(all)))
            }
        })
    }
}

/// A run on the calling thread.
pub enum Alone {
    /// A scan.
    Scan(Scan),
    /// Totals of a scan.
    Totals(TotalsRun),
    /// A lookup join.
    Lookups(Lookups),
    /// A nested lookup join, one outer row after the other.
    Nested(NestedRun),
    /// Rows that are computed already, and the plan that computed them.
    Rows(Option<RecordBatch>, PlanText),
    /// Several runs, one after the other.
    Several(VecDeque<Alone>),
    /// The rows of a run behind the first `skip` (count), `left` of them.
    Cut { whole: Box<Alone>, skip: usize, left: usize },
}

impl Alone {
    /// Wraps a scan.
    pub fn of_scan(scan: Option<Scan>) -> Option<Box<Alone>> {
        scan.map(|scan| Box::new(Alone::Scan(scan)))
    }

    /// Skips rows of a run, then gives so many.
    pub fn cut(mut whole: Box<Alone>, skip: usize, left: usize) -> Box<Alone> {
        let is_cut = match &mut *whole {
            Alone::Nested(nested) => nested.cut(skip, left),
            _ => false,
        };
        if is_cut { whole } else { Box::new(Alone::Cut { whole, skip, left }) }
    }

    /// The next rows, possibly none of them yet; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        Stage::Running.contain(|| self.batch())
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Alone::Scan(scan) => scan.next_batch(),
            Alone::Totals(totals) => totals.next_batch(),
            Alone::Lookups(lookups) => lookups.next_batch(),
            Alone::Nested(nested) => nested.next_batch(),
            Alone::Rows(rows, _) => Ok(rows.take()),
            Alone::Several(all) => in_turn(all, Alone::batch),
            Alone::Cut { left: 0, .. } => Ok(None),
            Alone::Cut { whole, skip, left } => {
                let Some(batch) = whole.batch()? else { return Ok(None) };
                let passed = batch.num_rows().min(*skip);
                let taken = (batch.num_rows() - passed).min(*left);
                (*skip, *left) = (*skip - passed, *left - taken);
                Ok(Some(batch.slice(passed, taken)))
            }
        }
    }

    /// [`Alone::next_batch`] for a consumer that reads row by row; scans read `rows_max` rows at the most.
    pub fn next_rows(&mut self, rows_max: usize) -> Result<Option<NextRows>> {
        Stage::Running.contain(|| self.rows(rows_max))
    }

    fn rows(&mut self, rows_max: usize) -> Result<Option<NextRows>> {
        match self {
            Alone::Scan(scan) => scan.next_rows(rows_max),
            Alone::Nested(nested) => nested.next_rows(),
            Alone::Totals(totals) => totals.next_rows(),
            Alone::Lookups(_) | Alone::Cut { .. } => Ok(self.batch()?.map(NextRows::Batch)),
            Alone::Rows(rows, _) => Ok(rows.take().map(NextRows::Batch)),
            Alone::Several(all) => in_turn(all, |one| one.rows(rows_max)),
        }
    }

    /// The run is long enough for several threads.
    pub fn is_long(&self) -> bool {
        match self {
            Alone::Scan(scan) => scan.work() >= PARALLEL_WORK,
            Alone::Totals(totals) => totals.is_long(),
            _ => false,
        }
    }

    /// Its EXPLAIN, rendered on demand.
    pub fn plan_text(&self) -> PlanText {
        match self {
            Alone::Scan(scan) => scan.plan_text(),
            Alone::Totals(totals) => totals.plan_text(),
            Alone::Lookups(lookups) => lookups.plan_text(),
            Alone::Nested(nested) => nested.plan_text(),
            Alone::Rows(_, text) => Arc::clone(text),
            Alone::Cut { whole, .. } => whole.plan_text(),
            Alone::Several(all) => {
                let texts = all.iter().map(Alone::plan_text);
                one_of_all(texts.collect())
            }
        }
    }
}

/// The EXPLAIN of several runs, with the first of their notes.
pub(super) fn one_of_all(texts: Vec<PlanText>) -> PlanText {
    Arc::new(move || {
        let (texts, notes): (Vec<String>, Vec<Option<String>>) = texts.iter().map(|text| text()).unzip();
        (texts.join("\n"), notes.into_iter().flatten().next())
    })
}

/// The next value of the first run that is not finished.
fn in_turn<T>(
    all: &mut VecDeque<Alone>,
    next: impl Fn(&mut Alone) -> Result<Option<T>>,
) -> Result<Option<T>> {
    while let Some(first) = all.front_mut() {
        match next(first)? {
            None => all.pop_front(),
            some => return Ok(some),
        };
    }
    Ok(None)
}
