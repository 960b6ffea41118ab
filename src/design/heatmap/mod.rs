//! Heat maps: what is written or read, where and when, as an HTML page or as blocks for a terminal.
//!
//! The key space runs downwards in stripes, time runs to the right in slices. A cell's colour compares it
//! with the average cell: a growing key draws a diagonal or a line, an evenly spread one a uniform field. The
//! pictures show a [`Simulation`], its layouts side by side, or the counters of a table's regions, reads
//! beside writes.

mod blocks;
mod page;

use super::simulate::Simulation;
use super::spread::Spread;
use crate::key::{KeyLayout, Rowkey};

/// A set of pictures, side by side.
#[derive(Clone, Debug, Default)]
pub struct Heatmap {
    /// Title.
    pub title: String,
    /// The statement that they come from.
    pub source: String,
    /// An explanation of these pictures.
    pub about: String,
    /// The pictures compete, so their figures are compared in a table.
    pub is_comparison: bool,
    /// One for each layout, or for reads and for writes.
    pub panels: Vec<Panel>,
}

/// One picture.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The layout as SQL, or another title.
    pub title: String,
    /// What is counted: `writes`, `reads`.
    pub unit: &'static str,
    /// First key of each stripe, decoded.
    pub stripes: Vec<String>,
    /// Rows by stripe and slice.
    pub heat: Vec<Vec<u64>>,
    /// When each slice began, and when the last one ended.
    pub times: Vec<String>,
    /// For each slice, how its rows are spread over regions.
    pub slices: Vec<Spread>,
    /// The average spread over the measured slices.
    pub spread: Spread,
    /// The regions at the end, in key order.
    pub regions: Vec<HeatmapRegion>,
    /// Regions that a query in the plan cache reads, on average.
    pub read_fan_out: Option<f64>,
}

/// A region in a picture.
#[derive(Clone, Debug)]
pub struct HeatmapRegion {
    /// Its first key, decoded.
    pub from: String,
    /// The stripe in which it begins.
    pub stripe: usize,
    /// Rows written to it, or read from it.
    pub rows: u64,
    /// Its largest share of the rows of a slice.
    pub peak: f64,
}

/// Upper limits of the colour levels, in average cells; anything above has the last level.
const LEVELS: [f64; 7] = [0.0, 0.5, 1.5, 3.0, 6.0, 12.0, 24.0];
/// Names of the levels.
const LEVEL_NAMES: [&str; LEVELS.len() + 1] =
    ["0", "to ½", "to 1½", "to 3", "to 6", "to 12", "to 24", "more"];

impl Panel {
    /// The picture of a simulation. `times`: one more than there are slices.
    pub fn of_simulation(layout: &KeyLayout, simulation: Simulation, times: Vec<String>) -> Panel {
        let regions = simulation.regions.iter().enumerate().map(|(n, region)| HeatmapRegion {
            from: if n == 0 { "-∞".to_owned() } else { layout.show(&region.from) },
            // The key's position among the stripes, which have equally many writes.
            stripe: if n == 0 { 0 } else { simulation.stripes.partition_point(|from| *from < region.from) },
            rows: region.rows,
            peak: region.peak,
        });
        Panel {
            title: layout.sql(),
            unit: "writes",
            stripes: simulation.stripes.iter().map(|key| layout.show(key)).collect(),
            times,
            slices: simulation.slices.iter().map(|slice| slice.spread).collect(),
            spread: simulation.spread,
            regions: regions.collect(),
            read_fan_out: None,
            heat: simulation.heat,
        }
    }

    /// The picture of counters: for each slice, the rows of each region. Each region is a stripe.
    pub fn of_counts(
        unit: &'static str,
        (layout, splits): (&KeyLayout, &[Rowkey]),
        counts: &[Vec<u64>],
        times: Vec<String>,
    ) -> Panel {
        let starts = std::iter::once("-∞".to_owned()).chain(splits.iter().map(|key| layout.show(key)));
        let stripes: Vec<String> = starts.collect();
        let slices: Vec<Spread> = counts.iter().map(|slice| Spread::of(slice.iter().copied())).collect();
        let region = |(n, from): (usize, &String)| {
            let shares = counts.iter().zip(&slices).filter(|(_, spread)| spread.rows > 0);
            HeatmapRegion {
                from: from.clone(),
                stripe: n,
                rows: counts.iter().map(|slice| slice[n]).sum(),
                peak: shares.map(|(slice, spread)| slice[n] as f64 / spread.rows as f64).fold(0.0, f64::max),
            }
        };
        Panel {
            title: unit.to_owned(),
            unit,
            heat: (0..stripes.len()).map(|n| counts.iter().map(|slice| slice[n]).collect()).collect(),
            times,
            spread: Spread::mean(&slices),
            regions: stripes.iter().enumerate().map(region).collect(),
            slices,
            read_fan_out: None,
            stripes,
        }
    }

    /// Rows of an average cell, over the slices that have any.
    fn average(&self) -> f64 {
        let busy = self.slices.iter().filter(|slice| slice.rows > 0).count() * self.stripes.len();
        self.slices.iter().map(|slice| slice.rows).sum::<u64>() as f64 / busy.max(1) as f64
    }

    /// Share of the regions that work at the same time.
    fn at_once(&self) -> f64 {
        self.spread.parallelism / self.spread.regions.max(1) as f64
    }

    /// The conclusion from the figures.
    fn verdict(&self) -> String {
        let Spread { rows, regions, hottest, parallelism, .. } = self.spread;
        match self.unit {
            unit if rows == 0 => format!("no {unit} so far"),
            unit if hottest > 0.9 => format!("one region takes nearly all {unit}"),
            _ if self.at_once() > 0.8 => "every region takes its share".into(),
            _ => format!("the work of {parallelism:.1} regions out of {regions}"),
        }
    }
}

/// Level of a cell relative to the average; without data the lowest.
fn level(cells: f64) -> usize {
    if cells.is_nan() { 0 } else { LEVELS.partition_point(|level| *level < cells) }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some(_) => text.chars().take(chars - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod testing {
    use super::*;
    use crate::design::simulate::{Setup, replay};
    use crate::key::{ColumnId, ColumnInfo, PartSpec, Tail, Transform};
    use crate::value::ColumnType;

    /// A layout with a single text part.
    pub fn text_layout() -> KeyLayout {
        let part = PartSpec { sql: "k".into(), transform: Transform::Column(ColumnId(0)), descending: false };
        let info = |_| ColumnInfo { name: "k", ty: ColumnType::Varchar, nullable: false, identity: false };
        KeyLayout::new(vec![part], &info, Tail::Nothing).unwrap()
    }

    /// 4800 writes with these keys, onto up to 8 regions.
    pub fn panel(key: impl Fn(u32) -> String) -> Panel {
        let keys: Vec<Rowkey> = (0..4800).map(|n| key(n).into_bytes().into()).collect();
        let simulation = replay(&keys, &Setup { splits: Vec::new(), rows_max: 600, regions: 8 });
        let times = (0..=simulation.slices.len()).map(|n| n.to_string()).collect();
        let panel = Panel::of_simulation(&text_layout(), simulation, times);
        Panel { title: "a < b & \"c\"".into(), read_fan_out: Some(2.0), ..panel }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_a_stripe_for_each_region() {
        let layout = testing::text_layout();
        let counts = [vec![8, 0, 0], vec![0, 0, 0], vec![1, 1, 2]];
        let times = ["0", "1", "2", "3"].map(str::to_owned).to_vec();
        let panel = Panel::of_counts("reads", (&layout, &["g".into(), "q".into()]), &counts, times);
        assert_eq!((panel.stripes[0].as_str(), panel.stripes.len()), ("-∞", 3));
        assert_eq!(panel.heat, [[8, 0, 1], [0, 0, 1], [0, 0, 2]]);
        assert_eq!(panel.regions.iter().map(|r| r.rows).collect::<Vec<_>>(), [9, 1, 2]);
        assert_eq!(panel.regions.iter().map(|r| r.peak).collect::<Vec<_>>(), [1.0, 0.25, 0.5]);
        // Twelve rows in six cells of busy slices.
        assert_eq!((panel.average(), panel.spread.rows), (2.0, 12));
        assert!((panel.spread.hottest - 10.0 / 12.0).abs() < 1e-9);
        let none = Panel::of_counts("reads", (&layout, &[]), &[], Vec::new());
        assert_eq!(none.verdict(), "no reads so far");
    }
}
