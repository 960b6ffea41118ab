//! Kept plans: made once and run many times, many of them without DataFusion's streams.
//!
//! A [`plan`] has open places that each run fills ([`open`], [`template`], [`places`]), and gives the [`page`] that a run
//! asks for; [`plain`] makes one directly from the parsed query. Some plans run on the calling thread ([`alone`]): scans,
//! their totals ([`totals`], made of [`numbers`]), totals of several scans side by side ([`beside`]), few groups
//! ([`few_groups`]), joins of few rows ([`lookup::nested`](super::operators::lookup)), with simple operators on top
//! ([`above`]). [`row_map`] computes expressions over rows that are in no table.

pub(super) mod above;
pub mod alone;
mod beside;
mod few_groups;
pub(super) mod numbers;
pub(super) mod open;
pub mod page;
mod places;
pub mod plain;
pub mod plan;
pub mod row_map;
pub(super) mod template;
pub(super) mod totals;
