//! The design of rowkeys, judged: what a layout does to the data it is given, before and after there is any.
//!
//! Everything here is pure. The engine measures ([`lint::Facts`]) and asks.

pub mod lint;
pub mod simulate;
pub mod splits;
