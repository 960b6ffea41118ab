//! The format of one page of LMDB's file.
//!
//! | at | bytes | holds |
//! |---|---|---|
//! | 0 | 8 | the page's own number |
//! | 10 | 2 | flags: 1 a branch, 2 a leaf, 4 the first page of a long value |
//! | 12 | 2 | where the offsets of the nodes end (of a long value 12, 4: its number of pages) |
//! | 14 | 2 | where the nodes begin |
//! | 16 | 2 each | the offset of each node, in order of their keys |
//!
//! A node has an even length, and there is nothing between nodes:
//!
//! | at | bytes | holds |
//! |---|---|---|
//! | 0 | 4 | the length of its value, two halves, the lower first; in a branch the lower part of its child's page number |
//! | 4 | 2 | 1: the value is long, and 8 bytes here give its first page; 2: it is a tree; in a branch the upper part of the child's page number |
//! | 6 | 2 | the length of its key |
//! | 8 | | its key, followed by its value |
//!
//! Numbers are in the machine's byte order. The first key of a branch page is ignored: its child has all keys less
//! than the second one. After LMDB 0.9.70, `mdb.c`.
//!
//! Example: `05 00 00 00 00 00 01 00 6b 68 65 6c 6c 6f` is the node of `hello` under `k`.
//!
//! No number read from a page is trusted: an offset that leads out of the page gives `None`.

use std::cmp::Ordering;
use std::ops::Range;

use super::ahead::ask;
use super::guess::{Around, Narrowing};

/// Length of the header before the offsets of nodes, or before a long value.
pub(super) const HEADER_BYTES: usize = 16;
const NODE_HEADER_BYTES: usize = 8;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const LONG: u16 = 0x04;
const IS_LONG: u16 = 0x01;
const IS_TREE: u16 = 0x02;

/// A search prefetches so many nodes on either side of the one it begins at.
const NEAR: usize = 2;

/// A branch or leaf page.
#[derive(Clone, Copy)]
pub(super) struct Page<'m> {
    bytes: &'m [u8],
    is_leaf: bool,
    nodes: usize,
    /// Where the nodes begin; bytes before it may be remains of an old node.
    upper: usize,
}

/// Where the value of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored<'m> {
    /// In the node.
    Here(&'m [u8]),
    /// In the node: the description of a tree, for [`Root`](super::meta::Root).
    Tree(&'m [u8]),
    /// On pages of its own.
    Long {
        /// Number of the first page.
        page: u64,
        /// Length of the value.
        bytes: usize,
    },
}

/// An entry of a leaf.
pub(super) struct Node<'m> {
    pub(super) key: &'m [u8],
    header: Header,
    /// The bytes behind its key, up to the end of the page.
    rest: &'m [u8],
}

impl<'m> Node<'m> {
    /// Its value; `None` if it is malformed.
    #[inline]
    pub(super) fn stored(&self) -> Option<Stored<'m>> {
        let Header { value_bytes, flags, .. } = self.header;
        match flags {
            0 => Some(Stored::Here(self.rest.get(..value_bytes)?)),
            IS_LONG => Some(Stored::Long { page: u64_at(self.rest, 0)?, bytes: value_bytes }),
            IS_TREE => Some(Stored::Tree(self.rest.get(..value_bytes)?)),
            _ => None,
        }
    }
}

impl<'m> Page<'m> {
    /// Parses `bytes` as page `number`, a branch or a leaf; `None` if it is neither.
    #[inline]
    pub(super) fn of(bytes: &'m [u8], number: u64) -> Option<Page<'m>> {
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let kind = u16_at(header, 10)?;
        let (lower, upper) = (usize::from(u16_at(header, 12)?), usize::from(u16_at(header, 14)?));
        let fits = HEADER_BYTES < lower && lower <= upper && upper <= bytes.len() && lower % 2 == 0;
        let page = Page { bytes, is_leaf: kind == LEAF, nodes: lower.checked_sub(HEADER_BYTES)? / 2, upper };
        (fits && u64_at(header, 0)? == number && (page.is_leaf || kind == BRANCH)).then_some(page)
    }

    pub(super) fn is_leaf(&self) -> bool {
        self.is_leaf
    }

    /// Number of nodes, at least one.
    pub(super) fn len(&self) -> usize {
        self.nodes
    }

    /// The offset of node `at`.
    #[inline]
    pub(super) fn offset(&self, at: usize) -> Option<usize> {
        if at >= self.nodes {
            return None;
        }
        u16_at(self.bytes, HEADER_BYTES + 2 * at).map(usize::from).filter(|offset| *offset >= self.upper)
    }

    /// The range of the key of the node at `offset`.
    #[inline]
    pub(super) fn key_place(&self, offset: usize) -> Option<Range<usize>> {
        let start = offset + NODE_HEADER_BYTES;
        Some(start..start + usize::from(u16_at(self.bytes, offset + 6)?))
    }

    #[inline]
    pub(super) fn slice(&self, place: Range<usize>) -> Option<&'m [u8]> {
        self.bytes.get(place)
    }

    #[inline]
    pub(super) fn key(&self, at: usize) -> Option<&'m [u8]> {
        self.slice(self.key_place(self.offset(at)?)?)
    }

    /// In a leaf: key and value of entry `at`.
    #[inline]
    pub(super) fn entry(&self, at: usize) -> Option<(&'m [u8], Stored<'m>)> {
        let node = self.node(at)?;
        Some((node.key, node.stored()?))
    }

    /// In a leaf: entry `at`, its value not decoded yet.
    #[inline]
    pub(super) fn node(&self, at: usize) -> Option<Node<'m>> {
        let (header, rest) = self.bytes.get(self.offset(at)?..)?.split_first_chunk()?;
        let header = Header::of(header);
        let (key, rest) = rest.split_at_checked(header.key_bytes)?;
        Some(Node { key, header, rest })
    }

    /// In a branch: the page number of child `at`.
    #[inline]
    pub(super) fn child(&self, at: usize) -> Option<u64> {
        let offset = self.offset(at)?;
        Some(u64::from(u32_at(self.bytes, offset)?) | u64::from(u16_at(self.bytes, offset + 4)?) << 32)
    }

    /// The first node whose key is not less than `key`, and whether it is equal. `around`: the separators in the page
    /// above between which this page's keys lie, if known.
    #[inline]
    pub(super) fn search(&self, key: &[u8], around: Option<Around<'_>>) -> Option<(usize, bool)> {
        let narrowing = self.narrowing(key, around);
        if self.is_leaf {
            let near = narrowing.probe.saturating_sub(NEAR)..=narrowing.probe + NEAR;
            near.filter_map(|at| self.offset(at)).for_each(|offset| self.ask(offset));
        }
        self.search_by(narrowing, key)
    }

    /// The start of such a search.
    #[inline]
    pub(super) fn narrowing(&self, key: &[u8], around: Option<Around<'_>>) -> Narrowing {
        let (low, high) = (self.first_to_compare(), self.nodes);
        match around {
            Some(around) => Narrowing::between(low, high, around, key),
            None => Narrowing::halving(low, high),
        }
    }

    /// Runs such a search to its end.
    #[inline]
    pub(super) fn search_by(&self, mut narrowing: Narrowing, key: &[u8]) -> Option<(usize, bool)> {
        while !narrowing.is_done() {
            if narrowing.see(compare(self.key(narrowing.probe)?, key)) {
                return Some((narrowing.low, true));
            }
        }
        Some((narrowing.low, false))
    }

    /// Prefetches the header of the node at `offset`, and with it the start of its key.
    #[inline]
    pub(super) fn ask(&self, offset: usize) {
        ask(self.bytes.get(offset..offset + NODE_HEADER_BYTES).unwrap_or_default());
    }

    /// The first node whose key counts.
    #[inline]
    pub(super) fn first_to_compare(&self) -> usize {
        usize::from(!self.is_leaf)
    }

    /// In a branch: the child that would have `key`.
    #[inline]
    pub(super) fn way_to(&self, key: &[u8], around: Option<Around<'_>>) -> Option<usize> {
        let (at, found) = self.search(key, around)?;
        Some(if found { at } else { at - 1 })
    }

    /// In a branch: the separators around a child's keys, if it has both.
    #[inline]
    pub(super) fn around(&self, child: usize) -> Option<Around<'m>> {
        if child < self.first_to_compare() {
            return None;
        }
        Some((self.key(child)?, self.key(child + 1)?))
    }

    /// Whether the nodes fill the page exactly up to its end, which reveals a wrong number of nodes. Those of a
    /// branch must be in order too.
    pub(super) fn is_whole(&self) -> bool {
        let mut filled = 0;
        for at in 0..self.nodes {
            let Some(offset) = self.offset(at) else { return false };
            let Some(header) = self.bytes.get(offset..).and_then(<[u8]>::first_chunk) else { return false };
            let header = Header::of(header);
            let value_bytes = match (self.is_leaf, header.flags) {
                (false, _) => 0,
                (true, IS_LONG) => size_of::<u64>(),
                (true, _) => header.value_bytes,
            };
            let len = NODE_HEADER_BYTES + header.key_bytes + value_bytes;
            if offset + len > self.bytes.len() {
                return false;
            }
            filled += len.next_multiple_of(2);
        }
        self.upper + filled == self.bytes.len() && (self.is_leaf || self.is_ordered())
    }

    /// Whether the keys ascend, the ignored first one of a branch aside.
    pub(super) fn is_ordered(&self) -> bool {
        let keys = (self.first_to_compare()..self.nodes).map(|at| self.key(at));
        keys.is_sorted_by(|a, b| a.is_some() && a < b)
    }
}

/// The header of a node.
struct Header {
    /// Meaningless in a branch.
    value_bytes: usize,
    /// Meaningless in a branch.
    flags: u16,
    key_bytes: usize,
}

impl Header {
    #[inline]
    fn of(bytes: &[u8; NODE_HEADER_BYTES]) -> Header {
        let [a, b, c, d, e, f, g, h] = *bytes;
        Header {
            value_bytes: u32::from_ne_bytes([a, b, c, d]) as usize,
            flags: u16::from_ne_bytes([e, f]),
            key_bytes: u16::from_ne_bytes([g, h]).into(),
        }
    }
}

/// Number of pages of the long value whose first page is `number` and begins with `header`. More than it needs, if a
/// longer value was there before.
pub(super) fn pages_of_long(header: &[u8], number: u64) -> Option<u64> {
    let is_long = u16_at(header, 10)? == LONG && u64_at(header, 0)? == number;
    is_long.then_some(u32_at(header, 12)?.into())
}

/// Compares two keys. Keys are short, and calling the C library's comparison takes longer than comparing most of
/// them.
#[inline]
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (mut rest, mut other) = (a, b);
    while let (Some((x, more)), Some((y, others))) =
        (rest.split_first_chunk::<8>(), other.split_first_chunk::<8>())
    {
        if x != y {
            return u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y));
        }
        (rest, other) = (more, others);
    }
    match (a.last_chunk(), b.last_chunk()) {
        // For keys of equal length the last eight bytes decide the rest: any bytes they repeat were equal.
        (Some(x), Some(y)) if a.len() == b.len() => u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y)),
        _ => rest.cmp(other),
    }
}

#[inline]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A page of 256 bytes: leaf 9 with these entries, the first one at the end.
    fn leaf(entries: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut page = vec![0; 256];
        let mut upper = page.len();
        for (n, (key, value)) in entries.iter().enumerate() {
            let mut node = (value.len() as u32).to_ne_bytes().to_vec();
            node.extend([0, 0]);
            node.extend((key.len() as u16).to_ne_bytes());
            node.extend(*key);
            node.extend(*value);
            node.resize(node.len().next_multiple_of(2), 0);
            upper -= node.len();
            page[upper..][..node.len()].copy_from_slice(&node);
            page[HEADER_BYTES + 2 * n..][..2].copy_from_slice(&(upper as u16).to_ne_bytes());
        }
        let lower = (HEADER_BYTES + 2 * entries.len()) as u16;
        page[..8].copy_from_slice(&9u64.to_ne_bytes());
        page[10..12].copy_from_slice(&LEAF.to_ne_bytes());
        page[12..14].copy_from_slice(&lower.to_ne_bytes());
        page[14..16].copy_from_slice(&(upper as u16).to_ne_bytes());
        page
    }

    #[test]
    fn the_example_of_the_table() {
        let bytes = leaf(&[(b"k", b"hello"), (b"l", b"")]);
        let page = Page::of(&bytes, 9).unwrap();
        assert_eq!(page.entry(0).unwrap(), (&b"k"[..], Stored::Here(b"hello")));
        assert_eq!(bytes[242..], *b"\x05\0\0\0\0\0\x01\0khello");
        assert_eq!(page.search(b"ka", None), Some((1, false)));
        assert_eq!(page.search(b"l", None), Some((1, true)));
        assert!(page.is_whole() && page.is_leaf() && page.len() == 2);
        assert!(Page::of(&bytes, 8).is_none(), "another page's number");
    }

    #[test]
    fn a_page_that_forgot_a_node_is_not_whole() {
        let mut bytes = leaf(&[(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]);
        bytes[12] -= 2;
        assert!(!Page::of(&bytes, 9).unwrap().is_whole());
    }

    proptest! {
        #[test]
        fn keys_compare_as_their_bytes_do(
            same in prop::collection::vec(any::<u8>(), 0..30),
            a in prop::collection::vec(any::<u8>(), 0..20),
            b in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let (a, b) = ([&same[..], &a].concat(), [&same[..], &b].concat());
            prop_assert_eq!(compare(&a, &b), a.cmp(&b));
            prop_assert_eq!(compare(&a, &a), Ordering::Equal);
        }

        #[test]
        fn noise_leads_nowhere(noise in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..100, leaf in any::<bool>()) {
            let mut noise = noise;
            if noise.len() > 16 {
                noise[..8].copy_from_slice(&9u64.to_ne_bytes());
                noise[10..16].copy_from_slice(&[if leaf { 2 } else { 1 }, 0, 40, 0, 60, 0]);
            }
            if let Some(page) = Page::of(&noise, 9) {
                let _ = (page.key(at), page.entry(at), page.child(at), page.is_whole(), page.search(b"key", None));
                let _ = page.way_to(b"key", page.around(at));
            }
        }
    }
}
