//! `tpch('lineitem', 0.1)`: a table of TPC-H at a scale factor, generated while it is read.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::StreamExt;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

use crate::df::errors::to_df;
use crate::error::Error;

/// The table function.
#[derive(Debug)]
pub struct Tpch;

impl TableFunctionImpl for Tpch {
    fn call_with_args(&self, args: TableFunctionArgs) -> DfResult<Arc<dyn TableProvider>> {
        let usage = || {
            to_df(Error::invalid("tpch takes a table name and a scale factor")
                .hint("tpch('lineitem', 0.1): one of customer, lineitem, nation, orders, part, partsupp, region, supplier"))
        };
        let (name, scale) = match args.exprs() {
            [name] => (name, 0.1),
            [name, scale] => (name, number(scale).ok_or_else(usage)?),
            _ => return Err(usage()),
        };
        let Expr::Literal(ScalarValue::Utf8(Some(name)), _) = name else { return Err(usage()) };
        if !(scale > 0.0 && scale <= 1000.0) {
            return Err(to_df(
                Error::invalid(format!("a TPC-H scale of {scale} is out of range"))
                    .hint("0.001 to 1000; 1 is about a gigabyte"),
            ));
        }
        let table = Generated { name: name.clone(), scale, schema: schema(name).ok_or_else(usage)? };
        let schema = Arc::clone(&table.schema);
        Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(table)])?))
    }
}

fn number(expr: &Expr) -> Option<f64> {
    let Expr::Literal(scalar, _) = expr else { return None };
    match scalar.cast_to(&arrow::datatypes::DataType::Float64).ok()? {
        ScalarValue::Float64(value) => value,
        _ => None,
    }
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

fn batches(name: &str, scale: f64) -> Option<Batches> {
    Some(match name {
        "customer" => Box::new(CustomerArrow::new(CustomerGenerator::new(scale, 1, 1))),
        "lineitem" => Box::new(LineItemArrow::new(LineItemGenerator::new(scale, 1, 1))),
        "nation" => Box::new(NationArrow::new(NationGenerator::new(scale, 1, 1))),
        "orders" => Box::new(OrderArrow::new(OrderGenerator::new(scale, 1, 1))),
        "part" => Box::new(PartArrow::new(PartGenerator::new(scale, 1, 1))),
        "partsupp" => Box::new(PartSuppArrow::new(PartSuppGenerator::new(scale, 1, 1))),
        "region" => Box::new(RegionArrow::new(RegionGenerator::new(scale, 1, 1))),
        "supplier" => Box::new(SupplierArrow::new(SupplierGenerator::new(scale, 1, 1))),
        _ => return None,
    })
}

fn schema(name: &str) -> Option<SchemaRef> {
    Some(match name {
        "customer" => CustomerArrow::schema_ref(),
        "lineitem" => LineItemArrow::schema_ref(),
        "nation" => NationArrow::schema_ref(),
        "orders" => OrderArrow::schema_ref(),
        "part" => PartArrow::schema_ref(),
        "partsupp" => PartSuppArrow::schema_ref(),
        "region" => RegionArrow::schema_ref(),
        "supplier" => SupplierArrow::schema_ref(),
        _ => return None,
    })
}

#[derive(Debug)]
struct Generated {
    name: String,
    scale: f64,
    schema: SchemaRef,
}

impl PartitionStream for Generated {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = batches(&self.name, self.scale);
        let stream =
            futures::stream::iter(batches.into_iter().flatten()).map(|batch| batch.map_err(Into::into));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream))
    }
}
