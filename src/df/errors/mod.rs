//! Converts DataFusion's errors to ours, and ours to DataFusion's.

mod cast_error;
mod wording;

use std::collections::HashSet;

use datafusion::common::{Column, DataFusionError, SchemaError};

use self::cast_error::{cast_error, sql_words};
use self::wording::reworded;
use crate::error::{Error, Kind, Span, sqlstate};
use crate::sql::{LOOKED_UP, output_name};

/// Wraps our error for its way through DataFusion.
pub fn to_df(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// DataFusion's error as ours; [`to_df`] is undone.
pub fn df_error(error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(source) => match source.downcast::<Error>() {
            Ok(ours) => *ours,
            Err(other) => in_our_words(&other.to_string(), Error::internal).caused_by(other),
        },
        other => translated(&other),
    }
}

/// Converts an error that may be shared, as both sides of a join do: copies ours, or translates the message.
fn translated(error: &DataFusionError) -> Error {
    if let DataFusionError::NotImplemented(what) | DataFusionError::Plan(what) = error
        && let Some(error) = out_of_place(what)
    {
        return error;
    }
    match error {
        DataFusionError::External(source) => match source.downcast_ref::<Error>() {
            Some(ours) => ours.copied(),
            None => in_our_words(&source.to_string(), Error::internal),
        },
        DataFusionError::Context(_, inner) => translated(inner),
        DataFusionError::Shared(inner) => translated(inner),
        DataFusionError::Collection(all) if !all.is_empty() => translated(&all[0]),
        DataFusionError::Diagnostic(diagnostic, inner) => {
            let span = diagnostic.span.map(|s| Span {
                line: s.start.line as u32,
                column: s.start.column as u32,
                len: s.end.column.saturating_sub(s.start.column) as u32,
            });
            translated(inner).at(span)
        }
        DataFusionError::SchemaError(error, _) => schema_error(error),
        DataFusionError::ArrowError(error, _) => arrow_error(error),
        DataFusionError::SQL(error, _) => Error::invalid(error.to_string()).state(sqlstate::SYNTAX),
        DataFusionError::NotImplemented(what) if what.contains("<subquery>") => not_a_join(),
        DataFusionError::NotImplemented(what) => in_our_words(&message(what), Error::unsupported),
        DataFusionError::ResourcesExhausted(what) => out_of_memory(what),
        DataFusionError::Internal(what) => in_our_words(&message(what), Error::internal),
        DataFusionError::Plan(what) if what.starts_with("Projections require unique") => {
            same_names("two columns of a SELECT have the same name".to_owned())
        }
        DataFusionError::Execution(what) if what.starts_with("Scalar subquery returned more") => {
            too_many_rows()
        }
        DataFusionError::Plan(what) | DataFusionError::Execution(what) => {
            in_our_words(&message(what), Error::invalid)
        }
        other => in_our_words(&message(&other.to_string()), Error::invalid),
    }
}

fn in_our_words(text: &str, otherwise: fn(String) -> Error) -> Error {
    reworded(text).unwrap_or_else(|| otherwise(text.to_owned()))
}

/// Errors about expressions in places that do not support them; DataFusion's messages print their tree.
fn out_of_place(text: &str) -> Option<Error> {
    if let Some(tree) = text.strip_prefix("Physical plan does not support logical expression ") {
        return Some(match tree.starts_with("WindowFunction") {
            true => Error::invalid("window functions are computed behind WHERE, GROUP BY and HAVING")
                .hint("SELECT it AS a column of a query in FROM, and compare that")
                .state(sqlstate::WINDOWING),
            false => Error::unsupported("this expression cannot be computed where it stands")
                .hint("SELECT it AS a column of a query in FROM, and use that"),
        });
    }
    if text.starts_with("Correlated scalar subquery can only be used in") {
        return Some(
            Error::unsupported("this subquery names columns that are not selected")
                .hint("select it AS a column, and ORDER BY that"),
        );
    }
    let clause =
        ["LIMIT", "OFFSET"].into_iter().find(|c| text.starts_with(&format!("Unsupported {c} expression")))?;
    Some(
        Error::unsupported(format!("{clause} takes a number that is known before anything is read"))
            .hint("compute it first, and give it as a parameter"),
    )
}

/// Most columns that a message lists.
const COLUMNS_SHOWN: usize = 12;

/// The error of a scalar subquery with several rows.
pub fn too_many_rows() -> Error {
    Error::invalid("a subquery that stands for a value gives more than one row")
        .hint("add LIMIT 1 and an ORDER BY, or take max(...) of it")
        .state(sqlstate::CARDINALITY)
}

fn out_of_memory(what: &str) -> Error {
    Error::new(Kind::Unavailable, "the statement needs more memory than memory_limit allows")
        .why(message(what).split(" for ").next().unwrap_or_default().to_lowercase())
        .state(sqlstate::OUT_OF_MEMORY)
        .hint("raise memory_limit, or narrow the query")
}

/// DataFusion's message without its label and its request to report a bug.
fn message(text: &str) -> String {
    let text = text.split("\n\nbacktrace").next().unwrap_or(text);
    let text = text.split(".\nThis issue was likely caused by").next().unwrap_or(text);
    let mut text = text.trim();
    for label in [
        "Error during planning: ",
        "Execution error: ",
        "Optimizer rule 'simplify_expressions' failed",
        "caused by",
    ] {
        text = text.strip_prefix(label).unwrap_or(text).trim();
    }
    // The rest is the tree in Rust's debug format.
    if text.contains("Unsupported ast node") || text.contains("Dot access not supported") {
        return "this form of expression is not supported".into();
    }
    sql_words(text)
}

fn schema_error(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, .. } if is_uncorrelated(field) => not_a_join(),
        SchemaError::FieldNotFound { field, valid_fields } => {
            let place = field
                .relation
                .as_ref()
                .map(|r| format!(" in {}", output_name(r.table())))
                .unwrap_or_default();
            let name = output_name(&field.name);
            let error = Error::invalid(format!("there is no column \"{name}\"{place}"))
                .state(sqlstate::UNDEFINED_COLUMN);
            let names = valid_fields.iter().map(|c| output_name(&c.name));
            // Hide internal columns.
            let mut seen = HashSet::new();
            let names: Vec<&str> =
                names.filter(|name| !name.starts_with("__") && seen.insert(*name)).collect();
            let is_hidden =
                field.relation.is_some() && valid_fields.iter().all(|other| other.relation != field.relation);
            let same_name = valid_fields.iter().find(|other| output_name(&other.name) == name);
            if let (Some(column), Some(table)) = (same_name, &field.relation) {
                let of = column
                    .relation
                    .as_ref()
                    .map(|r| format!("{}.", output_name(r.table())))
                    .unwrap_or_default();
                let error = error.hint(format!("write {of}{}", output_name(&column.name)));
                return match is_hidden {
                    true => error.why(format!("nothing here is called {}", output_name(table.table()))),
                    false => error,
                };
            }
            if valid_fields.iter().filter(|other| output_name(&other.name) == name).count() > 1 {
                return same_names(format!("two columns of a SELECT have the same name, \"{name}\""));
            }
            let shown = names.iter().take(COLUMNS_SHOWN).copied().collect::<Vec<_>>().join(", ");
            let more = if names.len() > COLUMNS_SHOWN { ", …" } else { "" };
            let otherwise = if shown.is_empty() {
                format!("no column can be used here; a text stands in single quotes: '{name}'")
            } else {
                format!("columns here are {shown}{more}")
            };
            crate::suggest::with_suggestion(error, name, names.into_iter(), &otherwise)
        }
        SchemaError::AmbiguousReference { field } => {
            let name = output_name(&field.name);
            Error::invalid(format!("column \"{name}\" is ambiguous"))
                .why("more than one table here has it")
                .hint(format!("write table.{name}"))
                .state(sqlstate::AMBIGUOUS_COLUMN)
        }
        SchemaError::DuplicateQualifiedField { qualifier, name } => {
            let [table, name] = [qualifier.table(), name].map(output_name);
            Error::invalid(format!("two columns are called \"{table}.{name}\""))
                .why("a name means one table or column of a FROM")
                .hint(format!("write FROM {table} AS a, {table} AS b for two tables, x AS y for two columns"))
                .state(sqlstate::DUPLICATE_COLUMN)
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            same_names(format!("two columns are called \"{}\"", output_name(name)))
        }
    }
}

fn not_a_join() -> Error {
    Error::unsupported("this subquery cannot be made a join")
        .why("what connects it to the query around it is not an equality, or lies behind a GROUP BY or a LIMIT")
        .hint("write that condition into an EXISTS (SELECT 1 FROM ... WHERE ...) of its own")
}

fn same_names(what: String) -> Error {
    Error::invalid(what)
        .why("a subquery or view shows each name once")
        .hint("give one of them another name: x AS y")
        .state(sqlstate::DUPLICATE_COLUMN)
}

/// A column that DataFusion has lost while turning a subquery into a join.
fn is_uncorrelated(column: &Column) -> bool {
    let table = column.relation.as_ref().map_or("", |relation| relation.table());
    table.starts_with("__correlated_sq") || table == LOOKED_UP
}

fn arrow_error(error: &arrow::error::ArrowError) -> Error {
    use arrow::error::ArrowError;
    match error {
        ArrowError::DivideByZero => Error::division_by_zero(),
        ArrowError::ArithmeticOverflow(what) => {
            Error::invalid(match what.strip_prefix("Overflow happened on: ") {
                // `-x` is computed so.
                Some(operation) => match operation.strip_prefix("0 - ") {
                    Some(negated) => format!("-({negated}) is out of range"),
                    None => format!("{operation} is out of range"),
                },
                None => what.clone(),
            })
            .why("the result does not fit its type")
            .hint("cast to a wider type, such as DOUBLE")
            .state(sqlstate::OUT_OF_RANGE)
        }
        ArrowError::CastError(what) | ArrowError::ParseError(what) => {
            reworded(what).unwrap_or_else(|| cast_error(what))
        }
        ArrowError::ComputeError(what) if what.starts_with("Cannot cast to ") => cast_error(what),
        ArrowError::InvalidArgumentError(what) if what.starts_with("Encountered non UTF-8") => {
            Error::invalid("these bytes are not text")
                .why("they are not UTF-8")
                .hint("CAST(x AS TEXT) gives their hex digits")
                .state(sqlstate::INVALID_TEXT)
        }
        ArrowError::InvalidArgumentError(what) => {
            reworded(what).unwrap_or_else(|| Error::invalid(what).state(sqlstate::INVALID_TEXT))
        }
        ArrowError::ExternalError(source) => match source.downcast_ref::<DataFusionError>() {
            Some(inner) => translated(inner),
            None => Error::invalid(source.to_string()),
        },
        other => in_our_words(&other.to_string(), Error::invalid),
    }
}
