//! Heat maps for a terminal: half blocks in 256 colours, two stripes to a line, or plain characters.

use std::fmt::Write as _;

use super::{Heatmap, LEVEL_NAMES, LEVELS, Panel, level, percent, shortened};

/// Stripes in a terminal: two to a line.
const LINES: usize = 12;
/// Characters before the picture.
const MARGIN: usize = 22;
/// xterm's 256 colours from dark to bright: lightness tells the level, so hue need not.
const COLORS: [u8; LEVELS.len() + 1] = [235, 17, 54, 90, 161, 208, 220, 230];
const CHARACTERS: [char; LEVELS.len() + 1] = [' ', '.', '-', '+', 'o', 'O', '#', '@'];

impl Heatmap {
    /// The heat maps, one below the other, and a legend.
    pub fn blocks(&self, color: bool) -> String {
        let panels: String = self.panels.iter().map(|panel| panel.blocks(color) + "\n").collect();
        let key = |(n, name): (usize, &&str)| match color {
            true => format!("\x1b[38;5;{}m█\x1b[0m {name}", COLORS[n]),
            false => format!("{} {name}", if n == 0 { '·' } else { CHARACTERS[n] }),
        };
        // Cells without rows are blank and need no legend.
        let names: Vec<String> = LEVEL_NAMES.iter().enumerate().skip(1).map(key).collect();
        format!("{panels}times an average cell: {}\n", names.join("  "))
    }
}

impl Panel {
    fn blocks(&self, color: bool) -> String {
        let (slices, average) = (self.slices.len(), self.average());
        let per_line = |lines: usize| self.stripes.len().div_ceil(lines).max(1);
        let mut out = format!("{}: {}\n", self.title, self.verdict());
        if self.spread.rows == 0 {
            return out;
        }
        let shade = |from: usize, count: usize, slice: usize| {
            let rows = self.heat.iter().skip(from).take(count);
            let (n, rows) = (rows.len(), rows.map(|row| row[slice]).sum::<u64>());
            level(rows as f64 / (average * n as f64))
        };
        let step = if color { per_line(2 * LINES) } else { per_line(LINES) };
        let lines = if color { 2 * step } else { step };
        for from in (0..self.stripes.len()).step_by(lines) {
            let key = shortened(&self.stripes[from], MARGIN);
            // Writing to a String does not fail.
            let _ = write!(out, "{}{key} ", " ".repeat(MARGIN.saturating_sub(key.chars().count())));
            for slice in 0..slices {
                let upper = shade(from, step, slice);
                match color {
                    true if from + step < self.stripes.len() => {
                        let lower = shade(from + step, step, slice);
                        let _ = write!(out, "\x1b[38;5;{};48;5;{}m▀", COLORS[upper], COLORS[lower]);
                    }
                    true => drop(write!(out, "\x1b[0m\x1b[38;5;{}m▀", COLORS[upper])),
                    false => out.push(CHARACTERS[upper]),
                }
            }
            out.push_str(if color { "\x1b[0m\n" } else { "\n" });
        }
        if let [first, .., last] = &self.times[..] {
            let _ = writeln!(out, "{:MARGIN$} {first} to {last}", "");
        }
        let s = &self.spread;
        let _ = writeln!(
            out,
            "{:MARGIN$} hottest {}, {:.1} of {} regions at once, {:.1} idle",
            "",
            percent(s.hottest),
            s.parallelism,
            s.regions,
            s.idle,
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::panel;
    use super::*;

    fn lines(blocks: &str) -> Vec<&str> {
        blocks.lines().skip(1).take(LINES).map(|line| &line[MARGIN + 1..]).collect()
    }

    #[test]
    fn a_key_that_grows_draws_a_diagonal() {
        let blocks = panel(|n| format!("{n:06}")).blocks(false);
        let lines = lines(&blocks);
        let first = |line: &str| line.find(|c| c != ' ').unwrap();
        assert!(lines.is_sorted_by_key(|line| first(line)), "{blocks}");
        assert!(lines.iter().all(|line| line.trim().len() <= 2), "{blocks}");
        assert!(blocks.contains("hottest 100%") && blocks.contains("one region takes nearly all writes"));
    }

    #[test]
    fn a_spread_key_draws_an_even_field() {
        let blocks = panel(|n| format!("{:04}", n * 7919 % 4801)).blocks(false);
        assert!(lines(&blocks).iter().all(|line| line.chars().all(|c| c == '-')), "{blocks}");
    }

    #[test]
    fn every_level_has_its_colour_and_its_name() {
        let one = panel(|n| format!("{n:06}"));
        let all = Heatmap { panels: vec![one], ..Heatmap::default() };
        assert!(
            all.blocks(false).ends_with(
                "times an average cell: . to ½  - to 1½  + to 3  o to 6  O to 12  # to 24  @ more\n"
            )
        );
        assert!(all.blocks(true).contains("\x1b[38;5;230m█\x1b[0m more"));
    }
}
