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
    /// What is defined at the position: the queries before this one, and this one if it may read itself.
    fn defined(&self) -> &[(String, ColumnNames)] {
        &self.names[..(self.walked + usize::from(self.recursive)).min(self.names.len())]
    }
}

impl Scopes {
    /// The walk comes to a query; `columns_of` gives the columns of a table or view, if known.
    pub fn enter(&mut self, query: &Query, columns_of: &dyn Fn(&ObjectName) -> ColumnNames) {
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        self.0.push(Scope { recursive, ..Scope::default() });
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let columns = called(&cte.alias, outputs_of(&cte.query, self, columns_of));
            if let Some(scope) = self.0.last_mut() {
                scope.names.push((name_of(&cte.alias.name), columns));
                scope.walked += 1;
            }
        }
        if let Some(scope) = self.0.last_mut() {
            scope.walked = 0;
        }
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
