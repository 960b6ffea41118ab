//! The ordered parts that turn a row into a key and back.

use serde::{Deserialize, Serialize};

use super::part::{ColumnInfo, KeyPart, PartSpec};
use super::problem::{BadKey, KeyError, LayoutError, Warning};
use super::transform::ColumnId;
use crate::value::{Value, ValueRef};

/// What follows a layout's bytes in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing: a variable-width last part may run to the end.
    Nothing,
    /// A pointer to a row: every part must know its end.
    Pointer,
}

/// Ordered key parts; encodes, decodes and validates itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyLayout {
    parts: Vec<KeyPart>,
    undoable: Vec<ColumnId>,
}

impl KeyLayout {
    /// Binds `specs` to their columns; `tail` follows the layout in the key.
    pub fn new<'a>(
        specs: Vec<PartSpec>,
        column: &dyn Fn(ColumnId) -> ColumnInfo<'a>,
        tail: Tail,
    ) -> Result<KeyLayout, LayoutError> {
        let _ = (specs, column, tail);
        todo!()
    }

    /// The parts, in order; one for each spec.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Appends the key of `row`, whose value of column `c` is `row[c.0]`. `entropy` feeds `random(n)`.
    pub fn encode<'n>(
        &self,
        row: &[Value],
        names: &dyn Fn(ColumnId) -> &'n str,
        entropy: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        let _ = (row, names, entropy, out);
        todo!()
    }

    /// End offset of each part in a key that starts with this layout's bytes.
    pub fn split(&self, key: &[u8]) -> Result<Vec<usize>, BadKey> {
        let _ = key;
        todo!()
    }

    /// Length of the layout's bytes at the start of `key`.
    pub fn len_in(&self, key: &[u8]) -> Result<usize, BadKey> {
        let _ = key;
        todo!()
    }

    /// Calls `f` once for each undoable column, and returns the layout's length in `key`.
    pub fn decode(&self, key: &[u8], f: &mut dyn FnMut(ColumnId, ValueRef<'_>)) -> Result<usize, BadKey> {
        let _ = (key, f);
        todo!()
    }

    /// Columns that [`KeyLayout::decode`] gives back exactly, in key order.
    pub fn undoable(&self) -> &[ColumnId] {
        &self.undoable
    }

    /// All input columns, in key order, once each.
    pub fn columns(&self) -> Vec<ColumnId> {
        todo!()
    }

    /// Every part is plain text, so that keys are shown as text; otherwise as hex.
    pub fn is_text(&self) -> bool {
        todo!()
    }

    /// A key for people. Never fails: hex where it cannot decode.
    pub fn show(&self, key: &[u8]) -> String {
        let _ = key;
        todo!()
    }

    /// The start of a key for people: whole parts decoded, the rest as text or hex.
    pub fn show_prefix(&self, bytes: &[u8]) -> String {
        let _ = bytes;
        todo!()
    }

    /// What its author should know.
    pub fn warnings<'a>(&self, column: &dyn Fn(ColumnId) -> ColumnInfo<'a>) -> Vec<Warning> {
        let _ = column;
        todo!()
    }

    /// Decoding this layout gives every column that `other` is made of: a key of `other` can be rebuilt.
    pub fn contains_columns(&self, other: &KeyLayout) -> bool {
        let _ = other;
        todo!()
    }
}
