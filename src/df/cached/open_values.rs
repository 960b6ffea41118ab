//! VALUES of a cached plan whose parameters are still open.
//!
//! DataFusion computes the rows of VALUES when it makes the physical plan. Here they wait as expressions until a run
//! fills the parameters in, and makes what DataFusion would have made: a table in memory.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, Statistics, TableReference};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableType, Values};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::parameters::{ExprRewrite, Test};
use crate::df::errors::to_df;
use crate::df::operators::{inputs, one_part};
use crate::error::Error;

/// A scan of the rows of VALUES, with all of their columns. It is made after optimisation, so nothing narrows it.
pub fn scan_of(Values { schema, values }: Values) -> LogicalPlan {
    let table = OpenValues { schema: Arc::clone(schema.inner()), rows: values };
    LogicalPlan::TableScan(TableScan {
        table_name: TableReference::bare("values"),
        source: provider_as_source(Arc::new(table)),
        projection: None,
        projected_schema: schema,
        filters: Vec::new(),
        fetch: None,
        statistics_requests: BTreeSet::new(),
    })
}

#[derive(Debug)]
struct OpenValues {
    schema: SchemaRef,
    rows: Vec<Vec<Expr>>,
}

#[async_trait]
impl TableProvider for OpenValues {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        session: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let no_columns = DFSchema::empty();
        let value = |expr: &Expr| session.create_physical_expr(expr.clone(), &no_columns);
        let row = |row: &Vec<Expr>| row.iter().map(value).collect();
        let rows = self.rows.iter().map(row).collect::<DfResult<Vec<Vec<_>>>>()?;
        Ok(Arc::new(OpenValuesExec::new(self.schema(), rows)))
    }
}

/// The rows of VALUES, as expressions; each run puts a table in memory in its place.
#[derive(Debug)]
pub struct OpenValuesExec {
    rows: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    properties: Arc<PlanProperties>,
}

impl OpenValuesExec {
    fn new(schema: SchemaRef, rows: Vec<Vec<Arc<dyn PhysicalExpr>>>) -> OpenValuesExec {
        OpenValuesExec { rows, properties: one_part(EquivalenceProperties::new(schema)) }
    }

    /// The rows with these expressions changed, as a table in memory.
    pub fn in_memory(&self, is_it: Test<'_>, change: ExprRewrite<'_>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let value =
            |expr: &Arc<dyn PhysicalExpr>| if is_it(expr) { change(expr) } else { Ok(Arc::clone(expr)) };
        let row = |row: &Vec<_>| row.iter().map(value).collect();
        let rows = self.rows.iter().map(row).collect::<DfResult<Vec<Vec<_>>>>()?;
        Ok(MemorySourceConfig::try_new_as_values(self.schema(), rows)?)
    }
}

impl DisplayAs for OpenValuesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenValuesExec: rows={}", self.rows.len())
    }
}

impl ExecutionPlan for OpenValuesExec {
    inputs!(OpenValuesExec(), this => this);

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        self.rows.iter().flatten().try_for_each(|expr| f(expr).map(drop))?;
        Ok(TreeNodeRecursion::Continue)
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        Err(to_df(Error::internal("the rows of VALUES were left open")))
    }

    fn partition_statistics(&self, _: Option<usize>) -> DfResult<Arc<Statistics>> {
        let num_rows = Precision::Exact(self.rows.len());
        Ok(Arc::new(Statistics { num_rows, ..Statistics::new_unknown(&self.schema()) }))
    }
}
