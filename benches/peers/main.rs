//! The same questions to RowkeyDB and to SQLite, over the same marketplace, in the same run.
//!
//! `cargo bench` asks all of them; `cargo bench -- point_get` only those of one section;
//! `cargo bench -- growth` asks some of them of 10,000 orders, ten times as many, and so on up to `ORDERS`;
//! `QUESTION='last ten' cargo bench -- range_scan` only those with such words; `ORDERS=1000000 cargo bench` changes the
//! size, `ENGINE=lsm cargo bench` the engine of ours, `TURNS=100000` how often a short question is asked, for profiles.
//! Ours and theirs take turns, so that whatever else the machine does hits both; every answer is compared.

mod growth;
mod lifecycle;
mod market;
mod memtable;
mod point_get;
mod race;
mod range_scan;
mod write_indexed;

use market::Market;
use race::Race;

/// As the `rowkeydb` command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Asks both the questions of one section.
type Section = fn(&Market, &Race);

/// The sections, in order.
const SECTIONS: [(&str, Section); 7] = [
    ("write_indexed", write_indexed::run),
    ("point_get", point_get::run),
    ("range_scan", range_scan::run),
    ("memtable", memtable::run),
    ("changes", write_indexed::changes),
    ("lifecycle", lifecycle::run),
    (GROWTH, growth::run),
];

/// Asked only by name: it makes markets of its own.
const GROWTH: &str = "growth";

fn main() {
    if lifecycle::answer_as_peer() {
        return;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --all-targets` starts benches too, without this flag: then a small run must do.
    let default = if args.iter().any(|arg| arg == "--bench") { 100_000 } else { 1_000 };
    let orders = std::env::var("ORDERS").map_or(default, |n| n.parse().expect("ORDERS is a number"));
    let wanted: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let engine = std::env::var("ENGINE").ok().map(|name| name.parse().expect("ENGINE is lmdb or lsm"));
    let market = Market::new(orders, engine);
    let race = Race::new(orders, std::env::var("QUESTION").unwrap_or_default());
    for (name, section) in SECTIONS {
        if wanted.is_empty() && name != GROWTH || wanted.iter().any(|w| name.contains(w.as_str())) {
            section(&market, &race);
        }
    }
}
