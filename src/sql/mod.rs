//! The SQL front end: text to statements.
//!
//! A script goes through a [`Splitter`], which hands out one [`SqlText`] per `;`. [`parse`] turns one into a
//! [`Statement`]: our own nodes around sqlparser's queries and expressions. [`rewrite`], [`wildcard`] and
//! `using` prepare queries for DataFusion; [`layout`] turns the key expressions of CREATE into key parts.
//!
//! No text overflows the stack or takes exponential time: `nesting` checks the tokens before they are parsed,
//! `dialect` counts the parser's steps, and `shape` keeps the trees shallow.
//!
//! Names are case-insensitive unless quoted, as in PostgreSQL: the tree keeps them as written, [`name_of`]
//! and [`table_name_of`] fold them.

mod as_of;
pub mod ast;
mod calls;
mod cast_names;
mod counters;
mod design;
mod dialect;
mod display;
mod dumped;
mod groups;
mod hints;
mod hoisted;
mod implied_groups;
mod in_values;
mod intervals;
mod json_paths;
pub mod layout;
mod lex;
mod lift;
mod natural;
mod nested_join;
mod nesting;
mod ordered;
mod outer_names;
mod outputs;
mod parser;
mod place;
mod quotes;
mod recursive;
mod refused;
pub mod rewrite;
mod row_values;
mod same;
pub mod scopes;
mod shape;
mod split;
mod star;
mod table_functions;
mod table_names;
mod using;
mod values_of_columns;
pub mod visit;
mod walk;
pub mod wildcard;
mod windows;
mod with;
mod with_names;

pub use as_of::AsOf;
pub use ast::*;
pub use cast_names::tell_casts_apart;
pub use hints::{Hint, HintKind, take_hints, text_of};
pub use implied_groups::{END_OF_GROUPS, KeyedTable, with_implied_groups, with_marked_groups};
pub use in_values::{PARAMETER_DIGITS, as_one_type};
pub use layout::{KeyColumn, is_key_form, key_specs, not_a_formula, parse_codes};
pub use lift::{Clock, Lifted, Shown, cast_constant, lift, lift_change, lift_named, lift_unnamed};
pub use natural::name_natural_columns;
pub use ordered::name_ordered_columns;
pub use outer_names::name_outer_tables;
pub use outputs::{name_outputs, output_name};
pub use parser::{
    STATEMENTS, column_type, is_reserved, looks_like_statement, names_column, parse, parse_expr, parse_query,
    reads_stdin, rename_column, type_instead, unqualified,
};
pub use place::{may_have_place, meant_as_text, point_at_literal, point_in_text};
pub use quotes::begins_name;
pub use recursive::prepare_recursions;
pub use rewrite::{call, case_when, mentions_rowkey, parameter_count, parameter_place};
pub use row_values::LOOKED_UP;
pub use shape::balanced;
pub use split::{Splitter, SqlText};
pub use star::expanded_star;
pub use table_functions::{name_made_values, reads_rows, table_function};
pub use table_names::name_tables;
pub use wildcard::resolve_joins;
pub use with_names::{NamedQuery, name_with_queries};

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use sqlparser::ast::{Ident, ObjectName, Query, Spanned, Visitor};

pub use crate::value::name_sql;

use self::visit::visit;
use crate::error::{Error, Result, Span};

/// The folded name of an identifier: in lower case unless quoted.
pub fn name_of(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// The folded name of a table, view or index. There is one schema: `public.` or `main.` may precede the name;
/// any other schema is an error, with its place.
pub fn table_name_of(name: &ObjectName) -> Result<String> {
    let parts: Option<Vec<Ident>> = name.0.iter().map(|part| part.as_ident().cloned()).collect();
    last_part(&parts.unwrap_or_default()).map(|last| name_of(&last)).map_err(|e| e.at(span_of(name)))
}

/// Names of the tables, views and indexes that a query reads, sorted, each once.
pub fn relations_of(query: &Query) -> BTreeSet<String> {
    struct Names(BTreeSet<String>);
    impl Visitor for Names {
        type Break = Infallible;
        fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<Infallible> {
            self.0.extend(table_name_of(name));
            ControlFlow::Continue(())
        }
    }
    let mut names = Names(BTreeSet::new());
    let _ = visit(query, &mut names);
    names.0
}

/// `public`, or `main` as in SQLite.
pub fn is_our_schema(name: &str) -> bool {
    ["public", "main"].contains(&name)
}

/// Schemas in which other databases keep the catalog.
pub const CATALOG_SCHEMAS: [&str; 3] = [INFORMATION_SCHEMA, "pg_catalog", "system"];

/// The schema with the definitions as tables, for queries only.
pub const INFORMATION_SCHEMA: &str = "information_schema";

/// The hint for users who query the catalog as in other databases.
pub const CATALOG_HINT: &str = "information_schema has tables, columns, views, table_constraints, key_column_usage, \
    constraint_column_usage and referential_constraints; SHOW INDEXES lists index tables";

/// The error for a name in a schema that is not ours.
pub fn no_schema(schema: &str, name: &str) -> Error {
    if schema == INFORMATION_SCHEMA {
        return Error::invalid(format!("{schema} can only be queried"))
            .why("its tables are made of the definitions")
            .hint("SELECT * FROM information_schema.columns; CREATE and ALTER TABLE change what is in it");
    }
    let error =
        Error::invalid(format!("there is no schema \"{schema}\"")).why("a database has one schema, public");
    match CATALOG_SCHEMAS.contains(&schema) {
        true => error.hint(CATALOG_HINT),
        false => error.hint(format!("write {name}")),
    }
}

/// The last part of a qualified name, if the schema before it is ours.
fn last_part(parts: &[Ident]) -> Result<Ident> {
    match parts {
        [name] => Ok(name.clone()),
        [schema, name] if is_our_schema(&name_of(schema)) => Ok(name.clone()),
        [schema, .., name] => Err(no_schema(&name_of(schema), &name.to_string())),
        [] => Err(Error::invalid("a name has no parts")),
    }
}

/// Place of a part of a parsed statement; `None` if sqlparser did not record it or we generated the part. Of
/// several lines, the first character.
pub fn span_of(node: &impl Spanned) -> Option<Span> {
    to_span(node.span())
}

/// Place of expressions that follow each other, from the first to the last.
pub fn span_of_all(nodes: &[impl Spanned]) -> Option<Span> {
    let spans = nodes.iter().map(Spanned::span).filter(|span| span.start.line > 0);
    to_span(spans.reduce(|all, span| all.union(&span))?)
}

/// Place of a name.
pub fn span_of_name(name: &Ident) -> Option<Span> {
    to_span(name.span)
}

/// Place of names that stand one after the other.
pub fn span_of_names(names: &[Ident]) -> Option<Span> {
    let (first, last) = (names.first()?, names.last()?);
    to_span(first.span.union(&last.span))
}

fn to_span(span: sqlparser::tokenizer::Span) -> Option<Span> {
    let same_line = span.start.line == span.end.line;
    let len = if same_line { span.end.column.saturating_sub(span.start.column).max(1) } else { 1 };
    (span.start.line > 0).then_some(Span {
        line: span.start.line as u32,
        column: span.start.column as u32,
        len: len as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fold_unless_quoted() {
        assert_eq!(name_of(&Ident::new("OrderId")), "orderid");
        assert_eq!(name_of(&Ident::with_quote('"', "OrderId")), "OrderId");
    }

    #[test]
    fn one_schema() {
        let name =
            |parts: &[&str]| ObjectName::from(parts.iter().map(|p| Ident::new(*p)).collect::<Vec<_>>());
        assert_eq!(table_name_of(&name(&["Orders"])).unwrap(), "orders");
        assert_eq!(table_name_of(&name(&["PUBLIC", "orders"])).unwrap(), "orders");
        let error = table_name_of(&name(&["shop", "orders"])).unwrap_err();
        assert_eq!(error.what(), "there is no schema \"shop\"");
    }
}
