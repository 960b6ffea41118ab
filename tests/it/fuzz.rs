//! The targets of `tests/fuzz`, over what was found in them and over some chance: `FUZZ_RUNS` (default 60) each.

use std::path::Path;

use crate::dice::{Dice, setting};

#[path = "../fuzz/targets.rs"]
mod targets;

fn run(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
    let mut inputs: Vec<Vec<u8>> = std::fs::read_dir(corpus)
        .map(|files| files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect())
        .unwrap_or_default();
    inputs.iter().for_each(|input| target(input));
    let seed = setting("FUZZ_SEED", 1);
    for n in 0..setting("FUZZ_RUNS", 60) {
        let mut dice = Dice::new(seed, n);
        // One of those, changed, or bytes by chance.
        let mut input = match inputs.is_empty() || dice.chance(30) {
            true => (0..dice.below(200)).map(|_| dice.below(256) as u8).collect(),
            false => inputs.swap_remove(dice.below(inputs.len())),
        };
        let kept = input.clone();
        for _ in 0..dice.below(6) {
            let at = dice.below(input.len() + 1);
            match dice.below(3) {
                0 => input.insert(at, dice.below(256) as u8),
                1 if at < input.len() => drop(input.remove(at)),
                _ => input.truncate(at.max(1)),
            }
        }
        println!("{name} {n}: {}", input.escape_ascii());
        target(&input);
        inputs.push(kept);
    }
}

macro_rules! targets {
    ($($target:ident)*) => {
        $(#[test] fn $target() { run(stringify!($target), targets::$target); })*
    };
}

targets! { files key_codec packed_row sql_text statements stored_bytes }
