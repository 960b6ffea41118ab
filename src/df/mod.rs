//! Connects DataFusion with the store: all of SQL on top of our access paths.
//!
//! [`query::Planner`] turns a query into DataFusion's logical plan, with one [`table::TableSource`] for each table it
//! names. Expressions that indexes have computed become columns ([`computed`]). The optimised plan tells each source
//! which order and limit the statement wants ([`order`]), or that any order will do ([`parallel`]). The source converts
//! the pushed-down filters ([`expr`], [`comparison`]), chooses an access path and becomes a scan ([`operators::scan`]). [`ways`] makes
//! the rest of the plan executable. Queries of one table that a scan answers by itself skip all that ([`cached::plain`]).
//!
//! | folder | holds |
//! |---|---|
//! | [`expressions`] | the meaning of expressions, by PostgreSQL's rules |
//! | [`functions`] | functions that DataFusion lacks or defines differently |
//! | [`subqueries`] | subqueries as joins |
//! | [`rules`] | optimizer rules |
//! | [`operators`] | scans, lookup joins and our other physical operators |
//! | [`cached`] | plans that are made once and run many times |
//! | [`errors`] | DataFusion's errors as ours |

pub mod below;
pub mod cached;
mod comparison;
mod computed;
mod contained;
mod errors;
pub mod explain;
mod expr;
mod expressions;
mod formula;
mod functions;
mod hints;
pub mod index_terms;
mod information_schema;
mod inverse;
mod join_sides;
mod keep;
mod literals;
mod of_parts;
mod operators;
mod order;
mod parallel;
mod plain_calls;
pub mod query;
mod resolver;
mod rewrite;
mod rules;
mod samples;
mod statistics;
mod subqueries;
pub mod table;
mod tree;
mod unique;
mod wanted;
pub mod ways;
mod with_queries;
