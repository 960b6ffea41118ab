//! What a position sees: the tables of a FROM, and what the queries of WITH around it define.

use sqlparser::ast::{ObjectName, Query, TableFactor, TableWithJoins};

use super::name_of;
use super::natural::{ColumnNames, called, outputs_of};

/// The tables and subqueries of a FROM; of joins in parentheses, all that are seen outside of them.
pub fn factors(from: &[TableWithJoins]) -> Vec<&TableFactor> {
    let mut found = Vec::new();
    for table in from {
        for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    found.extend(factors(std::slice::from_ref(&**table_with_joins)));
                }
                factor => found.push(factor),
            }
        }
    }
    found
}

/// The WITH of each query around the position of a walk, outermost first. The walk goes over a WITH's queries in order,
/// before everything else of its query.
#[derive(Default)]
pub struct Scopes(Vec<Scope>);

/// The WITH of one query.
#[derive(Default)]
struct Scope {
    /// Names, and the columns behind them.
    names: Vec<(String, ColumnNames)>,
    recursive: bool,
    /// Number of its queries walked so far, whose names are defined from here on.
    walked: usize,
}

impl Scope {
    fn of(query: &Query) -> Self {
        let Some(with) = &query.with else { return Scope::default() };
        let names = with
            .cte_tables
            .iter()
            .map(|cte| (name_of(&cte.alias.name), called(&cte.alias, outputs_of(&cte.query))));
        Scope { names: names.collect(), recursive: with.recursive, walked: 0 }
    }

    /// What is defined at the position: the queries before this one, and this one if it may read itself.
    fn defined(&self) -> &[(String, ColumnNames)] {
        &self.names[..(self.walked + usize::from(self.recursive)).min(self.names.len())]
    }
}

impl Scopes {
    /// The walk comes to a query.
    pub fn enter(&mut self, query: &Query) {
        self.0.push(Scope::of(query));
    }

    /// The walk leaves it.
    pub fn leave(&mut self) {
        self.0.pop();
        if let Some(around) = self.0.last_mut() {
            around.walked = (around.walked + 1).min(around.names.len());
        }
    }

    /// The columns of the query that a table's name stands for; `None` if it stands for a table.
    pub fn columns_of(&self, table: &ObjectName) -> Option<&ColumnNames> {
        let [part] = &table.0[..] else { return None };
        let name = name_of(part.as_ident()?);
        let mut defined = self.0.iter().rev().flat_map(|scope| scope.defined().iter().rev());
        defined.find(|(known, _)| *known == name).map(|(_, columns)| columns)
    }
}
