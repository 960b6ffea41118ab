//! Plans that the calling thread runs on its own.
//!
//! A scan, what it adds up to, its groups if they are few, a row of no table, and several of these one behind the other
//! need none of DataFusion's streams; nor do lookups ([`crate::df::operators::lookup`]).

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::union::UnionExec;

use super::beside::Beside;
use super::few_groups::FewGroups;
use super::plan::picked;
use super::row_map::RowMap;
use super::totals::{Totals, TotalsRun};
use crate::access::Guards;
use crate::df::operators::lookup::{Lookups, NestedRun};
use crate::df::operators::scan::ScanExec;
use crate::df::table::Binding;
use crate::error::Result;
use crate::exec::kept::NextRows;
use crate::exec::scan::{PARALLEL_WORK, Scan};
use crate::exec::watch::PlanText;

/// A plan without operators to be reset.
#[derive(Debug)]
pub enum Single {
    /// A scan.
    Scan(ScanExec),
    /// What one adds up to.
    Totals(Arc<Totals>),
    /// Its groups.
    Groups(Arc<FewGroups>),
    /// Several of what scans add up to, in one row.
    Beside(Arc<Beside>),
    /// A row of no table.
    NoTable(Arc<RowMap>),
    /// One behind the other.
    Several(Vec<Single>),
}

impl Single {
    /// The plan as one of them, with these columns, if it is no more than that.
    pub fn of(root: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Option<Single> {
        if let Some((scan, columns)) = picked(root).filter(|(scan, _)| scan.is_whole()) {
            return Some(Single::Scan(scan.pick(&columns, schema)));
        }
        if let Some(cooperative) = root.downcast_ref::<CooperativeExec>() {
            return Single::of(cooperative.input(), schema);
        }
        if let Some(union) = root.downcast_ref::<UnionExec>() {
            let several = union.inputs().iter().map(|input| Single::of(input, schema));
            return several.collect::<Option<_>>().map(Single::Several);
        }
        let totals = Totals::of(root, schema).map(|totals| Single::Totals(Arc::new(totals)));
        let groups = || FewGroups::of(root, schema).map(|groups| Single::Groups(Arc::new(groups)));
        let no_table = || RowMap::new(root, None).map(|row| Single::NoTable(Arc::new(row)));
        let beside = || Beside::of(root, schema).map(|beside| Single::Beside(Arc::new(beside)));
        totals.or_else(groups).or_else(no_table).or_else(beside)
    }

    /// Ready to run; `None` if a parameter does not suit, or operators do better.
    // Boxed where it is made: it is handed on a few times.
    pub fn run(&self, binding: &Binding) -> Result<Option<Box<Alone>>> {
        Ok(match self {
            Single::Scan(scan) => Alone::of_scan(scan.run(binding, &Arc::default())?),
            Single::Totals(totals) => totals.run(binding)?.map(|run| Box::new(Alone::Totals(run))),
            Single::Groups(groups) => groups.run(binding)?.map(Box::new),
            Single::Beside(beside) => beside.run(binding)?.map(Box::new),
            Single::NoTable(row) => {
                let text = || ("a row of no table".to_owned(), None);
                let row = row.apply(None, &binding.params)?;
                row.map(|row| Box::new(Alone::Rows(Some(row), Arc::new(text))))
            }
            // Who counts what is read counts it of all together.
            Single::Several(_) if binding.guards != Guards::default() => None,
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

/// What the calling thread reads on its own.
pub enum Alone {
    /// Rows.
    Scan(Scan),
    /// What they add up to.
    Totals(TotalsRun),
    /// Rows and what they find.
    Lookups(Lookups),
    /// The same, one row after the other.
    Nested(NestedRun),
    /// All rows there are, and what they were read by.
    Rows(Option<RecordBatch>, PlanText),
    /// Several of these, one behind the other.
    Several(VecDeque<Alone>),
}

impl Alone {
    /// A scan, if there is one.
    pub fn of_scan(scan: Option<Scan>) -> Option<Box<Alone>> {
        scan.map(|scan| Box::new(Alone::Scan(scan)))
    }

    /// The next rows, possibly none of them yet; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Alone::Scan(scan) => scan.next_batch(),
            Alone::Totals(totals) => totals.next_batch(),
            Alone::Lookups(lookups) => lookups.next_batch(),
            Alone::Nested(nested) => nested.next_batch(),
            Alone::Rows(rows, _) => Ok(rows.take()),
            Alone::Several(all) => in_turn(all, Alone::next_batch),
        }
    }

    /// The next rows, `rows_max` at the most, for somebody who reads them one by one: [`Alone::next_batch`].
    pub fn next_rows(&mut self, rows_max: usize) -> Result<Option<NextRows>> {
        match self {
            Alone::Scan(scan) => scan.next_rows(rows_max),
            Alone::Nested(nested) => nested.next_rows(),
            Alone::Totals(totals) => totals.next_rows(),
            Alone::Lookups(lookups) => Ok(lookups.next_batch()?.map(NextRows::Batch)),
            Alone::Rows(rows, _) => Ok(rows.take().map(NextRows::Batch)),
            Alone::Several(all) => in_turn(all, |one| one.next_rows(rows_max)),
        }
    }

    /// Worth the work of more than one thread.
    pub fn is_long(&self) -> bool {
        match self {
            Alone::Scan(scan) => scan.work() >= PARALLEL_WORK,
            Alone::Totals(totals) => totals.is_long(),
            _ => false,
        }
    }

    /// Its line of EXPLAIN, when it is asked for.
    pub fn plan_text(&self) -> PlanText {
        match self {
            Alone::Scan(scan) => scan.plan_text(),
            Alone::Totals(totals) => totals.plan_text(),
            Alone::Lookups(lookups) => lookups.plan_text(),
            Alone::Nested(nested) => nested.plan_text(),
            Alone::Rows(_, text) => Arc::clone(text),
            Alone::Several(all) => {
                let texts = all.iter().map(Alone::plan_text);
                one_of_all(texts.collect())
            }
        }
    }
}

/// The lines of several, with the first of their notes.
pub(super) fn one_of_all(texts: Vec<PlanText>) -> PlanText {
    Arc::new(move || {
        let (texts, notes): (Vec<String>, Vec<Option<String>>) = texts.iter().map(|text| text()).unzip();
        (texts.join("\n"), notes.into_iter().flatten().next())
    })
}

/// What the first of these gives, or of those behind it, once it has no more.
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
