//! Two contestants take turns at one question.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rowkeydb::Result;

/// Turns each has at a question, at the least and, unless `TURNS` says how many, at the most.
const TURNS: (usize, usize) = (3, 1_000);

/// Time a question may take, both together, once it has had its least turns.
const BUDGET: Duration = Duration::from_secs(4);

/// How long a turn took, and what the answer adds up to.
pub struct Turn {
    pub took: Duration,
    pub answer: f64,
}

/// Times `work`, which gives what its answer adds up to.
pub fn turn(work: impl FnOnce() -> Result<f64>) -> Turn {
    let start = Instant::now();
    let answer = work().expect("ours answers");
    Turn { took: start.elapsed(), answer }
}

/// Times `work` of SQLite.
pub fn their_turn(work: impl FnOnce() -> rusqlite::Result<f64>) -> Turn {
    let start = Instant::now();
    let answer = work().expect("theirs answers");
    Turn { took: start.elapsed(), answer }
}

/// What a turn is measured in.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Time of a turn.
    Time,
    /// Time of one of so many equal parts of a turn.
    Each(usize),
    /// Rows a second, of turns with so many rows.
    Rate(usize),
}

impl Unit {
    fn show(self, took: Duration) -> String {
        match self {
            Unit::Time => shown(took.as_secs_f64()),
            Unit::Each(parts) => shown(took.as_secs_f64() / parts as f64),
            Unit::Rate(rows) => format!("{} rows/s", grouped((rows as f64 / took.as_secs_f64()) as u64)),
        }
    }
}

fn shown(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// Prints a line for each question.
pub struct Race {
    /// Part of the questions to be asked; the others are left out.
    wanted: String,
    turns_max: usize,
}

impl Race {
    /// Prints the head of the table. Asks only the questions that have `wanted` in them.
    pub fn new(orders: usize, wanted: String) -> Race {
        let sqlite = rusqlite::version();
        println!(
            "marketplace of {} orders; medians; the last column is our time divided by SQLite {sqlite}'s\n",
            grouped(orders as u64)
        );
        if cfg!(debug_assertions) {
            println!("This is a debug build: it shows that the questions work, not how fast.\n");
        }
        println!("| question | ours | SQLite | ours ÷ SQLite |");
        println!("|---|---:|---:|---:|");
        let turns_max = std::env::var("TURNS").map_or(TURNS.1, |n| n.parse().expect("TURNS is a number"));
        Race { wanted, turns_max }
    }

    /// Is this one to be asked?
    pub fn wants(&self, question: &str) -> bool {
        question.contains(&self.wanted)
    }

    /// Lets both answer, turn by turn, and prints the medians. A turn is told its number, which is the
    /// same for both.
    ///
    /// Panics: an answer differs.
    pub fn run(
        &self,
        question: &str,
        unit: Unit,
        mut ours: impl FnMut(usize) -> Turn,
        mut theirs: impl FnMut(usize) -> Turn,
    ) {
        if !self.wants(question) {
            return;
        }
        let start = Instant::now();
        let mut times = (Vec::new(), Vec::new());
        for n in 0..self.turns_max {
            if n >= TURNS.0 && start.elapsed() > BUDGET {
                break;
            }
            let (a, b) = (ours(n), theirs(n));
            let apart = (a.answer - b.answer).abs();
            assert!(apart <= 1e-9 * b.answer.abs(), "{question}: ours {}, theirs {}", a.answer, b.answer);
            times.0.push(a.took);
            times.1.push(b.took);
        }
        let (ours, theirs) = (median(times.0), median(times.1));
        let share = ours.as_secs_f64() / theirs.as_secs_f64();
        self.line(question, &unit.show(ours), &unit.show(theirs), share);
    }

    /// Prints a line of ours alone.
    pub fn note(&self, question: &str, ours: &str) {
        println!("| {question} | {ours} | | |");
    }

    /// Prints a line that is no race; `share`: ours divided by theirs.
    pub fn line(&self, question: &str, ours: &str, theirs: &str, share: f64) {
        println!("| {question} | {ours} | {theirs} | {share:.2} |");
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// `1234567` as `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        let _ = write!(out, "{digit}");
    }
    out
}
