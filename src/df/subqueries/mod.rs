//! Subqueries as joins: correlated ones ([`correlated`]), and those of IN, ANY, EXISTS, ON and ORDER BY.

pub(super) mod correlated;
mod domain;
mod exists;
pub(super) mod first_found;
mod first_rows;
pub(super) mod guards;
pub(super) mod join_condition;
mod membership;
pub(super) mod of_no_table;
mod one_row;
pub(super) mod or_null;
pub(super) mod order_subquery;
pub(super) mod outer_totals;
pub(super) mod outer_types;
mod own_names;
mod rows_found;
mod totals_found;
