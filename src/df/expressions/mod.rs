//! The meaning of expressions by PostgreSQL's rules, where DataFusion's differ: common types of operands, three-valued
//! logic, LIKE.

pub(super) mod aggregate_orders;
pub(super) mod beside;
pub(super) mod binary_keys;
pub(super) mod checked;
pub(super) mod compared;
pub(super) mod dates;
pub(super) mod doubles;
pub(super) mod elements;
pub(super) mod intervals;
pub(super) mod lazy;
pub(super) mod like;
pub(super) mod long_decimals;
pub(super) mod offsets;
pub(super) mod one_by_one;
pub(super) mod quotients;
pub(super) mod read_times;
pub(super) mod rounding;
pub(super) mod settled;
pub(super) mod step_types;
pub(super) mod text;
pub(super) mod three_valued;
pub(super) mod time_parts;
pub(super) mod time_zone;
