//! Split points: where a key space is cut into regions.
//!
//! HBase's [`bytes_split`] cuts evenly over all bytes, also where no key can be: with the hex keys of its own
//! guide, six of ten regions stay empty. [`suited`] asks the layout's leading part which bytes it can have.

use crate::key::{Digits, KeyLayout, Rowkey, prefix_end};

/// Regions of a table (count), at most.
pub const REGIONS_MAX: usize = 10_000;

/// `between + 2` keys from `first` to `last`, both included, evenly spaced over the bytes: byte for byte
/// HBase's `Bytes.split(first, last, between)`. `None` if `first` is not before `last`, or there are not
/// enough keys between them even with one more byte.
pub fn bytes_split(first: &[u8], last: &[u8], between: usize) -> Option<Vec<Rowkey>> {
    let width = first.len().max(last.len());
    // If there are too few keys of this width, use one more byte.
    let inner = [width, width + 1].into_iter().find_map(|width| {
        let padded = |key: &[u8]| [key, &vec![0; width - key.len()]].concat();
        let (low, high) = (padded(first), padded(last));
        if low >= high {
            return None;
        }
        let step = divided(&less(&high, &low), between as u64 + 1);
        let cuts = (0..between).scan(low, |at, _| {
            *at = more(at, &step);
            Some(Rowkey::from(&at[..]))
        });
        step.iter().any(|byte| *byte != 0).then(|| cuts.collect::<Vec<_>>())
    })?;
    let (first, last) = (Rowkey::from(first), Rowkey::from(last));
    Some(std::iter::once(first).chain(inner).chain([last]).collect())
}

/// Split points for this many regions, as made by `HBaseAdmin.createTable(first, last, regions)`: the first
/// region ends at `first` and the last one begins at `last`.
pub fn between(first: &[u8], last: &[u8], regions: usize) -> Option<Vec<Rowkey>> {
    bytes_split(first, last, regions.checked_sub(3)?)
}

/// Split points evenly spaced over all bytes.
pub fn uniform(regions: usize) -> Vec<Rowkey> {
    // Eight bytes suffice for any number of regions; trailing zeros are dropped.
    let cut = |i: usize| ((u128::from(u64::MAX) + 1) * i as u128 / regions as u128) as u64;
    let trimmed = |n: u64| {
        let bytes = n.to_be_bytes();
        let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
        Rowkey::from(&bytes[..end])
    };
    (1..regions).map(|i| trimmed(cut(i))).collect()
}

/// Split points evenly spaced over numbers of fixed width; `None` if there are fewer numbers than regions.
pub fn over_digits(digits: Digits, regions: usize) -> Option<Vec<Rowkey>> {
    let regions = regions as u128;
    if regions > digits.count {
        return None;
    }
    // Avoids overflow: count × i may not fit.
    let (whole, rest) = (digits.count / regions, digits.count % regions);
    let cut = |i: u128| digits.write(whole * i + rest * i / regions);
    Some((1..regions).map(|i| cut(i).into_bytes().into()).collect())
}

/// Split points suited to the layout's first part, if its values are distributed evenly; `None` if they are
/// not, or there are fewer values than regions.
pub fn suited(layout: &KeyLayout, regions: usize) -> Option<Vec<Rowkey>> {
    let first = layout.parts().first()?;
    match first.digits() {
        // Growing numbers would fill one region after the other, however they are cut.
        Some(digits) if first.facts().order.is_none() => over_digits(digits, regions),
        None if first.is_even() => Some(uniform(regions)),
        _ => None,
    }
}

/// A short readable key that is greater than `before` and not greater than `key`: cut after the first
/// character that differs, or, if keys are not text, after the part.
pub fn separator(layout: &KeyLayout, before: &[u8], key: &[u8]) -> Rowkey {
    let same = before.iter().zip(key).take_while(|(a, b)| a == b).count();
    let end = match std::str::from_utf8(key) {
        Ok(text) if layout.is_text() => (same + 1..key.len()).find(|at| text.is_char_boundary(*at)),
        _ => layout.split(key).ok().and_then(|ends| ends.into_iter().find(|end| *end > same)),
    };
    key[..end.unwrap_or(key.len())].into()
}

/// Regions (numbered from 0) that no key of the layout can be in, judged by its first part.
pub fn unreachable(layout: &KeyLayout, splits: &[Rowkey]) -> Vec<usize> {
    let Some(digits) = layout.parts().first().and_then(|part| part.digits()) else { return Vec::new() };
    let reached = |region: usize| {
        let start: &[u8] = region.checked_sub(1).map_or(&[], |at| &splits[at]);
        // The first number with a key at or after the start.
        let before =
            |n: u128| prefix_end(digits.write(n).as_bytes()).is_some_and(|end| end.as_slice() <= start);
        let (mut low, mut high) = (0, digits.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if before(middle) { low = middle + 1 } else { high = middle }
        }
        let end = splits.get(region);
        low < digits.count && end.is_none_or(|end| digits.write(low).as_bytes() < &end[..])
    };
    (0..=splits.len()).filter(|region| !reached(*region)).collect()
}

// Numbers of any length, most significant byte first.

fn less(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut out = a.to_vec();
    let mut borrow = 0;
    for (x, y) in out.iter_mut().zip(b).rev() {
        let n = i16::from(*x) - i16::from(*y) - borrow;
        borrow = i16::from(n < 0);
        *x = n.rem_euclid(256) as u8;
    }
    out
}

fn more(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut out = a.to_vec();
    let mut carry = 0;
    for (x, y) in out.iter_mut().zip(b).rev() {
        let n = u16::from(*x) + u16::from(*y) + carry;
        carry = n >> 8;
        *x = n as u8;
    }
    out
}

fn divided(a: &[u8], by: u64) -> Vec<u8> {
    let mut rest: u128 = 0;
    let digit = |byte: &u8| {
        let n = rest << 8 | u128::from(*byte);
        rest = n % u128::from(by);
        (n / u128::from(by)) as u8
    };
    a.iter().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HBase's guide, "Relationship Between RowKeys and Region Splits": bytes as Java prints them.
    const LUMPY: &str = "\
48 48 48 48 48 48 48 48 48 48 48 48 48 48 48 48                                // 0
54 -10 -10 -10 -10 -10 -10 -10 -10 -10 -10 -10 -10 -10 -10 -10                 // 6
61 -67 -67 -67 -67 -67 -67 -67 -67 -67 -67 -67 -67 -67 -67 -68                 // =
68 -124 -124 -124 -124 -124 -124 -124 -124 -124 -124 -124 -124 -124 -124 -126  // D
75 75 75 75 75 75 75 75 75 75 75 75 75 75 75 72                                // K
82 18 18 18 18 18 18 18 18 18 18 18 18 18 18 14                                // R
88 -40 -40 -40 -40 -40 -40 -40 -40 -40 -40 -40 -40 -40 -40 -44                 // X
95 -97 -97 -97 -97 -97 -97 -97 -97 -97 -97 -97 -97 -97 -97 -102                // _
102 102 102 102 102 102 102 102 102 102 102 102 102 102 102 102                // f
";

    #[test]
    fn bytes_split_is_that_of_hbase() {
        let cuts = between(b"0000000000000000", b"ffffffffffffffff", 10).unwrap();
        let line = |key: &Rowkey| {
            let bytes: Vec<String> = key.iter().map(|b| (*b as i8).to_string()).collect();
            format!("{:<79}// {}\n", bytes.join(" "), char::from(key[0]))
        };
        let table: String = cuts.iter().map(line).collect();
        assert_eq!(table, LUMPY);
    }

    #[test]
    fn hex_cuts_are_where_keys_are() {
        let cuts = over_digits(Digits::all(16, 4), 10).unwrap();
        let text: Vec<&str> = cuts.iter().map(|key| std::str::from_utf8(key).unwrap()).collect();
        assert_eq!(text, ["1999", "3333", "4ccc", "6666", "8000", "9999", "b333", "cccc", "e666"]);
        assert_eq!(over_digits(Digits::all(16, 1), 17), None);
        assert_eq!(over_digits(Digits { radix: 10, width: 2, count: 31 }, 31).unwrap().len(), 30);
    }

    #[test]
    fn uniform_cuts() {
        assert_eq!(uniform(1), []);
        assert_eq!(uniform(4), [vec![0x40].into(), vec![0x80].into(), vec![0xC0].into()]);
        assert_eq!(uniform(3)[0], vec![0x55; 8].into());
        assert_eq!(bytes_split(b"b", b"a", 1), None);
        assert_eq!(bytes_split(b"a", b"b", 9).unwrap()[1], b"a\x19"[..].into(), "a byte more makes room");
        assert_eq!(bytes_split(b"a", b"b", 256), None);
        assert_eq!(bytes_split(b"a", b"c", 1).unwrap(), ["a".into(), "b".into(), "c".into()]);
    }
}
