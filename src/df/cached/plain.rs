//! Plans simple queries of one table without DataFusion.
//!
//! `SELECT status, amount FROM orders WHERE buyer = $1 ORDER BY order_time DESC LIMIT 10` asks for nothing that a scan
//! does not give. DataFusion would take hundreds of microseconds to resolve, optimise and plan it, and milliseconds the
//! first time in a process, as its registries have to be built and its code read from disk. So an [`UnboundPlan`] is
//! made right here for columns of one table, or counts and sums of them, under comparisons of columns with parameters
//! or literals, in an order that some key has. For all else, faulty queries included, the answer is `None` and
//! DataFusion plans: so all errors are DataFusion's. The tests run such queries both ways.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments,
    GroupByExpr, LimitClause, Offset, OrderBy as AstOrderBy, OrderByExpr, OrderByKind, OrderByOptions, Query,
    Select, SelectFlavor, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins, UnaryOperator,
    Value as Literal, WildcardAdditionalOptions,
};

use super::aggregates::ScanAggregate;
use super::page::{Paging, RowCount};
use super::plan::UnboundPlan;
use crate::access::OrderBy;
use crate::catalog::Relation;
use crate::df::expr::{flipped, parsed_comparison};
use crate::df::operators::scan::ScanExec;
use crate::df::query::NameScope;
use crate::df::table::template::{self, Template, suited_or_same};
use crate::df::table::{TableAdvice, TableSource};
use crate::df::wanted::{Wanted, WantedRows};
use crate::error::Result;
use crate::exec::sums::{self, AggregateTerm};
use crate::plan::{CmpOp, Field, Predicate};
use crate::row::arrow_type;
use crate::schema::IndexState;
use crate::sql::{name_of, parameter_place, table_name_of};
use crate::value::{ColumnType, Value};

/// Plans a query; `None` if it needs DataFusion.
pub fn plan(query: &Query, scope: &NameScope<'_>) -> Result<Option<UnboundPlan>> {
    match PlainQuery::of(query, scope) {
        Some(asked) => asked.plan(),
        None => Ok(None),
    }
}

/// A table under its name in the query.
struct NamedTable<'p> {
    source: TableSource,
    name: String,
    params: &'p [Value],
}

/// A query as far as this planner understands it.
struct PlainQuery {
    source: TableSource,
    output: PlainOutput,
    filters: Vec<Template>,
    order: Vec<OrderBy>,
    skip: Count,
    fetch: Option<Count>,
}

/// A number of rows, and the position of the parameter that gives it, if one does.
#[derive(Clone, Copy, Default)]
struct Count {
    rows: u64,
    param: Option<usize>,
}

impl From<Count> for RowCount {
    fn from(Count { rows, param }: Count) -> RowCount {
        param.map_or(RowCount::Literal(rows), RowCount::Parameter)
    }
}

/// The output columns.
enum PlainOutput {
    /// Columns of the table, by position in its schema, with output names.
    Columns(Vec<(usize, String)>),
    /// Aggregates of columns.
    Totals(Vec<PlainTotal>),
}

/// An aggregate of a column, by position in the schema; without a column, it counts rows.
struct PlainTotal {
    function: sums::AggregateKind,
    column: Option<usize>,
    ty: DataType,
    name: String,
}

impl PlainQuery {
    fn of(query: &Query, scope: &NameScope<'_>) -> Option<PlainQuery> {
        let Query {
            with: None,
            body,
            order_by,
            limit_clause,
            fetch: None,
            locks,
            for_clause: None,
            settings: None,
            format_clause: None,
            pipe_operators,
        } = query
        else {
            return None;
        };
        let SetExpr::Select(select) = &**body else { return None };
        let is_bare = locks.is_empty() && pipe_operators.is_empty() && scope.rows.is_empty();
        if !is_bare || !is_bare_select(select) {
            return None;
        }
        let table = NamedTable::of(select, scope, &scope.rowkeys_of(query))?;
        let output = table.output(&select.projection)?;
        let order = order_by.as_ref().map_or(Some(Vec::new()), |by| table.order(by, &output))?;
        let (skip, fetch) =
            limit_clause.as_ref().map_or(Some(Default::default()), |limit| table.limit(limit))?;
        let is_total = matches!(output, PlainOutput::Totals(_));
        if is_total && !(order.is_empty() && limit_clause.is_none()) {
            return None;
        }
        let mut filters = Vec::new();
        if let Some(filter) = &select.selection {
            table.filters(filter, &mut filters)?;
        }
        Some(PlainQuery { source: table.source, output, filters, order, skip, fetch })
    }

    fn plan(self) -> Result<Option<UnboundPlan>> {
        let PlainQuery { mut source, output, filters, order, skip, fetch } = self;
        let end = fetch.map(|fetch| fetch.rows.saturating_add(skip.rows));
        let what = end.map_or(WantedRows::All, |rows| WantedRows::First { rows, offset: skip.rows });
        if !order.is_empty() {
            source.wanted = Wanted { order: order.clone(), what };
        }
        // Several threads may add up the totals.
        source.any_order = matches!(output, PlainOutput::Totals(_));
        let places: Vec<usize> = match &output {
            PlainOutput::Columns(columns) => columns.iter().map(|(place, _)| *place).collect(),
            PlainOutput::Totals(totals) => totals.iter().filter_map(|total| total.column).collect(),
        };
        let Some(scan) = source.scan_of(&places, filters, end)? else { return Ok(None) };
        // DataFusion does all sorting.
        if scan.request.order.len() != order.len() || !scan.bound()?.spec.access.ordered {
            return Ok(None);
        }
        let scan = match skip.rows {
            0 => Some(scan),
            rows => scan.without_first(rows as usize, fetch.map(|fetch| fetch.rows as usize)),
        };
        let Some(scan) = scan else { return Ok(None) };
        match output {
            PlainOutput::Totals(totals) => Ok(Some(of_totals(&scan, totals))),
            PlainOutput::Columns(columns) => {
                let schema = renamed(&scan.request.schema, columns);
                let mut plan = UnboundPlan::of_scan(&scan, &schema);
                let paging = Paging::new(Some(skip.into()), fetch.map(RowCount::from));
                let holds = paging.is_none_or(|paging| plan.page(paging));
                Ok(holds.then_some(plan))
            }
        }
    }
}

/// The columns under their output names.
fn renamed(schema: &SchemaRef, columns: Vec<(usize, String)>) -> SchemaRef {
    let names = columns.into_iter().map(|(_, name)| name);
    let fields =
        schema.fields().iter().zip(names).map(|(field, name)| field.as_ref().clone().with_name(name));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn of_totals(scan: &ScanExec, totals: Vec<PlainTotal>) -> UnboundPlan {
    let field = |total: &PlainTotal| {
        let nullable = total.function != sums::AggregateKind::Count;
        ArrowField::new(&total.name, total.ty.clone(), nullable)
    };
    let schema = Arc::new(Schema::new(totals.iter().map(field).collect::<Vec<_>>()));
    let mut taken = 0;
    let known = totals.into_iter().map(|PlainTotal { function, column, ty, .. }| {
        let column = column.map(|_| {
            taken += 1;
            taken - 1
        });
        ScanAggregate::new(AggregateTerm { function, column }, ty)
    });
    UnboundPlan::of_totals(scan, known.collect(), &schema)
}

fn is_bare_select(select: &Select) -> bool {
    let Select {
        select_token: _,
        optimizer_hints,
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: _,
        projection: _,
        exclude: None,
        into: None,
        from: _,
        lateral_views,
        prewhere: None,
        selection: _,
        connect_by,
        group_by: GroupByExpr::Expressions(groups, modifiers),
        cluster_by,
        distribute_by,
        sort_by,
        having: None,
        named_window,
        qualify: None,
        window_before_qualify: _,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    } = select
    else {
        return false;
    };
    optimizer_hints.is_empty()
        && lateral_views.is_empty()
        && connect_by.is_empty()
        && groups.is_empty()
        && modifiers.is_empty()
        && cluster_by.is_empty()
        && distribute_by.is_empty()
        && sort_by.is_empty()
        && named_window.is_empty()
}

impl<'p> NamedTable<'p> {
    fn of(select: &Select, scope: &'p NameScope<'_>, rowkeys: &[&str]) -> Option<NamedTable<'p>> {
        let [TableWithJoins { relation, joins }] = &select.from[..] else { return None };
        let TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample: None,
            index_hints,
        } = relation
        else {
            return None;
        };
        let is_bare =
            joins.is_empty() && with_hints.is_empty() && partitions.is_empty() && index_hints.is_empty();
        let name = table_name_of(name).ok().filter(|_| is_bare)?;
        let (table, index) = match scope.catalog.find(&name)? {
            Relation::Table(table) => (table, None),
            Relation::Index(table, id) => {
                let index = table.index_by_id(id).filter(|index| index.state == IndexState::Ready)?.clone();
                (table, Some(index))
            }
            Relation::View(_) => return None,
        };
        let name = match alias {
            None => name,
            Some(TableAlias { name, columns, at: None, .. }) if columns.is_empty() => name_of(name),
            Some(_) => return None,
        };
        let advice = TableAdvice {
            hints: Default::default(),
            statistics: scope.catalog.statistics(table.id).cloned(),
        };
        let source = TableSource::new(table, index, scope.binding.clone(), rowkeys, advice);
        Some(NamedTable { source, name, params: &scope.binding.params })
    }

    /// The name of the column, if the expression is one.
    fn column_name(&self, expr: &Expr) -> Option<String> {
        match expr {
            Expr::Identifier(name) => Some(name_of(name)),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [table, name] => Some(name_of(name)).filter(|_| name_of(table) == self.name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Position of a column in the schema.
    fn place(&self, name: &str) -> Option<usize> {
        self.source.schema().index_of(name).ok()
    }

    /// The field behind a column expression.
    fn field(&self, expr: &Expr) -> Option<(Field, ColumnType)> {
        self.source.names().columns.get(&self.column_name(expr)?).copied()
    }

    fn output(&self, items: &[SelectItem]) -> Option<PlainOutput> {
        if let [SelectItem::Wildcard(options)] = items {
            let schema = self.source.schema();
            let of_rowkey = |field: &Field| matches!(field, Field::Rowkey);
            let hidden = self.source.names().columns.values().any(|(field, _)| of_rowkey(field));
            let all = schema.fields().iter().enumerate().map(|(place, field)| (place, field.name().clone()));
            let is_bare = !hidden && *options == WildcardAdditionalOptions::default();
            return is_bare.then(|| PlainOutput::Columns(all.collect()));
        }
        let named = |item: &SelectItem| -> Option<(usize, String)> {
            let (expr, alias) = match item {
                SelectItem::UnnamedExpr(expr) => (expr, None),
                SelectItem::ExprWithAlias { expr, alias } => (expr, Some(name_of(alias))),
                _ => return None,
            };
            let name = self.column_name(expr)?;
            Some((self.place(&name)?, alias.unwrap_or(name)))
        };
        let columns = || items.iter().map(named).collect::<Option<Vec<_>>>();
        let totals = || items.iter().map(|item| self.total(item)).collect::<Option<Vec<_>>>();
        columns().map(PlainOutput::Columns).or_else(|| totals().map(PlainOutput::Totals))
    }

    /// `count(*)`, `count(column)`, `sum(column)`.
    fn total(&self, item: &SelectItem) -> Option<PlainTotal> {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, expr.to_string()),
            SelectItem::ExprWithAlias { expr, alias } => (expr, name_of(alias)),
            _ => return None,
        };
        let Expr::Function(Function {
            name: function,
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses }),
            filter: None,
            null_treatment: None,
            over: None,
            within_group,
        }) = expr
        else {
            return None;
        };
        let ([part], [FunctionArg::Unnamed(arg)]) = (&function.0[..], &args[..]) else { return None };
        if !clauses.is_empty() || !within_group.is_empty() {
            return None;
        }
        let (function, column) = match (name_of(part.as_ident()?).as_str(), arg) {
            ("count", FunctionArgExpr::Wildcard) => (sums::AggregateKind::Count, None),
            ("count", FunctionArgExpr::Expr(arg)) => (sums::AggregateKind::Count, Some(arg)),
            ("sum", FunctionArgExpr::Expr(arg)) => (sums::AggregateKind::Sum, Some(arg)),
            _ => return None,
        };
        let Some(arg) = column else {
            return Some(PlainTotal { function, column: None, ty: DataType::Int64, name });
        };
        let (_, ty) = self.field(arg)?;
        let (function, ty) = match (function, ty) {
            (sums::AggregateKind::Count, _) => (function, DataType::Int64),
            (_, ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt) => {
                (function, DataType::Int64)
            }
            // DataFusion adds ten digits.
            (_, ColumnType::Decimal { precision, scale }) => {
                (function, arrow_type(ColumnType::Decimal { precision: (precision + 10).min(38), scale }))
            }
            (_, ColumnType::Double) => (sums::AggregateKind::SumOfDoubles, DataType::Float64),
            _ => return None,
        };
        Some(PlainTotal { function, column: Some(self.place(&self.column_name(arg)?)?), ty, name })
    }

    /// Unknown names and sort keys that are no columns are `None`.
    fn order(&self, by: &AstOrderBy, output: &PlainOutput) -> Option<Vec<OrderBy>> {
        let AstOrderBy { kind: OrderByKind::Expressions(by), interpolate: None } = by else { return None };
        let PlainOutput::Columns(columns) = output else { return None };
        by.iter().map(|by| self.order_by(by, columns)).collect()
    }

    fn order_by(&self, by: &OrderByExpr, output: &[(usize, String)]) -> Option<OrderBy> {
        let OrderByExpr { expr, options: OrderByOptions { asc, nulls_first: None }, with_fill: None } = by
        else {
            return None;
        };
        let name = self.column_name(expr)?;
        let place = self.place(&name)?;
        // In ORDER BY, the name would mean that output column.
        if output.iter().any(|(other, called)| *called == name && *other != place) {
            return None;
        }
        let (field, _) = self.source.field(&name)?;
        Some(OrderBy { field, descending: *asc == Some(false) })
    }

    fn limit(&self, limit: &LimitClause) -> Option<(Count, Option<Count>)> {
        let LimitClause::LimitOffset { limit, offset, limit_by } = limit else { return None };
        if !limit_by.is_empty() {
            return None;
        }
        let skip = match offset {
            Some(Offset { value, .. }) => self.count(value)?,
            None => Count::default(),
        };
        let fetch = match limit {
            Some(limit) => Some(self.count(limit).filter(|count| count.rows > 0)?),
            None => None,
        };
        Some((skip, fetch))
    }

    fn count(&self, expr: &Expr) -> Option<Count> {
        let (value, param) = self.value(expr)?;
        let Value::Int(rows) = value else { return None };
        Some(Count { rows: u64::try_from(rows).ok()?, param })
    }

    /// The value of a literal or parameter, with the position of the latter.
    fn value(&self, expr: &Expr) -> Option<(Value, Option<usize>)> {
        let Expr::Value(value) = expr else { return None };
        let literal = match &value.value {
            Literal::Placeholder(id) => {
                let at = parameter_place(id)?;
                return Some((self.params.get(at)?.clone(), Some(at)));
            }
            Literal::Boolean(truth) => Value::Boolean(*truth),
            Literal::Number(digits, false) => Value::number(digits)?,
            Literal::SingleQuotedString(text) => Value::Text(text.clone()),
            _ => return None,
        };
        Some((literal, None))
    }

    /// Collects the conjuncts of a condition.
    #[recursive::recursive]
    fn filters(&self, expr: &Expr, into: &mut Vec<Template>) -> Option<()> {
        match expr {
            Expr::Nested(inner) => self.filters(inner, into),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.filters(left, into)?;
                self.filters(right, into)
            }
            Expr::Between { expr, negated: false, low, high } => {
                into.push(self.compare_one(expr, CmpOp::Ge, low)?);
                into.push(self.compare_one(expr, CmpOp::Le, high)?);
                Some(())
            }
            term => {
                into.push(self.term(term)?);
                Some(())
            }
        }
    }

    /// A condition as one term.
    #[recursive::recursive]
    fn term(&self, expr: &Expr) -> Option<Template> {
        match expr {
            Expr::BinaryOp { op: BinaryOperator::And, .. } | Expr::Between { negated: false, .. } => {
                let mut all = Vec::new();
                self.filters(expr, &mut all)?;
                Some(Template::All(all))
            }
            Expr::Nested(inner) => self.term(inner),
            Expr::BinaryOp { op: BinaryOperator::Or, .. } => {
                let mut any = Vec::new();
                self.alternatives(expr, &mut any)?;
                Some(Template::Any(any))
            }
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.term(expr).map(not),
            Expr::Between { expr, negated: true, low, high } => {
                let outside = [(CmpOp::Lt, low), (CmpOp::Gt, high)];
                let outside = outside.map(|(op, bound)| self.compare_one(expr, op, bound));
                Some(Template::Any(outside.into_iter().collect::<Option<_>>()?))
            }
            Expr::BinaryOp { left, op, right } => {
                let op = parsed_comparison(op)?;
                self.compare(left, op, right).or_else(|| self.compare(right, flipped(op), left))
            }
            Expr::InList { expr, list, negated } => {
                let any = list.iter().map(|item| self.compare_one(expr, CmpOp::Eq, item));
                let any = Template::Any(any.collect::<Option<_>>()?);
                Some(if *negated { not(any) } else { any })
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                self.like(expr, pattern, false, *negated)
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                self.like(expr, pattern, true, *negated)
            }
            Expr::IsNull(expr) => Some(Template::Known(Predicate::is_null(self.field(expr)?.0))),
            Expr::IsNotNull(expr) => Some(Template::Known(Predicate::is_null(self.field(expr)?.0).not())),
            expr => self.truth(expr).map(Template::Known),
        }
    }

    /// Collects the disjuncts of an OR into one list.
    #[recursive::recursive]
    fn alternatives(&self, expr: &Expr, into: &mut Vec<Template>) -> Option<()> {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
                self.alternatives(left, into)?;
                self.alternatives(right, into)
            }
            term => {
                into.push(self.term(term)?);
                Some(())
            }
        }
    }

    fn like(&self, text: &Expr, pattern: &Expr, case_insensitive: bool, negated: bool) -> Option<Template> {
        let (field, ColumnType::Varchar) = self.field(text)? else { return None };
        let like = match self.value(pattern)? {
            (_, Some(param)) => Template::Like { field, param, case_insensitive },
            (Value::Text(pattern), None) => {
                Template::Known(template::like(field, &pattern, case_insensitive)?)
            }
            _ => return None,
        };
        Some(if negated { not(like) } else { like })
    }

    /// A BOOLEAN column as a condition.
    fn truth(&self, expr: &Expr) -> Option<Predicate> {
        let (field, ColumnType::Boolean) = self.field(expr)? else { return None };
        Some(Predicate::compare(field, CmpOp::Eq, Value::Boolean(true)))
    }

    /// A column compared with one of several values. Beside a time, a date's texts are read as times.
    fn compare_one(&self, column: &Expr, op: CmpOp, with: &Expr) -> Option<Template> {
        let compared = self.compare(column, op, with)?;
        (!matches!(compared, Template::Compare { with_time: true, .. })).then_some(compared)
    }

    /// A column compared with a parameter or a literal.
    fn compare(&self, column: &Expr, op: CmpOp, with: &Expr) -> Option<Template> {
        let (field, ty) = self.field(column)?;
        let (value, param) = self.value(with)?;
        let is_binary = matches!(field, Field::Rowkey | Field::PrimaryRowkey) && !ty.is_text();
        let is_as_it_is = match ty {
            ColumnType::Real | ColumnType::Json => false,
            ColumnType::Boolean => matches!(value, Value::Boolean(_)),
            _ => !is_binary,
        };
        if !is_as_it_is {
            return None;
        }
        Some(match param {
            Some(param) => {
                let is_time = matches!(value, Value::Timestamp(_) | Value::TimestampTz(_));
                Template::Compare { field, op, ty, param, with_time: ty == ColumnType::Date && is_time }
            }
            None => Template::Known(Predicate::compare(field, op, suited_or_same(&value, ty)?.into_owned())),
        })
    }
}

fn not(term: Template) -> Template {
    Template::Not(Box::new(term))
}
