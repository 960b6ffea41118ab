//! Heat maps as a self-contained HTML page: SVG drawings, and a script that shows the contents of a cell.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Heatmap, LEVEL_NAMES, LEVELS, Panel, level, percent, shortened};
use crate::design::grouped;

/// Size of a picture, in pixels; the field is what the keys at the left and the regions at the right leave.
const WIDTH: f64 = 660.0;
const HEIGHT: f64 = 300.0;
const RIGHT: f64 = 62.0;
const TOP: f64 = 30.0;
const CHART: f64 = 60.0;
const GAP: f64 = 34.0;
/// Characters of a key at the left (count), at most, and their width.
const KEY_CHARS: usize = 24;
const KEY_CHAR: f64 = 6.7;

const PAGE: &str = include_str!("page.html");

impl Heatmap {
    /// The page, with everything embedded.
    pub fn html(&self) -> String {
        let panels: String = self.panels.iter().enumerate().map(|(at, panel)| panel.html(at)).collect();
        let data: Vec<Value> = self.panels.iter().map(Panel::data).collect();
        // A key may contain "</script>".
        let data = Value::from(data).to_string().replace('<', "\\u003c");
        let key = |(n, name): (usize, &&str)| format!("<i style=\"--c: var(--h{n})\">{name}</i>");
        PAGE.replace("{{title}}", &escaped(&self.title))
            .replace("{{source}}", &escaped(&self.source))
            .replace("{{about}}", &escaped(&self.about))
            .replace("{{legend}}", &LEVEL_NAMES.iter().enumerate().map(key).collect::<String>())
            .replace("{{summary}}", &if self.is_comparison { summary(&self.panels) } else { String::new() })
            .replace("{{panels}}", &panels)
            .replace("{{data}}", &data)
    }
}

/// A table that compares the layouts; the best value of each column is highlighted.
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
    let hottest = least(&|panel| panel.spread.hottest);
    let parallel = least(&|panel| -panel.at_once());
    let idle = least(&|panel| panel.spread.idle);
    let fan_out = least(&|panel| panel.read_fan_out.unwrap_or(f64::INFINITY));
    for (at, panel) in panels.iter().enumerate() {
        let s = &panel.spread;
        // Values that print the same count as equally good.
        let cell = |value: f64, best: f64, shown: String| {
            let class = if value - best < 0.005 { " class=\"best\"" } else { "" };
            format!("<td{class}>{shown}</td>")
        };
        let asked = |n: f64| cell(n, fan_out, format!("{n:.1} regions"));
        // Writing to a String does not fail.
        let _ = write!(
            out,
            "<tr><td><a href=\"#panel-{at}\"><code>{}</code></a></td>{}{}{}{}</tr>",
            escaped(&panel.title),
            cell(s.hottest, hottest, percent(s.hottest)),
            cell(-panel.at_once(), parallel, format!("{:.1} of {}", s.parallelism, s.regions)),
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

impl Panel {
    /// Level of a cell.
    fn level(&self, stripe: usize, slice: usize, average: f64) -> usize {
        level(self.heat[stripe][slice] as f64 / average)
    }

    fn data(&self) -> Value {
        let hottest = |s: &crate::design::spread::Spread| (s.hottest * 1000.0).round() / 1000.0;
        json!({
            "unit": self.unit,
            "stripes": self.stripes,
            "heat": self.heat,
            "times": self.times,
            "average": self.average(),
            "rows": self.slices.iter().map(|s| s.rows).collect::<Vec<_>>(),
            "hottest": self.slices.iter().map(hottest).collect::<Vec<_>>(),
            "regions": self.slices.iter().map(|s| s.regions).collect::<Vec<_>>(),
        })
    }

    fn html(&self, at: usize) -> String {
        let (s, unit) = (&self.spread, self.unit);
        let tile = |value: String, label: &str| format!("<div><b>{value}</b><span>{label}</span></div>");
        let tiles = [
            tile(grouped(self.slices.iter().map(|slice| slice.rows).sum::<u64>()), unit),
            tile(percent(s.hottest), "on the hottest region"),
            tile(format!("{:.1}", s.parallelism), &format!("of {} regions at once", s.regions)),
            tile(format!("{:.1}", s.idle), "regions idle"),
            self.read_fan_out.map_or_else(String::new, |n| tile(format!("{n:.1}"), "regions a query asks")),
        ];
        let picture = if s.rows > 0 { self.svg(at) } else { String::new() };
        format!(
            "<section class=\"panel\" id=\"panel-{at}\"><h2><code>{}</code></h2><p class=\"verdict\">{}</p>\
             <div class=\"tiles\">{}</div>{picture}</section>\n",
            escaped(&self.title),
            self.verdict(),
            if s.rows > 0 { tiles.concat() } else { String::new() },
        )
    }

    /// Left edge and width of the field.
    fn field(&self) -> (f64, f64) {
        let keys = self.stripes.iter().map(|key| key.chars().count().clamp(6, KEY_CHARS)).max();
        let left = 18.0 + keys.unwrap_or(0) as f64 * KEY_CHAR;
        (left, WIDTH - left - RIGHT)
    }

    fn svg(&self, at: usize) -> String {
        let (slices, stripes, average) = (self.slices.len(), self.stripes.len(), self.average());
        let (left, width) = self.field();
        let height = TOP + HEIGHT + GAP + CHART + 24.0;
        let (dx, dy) = (width / slices.max(1) as f64, HEIGHT / stripes.max(1) as f64);
        let mut out = format!(
            "<svg viewBox=\"0 0 {WIDTH} {height}\" data-panel=\"{at}\" data-field=\"{left} {TOP} {width} {HEIGHT}\" role=\"img\" \
             aria-label=\"{} over key space and time: {}\">",
            self.unit,
            escaped(&self.title)
        );
        // One path per level, made of horizontal runs of cells.
        let mut paths = vec![String::new(); LEVELS.len() + 1];
        for stripe in 0..stripes {
            let mut slice = 0;
            while slice < slices {
                let level = self.level(stripe, slice, average);
                let run =
                    (slice..slices).take_while(|next| self.level(stripe, *next, average) == level).count();
                let (x, y) = (left + slice as f64 * dx, TOP + stripe as f64 * dy);
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
        let (left, _) = self.field();
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{left}\" y=\"14\" text-anchor=\"end\" dx=\"-8\">keys ↓</text>"
        );
        let _ = write!(out, "<text class=\"axis\" x=\"{left}\" y=\"14\">time →</text>");
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{}\" y=\"14\" text-anchor=\"end\">region's peak</text>",
            WIDTH
        );
        let every = self.stripes.len().div_ceil(16).max(1);
        for (n, key) in self.stripes.iter().enumerate().step_by(every) {
            let y = TOP + n as f64 * dy;
            let _ = write!(
                out,
                "<path class=\"tick\" d=\"M{:.1} {y:.1}h5\"/><text class=\"key\" x=\"{:.1}\" y=\"{y:.1}\" dy=\"4\">{}</text>",
                left - 5.0,
                left - 9.0,
                escaped(&shortened(key, KEY_CHARS))
            );
        }
    }

    /// The final regions beside the field: a bar for each, as long as its peak.
    fn region_marks(&self, out: &mut String, dy: f64) {
        let (left, width) = self.field();
        let x = left + width + 6.0;
        let mut cuts = String::new();
        for (n, region) in self.regions.iter().enumerate() {
            let from = region.stripe as f64 * dy;
            let to = self.regions.get(n + 1).map_or(HEIGHT, |next| next.stripe as f64 * dy);
            let (length, height) =
                ((RIGHT - 8.0) * region.peak, to - from - if to - from > 3.0 { 1.0 } else { 0.0 });
            if n > 0 && to - from > 3.0 {
                let _ = write!(cuts, "M{left} {:.1}h{}", TOP + from - 0.5, width);
            }
            let _ = write!(
                out,
                "<g><title>region {} from {}: {} {unit}, at most {} of the {unit} of a slice</title>\
                 <rect class=\"bed\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>\
                 <rect class=\"bar\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{height:.1}\"/></g>",
                n + 1,
                escaped(&region.from),
                grouped(region.rows),
                percent(region.peak),
                TOP + from,
                RIGHT - 8.0,
                TOP + from,
                unit = self.unit,
            );
        }
        let _ = write!(out, "<path class=\"cut\" d=\"{cuts}\"/>");
    }

    /// The hottest region's share, and the times, below the field.
    fn chart(&self, out: &mut String, dx: f64) {
        let (left, width) = self.field();
        let base = TOP + HEIGHT + GAP + CHART;
        let y = |share: f64| base - share * CHART;
        let mut line = String::new();
        for (n, slice) in self.slices.iter().enumerate().filter(|(_, slice)| slice.rows > 0) {
            // Interrupt the line where there was no work.
            let command = if n == 0 || self.slices[n - 1].rows == 0 { 'M' } else { 'L' };
            let _ = write!(line, "{command}{:.1} {:.1}h{dx:.1}", left + n as f64 * dx, y(slice.hottest));
        }
        let (right, even) = (left + width, 1.0 / self.spread.regions.max(1) as f64);
        for (share, label) in [(0.0, "0%"), (0.5, "50%"), (1.0, "100%")] {
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{left} {0:.1}H{right}\"/><text class=\"key\" x=\"{1:.1}\" y=\"{0:.1}\" dy=\"4\">{label}</text>",
                y(share),
                left - 9.0,
            );
        }
        let _ = write!(
            out,
            "<path class=\"even\" d=\"M{left} {0:.1}H{right}\"/><text class=\"note\" x=\"{1:.1}\" y=\"{0:.1}\" dy=\"4\">even</text>\
             <path class=\"line\" d=\"{line}\"/><text class=\"axis\" x=\"{left}\" y=\"{2:.1}\">share of the hottest region</text>",
            y(even),
            right + 6.0,
            base - CHART - 10.0,
        );
        if let (Some(first), Some(last)) = (self.times.first(), self.times.last()) {
            let _ = write!(
                out,
                "<text class=\"axis\" x=\"{left}\" y=\"{0:.1}\">{1}</text><text class=\"axis\" x=\"{right}\" y=\"{0:.1}\" \
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
                left + middle as f64 * dx,
                base,
                base + 17.0,
                escaped(&self.times[middle])
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::panel;
    use super::*;

    fn page(panels: Vec<Panel>) -> String {
        let heatmap = Heatmap {
            title: "<t>".into(),
            source: "SELECT 1 < 2".into(),
            is_comparison: true,
            panels,
            ..Heatmap::default()
        };
        heatmap.html()
    }

    #[test]
    fn a_page_holds_everything_and_escapes_it() {
        let one = panel(|n| format!("</script>{n:06}"));
        let alone = page(vec![one.clone()]);
        assert!(alone.contains("a &lt; b &amp; &quot;c&quot;") && alone.contains("<title>&lt;t&gt;"));
        assert!(alone.contains("SELECT 1 &lt; 2") && !alone.contains("<table>"));
        let two = page(vec![one, panel(|n| format!("{:04}", n * 7919 % 4801))]);
        let best = |share: &str| two.contains(&format!("<td class=\"best\">{share}</td>"));
        assert!(best("16%") && !best("100%") && two.contains("<td>100%</td>"));
        assert!(!alone.contains("</script>0") && alone.contains("\\u003c/script>0"));
        assert!(!alone.contains("{{") && !alone.contains("http://") && !alone.contains("https://"));
    }

    #[test]
    fn what_nobody_did_has_no_picture() {
        let none = Panel { spread: Default::default(), ..panel(|n| format!("{n:06}")) };
        assert!(page(vec![none]).contains("<p class=\"verdict\">no writes so far</p>"));
    }
}
