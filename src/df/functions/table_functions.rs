//! Table functions of values that rows have: `FROM place p, json_array_elements_text(p.doc -> 'tags') AS tag`.
//!
//! Each is a scalar function that makes a list of rows ([`RowsOf`]), and DataFusion's `Unnest` above it. They are planned
//! as LATERAL, over one empty row; `Domain::of_each_row` of the subqueries puts them over the rows beside them.

use std::hash::Hash;
use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{Column, DFSchema, NullHandling, ScalarValue, UnnestOptions};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use sqlparser::ast::{FunctionArg, FunctionArgExpr, TableFactor};

use super::json::{json_of, no_json};
use super::series::Series;
use crate::df::errors::to_df;
use crate::error::{Error, Result, sqlstate};
use crate::row::{ColumnBuilder, as_values, field, ref_at};
use crate::sql::{reads_rows, table_function};
use crate::value::{ColumnType, ValueRef, json_elements, json_members, json_text, json_type};

/// The column that lists of rows are in, below [`unnest`](LogicalPlanBuilder::unnest_column).
const ROWS: &str = "__rows";

/// The number of a row, as WITH ORDINALITY adds it.
const ORDINALITY: &str = "ordinality";

/// Rows (count) that are made at once, of up to 8,192 rows: they are all in memory.
const ROWS_MAX: usize = 1 << 24;

/// Plans the functions.
pub fn planners() -> &'static [Arc<dyn RelationPlanner>] {
    static ALL: LazyLock<[Arc<dyn RelationPlanner>; 1]> = LazyLock::new(|| [Arc::new(Lateral)]);
    &*ALL
}

#[derive(Debug)]
struct Lateral;

impl RelationPlanner for Lateral {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> DfResult<RelationPlanning> {
        let function = match &relation {
            TableFactor::Function { name, args, with_ordinality, .. }
                if reads_rows(name, args, *with_ordinality) =>
            {
                table_function(name).and_then(|(name, columns)| RowsOf::new(name, columns, *with_ordinality))
            }
            _ => None,
        };
        let (Some(function), TableFactor::Function { args, alias, .. }) = (function, relation.clone()) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let args = args.into_iter().map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => context.sql_to_expr(arg, &DFSchema::empty()),
            _ => Err(to_df(function.usage())),
        });
        let args = args.collect::<DfResult<Vec<Expr>>>()?;
        let (name, columns) = (function.name, function.columns());
        let columns =
            columns.map(|column| Expr::Column(Column::from_name(format!("{ROWS}.{column}"))).alias(column));
        let columns: Vec<Expr> = columns.collect();
        let made_of_each = UnnestOptions::new().with_null_handling(NullHandling::Drop);
        let plan = LogicalPlanBuilder::empty(true)
            .project([ScalarUDF::new_from_impl(function).call(args).alias(ROWS)])?
            .unnest_columns_with_options(vec![Column::from_name(ROWS)], made_of_each)?
            .unnest_column(Column::from_name(ROWS))?
            .project(columns)?
            .alias(name)?
            .build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

/// What rows are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    /// The members of a JSON object: name and value.
    Members,
    MemberTexts,
    /// The elements of a JSON array.
    Elements,
    ElementTexts,
    /// The names of a JSON object's members.
    Names,
    /// The parts of a text between delimiters.
    Parts,
    Series(Series),
}

/// Makes a list of rows.
#[derive(Debug)]
struct RowsOf {
    name: &'static str,
    columns: &'static [&'static str],
    source: Source,
    with_ordinality: bool,
    signature: Signature,
}

impl PartialEq for RowsOf {
    fn eq(&self, other: &Self) -> bool {
        (self.source, self.with_ordinality) == (other.source, other.with_ordinality)
    }
}

impl Eq for RowsOf {}

impl Hash for RowsOf {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.source, self.with_ordinality).hash(state);
    }
}

impl RowsOf {
    fn new(name: &'static str, columns: &'static [&'static str], with_ordinality: bool) -> Option<RowsOf> {
        let source = match name {
            "json_each" => Source::Members,
            "json_each_text" => Source::MemberTexts,
            "json_array_elements" => Source::Elements,
            "json_array_elements_text" => Source::ElementTexts,
            "json_object_keys" => Source::Names,
            "string_to_table" => Source::Parts,
            name => Source::Series(Series::called(name)?),
        };
        let signature = Signature::variadic_any(Volatility::Immutable);
        Some(RowsOf { name, columns, source, with_ordinality, signature })
    }

    /// The names of the columns.
    fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().copied().chain(self.with_ordinality.then_some(ORDINALITY))
    }

    /// Their types, of such arguments.
    fn types(&self, args: &[DataType]) -> Vec<ColumnType> {
        let mut types = match self.source {
            Source::Members => vec![ColumnType::Varchar, ColumnType::Json],
            Source::MemberTexts => vec![ColumnType::Varchar; 2],
            Source::Elements => vec![ColumnType::Json],
            Source::ElementTexts | Source::Names | Source::Parts => vec![ColumnType::Varchar],
            Source::Series(_) => vec![Series::type_of(args)],
        };
        if self.with_ordinality {
            types.push(ColumnType::BigInt);
        }
        types
    }

    fn fields(&self, args: &[DataType]) -> Fields {
        self.columns().zip(self.types(args)).map(|(name, ty)| field(name, ty, true)).collect()
    }

    fn usage(&self) -> Error {
        let (takes, example) = match self.source {
            Source::Members | Source::MemberTexts | Source::Names => ("a JSON object", "doc"),
            Source::Elements | Source::ElementTexts => ("a JSON array", "doc -> 'tags'"),
            Source::Parts => ("a text and what is between its parts", "tags, ','"),
            Source::Series(_) => ("a start, a stop and a step", "1, t.n"),
        };
        Error::invalid(format!("{} takes {takes}", self.name))
            .hint(format!("write {}({example})", self.name))
            .state(sqlstate::INVALID_PARAMETER)
    }

    /// Adds the rows of one call, with these arguments.
    fn make(&self, args: &[ValueRef<'_>], made: &mut MadeRows) -> Result<()> {
        let is_text = matches!(self.source, Source::MemberTexts | Source::ElementTexts);
        let shown = |part| match is_text {
            true => json_text(part),
            false => Some(part.into()),
        };
        match (self.source, args) {
            (Source::Elements | Source::ElementTexts, [json]) => {
                let Some(json) = json_of(self.name, *json)? else { return Ok(()) };
                let elements = json_elements(json).map_err(|e| no_json(self.name, &e))?;
                let elements = elements.map_or_else(|| self.none_of(json, "array", "json_each"), Ok)?;
                elements.into_iter().try_for_each(|element| made.add(&[text(&shown(element))]))
            }
            (Source::Members | Source::MemberTexts | Source::Names, [json]) => {
                let Some(json) = json_of(self.name, *json)? else { return Ok(()) };
                let members = json_members(json).map_err(|e| no_json(self.name, &e))?;
                let members =
                    members.map_or_else(|| self.none_of(json, "object", "json_array_elements"), Ok)?;
                members.into_iter().try_for_each(|(name, value)| match self.source {
                    Source::Names => made.add(&[ValueRef::Text(&name)]),
                    _ => made.add(&[ValueRef::Text(&name), text(&shown(value))]),
                })
            }
            (Source::Parts, [ValueRef::Null, _]) => Ok(()),
            (Source::Parts, [ValueRef::Text(whole), ValueRef::Null]) => {
                let mut buffer = [0; 4];
                whole.chars().try_for_each(|c| made.add(&[ValueRef::Text(c.encode_utf8(&mut buffer))]))
            }
            (Source::Parts, [ValueRef::Text(""), ValueRef::Text(_)]) => Ok(()),
            (Source::Parts, [ValueRef::Text(whole), ValueRef::Text("")]) => {
                made.add(&[ValueRef::Text(whole)])
            }
            (Source::Parts, [ValueRef::Text(whole), ValueRef::Text(between)]) => {
                whole.split(between).try_for_each(|part| made.add(&[ValueRef::Text(part)]))
            }
            _ => Err(self.usage()),
        }
    }

    /// The parts of JSON that has none, as it is not of the type that is `wanted`: `null` is like NULL. Errors: other
    /// values; `instead` makes rows of some of them.
    fn none_of<T>(&self, json: &str, wanted: &str, instead: &str) -> Result<Vec<T>> {
        let given = json_type(json).map_err(|e| no_json(self.name, &e))?;
        if given == "null" {
            return Ok(Vec::new());
        }
        let error = Error::invalid(format!("{} takes an {wanted}, not JSON of type {given}", self.name));
        let hint = match given {
            "object" | "array" => format!("{instead}(..) makes rows of an {given}"),
            _ => format!("leave such rows out: WHERE json_typeof(x) = '{wanted}'"),
        };
        Err(error.hint(hint).state(sqlstate::INVALID_PARAMETER))
    }
}

fn text<'a>(text: &'a Option<std::borrow::Cow<'_, str>>) -> ValueRef<'a> {
    text.as_deref().map_or(ValueRef::Null, ValueRef::Text)
}

/// Lists of rows, one list after the other.
struct MadeRows {
    columns: Vec<ColumnBuilder>,
    with_ordinality: bool,
    /// Number of rows in each list.
    lengths: Vec<usize>,
    /// All rows so far, and where the last list began.
    rows: usize,
    from: usize,
}

impl MadeRows {
    fn add(&mut self, values: &[ValueRef<'_>]) -> Result<()> {
        if self.rows == ROWS_MAX {
            return Err(Error::invalid("a table function makes too many rows at once")
                .why(format!("of some thousand rows beside it, it makes more than {ROWS_MAX}"))
                .hint("make fewer of each, or let a condition leave rows out before")
                .state(sqlstate::LIMIT));
        }
        self.rows += 1;
        let number = ValueRef::Int((self.rows - self.from) as i64);
        let values = values.iter().copied().chain(self.with_ordinality.then_some(number));
        self.columns.iter_mut().zip(values).try_for_each(|(column, value)| column.append(value))
    }

    fn end_list(&mut self) {
        self.lengths.push(self.rows - self.from);
        self.from = self.rows;
    }
}

impl ScalarUDFImpl for RowsOf {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::List(list_item(self.fields(args))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        let columns = self.types(&types).into_iter().map(|ty| ColumnBuilder::new(ty, args.number_rows));
        let mut made = MadeRows {
            columns: columns.collect(),
            with_ordinality: self.with_ordinality,
            lengths: Vec::with_capacity(args.number_rows),
            rows: 0,
            from: 0,
        };
        let arrays = args.args.iter().map(|arg| arg.to_array(args.number_rows));
        let arrays: Vec<ArrayRef> = arrays.collect::<DfResult<_>>()?;
        match self.source {
            Source::Series(series) => {
                let zone: Tz = "+00:00".parse().map_err(DataFusionError::from)?;
                for row in 0..args.number_rows {
                    let values = arrays.iter().map(|array| ScalarValue::try_from_array(array, row));
                    let values: Vec<ScalarValue> = values.collect::<DfResult<_>>()?;
                    let mut rows = series.rows(&values.iter().collect::<Vec<_>>()).map_err(to_df)?;
                    loop {
                        let batch = rows.batch(zone);
                        if batch.is_empty() {
                            break;
                        }
                        let mut values = batch.into_iter().map(|value| rows.value(value));
                        values.try_for_each(|value| made.add(&[value])).map_err(to_df)?;
                    }
                    made.end_list();
                }
            }
            _ => {
                let arrays: Vec<ArrayRef> =
                    arrays.iter().map(as_values).collect::<Result<_>>().map_err(to_df)?;
                let mut values = Vec::with_capacity(arrays.len());
                for row in 0..args.number_rows {
                    values.clear();
                    for array in &arrays {
                        values.push(ref_at(array, row).map_err(to_df)?);
                    }
                    self.make(&values, &mut made).map_err(to_df)?;
                    made.end_list();
                }
            }
        }
        let columns = made.columns.iter_mut().map(ColumnBuilder::finish);
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>().map_err(to_df)?;
        let fields = self.fields(&types);
        let rows = StructArray::try_new(fields.clone(), columns, None)?;
        let lengths = OffsetBuffer::from_lengths(made.lengths);
        let lists = ListArray::try_new(list_item(fields), lengths, Arc::new(rows), None)?;
        Ok(ColumnarValue::Array(Arc::new(lists)))
    }
}

/// The field of a row in a list of them.
fn list_item(fields: Fields) -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Struct(fields), true))
}
