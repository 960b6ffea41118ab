//! Rowkey design analysis: what a layout does to its data, before and after there is any.
//!
//! Everything here is pure. The engine measures ([`lint::TableFacts`]) and calls it.

pub mod heatmap;
pub mod keys;
pub mod lint;
pub mod simulate;
pub mod splits;
pub mod spread;

/// A number with grouped digits: `12,345`.
pub fn grouped(n: impl Into<i128>) -> String {
    let n: i128 = n.into();
    let digits = n.unsigned_abs().to_string();
    let mut out = String::from(if n < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
