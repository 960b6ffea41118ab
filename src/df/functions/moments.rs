//! Variances, standard deviations, covariances and correlations.
//!
//! DataFusion's, but in moving frames ([`Moving`]), and but for the correlation in groups: there DataFusion 55.2 subtracts
//! one sum of squares from another, which leaves nothing of numbers like 1000000001 and 1000000002.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, Signature,
};

use super::moving::{Moving, Total};

/// One of these aggregates.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct OfMoments {
    plain: Arc<AggregateUDF>,
    aliases: Vec<String>,
    statistic: Statistic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Statistic {
    Variance { of_sample: bool },
    Deviation { of_sample: bool },
    Covariance { of_sample: bool },
    Correlation,
}

const STATISTICS: [(&str, Statistic); 7] = [
    ("var", Statistic::Variance { of_sample: true }),
    ("var_pop", Statistic::Variance { of_sample: false }),
    ("stddev", Statistic::Deviation { of_sample: true }),
    ("stddev_pop", Statistic::Deviation { of_sample: false }),
    ("covar_samp", Statistic::Covariance { of_sample: true }),
    ("covar_pop", Statistic::Covariance { of_sample: false }),
    ("corr", Statistic::Correlation),
];

impl OfMoments {
    /// All of them; `plain` finds DataFusion's by name.
    pub fn all(plain: &dyn Fn(&str) -> DfResult<Arc<AggregateUDF>>) -> Vec<OfMoments> {
        let of = |(name, statistic)| {
            let plain = plain(name).ok()?;
            let mut aliases = plain.aliases().to_vec();
            if name == "var" {
                aliases.push("variance".to_owned());
            }
            Some(OfMoments { plain, aliases, statistic })
        };
        STATISTICS.into_iter().filter_map(of).collect()
    }
}

impl AggregateUDFImpl for OfMoments {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn return_type(&self, args: &[DataType]) -> DfResult<DataType> {
        self.plain.return_type(args)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        self.plain.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn Accumulator>> {
        if args.is_distinct {
            return self.plain.create_sliding_accumulator(args);
        }
        Ok(match self.statistic {
            Statistic::Variance { of_sample: true } => Moving::<Spread>::of(|x, n| by_sample(x.squares, n)),
            Statistic::Variance { of_sample: false } => Moving::<Spread>::of(|x, n| by_rows(x.squares, n)),
            Statistic::Deviation { of_sample: true } => {
                Moving::<Spread>::of(|x, n| by_sample(x.squares, n).map(f64::sqrt))
            }
            Statistic::Deviation { of_sample: false } => {
                Moving::<Spread>::of(|x, n| by_rows(x.squares, n).map(f64::sqrt))
            }
            Statistic::Covariance { of_sample: true } => {
                Moving::<Pairs>::of(|pairs, n| by_sample(pairs.products, n))
            }
            Statistic::Covariance { of_sample: false } => {
                Moving::<Pairs>::of(|pairs, n| by_rows(pairs.products, n))
            }
            Statistic::Correlation => Moving::<Pairs>::of(|pairs, _| pairs.correlation()),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> DfResult<Vec<FieldRef>> {
        self.plain.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.statistic != Statistic::Correlation && self.plain.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> DfResult<Box<dyn GroupsAccumulator>> {
        self.plain.create_groups_accumulator(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.plain.documentation()
    }
}

fn by_rows(total: f64, rows: usize) -> Option<f64> {
    Some(total / rows as f64)
}

fn by_sample(total: f64, rows: usize) -> Option<f64> {
    (rows > 1).then(|| total / (rows - 1) as f64)
}

/// The mean of some numbers, and how far they are from it.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    count: f64,
    mean: f64,
    /// Sum of the squares of the distances from the mean.
    squares: f64,
}

/// Two columns of numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Pairs {
    first: Spread,
    second: Spread,
    /// Sum of the products of their distances from their means.
    products: f64,
}

/// Totals of two sets of rows are put together by the distance of their means.
///
/// Source: Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
impl Total for Spread {
    fn of([value, _]: [f64; 2]) -> Spread {
        Spread { count: 1.0, mean: value, squares: 0.0 }
    }

    fn and(self, more: Spread) -> Spread {
        if self.count == 0.0 || more.count == 0.0 {
            return if self.count == 0.0 { more } else { self };
        }
        let (count, apart) = (self.count + more.count, more.mean - self.mean);
        Spread {
            count,
            mean: self.mean + apart * more.count / count,
            squares: self.squares + more.squares + apart * apart * self.count * more.count / count,
        }
    }
}

impl Total for Pairs {
    fn of([first, second]: [f64; 2]) -> Pairs {
        let of = |value| Spread::of([value, 0.0]);
        Pairs { first: of(first), second: of(second), products: 0.0 }
    }

    fn and(self, more: Pairs) -> Pairs {
        if self.first.count == 0.0 || more.first.count == 0.0 {
            return if self.first.count == 0.0 { more } else { self };
        }
        let apart = (more.first.mean - self.first.mean) * (more.second.mean - self.second.mean);
        let (these, those) = (self.first.count, more.first.count);
        Pairs {
            first: self.first.and(more.first),
            second: self.second.and(more.second),
            products: self.products + more.products + apart * these * those / (these + those),
        }
    }
}

impl Pairs {
    /// `None` if one column has one value only.
    fn correlation(&self) -> Option<f64> {
        let [first, second] = [self.first.squares, self.second.squares].map(f64::sqrt);
        (first != 0.0 && second != 0.0).then(|| self.products / first / second)
    }
}
