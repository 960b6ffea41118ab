//! Reproducible random numbers.

/// A generator of pseudo-random numbers (splitmix64: Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of item `n` of `stream`, independent of what was drawn for other items.
    pub fn of(stream: u64, n: u64) -> Random {
        let mut seed = Random(stream.wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ n);
        Random(seed.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in `0..n`; `n` is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // The high bits of the product: even enough here, and no division.
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// One of `items`, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

/// A skewed distribution: rank `k` is drawn in proportion to `k^-exponent`.
#[derive(Clone, Copy, Debug)]
pub struct Skew {
    n: u64,
    exponent: f64,
}

impl Skew {
    /// Ranks 1 to `n`; `exponent` from 0 (uniform) to below 1.
    pub fn new(n: u64, exponent: f64) -> Skew {
        Skew { n, exponent }
    }

    /// A number from 1 to `n`. Ranks are shuffled, so that the most frequent numbers are not the first.
    pub fn draw(self, random: &mut Random) -> u64 {
        // The inverse of the integral of x^-s from 1 to n + 1.
        let power = 1.0 - self.exponent;
        let most = ((self.n + 1) as f64).powf(power) - 1.0;
        let rank = (random.unit() * most + 1.0).powf(1.0 / power) as u64;
        self.ranked(rank.clamp(1, self.n))
    }

    /// The number with this rank; 1 is drawn most often.
    pub fn ranked(self, rank: u64) -> u64 {
        // A prime greater than every n, so that each rank gets its own number.
        const DEAL: u64 = 2_654_435_761;
        1 + rank.wrapping_mul(DEAL) % self.n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_item_does_not_depend_on_the_others() {
        let third = Random::of(1, 3).next();
        assert_eq!(Random::of(1, 3).next(), third);
        assert_ne!(Random::of(2, 3).next(), third);
        assert_ne!(Random::of(1, 4).next(), third);
    }

    #[test]
    fn the_first_ranks_get_the_most() {
        let skew = Skew::new(1000, 0.8);
        let mut counts = vec![0; 1001];
        for n in 0..100_000 {
            counts[skew.draw(&mut Random::of(7, n)) as usize] += 1;
        }
        let of_rank = |rank| counts[skew.ranked(rank) as usize];
        assert!(of_rank(1) > 3_000 && of_rank(1) < 6_000, "{}", of_rank(1));
        assert!(of_rank(1) > of_rank(10) && of_rank(10) > of_rank(500));
    }

    #[test]
    fn every_rank_has_its_number() {
        let skew = Skew::new(500, 0.5);
        let numbers: HashSet<u64> = (1..=500).map(|rank| skew.ranked(rank)).collect();
        assert_eq!(numbers.len(), 500);
        assert!(numbers.iter().all(|n| (1..=500).contains(n)));
    }
}
