//! Text to statement.
pub mod split;
pub mod suggest;
