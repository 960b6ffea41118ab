//! A plan's request to a table, and the access path that each run chooses for it.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{Schema, SchemaRef};

use super::matches::MatchSamples;
use super::{Binding, QueryRelation};
use crate::access::{
    Access, Again, COST, Choice, Each, FirstRun, Guards, Method, Need, OrderBy, Path, Statistics, UnionPaths,
    along, choose, choose_again, passing_share, path_access, rows_of, share_of_equals,
};
use crate::df::expr::FieldNames;
use crate::df::statistics::{JumpSamples, StoreStatistics};
use crate::df::table::template::{Template, suited_or_same};
use crate::df::wanted::{FirstFound, RowGoal};
use crate::error::Result;
use crate::exec::scan::{ScanSources, ScanSpec, field_type};
use crate::key::{ColumnId, KeyLayout, KeyPart, Rowkey};
use crate::plan::{CmpOp, Field, Predicate};
use crate::row::field;
use crate::schema::TableDef;
use crate::value::{ColumnType, Value};

/// What a plan wants of one table or index table; each run chooses a path anew.
#[derive(Clone)]
pub struct ScanRequest {
    pub(super) relation: Arc<QueryRelation>,
    pub(super) filters: Vec<Template>,
    /// The columns with one value in each run.
    pub(super) fixed: Arc<[ColumnId]>,
    /// The path of the first run, if all runs may take it.
    pub(super) path: Option<Path>,
    /// The walks of the first run, if it took a union.
    pub(super) union: Option<UnionPaths>,
    /// Set if every run reads one key or one range of keys along the same path.
    pub(super) again: Option<Again>,
    pub(super) output: Arc<[Field]>,
    /// Cached positions of the output columns in keys and rows, for a scan without filters.
    pub(super) places: OnceLock<(Path, Arc<ScanSources>)>,
    /// The same with the columns of filters, for what [`Again`] reads.
    pub(super) known_places: OnceLock<Arc<ScanSources>>,
    /// Columns of the scan.
    pub schema: SchemaRef,
    /// Order that the statement wants.
    pub order: Vec<OrderBy>,
    /// How many rows, in that order.
    pub rows: RowGoal,
    /// Rows (count) to skip.
    pub(super) offset: u64,
    /// The first rows wanted above a join that finds rows here.
    pub first_found: Option<FirstFound>,
    /// The first rows wanted for each outer row of a join.
    pub first_of_row: Option<FirstFound>,
    pub(super) each: Option<Each>,
    /// Rows may come in any order.
    pub any_order: bool,
    pub(super) samples: MatchSamples,
    pub(super) jumps: JumpSamples,
}

/// A column of the table, compared with a value of an outer row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfRow {
    pub field: Field,
    pub op: CmpOp,
    /// Type of the column.
    pub ty: ColumnType,
}

impl OfRow {
    /// The column equals the value.
    pub fn equal(id: ColumnId, ty: ColumnType) -> OfRow {
        OfRow { field: Field::Column(id), op: CmpOp::Eq, ty }
    }

    /// The value decides conditions on this field.
    pub fn tells(&self, field: Field) -> bool {
        self.op == CmpOp::Eq && self.field == field
    }
}

/// A request with the path chosen for one run.
pub struct Bound {
    /// What is read, and how.
    pub spec: Arc<ScanSpec>,
    /// What is wanted.
    pub need: Need,
    /// Rows (count) that are expected.
    pub rows: f64,
    /// Snapshot, parameters and limits of the run.
    pub binding: Binding,
    /// Why this path.
    pub chosen: String,
    /// Why no other.
    pub rejected: Vec<(String, String)>,
    /// What would serve better.
    pub note: Option<String>,
}

impl ScanRequest {
    /// The same request for some of its columns, under other names. Those that it leaves out are only compared, and
    /// [`Again`] knows that these are wanted, too.
    pub fn pick(&self, columns: &[usize], schema: &SchemaRef) -> ScanRequest {
        let output = columns.iter().map(|at| self.output[*at]).collect();
        ScanRequest {
            output,
            places: OnceLock::new(),
            known_places: OnceLock::new(),
            schema: Arc::clone(schema),
            ..self.clone()
        }
    }

    /// The same request for another page.
    pub fn paged(&self, offset: u64, limit: Option<u64>) -> ScanRequest {
        let rows = match (self.rows, limit) {
            (RowGoal::First(_), Some(limit)) => RowGoal::First(offset.saturating_add(limit)),
            (rows, _) => rows,
        };
        ScanRequest { rows, offset, ..self.clone() }
    }

    /// The same request for about so many rows: the consumer stops it.
    pub fn of_about(&self, rows: u64) -> ScanRequest {
        ScanRequest { rows: RowGoal::About { least: rows, expected: rows }, offset: 0, ..self.clone() }
    }

    /// The same request for rows that pass these comparisons with the parameters behind the first `params`, or for the
    /// `first` such rows. Filters on the equal columns alone, [`ScanRequest::asked_of`], are dropped: the values decide
    /// them.
    pub fn of_row(&self, on: &[OfRow], params: usize, first: Option<&FirstFound>) -> ScanRequest {
        let compared = |(at, &OfRow { field, op, ty }): (usize, &OfRow)| Template::Compare {
            field,
            op,
            ty,
            param: params + at,
            with_time: false,
        };
        let others = self.filters.iter().filter(|filter| !self.is_of(filter, on));
        let filters: Vec<_> = others.cloned().chain(on.iter().enumerate().map(compared)).collect();
        ScanRequest {
            fixed: fixed_by(&filters),
            filters,
            path: None,
            union: None,
            again: None,
            places: OnceLock::new(),
            known_places: OnceLock::new(),
            order: first.map_or_else(|| self.order.clone(), |first| first.order.clone()),
            rows: first.map_or(self.rows, |first| RowGoal::First(first.rows)),
            any_order: self.any_order && first.is_none_or(|first| first.order.is_empty()),
            each: None,
            samples: MatchSamples::default(),
            ..self.clone()
        }
    }

    /// The columns with one value in each run: they equal a constant or a parameter.
    pub fn fixed(&self) -> &[ColumnId] {
        &self.fixed
    }

    /// The columns that are `told`, and those with one value in each run, make up the rowkey.
    pub fn is_rowkey(&self, told: &dyn Fn(ColumnId) -> bool) -> bool {
        let key = &self.table().key;
        !key.is_drawn() && key.columns().iter().all(|id| told(*id) || self.fixed.contains(id))
    }

    /// The filters on the equal columns alone.
    pub fn asked_of(&self, on: &[OfRow]) -> Vec<Template> {
        self.filters.iter().filter(|filter| self.is_of(filter, on)).cloned().collect()
    }

    fn is_of(&self, filter: &Template, on: &[OfRow]) -> bool {
        filter.is_of(&|field| on.iter().any(|term| term.tells(field)), &self.relation.names)
    }

    /// The same request, to be kept, with the path of its first run; `None` if other runs cannot take that path.
    pub fn settled(&self, bound: &Bound) -> Option<ScanRequest> {
        let access = &bound.spec.access;
        let is_path = matches!(access.method, Method::Get(_) | Method::Scan { .. });
        is_path.then(|| ScanRequest { path: Some(access.path), ..self.clone() }.knowing(bound))
    }

    /// The same request with what its first run tells about the access of any run, if that is simple.
    pub(super) fn knowing(self, bound: &Bound) -> ScanRequest {
        let comparison = |filter: &Template| match filter {
            Template::Compare { field: Field::Column(id), op, .. } => Some((*id, *op)),
            _ => None,
        };
        let conditions: Vec<_> = self.filters.iter().map(comparison).collect();
        let values: Vec<_> =
            (0..conditions.len()).map(|at| self.compared_with(at, &bound.binding.params)).collect();
        let again = Again::of(&FirstRun {
            source: self.relation.source(),
            need: &bound.need,
            access: &bound.spec.access,
            stats: &self.statistics(&bound.binding),
            conditions: &conditions,
            value: &|at| values.get(at)?.as_deref(),
            filled: &|rest| self.filled(rest.iter().map(|at| &self.filters[*at]), &bound.binding),
        });
        ScanRequest { again, known_places: OnceLock::new(), ..self }
    }

    /// Chooses the path for these parameters and this snapshot. `None` if a parameter does not suit its filter: then
    /// the query has to be planned with the value in it.
    pub fn bind(&self, binding: &Binding) -> Result<Option<Bound>> {
        let relation = &self.relation;
        let Some(predicate) = self.predicate(binding) else { return Ok(None) };
        let need = self.need(predicate);
        let stats = self.statistics(binding);
        let again = self.along_stretch(&need.predicate, &stats);
        let by_path = || choose_again(relation.source(), &need, self.path?, &stats);
        let by_paths = || self.union.as_ref()?.access(&relation.table, &need, &stats);
        let again = again.or_else(by_path).or_else(by_paths);
        let choice = match again {
            Some(access) => Choice::of(access, ""),
            None => choose(relation.source(), &need, &stats)?,
        };
        Ok(Some(self.bound(need, choice, binding.clone())))
    }

    pub(super) fn need(&self, predicate: Predicate) -> Need {
        Need {
            predicate,
            output: Arc::clone(&self.output),
            order: self.order.clone(),
            limit: self.rows.expected(),
            offset: self.offset,
            hints: self.relation.advice.hints.clone(),
            each: self.each.clone(),
        }
    }

    /// Most rows (count) that the consumer sees.
    pub(super) fn looked_at(&self) -> Option<u64> {
        self.rows.expected().map(|rows| rows.saturating_sub(self.offset))
    }

    /// The filters for these parameters; `None` as for [`ScanRequest::bind`].
    pub fn predicate(&self, binding: &Binding) -> Option<Predicate> {
        self.filled(&self.filters, binding)
    }

    /// [`ScanRequest::predicate`] for some of the filters.
    pub fn filled<'t>(
        &self,
        filters: impl IntoIterator<Item = &'t Template>,
        binding: &Binding,
    ) -> Option<Predicate> {
        let filled = filters.into_iter().map(|filter| filter.fill(&self.relation.names, binding));
        Some(Predicate::and(filled.collect::<Option<Vec<_>>>()?))
    }

    /// The walks of a union that was chosen.
    pub(super) fn union_of(&self, bound: &Bound) -> Option<UnionPaths> {
        UnionPaths::of(self.table(), &bound.need, &bound.spec.access, &self.statistics(&bound.binding))
    }

    pub(super) fn along_stretch(&self, predicate: &Predicate, stats: &dyn Statistics) -> Option<Access> {
        self.again.as_ref()?.stretch()?.access(self.relation.source(), predicate, self.looked_at(), stats)
    }

    /// [`ScanRequest::known`] has a path.
    pub fn is_known(&self) -> bool {
        self.again.is_some()
    }

    /// The scan for these parameters, if it is one key or one range whatever their values; and the number of entries by
    /// which it must end, if it may be expensive.
    pub fn known(&self, binding: &Binding) -> Option<(ScanSpec, Option<usize>)> {
        if binding.guards != Guards::default() {
            return None;
        }
        let again = self.again.as_ref()?;
        let of_terms = again.terms().iter().map(|at| self.compared_with(*at, &binding.params));
        let values = of_terms.collect::<Option<Vec<_>>>()?;
        let value = |term: usize| values.get(term).map(|value| &**value);
        let rest = self.filled(again.rest().iter().map(|at| &self.filters[*at]), binding)?;
        let (source, stats) = (self.relation.source(), self.statistics(binding));
        let (access, entries_max) = again.access(source, value, rest, self.looked_at(), &stats)?;
        if again.rest().is_empty() {
            return Some((self.spec(access, &self.output), entries_max));
        }
        let places = || Arc::new(self.sources(&access, &self.output));
        let places = Arc::clone(self.known_places.get_or_init(places));
        Some((self.spec_of(access, &self.output, places), entries_max))
    }

    /// The value that a filter compares with; `None` as for [`ScanRequest::bind`], or if it is not a comparison.
    fn compared_with<'v>(&self, filter: usize, params: &'v [Value]) -> Option<Cow<'v, Value>> {
        match &self.filters[filter] {
            Template::Compare { ty, param, .. } => suited_or_same(params.get(*param)?, *ty),
            _ => None,
        }
    }

    /// Chooses the path anew for the rows that also pass one more condition.
    pub fn narrow(&self, bound: &Bound, condition: Predicate) -> Result<Bound> {
        self.narrow_as(bound, condition, None)
    }

    /// [`ScanRequest::narrow`] along the path that was chosen for `another` condition on the same columns, unless it is no
    /// single path, or reads all entries for this one.
    pub fn narrow_as(&self, bound: &Bound, condition: Predicate, another: Option<&Bound>) -> Result<Bound> {
        let predicate = Predicate::and([bound.need.predicate.clone(), condition]);
        let need = Need { predicate, ..bound.need.clone() };
        let (source, stats) = (self.relation.source(), self.statistics(&bound.binding));
        let same = another.and_then(|Bound { spec, chosen, .. }| {
            let access = match &spec.access.method {
                // Without a probe it would not jump.
                Method::Scan { skip: Some(_), .. } => path_access(source, &need, spec.access.path, &stats)?,
                Method::Scan { skip: None, .. } => along(source, &need, spec.access.path, &stats)?,
                Method::Empty | Method::Get(_) | Method::Gather { .. } => return None,
            };
            let choice = Choice::of(access, chosen);
            (!choice.access.method.is_whole()).then_some(choice)
        });
        let choice = match same {
            Some(choice) => choice,
            None => choose(source, &need, &stats)?,
        };
        Ok(self.bound(need, choice, bound.binding.clone()))
    }

    /// [`ScanRequest::narrow`], in an order or a prefix of it, of which about so many rows will be read. `None` if that
    /// costs more than sorting.
    pub fn narrow_in_order(
        &self,
        bound: &Bound,
        condition: Predicate,
        wanted: &FirstFound,
    ) -> Result<Option<Bound>> {
        let narrowed = self.narrow(bound, condition)?;
        let collected = self.relation.advice.statistics.as_deref();
        for columns in (1..=wanted.order.len()).rev() {
            let order = wanted.order[..columns].to_vec();
            let equal = narrowed.rows * share_of_equals(collected, order.iter().map(|by| by.field));
            let limit = Some(wanted.rows.saturating_add(equal as u64));
            let need = Need { order, limit, ..narrowed.need.clone() };
            let (source, stats) = (self.relation.source(), self.statistics(&bound.binding));
            let mut choice = choose(source, &need, &stats)?;
            // The consumer may read all rows after all: walk no more than those.
            if choice.access.method.is_whole()
                && let Some(access) = along(source, &need, narrowed.spec.access.path, &stats)
            {
                let chosen = "in the order of which the first rows are wanted".to_owned();
                choice = Choice { access, chosen, rejected: narrowed.rejected.clone(), note: None };
            }
            let Access { ordered, cost, method, .. } = &choice.access;
            if *ordered && *cost < narrowed.spec.access.cost && !method.is_whole() {
                let need = Need { limit: None, ..need };
                let in_order = self.bound(need, choice, bound.binding.clone());
                return Ok(Some(in_order).filter(|in_order| self.check(in_order).is_ok()));
            }
        }
        Ok(None)
    }

    /// The scan along the same path, with one more condition as a filter.
    pub fn dropping(&self, bound: &Bound, condition: Predicate) -> ScanSpec {
        let mut access = bound.spec.access.clone();
        access.filter = Predicate::and([access.filter.into(), condition]).into();
        self.spec(access, &bound.need.output)
    }

    /// Cost of choosing among all paths for one more value that is told at run time.
    pub fn planning_of_one(&self) -> f64 {
        COST.learned * (1 + self.table().indexes.len()) as f64
    }

    /// The table, unless the request is for an index table, or a hint prescribes the path.
    pub fn read_as_table(&self) -> Option<&TableDef> {
        let QueryRelation { table, index, advice, .. } = &*self.relation;
        let is_free = advice.hints.only.is_none() && !advice.hints.full;
        (index.is_none() && is_free).then_some(table)
    }

    /// [`ScanRequest::read_as_table`], if the request is for all its rows in any order.
    pub fn keyed(&self) -> Option<&TableDef> {
        let any = self.rows == RowGoal::All && self.order.is_empty();
        self.read_as_table().filter(|_| any)
    }

    /// The rows that are enough of each group by these columns, if some key has them first.
    pub fn first_of_each(&self, groups: &[ColumnId]) -> Option<FirstFound> {
        let is_group = |of: &Field| groups.iter().any(|group| *of == Field::Column(*group));
        let first = match (&self.each, self.rows) {
            (Some(Each { of, order, rows, with_ties: false }), _) if of.iter().all(is_group) => {
                FirstFound { order: order.clone(), rows: *rows }
            }
            // There is one group.
            (None, RowGoal::First(rows))
                if self.offset == 0 && groups.iter().all(|id| self.fixed.contains(id)) =>
            {
                FirstFound { order: self.order.clone(), rows }
            }
            _ => return None,
        };
        (first.order.is_empty() || self.orders(groups, &first)).then_some(first)
    }

    /// All rows are wanted, not only some of each group.
    pub fn takes_all(&self) -> bool {
        self.each.is_none()
    }

    /// The table that is read.
    pub fn table(&self) -> &TableDef {
        &self.relation.table
    }

    /// The field behind a column of the scan.
    pub fn output_field(&self, column: usize) -> Option<Field> {
        self.output.get(column).copied()
    }

    /// The field behind a column of the scan, by name.
    pub fn field_of(&self, name: &str) -> Option<Field> {
        self.output_field(self.schema.index_of(name).ok()?)
    }

    /// The column of the scan that holds a field.
    pub fn column_of(&self, field: Field) -> Option<usize> {
        self.columns_of(field).next()
    }

    /// The columns of the scan that hold a field: another one may have the same integers as wider ones.
    pub fn columns_of(&self, field: Field) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.output.len()).filter(move |column| self.output[*column] == field)
    }

    /// Binds the request to about so many rows that will be looked up by rowkey. `None`: as [`ScanRequest::bind`].
    pub fn bind_keys(&self, binding: &Binding, rows: f64) -> Option<Bound> {
        let need = self.need(self.predicate(binding)?);
        let access = Access::of_keys(Vec::new(), need.predicate.clone(), rows);
        let choice = Choice::of(access, "the join tells every part of the rowkey");
        Some(Bound { rows, ..self.bound(need, choice, binding.clone()) })
    }

    /// The scan of these rowkeys; its last column is the rowkey.
    pub fn of_keys(&self, bound: &Bound, keys: Vec<Rowkey>) -> ScanSpec {
        let rows = keys.len() as f64;
        let access = Access::of_keys(keys, bound.need.predicate.clone(), rows);
        let rowkey = field("rowkey", field_type(&self.relation.table, None, Field::Rowkey), false);
        let fields = self.schema.fields().iter().cloned().chain([Arc::new(rowkey)]);
        let output = self.output.iter().copied().chain([Field::Rowkey]).collect();
        ScanSpec { schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())), ..self.spec(access, &output) }
    }

    /// Errors: LIMIT, if the path would read more than the session allows.
    pub fn check(&self, bound: &Bound) -> Result<()> {
        let Bound { spec, need, binding, .. } = bound;
        let (source, statistics) = (self.relation.source(), self.statistics(binding));
        let check = |need| binding.guards.check(source, need, &spec.access, &statistics);
        match self.rows {
            // The consumer may take all of them.
            RowGoal::About { .. } => check(&Need { limit: None, ..need.clone() }),
            RowGoal::All | RowGoal::First(_) => check(need),
        }
    }

    /// Some key sorts rows with equal values of these columns in such an order.
    pub fn orders(&self, behind: &[ColumnId], first: &FirstFound) -> bool {
        let Some(OrderBy { field: Field::Column(wanted), .. }) = first.order.first() else { return false };
        let is_behind = |part: &&KeyPart| part.columns().iter().all(|id| behind.contains(id));
        let orders = |layout: &KeyLayout| {
            let mut parts = layout.parts().iter().skip_while(is_behind);
            parts.next().is_some_and(|part| part.columns() == [*wanted])
        };
        self.relation.layouts().any(orders)
    }

    /// Rows (count) of the table.
    pub fn entries(&self, binding: &Binding) -> f64 {
        self.statistics(binding).entries(self.table().rows()) as f64
    }

    /// Rows (count) of the table that pass the conditions.
    pub fn passing(&self, bound: &Bound) -> f64 {
        self.entries(&bound.binding) * passing_share(&self.statistics(&bound.binding), &bound.need.predicate)
    }

    /// Entries (count) walked if the rows are not looked up by key; zero if a parameter does not suit.
    pub fn entries_otherwise(&self, binding: &Binding) -> Result<f64> {
        if self.filters.is_empty() {
            return Ok(self.entries(binding));
        }
        Ok(self.bind(binding)?.map_or(0.0, |bound| bound.spec.access.entries))
    }

    /// Expected rows (count) if the consumer reads to the end.
    pub fn rows_of_all(&self, bound: &Bound) -> Result<f64> {
        let need = Need { limit: None, order: Vec::new(), ..bound.need.clone() };
        let statistics = self.statistics(&bound.binding);
        let choice = choose(self.relation.source(), &need, &statistics)?;
        Ok(rows_of(&statistics, &choice.access))
    }

    /// Fields by their names in queries.
    pub fn names(&self) -> &FieldNames {
        &self.relation.names
    }

    pub(super) fn statistics<'a>(&'a self, binding: &'a Binding) -> StoreStatistics<'a> {
        let collected = self.relation.advice.statistics.as_deref();
        let written_at = self.table().ttl().map(|ttl| ttl.written_at);
        StoreStatistics { snapshot: &*binding.snapshot, collected, written_at, jumps: &self.jumps }
    }

    pub(super) fn bound(&self, need: Need, choice: Choice, binding: Binding) -> Bound {
        let Choice { access, chosen, rejected, note } = choice;
        let spec = self.spec(access, &need.output);
        let rows = rows_of(&self.statistics(&binding), &spec.access);
        Bound { spec: Arc::new(spec), need, rows, binding, chosen, rejected, note }
    }

    pub(super) fn spec(&self, access: Access, output: &Arc<[Field]>) -> ScanSpec {
        let places = self.places(&access, output);
        self.spec_of(access, output, places)
    }

    pub(super) fn spec_of(
        &self,
        access: Access,
        output: &Arc<[Field]>,
        places: Arc<ScanSources>,
    ) -> ScanSpec {
        let relation = &self.relation;
        let index = access.index(relation.source());
        ScanSpec {
            table: Arc::clone(&relation.table),
            index: index.map(|index| index.id),
            as_table: relation.index.is_some(),
            places,
            access,
            output: Arc::clone(output),
            schema: Arc::clone(&self.schema),
            any_order: self.any_order,
        }
    }

    /// Positions of `output` in keys and rows: cached, as most runs share them.
    fn places(&self, access: &Access, output: &Arc<[Field]>) -> Arc<ScanSources> {
        let compares = !access.passes_all();
        if compares || !Arc::ptr_eq(output, &self.output) {
            return Arc::new(self.sources(access, output));
        }
        match self.places.get_or_init(|| (access.path, Arc::new(self.sources(access, output)))) {
            (path, places) if *path == access.path => Arc::clone(places),
            _ => Arc::new(self.sources(access, output)),
        }
    }

    fn sources(&self, access: &Access, output: &[Field]) -> ScanSources {
        let index = access.index(self.relation.source());
        ScanSources::new(&self.relation.table, index, access, output)
    }
}

/// The columns that equal one value in every row that passes.
pub(super) fn fixed_by(filters: &[Template]) -> Arc<[ColumnId]> {
    let of_known = |term: &Predicate| match term {
        Predicate::Compare { field: Field::Column(id), op: CmpOp::Eq, .. } => Some(*id),
        _ => None,
    };
    let fixed = |filter: &Template| match filter {
        Template::Compare { field: Field::Column(id), op: CmpOp::Eq, .. } => vec![*id],
        Template::Known(Predicate::And(terms)) => terms.iter().filter_map(of_known).collect(),
        Template::Known(term) => of_known(term).into_iter().collect(),
        _ => Vec::new(),
    };
    filters.iter().flat_map(fixed).collect()
}
