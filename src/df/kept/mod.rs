//! Plans that are made once and run many times, and what of them runs without DataFusion's streams.
//!
//! [`plan`] has places that each run fills ([`open`], [`template`], [`places`]); [`plain`] makes one right from the
//! parsed text. On the calling thread ([`alone`]) run a scan, its totals ([`totals`], made of [`numbers`]), those of
//! several side by side ([`beside`]), few groups ([`few_groups`]), joins of few rows
//! ([`lookup::nested`](super::operators::lookup)), and what is made of their rows ([`above`]). [`row_map`] computes
//! values of rows that are in no table.

pub(super) mod above;
pub mod alone;
mod beside;
mod few_groups;
pub(super) mod numbers;
pub(super) mod open;
mod places;
pub mod plain;
pub mod plan;
pub mod row_map;
pub(super) mod template;
pub(super) mod totals;
