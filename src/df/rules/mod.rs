//! Optimizer rules: where DataFusion's would give wrong results, and where keys give the right ones sooner.

pub(super) mod above_totals;
pub(super) mod anti_join;
pub(super) mod carried;
pub(super) mod drawn_once;
pub(super) mod early;
pub(super) mod extremes;
pub(super) mod first_left;
pub(super) mod frames;
pub(super) mod inner_orders;
pub(super) mod join_keys;
pub(super) mod join_order;
pub(super) mod kept_apart;
pub(super) mod kept_sorts;
pub(super) mod multisets;
pub(super) mod named_unions;
pub(super) mod null_frames;
pub(super) mod null_order;
pub(super) mod offset;
pub(super) mod picking;
pub(super) mod risk;
pub(super) mod satisfied;
pub(super) mod short_circuit;
pub(super) mod true_keys;
pub(super) mod unique_side;
pub(super) mod wide_columns;
pub(super) mod window_keys;
