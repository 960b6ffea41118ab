//! Chance from a seed, settings of how much of it, and values of a column by chance.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use rowkeydb::Value;

/// Draws that come out the same for the same seed.
pub struct Dice(TestRng);

impl Dice {
    /// The draws of item `n` of a run with `seed`.
    pub fn new(seed: u64, n: u64) -> Dice {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        bytes[8..16].copy_from_slice(&n.to_le_bytes());
        Dice(TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
    }

    /// From 0 to `n`, without `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `items`.
    pub fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }

    /// `items` in another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The query in a text whose plan is not kept, for a comment that nests: it is planned for one run.
pub fn planned_once(sql: &str) -> String {
    format!("{sql} /* planned once /* */ */")
}

/// Values of an integer column, near its ends now and then.
pub fn ints(least: i64, greatest: i64) -> BoxedStrategy<Value> {
    prop_oneof![
        4 => (-1000.max(least)..1000.min(greatest)).prop_map(Value::Int),
        1 => prop::sample::select(vec![least, least + 1, greatest / 2, greatest]).prop_map(Value::Int),
        1 => Just(Value::Null),
    ]
    .boxed()
}

/// Values of a decimal column, at its ends now and then.
pub fn decimals(digits: u32, scale: u8) -> BoxedStrategy<Value> {
    let most = 10i128.pow(digits) - 1;
    let any = prop_oneof![
        6 => -100_000i128..100_000,
        1 => -most..=most,
        2 => prop::sample::select(vec![-most, most]),
    ];
    prop_oneof![4 => any.prop_map(move |d| Value::Decimal(d, scale)), 1 => Just(Value::Null)].boxed()
}
