//! Intervals as text, in PostgreSQL's form.

use std::fmt;

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 24 * 60 * 60 * SECOND;

/// An interval: `1 year 2 mons -3 days +04:05:06.5`, or `00:00:00`. Each unit has its own sign, as it has in arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Months, twelve of which are a year.
    pub months: i32,
    /// Days (count).
    pub days: i64,
    /// The rest, which has no calendar.
    pub nanos: i128,
}

impl Interval {
    /// A difference of times: whole days, and the rest.
    pub fn of_length(nanos: i128) -> Self {
        // 2^127 ns are fewer days than an i64 holds.
        Interval { months: 0, days: (nanos / DAY) as i64, nanos: nanos % DAY }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units =
            [(i64::from(self.months / 12), "year"), (i64::from(self.months % 12), "mon"), (self.days, "day")];
        let (mut space, mut plus) = ("", "");
        for (n, unit) in units.into_iter().filter(|(n, _)| *n != 0) {
            let (plus_here, plural) = (if n > 0 { plus } else { "" }, if n == 1 { "" } else { "s" });
            write!(f, "{space}{plus_here}{n} {unit}{plural}")?;
            // Otherwise what follows a negative unit could be taken to be negative, too.
            (space, plus) = (" ", if n < 0 { "+" } else { "" });
        }
        match self.nanos {
            0 if !space.is_empty() => Ok(()),
            nanos => {
                write!(f, "{space}{}{}", if nanos < 0 { "-" } else { plus }, Clock(nanos.unsigned_abs()))
            }
        }
    }
}

/// `04:05:06.5`, of nanoseconds.
struct Clock(u128);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, fraction) = (self.0 / SECOND.unsigned_abs(), self.0 % SECOND.unsigned_abs());
        write!(f, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
        match fraction {
            0 => Ok(()),
            fraction => write!(f, ".{}", format!("{fraction:09}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_has_its_sign() {
        let shown = |months, days, nanos| Interval { months, days, nanos }.to_string();
        assert_eq!(shown(0, 0, 0), "00:00:00");
        assert_eq!(shown(0, 1, 0), "1 day");
        assert_eq!(shown(14, -3, 14_706_500_000_000), "1 year 2 mons -3 days +04:05:06.5");
        assert_eq!(shown(-1, 0, -1_000), "-1 mons -00:00:00.000001");
        assert_eq!(shown(0, 0, 400_000 * SECOND), "111:06:40");
        assert_eq!(Interval::of_length(-DAY - SECOND).to_string(), "-1 days -00:00:01");
        assert_eq!(Interval::of_length(33 * DAY + 14_706 * SECOND).to_string(), "33 days 04:05:06");
    }
}
