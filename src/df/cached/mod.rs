//! Cached plans: made once and run many times, many of them without DataFusion's streams.
//!
//! A [`plan`] has open places that each run fills ([`parameters`], [`open_values`],
//! [`template`](super::table::template), [`subquery_values`]), perhaps with values that it computes first
//! ([`values_first`]), and gives the [`page`] that a run asks for; [`plain`] makes one directly from the parsed query.
//! Some plans run on the calling thread ([`alone`]): scans, their totals ([`totals`], made of [`aggregates`]), totals
//! of several scans side by side ([`beside`]), few groups ([`few_groups`]), joins of few rows
//! ([`lookup::nested`](super::operators::lookup)), few rows of a scan ([`few_rows`]), with simple operators on top
//! ([`on_top`]), among them groups ([`grouping`]) and window functions ([`windows`]). [`row_map`] computes expressions
//! over rows that are in no table.

pub(super) mod aggregates;
pub mod alone;
mod beside;
mod few_groups;
mod few_rows;
mod grouping;
pub(super) mod on_top;
pub(super) mod open_values;
pub mod page;
pub(super) mod parameters;
pub mod plain;
pub mod plan;
pub mod row_map;
pub(super) mod subquery_values;
pub(super) mod totals;
pub(super) mod values_first;
pub(super) mod windows;
