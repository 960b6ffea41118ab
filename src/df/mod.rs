//! Where DataFusion meets the store: the rest of SQL, over our access paths.
//!
//! [`query::Planner`] turns a query into DataFusion's logical plan, with one [`table::TableSource`] for
//! each table it names; what indexes have computed becomes a column ([`computed`]); the optimised plan tells each
//! source which order and limit the statement wants ([`order`]), or that any will do ([`parallel`]); the source
//! converts the pushed-down filters ([`expr`]), chooses an access path and becomes a [`scan::ScanExec`].

mod above_totals;
mod age;
mod anti_join;
mod apart;
mod cast_error;
mod computed;
mod correlated;
mod date_trunc;
mod dates;
mod described;
mod domain;
mod doubles;
mod early;
mod elements;
mod errors;
mod exact_sum;
mod exists;
pub mod explain;
mod expr;
mod extremes;
mod few_first;
mod first_left;
mod formula;
mod frames;
mod functions;
mod grouped;
mod hints;
mod integers;
mod intervals;
mod inverse;
mod join_condition;
mod join_keys;
mod kept_sorts;
mod learned;
mod like;

mod lookup;
mod membership;
mod min_max;
mod multisets;
mod null_equality;
mod null_frames;
mod numbers;
mod offset;
mod one_by_one;
mod one_row;
mod open;
mod or_null;
mod order;
mod order_subquery;
mod outer_types;
mod pages;
mod parallel;
mod picking;
pub mod plan;
mod point;
pub mod query;
mod recursion;
mod resolver;
mod rewrite;
pub mod row_map;
mod satisfied;
mod scan;
mod seek;
mod short_circuit;
mod statistics;
mod step_types;
mod subqueries;
pub mod table;
mod tell;
mod template;
mod text;
mod three_valued;
mod time_parts;
mod time_zone;
mod totals;
mod tpch;
mod until_enough;
mod wanted;
mod ways;
mod wording;
mod yielding;
