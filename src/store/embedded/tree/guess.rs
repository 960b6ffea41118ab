//! Which of a page's keys to compare with the one that is looked for.
//!
//! Each comparison waits for memory, so the fewer there are, the better. What a page holds lies between two keys of the page
//! above, and often evenly: numbers, digits, hashes. So a search begins where the key would lie then, goes on from there in
//! growing steps, and halves what is left once the place is between two keys that it has seen. Where keys do not lie evenly,
//! it takes up to twice as many comparisons as a binary search; where they do, three instead of five. After Bentley and
//! Yao, An almost optimal algorithm for unbounded searching (1976), and Peterson, Addressing for random-access storage (1957).

use std::cmp::Ordering;

/// The keys between which those of a page lie.
pub(super) type Around<'m> = (&'m [u8], &'m [u8]);

/// A search among the nodes of a page.
#[derive(Clone, Copy)]
pub(super) struct Narrowing {
    /// Nodes before it have lesser keys.
    pub(super) low: usize,
    /// From it on they have greater ones.
    high: usize,
    /// The node to look at next.
    pub(super) probe: usize,
    stride: Stride,
}

#[derive(Clone, Copy)]
enum Stride {
    /// To the middle of what is left.
    Half,
    /// From a guess on, one way or the other.
    Either,
    Up(usize),
    Down(usize),
}

impl Narrowing {
    /// Among the nodes from `low` to `high`, nothing being known of them.
    #[inline]
    pub(super) fn halving(low: usize, high: usize) -> Narrowing {
        Narrowing { low, high, probe: (low + high) / 2, stride: Stride::Half }
    }

    /// The same for a key that is not less than that of the node before `low`, probably not far from there.
    #[inline]
    pub(super) fn behind(low: usize, high: usize) -> Narrowing {
        Narrowing { low, high, probe: low, stride: Stride::Up(1) }
    }

    /// The same for a key of a page whose keys lie `around`.
    #[inline]
    pub(super) fn between(low: usize, high: usize, around: Around<'_>, key: &[u8]) -> Narrowing {
        match place(around, key, high) {
            Some(probe) if low < high => {
                Narrowing { low, high, probe: probe.clamp(low, high - 1), stride: Stride::Either }
            }
            _ => Narrowing::halving(low, high),
        }
    }

    /// All are told apart: the key belongs before `low`.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.low >= self.high
    }

    /// Goes on after the node at the probe, whose key lies so to the one that is looked for; true if it is that.
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

/// Where `key` is among `nodes` that lie evenly between two keys; `None` if nobody can tell.
#[inline]
fn place((from, to): Around<'_>, key: &[u8], nodes: usize) -> Option<usize> {
    // A key that begins in another way does not lie between them, and may be taken for one that does: it is a guess.
    let same = same_bytes(from, to);
    let [from, to, key] = match [from, to, key].map(|key| digits(eight(key, same, b'0'))) {
        [Some(from), Some(to), Some(key)] => [from, to, key],
        _ => [from, to, key].map(|key| eight(key, same, 0)),
    };
    let (part, whole) = (key.clamp(from, to.max(from)) - from, to.saturating_sub(from));
    (whole > 0).then(|| (part as f64 / whole as f64 * nodes as f64) as usize)
}

/// So many bytes (count) in front are the same.
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

/// The eight bytes from `start` on, the first one being the highest; `fill` in the place of those that are missing.
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

/// The number that eight bytes are, if they are digits.
#[inline]
fn digits(eight: u64) -> Option<u64> {
    const HIGH: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    let word = eight.swap_bytes();
    let are_digits = word & HIGH == 0x3030_3030_3030_3030
        && word.wrapping_add(0x0606_0606_0606_0606) & HIGH == 0x3030_3030_3030_3030;
    if !are_digits {
        return None;
    }
    // Neighbours are put together: two digits, four, eight (Lemire, Quickly parsing eight digits, 2018).
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

    /// Comparisons until `key` is found among `keys`, and its place.
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
            // A binary search takes 4.7 of them for each.
            assert!(compared < 330_000, "{compared}");
        }
    }

    /// Bytes of keys: below digits, digits, letters, above all.
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
