//! Simulations as pictures: a page of HTML with everything in it, and blocks for a terminal.
//!
//! The key space runs down, cut into stripes of equally many writes; time runs to the right. A cell is as
//! bright as its stripe had more than an even share of the writes of that time: a key that grows draws a
//! diagonal, a spread one an even field.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::simulate::Simulation;

/// One layout's picture.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The layout, as SQL.
    pub layout: String,
    /// What became of the writes.
    pub simulation: Simulation,
    /// First key of each stripe, decoded.
    pub stripes: Vec<String>,
    /// Bounds between the regions there were in the end, decoded.
    pub splits: Vec<String>,
    /// When each slice began, and when the last write came.
    pub times: Vec<String>,
    /// Regions that a known query has to ask on average.
    pub read_fan_out: Option<f64>,
}

/// Levels of brightness: up to so many even shares; more is the last level. Even is one of them.
const LEVELS: [f64; 7] = [0.0, 0.5, 1.5, 3.0, 6.0, 12.0, 24.0];
/// Size of a cell, and of what is around the field, in pixels.
const FIELD: (f64, f64) = (540.0, 336.0);
const LEFT: f64 = 170.0;
const RIGHT: f64 = 56.0;
const TOP: f64 = 22.0;
const CHART: f64 = 64.0;
const GAP: f64 = 34.0;
/// Stripes in a terminal: two to a line.
const LINES: usize = 12;

const PAGE: &str = include_str!("heatmap.html");

/// A page that needs nothing but itself. `source`: the statement that the pictures come from.
pub fn html(title: &str, source: &str, panels: &[Panel]) -> String {
    let bodies: String = panels.iter().enumerate().map(|(at, panel)| panel.html(at)).collect();
    let data: Vec<Value> = panels.iter().map(Panel::data).collect();
    // A key may hold "</script>".
    let data = Value::from(data).to_string().replace('<', "\\u003c");
    PAGE.replace("{{title}}", &escaped(title))
        .replace("{{source}}", &escaped(source))
        .replace("{{summary}}", &summary(panels))
        .replace("{{panels}}", &bodies)
        .replace("{{data}}", &data)
}

/// The layouts side by side, in figures; the best of each column stands out.
fn summary(panels: &[Panel]) -> String {
    if panels.len() < 2 {
        return String::new();
    }
    let asks = panels.iter().any(|panel| panel.read_fan_out.is_some());
    let mut out = String::from(
        "<table><thead><tr><th>layout</th><th>hottest region</th><th>regions at once</th><th>idle</th>",
    );
    out.push_str(if asks { "<th>a known query asks</th></tr></thead>" } else { "</tr></thead>" });
    let least = |of: &dyn Fn(&Panel) -> f64| panels.iter().map(of).fold(f64::INFINITY, f64::min);
    let hottest = least(&|panel| panel.simulation.hottest);
    let parallel = least(&|panel| -panel.at_once());
    let idle = least(&|panel| panel.simulation.idle);
    let fan_out = least(&|panel| panel.read_fan_out.unwrap_or(f64::INFINITY));
    for (at, panel) in panels.iter().enumerate() {
        let s = &panel.simulation;
        // As good as the best is what reads the same.
        let cell = |value: f64, best: f64, shown: String| {
            let class = if value - best < 0.005 { " class=\"best\"" } else { "" };
            format!("<td{class}>{shown}</td>")
        };
        let asked = |n: f64| cell(n, fan_out, format!("{n:.1} regions"));
        let _ = write!(
            out,
            "<tr><td><a href=\"#panel-{at}\"><code>{}</code></a></td>{}{}{}{}</tr>",
            escaped(&panel.layout),
            cell(s.hottest, hottest, percent(s.hottest)),
            cell(-panel.at_once(), parallel, format!("{:.1} of {}", s.parallelism, panel.regions())),
            cell(s.idle, idle, format!("{:.1}", s.idle)),
            match panel.read_fan_out {
                Some(n) => asked(n),
                None if asks => "<td>–</td>".to_owned(),
                None => String::new(),
            }
        );
    }
    out + "</table>"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

impl Panel {
    /// Level of a cell.
    fn level(&self, stripe: usize, slice: usize) -> usize {
        let writes = self.simulation.slices.get(slice).map_or(0, |slice| slice.writes);
        let even = writes as f64 / self.simulation.stripes.len() as f64;
        level(f64::from(self.simulation.heat[stripe][slice]) / even)
    }

    /// Share of the regions that work at once.
    fn at_once(&self) -> f64 {
        self.simulation.parallelism / self.regions().max(1) as f64
    }

    fn regions(&self) -> usize {
        self.simulation.regions.len()
    }

    /// What the figures come to.
    fn verdict(&self) -> String {
        let (at_once, regions) = (self.simulation.parallelism, self.regions());
        match self.simulation.hottest {
            hottest if hottest > 0.9 => "one region takes nearly every write".into(),
            _ if at_once > 0.8 * regions as f64 => "every region takes its share".into(),
            _ => format!("the work of {at_once:.1} regions out of {regions}"),
        }
    }

    fn data(&self) -> Value {
        let slices = &self.simulation.slices;
        let hottest: Vec<f64> = slices.iter().map(|s| (s.hottest * 1000.0).round() / 1000.0).collect();
        json!({
            "stripes": self.stripes,
            "heat": self.simulation.heat,
            "times": self.times,
            "writes": slices.iter().map(|s| s.writes).collect::<Vec<_>>(),
            "hottest": hottest,
            "regions": slices.iter().map(|s| s.regions).collect::<Vec<_>>(),
        })
    }

    fn html(&self, at: usize) -> String {
        let s = &self.simulation;
        let tile = |value: String, label: &str| format!("<div><b>{value}</b><span>{label}</span></div>");
        let tiles = [
            tile(percent(s.hottest), "of the writes on the hottest region"),
            tile(format!("{:.1}", s.parallelism), &format!("of {} regions work at once", self.regions())),
            tile(format!("{:.1}", s.idle), "regions idle"),
            self.read_fan_out
                .map_or_else(String::new, |n| tile(format!("{n:.1}"), "regions a known query asks")),
        ];
        format!(
            "<section class=\"panel\" id=\"panel-{at}\"><h2><code>{}</code></h2><p class=\"verdict\">{}</p><div class=\"tiles\">{}</div>{}</section>\n",
            escaped(&self.layout),
            self.verdict(),
            tiles.concat(),
            self.svg(at)
        )
    }

    fn svg(&self, at: usize) -> String {
        let (slices, stripes) = (self.simulation.slices.len(), self.stripes.len());
        let (width, height) = (LEFT + FIELD.0 + RIGHT, TOP + FIELD.1 + GAP + CHART + 24.0);
        let (dx, dy) = (FIELD.0 / slices.max(1) as f64, FIELD.1 / stripes.max(1) as f64);
        let mut out = format!(
            "<svg viewBox=\"0 0 {width} {height}\" data-panel=\"{at}\" data-field=\"{LEFT} {TOP} {} {}\" role=\"img\" \
             aria-label=\"writes over key space and time under {}\">",
            FIELD.0,
            FIELD.1,
            escaped(&self.layout)
        );
        // One path a level: runs of cells along the time.
        let mut paths = vec![String::new(); LEVELS.len() + 1];
        for stripe in 0..stripes {
            let mut slice = 0;
            while slice < slices {
                let level = self.level(stripe, slice);
                let run = (slice..slices).take_while(|next| self.level(stripe, *next) == level).count();
                let (x, y) = (LEFT + slice as f64 * dx, TOP + stripe as f64 * dy);
                // Writing to a String does not fail.
                let _ = write!(paths[level], "M{x:.1} {y:.1}h{:.1}v{dy:.2}h-{0:.1}z", run as f64 * dx);
                slice += run;
            }
        }
        for (level, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
            let _ = write!(out, "<path class=\"h{level}\" d=\"{path}\"/>");
        }
        self.key_axis(&mut out, dy);
        self.region_marks(&mut out, dy);
        self.chart(&mut out, dx);
        out.push_str("</svg>");
        out
    }

    fn key_axis(&self, out: &mut String, dy: f64) {
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{LEFT}\" y=\"14\" text-anchor=\"end\" dx=\"-8\">keys ↓</text>"
        );
        let _ = write!(out, "<text class=\"axis\" x=\"{LEFT}\" y=\"14\">time →</text>");
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{}\" y=\"14\" text-anchor=\"end\">regions</text>",
            LEFT + FIELD.0 + RIGHT
        );
        let every = self.stripes.len().div_ceil(8).max(1);
        for (n, key) in self.stripes.iter().enumerate().step_by(every) {
            let y = TOP + n as f64 * dy;
            let _ = write!(
                out,
                "<path class=\"tick\" d=\"M{:.1} {y:.1}h5\"/><text class=\"key\" x=\"{:.1}\" y=\"{y:.1}\" dy=\"4\">{}</text>",
                LEFT - 5.0,
                LEFT - 9.0,
                escaped(&shortened(key, 24))
            );
        }
    }

    /// Regions in the end, beside the field: a bar each, as long as its peak.
    fn region_marks(&self, out: &mut String, dy: f64) {
        let s = &self.simulation;
        // Where a key lies among the stripes, which are of equally many writes.
        let place = |key: &crate::key::Rowkey| s.stripes.partition_point(|from| from < key) as f64 * dy;
        let x = LEFT + FIELD.0 + 6.0;
        let mut cuts = String::new();
        for (n, region) in s.regions.iter().enumerate() {
            let from = if n == 0 { 0.0 } else { place(&region.from) };
            let to = s.regions.get(n + 1).map_or(FIELD.1, |next| place(&next.from));
            let length = (RIGHT - 8.0) * region.peak;
            let gap = if to - from > 3.0 { 1.0 } else { 0.0 };
            if n > 0 && gap > 0.0 {
                let _ = write!(cuts, "M{LEFT} {:.1}h{}", TOP + from - 0.5, FIELD.0);
            }
            let _ = write!(
                out,
                "<rect class=\"bed\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\
                 <rect class=\"bar\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\">\
                 <title>region {} from {}: {} rows, at most {} of the writes of a slice</title></rect>",
                TOP + from,
                RIGHT - 8.0,
                (to - from - gap).max(0.0),
                TOP + from,
                (to - from - gap).max(0.0),
                n + 1,
                escaped(if n == 0 { "the start" } else { &self.splits[n - 1] }),
                region.rows,
                percent(region.peak),
            );
        }
        let _ = write!(out, "<path class=\"cut\" d=\"{cuts}\"/>");
    }

    /// The hottest region's share below the field, and the time.
    fn chart(&self, out: &mut String, dx: f64) {
        let base = TOP + FIELD.1 + GAP + CHART;
        let y = |share: f64| base - share * CHART;
        let mut line = String::new();
        for (n, slice) in self.simulation.slices.iter().enumerate() {
            let command = if n == 0 { 'M' } else { 'L' };
            let _ = write!(line, "{command}{:.1} {:.1}h{dx:.1}", LEFT + n as f64 * dx, y(slice.hottest));
        }
        let (right, even) = (LEFT + FIELD.0, 1.0 / self.regions() as f64);
        for (share, label) in [(0.0, "0%"), (0.5, "50%"), (1.0, "100%")] {
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {0:.1}H{right}\"/><text class=\"key\" x=\"{1:.1}\" y=\"{0:.1}\" dy=\"4\">{label}</text>",
                y(share),
                LEFT - 9.0,
            );
        }
        let _ = write!(
            out,
            "<path class=\"even\" d=\"M{LEFT} {0:.1}H{right}\"/><text class=\"note\" x=\"{1:.1}\" y=\"{0:.1}\" dy=\"4\">even</text>\
             <path class=\"line\" d=\"{line}\"/><text class=\"axis\" x=\"{LEFT}\" y=\"{2:.1}\">share of the hottest region</text>",
            y(even),
            right + 6.0,
            base - CHART - 10.0,
        );
        if let (Some(first), Some(last)) = (self.times.first(), self.times.last()) {
            let _ = write!(
                out,
                "<text class=\"axis\" x=\"{LEFT}\" y=\"{0:.1}\">{1}</text><text class=\"axis\" x=\"{right}\" y=\"{0:.1}\" \
                 text-anchor=\"end\">{2}</text>",
                base + 17.0,
                escaped(first),
                escaped(last)
            );
            let middle = self.times.len() / 2;
            let _ = write!(
                out,
                "<path class=\"tick\" d=\"M{0:.1} {1:.1}v4\"/><text class=\"axis\" x=\"{0:.1}\" y=\"{2:.1}\" \
                 text-anchor=\"middle\">{3}</text>",
                LEFT + middle as f64 * dx,
                base,
                base + 17.0,
                escaped(&self.times[middle])
            );
        }
    }

    /// The same for a terminal: two stripes to a line of half blocks in 256 colours, or characters.
    pub fn blocks(&self, color: bool) -> String {
        let slices = self.simulation.slices.len();
        let per_line = |lines: usize| self.stripes.len().div_ceil(lines).max(1);
        let mut out = format!("{}\n", self.layout);
        let share = |from: usize, count: usize, slice: usize| {
            let rows = self.simulation.heat.iter().skip(from).take(count);
            let (n, writes) = (rows.len(), rows.map(|row| f64::from(row[slice])).sum::<f64>());
            let even = self.simulation.slices[slice].writes as f64 * n as f64 / self.stripes.len() as f64;
            level(writes / even)
        };
        let step = if color { per_line(2 * LINES) } else { per_line(LINES) };
        let lines = if color { 2 * step } else { step };
        for from in (0..self.stripes.len()).step_by(lines) {
            let key = shortened(&self.stripes[from], 22);
            let _ = write!(out, "{}{key} ", " ".repeat(22_usize.saturating_sub(key.chars().count())));
            for slice in 0..slices {
                let upper = share(from, step, slice);
                match color {
                    true if from + step < self.stripes.len() => {
                        let lower = share(from + step, step, slice);
                        let _ = write!(out, "\x1b[38;5;{};48;5;{}m▀", COLORS[upper], COLORS[lower]);
                    }
                    true => drop(write!(out, "\x1b[0m\x1b[38;5;{}m▀", COLORS[upper])),
                    false => out.push(CHARACTERS[upper]),
                }
            }
            out.push_str(if color { "\x1b[0m\n" } else { "\n" });
        }
        let s = &self.simulation;
        let _ = writeln!(
            out,
            "{:22} hottest {}, {:.1} of {} regions at once, {:.1} idle: {}",
            "",
            percent(s.hottest),
            s.parallelism,
            self.regions(),
            s.idle,
            self.verdict()
        );
        out
    }
}

/// xterm's 256 colours from dark to bright: lightness tells the level, so hue need not.
const COLORS: [u8; LEVELS.len() + 1] = [235, 17, 54, 90, 161, 208, 220, 230];
const CHARACTERS: [char; LEVELS.len() + 1] = [' ', '.', '-', '+', 'o', 'O', '#', '@'];

/// Level of so many even shares; nothing at all is the lowest.
fn level(shares: f64) -> usize {
    if shares.is_nan() { 0 } else { LEVELS.partition_point(|level| *level < shares) }
}

fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::simulate::{Setup, replay};
    use crate::key::Rowkey;

    fn panel(key: impl Fn(u32) -> String) -> Panel {
        let keys: Vec<Rowkey> = (0..4800).map(|n| key(n).into_bytes().into()).collect();
        let simulation = replay(&keys, &Setup { splits: Vec::new(), rows_max: 600, regions: 8 });
        let text = |key: &Rowkey| String::from_utf8_lossy(key).into_owned();
        Panel {
            layout: "a < b & \"c\"".into(),
            stripes: simulation.stripes.iter().map(text).collect(),
            splits: simulation.regions.iter().skip(1).map(|region| text(&region.from)).collect(),
            times: (0..=simulation.slices.len()).map(|n| n.to_string()).collect(),
            simulation,
            read_fan_out: Some(2.0),
        }
    }

    #[test]
    fn a_key_that_grows_draws_a_diagonal() {
        let blocks = panel(|n| format!("{n:06}")).blocks(false);
        let lines: Vec<&str> = blocks.lines().skip(1).take(LINES).map(|line| &line[23..]).collect();
        let first = |line: &str| line.find(|c| c != ' ').unwrap();
        assert!(lines.is_sorted_by_key(|line| first(line)), "{blocks}");
        assert!(lines.iter().all(|line| line.trim().len() <= 2), "{blocks}");
        assert!(blocks.contains("hottest 100%") && blocks.contains("one region takes nearly every write"));
    }

    #[test]
    fn a_spread_key_draws_an_even_field() {
        let blocks = panel(|n| format!("{:04}", n * 7919 % 4801)).blocks(false);
        let lines: Vec<&str> = blocks.lines().skip(1).take(LINES).map(|line| &line[23..]).collect();
        assert!(lines.iter().all(|line| line.chars().all(|c| c == '-')), "{blocks}");
    }

    #[test]
    fn a_page_holds_everything_and_escapes_it() {
        let one = panel(|n| format!("</script>{n:06}"));
        let page = html("<t>", "SELECT 1 < 2", std::slice::from_ref(&one));
        assert!(page.contains("a &lt; b &amp; &quot;c&quot;") && page.contains("<title>&lt;t&gt;"));
        assert!(page.contains("SELECT 1 &lt; 2") && !page.contains("<table>"));
        let two = html("t", "", &[one, panel(|n| format!("{:04}", n * 7919 % 4801))]);
        let best = |share: &str| two.contains(&format!("<td class=\"best\">{share}</td>"));
        assert!(best("16%") && !best("100%") && two.contains("<td>100%</td>"));
        assert!(!page.contains("</script>0") && page.contains("\\u003c/script>0"));
        assert!(!page.contains("{{") && !page.contains("http://") && !page.contains("https://"));
    }
}
