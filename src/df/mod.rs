//! Where DataFusion meets the store: the rest of SQL, over our access paths.
//!
//! [`query::Planner`] turns a query into DataFusion's logical plan, with one [`table::TableSource`] for each table it
//! names; what indexes have computed becomes a column ([`computed`]); the optimised plan tells each source which order
//! and limit the statement wants ([`order`]), or that any will do ([`parallel`]); the source converts the pushed-down
//! filters ([`expr`]), chooses an access path and becomes a scan ([`operators::scan`]). [`ways`] makes the rest of the
//! plan executable. Of one table, what a scan gives by itself is planned without all that ([`kept::plain`]).
//!
//! | folder | holds |
//! |---|---|
//! | [`expressions`] | what expressions mean, by PostgreSQL's rules |
//! | [`functions`] | functions that DataFusion has not, or has otherwise |
//! | [`subqueries`] | subqueries as joins |
//! | [`rules`] | rules over plans |
//! | [`operators`] | scans, lookups, and what else runs of ours |
//! | [`kept`] | plans that are made once and run many times |
//! | [`errors`] | DataFusion's errors as ours |

mod computed;
mod errors;
pub mod explain;
mod expr;
mod expressions;
mod formula;
mod functions;
mod hints;
mod inverse;
pub mod kept;
mod operators;
mod order;
mod parallel;
pub mod query;
mod resolver;
mod rewrite;
mod rules;
mod statistics;
mod subqueries;
pub mod table;
mod tree;
mod wanted;
mod ways;
