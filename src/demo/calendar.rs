//! When people buy: the hours of two years, each with a weight.

use chrono::{Datelike, NaiveDate, Weekday};

use super::random::Random;

/// The first day, in days since 1970: 2024-01-01.
pub const FIRST_DAY: i32 = 19_723;
/// 2024 and 2025.
pub const DAYS: i32 = 731;

const SECONDS_IN_HOUR: f64 = 3600.0;

/// Weights of the hours, from midnight on.
const BY_HOUR: [f64; 24] = [
    3.0, 2.0, 1.0, 1.0, 1.0, 2.0, 4.0, 6.0, 8.0, 9.0, 10.0, 10.0, 11.0, 10.0, 9.0, 9.0, 9.0, 10.0, 12.0,
    14.0, 16.0, 16.0, 12.0, 6.0,
];
/// Weights of the days, from Monday on.
const BY_WEEKDAY: [f64; 7] = [10.0, 9.0, 9.0, 9.0, 10.0, 12.0, 13.0];
/// Weights of the months, from January on.
const BY_MONTH: [f64; 12] = [9.0, 8.0, 9.0, 9.0, 10.0, 10.0, 9.0, 9.0, 10.0, 11.0, 14.0, 15.0];
/// Growth of the shop from beginning to end, as a share.
const GROWTH: f64 = 0.5;

/// Distributes orders over the hours.
pub struct Calendar {
    /// Cumulative weight before each hour, and the total.
    before: Vec<f64>,
    orders: u64,
}

impl Calendar {
    /// A calendar for this many orders.
    pub fn new(orders: u64) -> Calendar {
        let mut before = Vec::with_capacity(DAYS as usize * 24 + 1);
        let mut sum = 0.0;
        for day in 0..DAYS {
            let weight = day_weight(day);
            for hour in BY_HOUR {
                before.push(sum);
                sum += weight * hour;
            }
        }
        before.push(sum);
        Calendar { before, orders }
    }

    /// Time of order `n` (from 0), in whole seconds since 1970. It does not decrease with `n`.
    pub fn seconds(&self, n: u64, random: &mut Random) -> i64 {
        let all = self.before[self.before.len() - 1];
        let at = (n as f64 + random.unit()) / self.orders as f64 * all;
        let hour = self.before.partition_point(|before| *before <= at).clamp(1, self.before.len() - 1) - 1;
        let share = (at - self.before[hour]) / (self.before[hour + 1] - self.before[hour]);
        let second = (share * SECONDS_IN_HOUR).clamp(0.0, SECONDS_IN_HOUR - 1.0) as i64;
        i64::from(FIRST_DAY) * 86_400 + hour as i64 * 3600 + second
    }
}

fn day_weight(day: i32) -> f64 {
    let Some(date) = NaiveDate::from_epoch_days(FIRST_DAY + day) else { return 1.0 };
    let weekday = date.weekday().num_days_from_monday() as usize;
    let usual = BY_WEEKDAY[weekday] * BY_MONTH[date.month0() as usize];
    usual * (1.0 + GROWTH * f64::from(day) / f64::from(DAYS)) * special(date)
}

/// Weight of special days.
fn special(date: NaiveDate) -> f64 {
    match (date.month(), date.day()) {
        (11, 11) => 4.0,
        (11, 23..=29) if date.weekday() == Weekday::Fri => 3.0,
        (12, 24..=26) => 0.4,
        (1, 1) => 0.5,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_in_order_within_the_two_years() {
        let calendar = Calendar::new(10_000);
        let times: Vec<i64> = (0..10_000).map(|n| calendar.seconds(n, &mut Random::of(1, n))).collect();
        assert!(times.is_sorted());
        let first = i64::from(FIRST_DAY) * 86_400;
        assert!(times[0] >= first && times[9_999] < first + i64::from(DAYS) * 86_400);
    }

    #[test]
    fn evenings_and_november_are_busy() {
        let calendar = Calendar::new(50_000);
        let (mut night, mut evening, mut singles_day, mut usual_day) = (0, 0, 0, 0);
        for n in 0..50_000 {
            let seconds = calendar.seconds(n, &mut Random::of(1, n));
            match seconds / 3600 % 24 {
                3 => night += 1,
                20 => evening += 1,
                _ => {}
            }
            // 2025-11-11, and the Tuesday before.
            match seconds / 86_400 {
                20_403 => singles_day += 1,
                20_396 => usual_day += 1,
                _ => {}
            }
        }
        assert!(evening > 8 * night, "{evening} {night}");
        assert!(singles_day > 3 * usual_day, "{singles_day} {usual_day}");
    }
}
