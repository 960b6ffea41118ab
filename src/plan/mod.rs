//! Plans key ranges: from a `WHERE` to the ranges to read, in pure code.
//!
//! SQL becomes a [`Predicate`], normalised as it is built. Its alternatives (`alternatives.rs`: OR pulled
//! outward, up to a limit) say per column which values can match, as [`ValueSet`]s. [`ranges()`] walks the
//! parts of a [`KeyLayout`](crate::key::KeyLayout) for each alternative and asks every part for the bytes of
//! those values. The result are [`Ranges`]: the key ranges, and the residual filter, which holds the
//! conditions that the ranges do not guarantee and which the scan checks with [`Predicate::eval`].
//!
//! A [`Formula`] is an expression that an index computes from a row, such as `upper(name)`; here it is a
//! column like any other, and conditions on its inputs may say something of it (`formula_values.rs`).
//!
//! Two promises hold, and `proof.rs` tests them over every row of small domains: *a row that matches lies
//! inside the ranges*, and *a row inside the ranges matches if and only if the residual is true for it*.

mod alternatives;
mod filter;
mod formula;
mod formula_values;
mod implication;
mod like;
mod ordering;
mod predicate;
#[cfg(test)]
mod proof;
mod ranges;
mod sets;
mod short;
mod skip;
#[cfg(test)]
mod testing;
mod walk;

pub use alternatives::possible_values;
pub use filter::Filter;
pub use formula::{Formula, Function, Values};
pub use like::{LikePattern, PLAIN_ESCAPE, dangling_escape};
pub use ordering::{FanOut, ShortIntervals, Stream, ordering};
pub use predicate::{CmpOp, Field, Predicate, RowView};
pub use ranges::{LayoutRole, Ranges, ranges};
pub use sets::ValueSet;
pub use short::{RangeShape, short_stretch};
pub use skip::{EachOf, Skip, SkipShape, Skipping};
