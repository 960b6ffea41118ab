//! Measures how evenly work is spread over regions.

/// How some work is distributed over regions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Rows written or read.
    pub rows: u64,
    /// Number of regions.
    pub regions: usize,
    /// Share of the busiest region.
    pub hottest: f64,
    /// Effective number of regions that work at the same time: 1 / Σ share².
    pub parallelism: f64,
    /// Regions without work.
    pub idle: f64,
}

impl Spread {
    /// Computed from the rows of each region.
    pub fn of(counts: impl IntoIterator<Item = u64>) -> Spread {
        let (mut spread, mut most, mut squares) = (Spread::default(), 0, 0.0);
        for rows in counts {
            spread.rows += rows;
            spread.regions += 1;
            spread.idle += f64::from(u8::from(rows == 0));
            most = most.max(rows);
            squares += rows as f64 * rows as f64;
        }
        if spread.rows > 0 {
            let all = spread.rows as f64;
            (spread.hottest, spread.parallelism) = (most as f64 / all, all * all / squares);
        }
        spread
    }

    /// The mean of several slices of time, weighted by rows. The number of regions is that of the last.
    pub fn mean(all: &[Spread]) -> Spread {
        let rows: u64 = all.iter().map(|spread| spread.rows).sum();
        let mean = |of: fn(&Spread) -> f64| {
            all.iter().map(|spread| of(spread) * spread.rows as f64).sum::<f64>() / rows.max(1) as f64
        };
        Spread {
            rows,
            regions: all.last().map_or(0, |last| last.regions),
            hottest: mean(|spread| spread.hottest),
            parallelism: mean(|spread| spread.parallelism),
            idle: mean(|spread| spread.idle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_arithmetic() {
        let even = Spread::of([5, 5, 5, 5]);
        assert_eq!((even.rows, even.hottest, even.parallelism, even.idle), (20, 0.25, 4.0, 0.0));
        let one = Spread::of([0, 7, 0]);
        assert_eq!((one.regions, one.hottest, one.parallelism, one.idle), (3, 1.0, 1.0, 2.0));
        assert_eq!(Spread::of([0, 0]), Spread { regions: 2, idle: 2.0, ..Spread::default() });
        let both = Spread::mean(&[Spread::of([30, 0]), Spread::of([5, 5])]);
        assert_eq!((both.rows, both.hottest, both.parallelism, both.idle), (40, 0.875, 1.25, 0.75));
        assert_eq!(Spread::mean(&[]), Spread::default());
    }
}
