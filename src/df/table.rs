//! A table or index table as DataFusion sees it.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::expr::{FieldNames, predicate};
use super::query::to_df;
use super::scan::ScanExec;
use crate::access::{Choice, Jumps, Need, OrderBy, Path, Source, Statistics, choose, probe_jumps};
use crate::error::Result;
use crate::exec::scan::{ScanSpec, field_type};
use crate::key::KeyRanges;
use crate::plan::{Field, Predicate, Skip};
use crate::row::field;
use crate::schema::{IndexDef, TableDef};
use crate::store::{Direction, KeyspaceId, Snapshot};

/// One mention of a table or index table in a query, over the query's snapshot.
#[derive(Clone)]
pub struct TableSource {
    table: Arc<TableDef>,
    /// Set when the index table itself is what is read.
    index: Option<IndexDef>,
    snapshot: Arc<dyn Snapshot>,
    fields: Vec<Field>,
    names: FieldNames,
    schema: SchemaRef,
    /// Order wanted by the statement, and how many rows in that order.
    pub wanted: (Vec<OrderBy>, Option<u64>),
}

impl TableSource {
    /// `rowkeys`: names under which the rowkey is a column of the schema, unless a column has the name.
    pub fn new(
        table: Arc<TableDef>,
        index: Option<IndexDef>,
        snapshot: Arc<dyn Snapshot>,
        rowkeys: &[&str],
    ) -> TableSource {
        let mut columns: Vec<(String, Field, bool)> = Vec::new();
        match &index {
            None => {
                for (id, column) in table.live_columns() {
                    columns.push((column.name.clone(), Field::Column(id), column.nullable));
                }
            }
            Some(index) => {
                let mut ids: Vec<_> = index.layout.columns();
                ids.retain(|id| index.layout.undoable().contains(id));
                ids.extend(index.include.iter().copied().filter(|id| !index.layout.undoable().contains(id)));
                for id in ids {
                    let column = table.column(id);
                    columns.push((column.name.clone(), Field::Column(id), column.nullable));
                }
                columns.push(("primary_rowkey".into(), Field::PrimaryRowkey, false));
            }
        }
        for name in rowkeys {
            if !columns.iter().any(|(n, ..)| n == name) {
                columns.push(((*name).into(), Field::Rowkey, false));
            }
        }
        let mut names = FieldNames::default();
        let mut fields = Vec::new();
        let mut arrow_fields = Vec::new();
        for (name, f, nullable) in columns {
            let ty = field_type(&table, index.as_ref(), f);
            names.0.insert(name.clone(), (f, ty));
            arrow_fields.push(field(&name, ty, nullable));
            fields.push(f);
        }
        let schema = Arc::new(Schema::new(arrow_fields));
        TableSource { table, index, snapshot, fields, names, schema, wanted: (Vec::new(), None) }
    }

    /// The field behind a column of the schema, and whether it may be NULL.
    pub fn field(&self, name: &str) -> Option<(Field, bool)> {
        let (field, _) = self.names.0.get(name)?;
        let nullable = self.schema.field_with_name(name).map_or(true, |f| f.is_nullable());
        Some((*field, nullable))
    }

    /// A filter of this table in our own algebra.
    pub fn predicate(&self, filter: &Expr) -> Predicate {
        predicate(filter, &self.names)
    }

    fn source(&self) -> Source<'_> {
        match &self.index {
            Some(index) => Source::Index(&self.table, index),
            None => Source::Table(&self.table),
        }
    }

    /// Chooses a path for `filters` and these output columns of the schema.
    fn plan(
        &self,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<ScanExec> {
        let all: Vec<usize> = (0..self.fields.len()).collect();
        let projection = projection.unwrap_or(&all);
        let predicate = Predicate::and(filters.iter().map(|f| predicate(f, &self.names)));
        let (order, wanted_limit) = self.wanted.clone();
        let limit = limit.map(|n| n as u64);
        let need = Need {
            predicate,
            output: projection.iter().map(|i| self.fields[*i]).collect(),
            limit: if order.is_empty() { limit } else { wanted_limit },
            order,
        };
        let stats = StoreStatistics(&*self.snapshot);
        let Choice { access, chosen, rejected } = choose(self.source(), &need, &stats);
        let index = match access.path {
            _ if self.index.is_some() => self.index.clone(),
            Path::Primary => None,
            Path::IndexOnly(id) | Path::IndexFetch(id) => {
                self.table.indexes.iter().find(|i| i.id == id).cloned()
            }
        };
        let schema = Arc::new(self.schema.project(projection).map_err(|e| {
            crate::error::Error::internal("a projection names columns that are not there").caused_by(e)
        })?);
        let spec = ScanSpec {
            table: Arc::clone(&self.table),
            index,
            as_table: self.index.is_some(),
            access,
            output: need.output,
            schema,
        };
        Ok(ScanExec::new(Arc::new(spec), Arc::clone(&self.snapshot), limit, need.order, chosen, rejected))
    }
}

impl fmt::Debug for TableSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableSource({})", self.table.name)
    }
}

#[async_trait]
impl TableProvider for TableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| {
            let predicate = predicate(filter, &self.names);
            if !predicate.has_opaque() {
                TableProviderFilterPushDown::Exact
            } else if matches!(predicate, Predicate::Opaque(_)) {
                TableProviderFilterPushDown::Unsupported
            } else {
                TableProviderFilterPushDown::Inexact
            }
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.plan(projection, filters, limit).map_err(to_df)?))
    }
}

/// The planner's questions, answered by the snapshot. What cannot be read counts as empty here: the
/// scan itself reports it.
struct StoreStatistics<'a>(&'a dyn Snapshot);

impl Statistics for StoreStatistics<'_> {
    fn entries(&self, keyspace: KeyspaceId) -> u64 {
        self.0.reader().and_then(|r| r.entries(keyspace)).unwrap_or(0)
    }

    fn probe(&self, keyspace: KeyspaceId, ranges: &KeyRanges, limit: u64) -> u64 {
        let count = || -> Result<u64> {
            let reader = self.0.reader()?;
            let mut n = 0;
            for range in ranges.as_slice().iter().take(limit as usize) {
                let mut cursor = reader.cursor(keyspace, range, Direction::Forward)?;
                while n < limit && cursor.next()?.is_some() {
                    n += 1;
                }
            }
            Ok(n)
        };
        count().unwrap_or(0)
    }

    fn jumps(&self, keyspace: KeyspaceId, ranges: &KeyRanges, skip: &Skip) -> Jumps {
        let probe = || probe_jumps(&*self.0.reader()?, keyspace, ranges, skip);
        probe().unwrap_or_default()
    }
}
