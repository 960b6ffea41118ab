//! Interpolation search: chooses which keys of a page to compare with the wanted key.
//!
//! Each comparison waits for memory, so fewer are better. The keys of a page lie between two separators of the page
//! above, and often evenly: numbers, digits, hashes. So a search begins where the key would then lie, goes on from
//! there in growing steps, and switches to binary search once the key is enclosed by two compared keys. If keys do
//! not lie evenly, this takes up to twice as many comparisons as a binary search; if they do, three instead of five.
//! After Bentley and Yao, An almost optimal algorithm for unbounded searching (1976), and Peterson, Addressing for
//! random-access storage (1957).

use std::cmp::Ordering;

/// The separators around the keys of a page.
pub(super) type Around<'m> = (&'m [u8], &'m [u8]);

/// The state of a search among the nodes of a page.
#[derive(Clone, Copy)]
pub(super) struct Narrowing {
    /// Nodes before it have smaller keys.
    pub(super) low: usize,
    /// Nodes from it on have greater keys.
    high: usize,
    /// The node to compare next.
    pub(super) probe: usize,
    stride: Stride,
}

#[derive(Clone, Copy)]
enum Stride {
    /// To the middle of the remaining range.
    Half,
    /// The first probe, at a guessed position: next up or down.
    Either,
    Up(usize),
    Down(usize),
}

impl Narrowing {
    /// A binary search among the nodes from `low` to `high`.
    #[inline]
    pub(super) fn halving(low: usize, high: usize) -> Narrowing {
        Narrowing { low, high, probe: (low + high) / 2, stride: Stride::Half }
    }

    /// A search that is done: the key belongs before `at`.
    #[inline]
    pub(super) fn done(at: usize) -> Narrowing {
        Narrowing::halving(at, at)
    }

    /// A search for a key that is not less than that of the node before `low`, and probably close to it.
    #[inline]
    pub(super) fn behind(low: usize, high: usize) -> Narrowing {
        Narrowing { low, high, probe: low, stride: Stride::Up(1) }
    }

    /// A search that starts at the guessed position of `key`, in a page whose keys lie `around`.
    #[inline]
    pub(super) fn between(low: usize, high: usize, around: Around<'_>, key: &[u8]) -> Narrowing {
        match place(around, key, high) {
            Some(probe) if low < high => {
                Narrowing { low, high, probe: probe.clamp(low, high - 1), stride: Stride::Either }
            }
            _ => Narrowing::halving(low, high),
        }
    }

    /// The search is done: the key belongs before `low`.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.low >= self.high
    }

    /// Takes the comparison of the probed node's key with the wanted key, and moves on; true if they are equal.
    #[inline]
    pub(super) fn see(&mut self, node: Ordering) -> bool {
        self.stride = match (node, self.stride) {
            (Ordering::Equal, _) => {
                (self.low, self.high) = (self.probe, self.probe);
                return true;
            }
            (Ordering::Less, Stride::Either) => Stride::Up(1),
            (Ordering::Less, Stride::Up(step)) => Stride::Up(2 * step),
            (Ordering::Greater, Stride::Either) => Stride::Down(1),
            (Ordering::Greater, Stride::Down(step)) => Stride::Down(2 * step),
            _ => Stride::Half,
        };
        match node {
            Ordering::Less => self.low = self.probe + 1,
            _ => self.high = self.probe,
        }
        self.probe = match self.stride {
            Stride::Up(step) => (self.low + step - 1).min(self.high.saturating_sub(1)),
            Stride::Down(step) => self.high.saturating_sub(step).max(self.low),
            Stride::Half | Stride::Either => (self.low + self.high) / 2,
        };
        false
    }
}

/// The index of `key` among `nodes` that lie evenly between two keys; `None` if the bytes do not tell.
#[inline]
fn place((from, to): Around<'_>, key: &[u8], nodes: usize) -> Option<usize> {
    // A key that begins differently does not lie between them, but may be treated as if it did: it is only a guess.
    let same = same_bytes(from, to);
    let [from, to, key] = match [from, to, key].map(|key| digits(eight(key, same, b'0'))) {
        [Some(from), Some(to), Some(key)] => [from, to, key],
        _ => [from, to, key].map(|key| eight(key, same, 0)),
    };
    let (part, whole) = (key.clamp(from, to.max(from)) - from, to.saturating_sub(from));
    (whole > 0).then(|| (part as f64 / whole as f64 * nodes as f64) as usize)
}

/// Length of the common prefix, in bytes.
#[inline]
fn same_bytes(a: &[u8], b: &[u8]) -> usize {
    let mut same = 0;
    while let (Some(x), Some(y)) = (eight_at(a, same), eight_at(b, same)) {
        if x != y {
            return same + (x ^ y).leading_zeros() as usize / 8;
        }
        same += 8;
    }
    same + a[same..].iter().zip(&b[same..]).take_while(|(x, y)| x == y).count()
}

/// The eight bytes from `start` on as a big-endian number, missing ones replaced by `fill`.
#[inline]
fn eight(bytes: &[u8], start: usize, fill: u8) -> u64 {
    eight_at(bytes, start).unwrap_or_else(|| {
        let rest = bytes.get(start..).unwrap_or_default();
        let (known, bits) = (rest.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)), 8 * rest.len() as u32);
        known.checked_shl(64 - bits).unwrap_or(0) | u64::from_ne_bytes([fill; 8]) >> bits
    })
}

#[inline]
fn eight_at(bytes: &[u8], start: usize) -> Option<u64> {
    bytes.get(start..)?.first_chunk().map(|eight| u64::from_be_bytes(*eight))
}

/// The number that eight ASCII digits spell; `None` if they are not all digits.
#[inline]
fn digits(eight: u64) -> Option<u64> {
    const HIGH: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    let word = eight.swap_bytes();
    let are_digits = word & HIGH == 0x3030_3030_3030_3030
        && word.wrapping_add(0x0606_0606_0606_0606) & HIGH == 0x3030_3030_3030_3030;
    if !are_digits {
        return None;
    }
    // Combine neighbours: into two digits, four, eight (Lemire, Quickly parsing eight digits, 2018).
    let pairs = (word & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(10 << 8 | 1) >> 8;
    let fours = (pairs & 0x00FF_00FF_00FF_00FF).wrapping_mul(100 << 16 | 1) >> 16;
    Some((fours & 0x0000_FFFF_0000_FFFF).wrapping_mul(10_000 << 32 | 1) >> 32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn digits_are_a_number() {
        let digits = |bytes: &[u8]| digits(eight(bytes, 1, b'0'));
        assert_eq!(digits(b"012345678"), Some(12_345_678));
        assert_eq!(digits(b"a9876543210"), Some(98_765_432));
        assert_eq!(digits(b"042"), Some(42_000_000));
        assert_eq!(digits(b"4"), Some(0));
        assert_eq!(digits(b""), Some(0));
        assert_eq!(digits(b"01234567a"), None);
        assert_eq!(digits(b"012345:78"), None);
        assert_eq!(digits(b"012/45678"), None);
    }

    #[test]
    fn bytes_that_are_the_same_are_counted() {
        assert_eq!(same_bytes(b"0123456789", b"0123456789"), 10);
        assert_eq!(same_bytes(b"0123456789", b"012345678"), 9);
        assert_eq!(same_bytes(b"01234567", b"0123x567"), 4);
        assert_eq!(same_bytes(b"012345678", b"01234567x"), 8);
        assert_eq!(same_bytes(b"abc", b""), 0);
    }

    /// The number of comparisons until `key` is found among `keys`, its index, and whether it is there.
    fn search(mut narrowing: Narrowing, keys: &[Vec<u8>], key: &[u8]) -> (usize, usize, bool) {
        let mut compared = 0;
        while !narrowing.is_done() {
            compared += 1;
            if narrowing.see(keys[narrowing.probe][..].cmp(key)) {
                return (compared, narrowing.low, true);
            }
        }
        (compared, narrowing.low, false)
    }

    #[test]
    fn keys_that_lie_evenly_take_few_comparisons() {
        let digits = |n: u64| format!("{:012}", n * 7_919 % 100_000_007).into_bytes();
        let numbers = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
        for key in [&digits as &dyn Fn(u64) -> Vec<u8>, &numbers] {
            let mut keys: Vec<Vec<u8>> = (0..100_000).map(key).collect();
            keys.sort();
            let mut compared = 0;
            for leaf in keys.windows(43).step_by(42) {
                let (keys, around) = (&leaf[..42], (&leaf[0][..], &leaf[42][..]));
                for (at, key) in keys.iter().enumerate() {
                    let (times, place, found) = search(Narrowing::between(0, 42, around, key), keys, key);
                    assert!(found && place == at && times <= 12);
                    compared += times;
                }
            }
            // A binary search takes 4.7 comparisons for each.
            assert!(compared < 330_000, "{compared}");
        }
    }

    /// Bytes for keys: below digits, digits, letters, above all.
    const BYTES: &[u8] = b"\x0009a\xFF";

    proptest! {
        #[test]
        fn every_search_ends_where_a_binary_search_does(
            keys in prop::collection::btree_set(prop::collection::vec(prop::sample::select(BYTES), 0..12), 0..40),
            key in prop::collection::vec(prop::sample::select(BYTES), 0..12),
            from in prop::collection::vec(any::<u8>(), 0..12),
            to in prop::collection::vec(any::<u8>(), 0..12),
            low in 0usize..3,
        ) {
            let keys: Vec<Vec<u8>> = keys.into_iter().collect();
            prop_assume!(low <= keys.len());
            let expected = match keys[low..].binary_search(&key) {
                Ok(at) => (low + at, true),
                Err(at) => (low + at, false),
            };
            let ends = [keys.first(), keys.last()].map(|key| key.map_or(&b""[..], |key| key));
            let high = keys.len();
            for narrowing in [
                Narrowing::halving(low, high),
                Narrowing::behind(low, high),
                Narrowing::between(low, high, (&from, &to), &key),
                Narrowing::between(low, high, (ends[0], ends[1]), &key),
            ] {
                let (_, at, found) = search(narrowing, &keys, &key);
                prop_assert_eq!((at, found), expected);
            }
        }
    }
}
