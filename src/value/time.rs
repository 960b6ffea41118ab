//! Parses dates and times.
//!
//! `YYYY-MM-DD`, then optionally a space or `T` and `HH:MM[:SS[.fraction]]`, then optionally a zone:
//! `Z`, ` UTC`, `±HH`, `±HHMM` or `±HH:MM`. Fractions round to the microsecond.

use std::fmt::Write as _;

use chrono::format::{Item, Parsed, StrftimeItems};
use chrono::{DateTime, Datelike, Duration, Months, NaiveDate, NaiveDateTime, Offset, TimeZone};

use super::cast::CastFault;

/// Microseconds of a day.
pub const US_PER_DAY: i64 = 86_400_000_000;

/// 0001-01-01 and 9999-12-31, in days since 1970-01-01.
const DAYS: std::ops::RangeInclusive<i32> = -719_162..=2_932_896;

/// The year of `days` is 0001 to 9999.
pub fn date_in_range(days: i32) -> bool {
    DAYS.contains(&days)
}

/// The year of `us` is 0001 to 9999.
pub fn timestamp_in_range(us: i64) -> bool {
    i32::try_from(us.div_euclid(US_PER_DAY)).is_ok_and(date_in_range)
}

/// Reads a time by a format of strftime; in microseconds, and UTC if no zone is written. Errors: why it does not fit.
pub fn read_time(text: &str, format: &str) -> Result<i64, String> {
    let mut parsed = Parsed::new();
    chrono::format::parse(&mut parsed, text, StrftimeItems::new(format)).map_err(|why| why.to_string())?;
    let local = || {
        let date = || parsed.to_naive_date().map(NaiveDateTime::from);
        parsed.to_naive_datetime_with_offset(0).or_else(|_| date())
    };
    let time = parsed.to_datetime().map(|time| time.to_utc()).or_else(|_| local().map(|time| time.and_utc()));
    let us = time.map_err(|why| why.to_string())?.timestamp_micros();
    if timestamp_in_range(us) { Ok(us) } else { Err("years run from 0001 to 9999".to_owned()) }
}

/// Appends a time by a format of strftime; `None` if the format has an unknown part, or a zone.
pub fn show_time(us: i64, format: &str, out: &mut String) -> Option<()> {
    let time = super::datetime_of(us)?;
    let items: Vec<Item<'_>> = StrftimeItems::new(format).collect();
    if items.contains(&Item::Error) {
        return None;
    }
    write!(out, "{}", time.format_with_items(items.iter())).ok()
}

/// A point in time as written.
pub(super) struct ParsedTime {
    /// Microseconds since 1970-01-01 00:00:00, in local time as written.
    wall_us: i64,
    /// Seconds east of UTC, if written.
    offset_s: Option<i64>,
}

impl ParsedTime {
    /// Reads the whole of `text`.
    pub(super) fn parse(text: &str) -> Result<ParsedTime, CastFault> {
        let mut scan = TimeScanner(text.as_bytes());
        let malformed = CastFault::Malformed(None);
        let days = scan.date().ok_or(malformed.clone())??;
        let mut us = i64::from(days) * US_PER_DAY;
        if scan.eat(b"Tt") || scan.time_follows() {
            us += scan.time().ok_or(malformed.clone())?;
        }
        let offset_s = scan.zone().ok_or(malformed.clone())?;
        if !scan.0.is_empty() {
            return Err(malformed);
        }
        Ok(ParsedTime { wall_us: us, offset_s })
    }

    /// The instant; UTC if no zone is written.
    pub(super) fn instant(&self) -> Result<i64, CastFault> {
        in_range(self.wall_us - self.offset_s.unwrap_or(0) * 1_000_000)
    }

    /// The time without a zone. A zone other than UTC is refused rather than dropped.
    pub(super) fn local(&self) -> Result<i64, CastFault> {
        match self.offset_s {
            None | Some(0) => in_range(self.wall_us),
            Some(_) => Err(CastFault::Malformed(Some("its time zone is not UTC, and none is kept".into()))),
        }
    }
}

/// The start of the unit of time that contains `us`, and of the next one, as in `date_trunc`: `microsecond` to
/// `year`, with weeks beginning on Monday. `None` for another unit, and outside the valid years.
pub fn unit_around(unit: &str, us: i64) -> Option<(i64, i64)> {
    if !timestamp_in_range(us) {
        return None;
    }
    let length = match unit {
        "microsecond" => 1,
        "millisecond" => 1_000,
        "second" => 1_000_000,
        "minute" => 60_000_000,
        "hour" => 3_600_000_000,
        "day" => US_PER_DAY,
        "week" => 7 * US_PER_DAY,
        _ => return months_around(unit, us),
    };
    // 1970-01-01 was a Thursday.
    let shift = if unit == "week" { 3 * US_PER_DAY } else { 0 };
    let start = (us + shift).div_euclid(length) * length - shift;
    Some((start, start + length))
}

fn months_around(unit: &str, us: i64) -> Option<(i64, i64)> {
    let months = match unit {
        "month" => 1,
        "quarter" => 3,
        "year" => 12,
        _ => return None,
    };
    let date = DateTime::from_timestamp_micros(us)?.date_naive();
    let month0 = date.year() * 12 + date.month0() as i32;
    let first = |month0: i32| {
        let date = NaiveDate::from_ymd_opt(month0.div_euclid(12), month0.rem_euclid(12) as u32 + 1, 1)?;
        Some(date.and_hms_opt(0, 0, 0)?.and_utc().timestamp_micros())
    };
    let start = month0.div_euclid(months) * months;
    Some((first(start)?, first(start + months)?))
}

/// The time so many months later, at the latest on the last day of the month, and then so many days and microseconds; all
/// may be negative. `None` if that, or a time on the way, is out of range.
pub fn shifted(us: i64, months: i64, days: i64, micros: i64) -> Option<i64> {
    let by = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    let time = DateTime::from_timestamp_micros(us)?;
    let time = if months < 0 { time.checked_sub_months(by) } else { time.checked_add_months(by) };
    let us = time?.timestamp_micros().checked_add(days.checked_mul(US_PER_DAY)?)?;
    Some(us.checked_add(micros)?).filter(|us| timestamp_in_range(*us))
}

/// The start of the bin of so many months that contains `us`, if one starts at `origin`; all in microseconds. `None`
/// outside chrono's years.
pub fn start_of_months(months: i32, us: i64, origin: i64) -> Option<i64> {
    let (time, first) = (DateTime::from_timestamp_micros(us)?, DateTime::from_timestamp_micros(origin)?);
    let between = 12 * (time.year() - first.year()) + time.month() as i32 - first.month() as i32;
    let start = |bin: i32| {
        let shift = bin.checked_mul(months)?;
        let by = Months::new(shift.unsigned_abs());
        let start = if shift < 0 { first.checked_sub_months(by) } else { first.checked_add_months(by) };
        Some(start?.timestamp_micros())
    };
    let bin = between.div_euclid(months);
    // Bins start on the origin's day of the month, so the month's first days are in the one before.
    start(bin).filter(|start| *start <= us).or_else(|| start(bin - 1))
}

/// The interval from one time to another in months, days and microseconds, all negative if it goes back: whole months
/// first, then days; an incomplete month counts as long as the one it began in. PostgreSQL's `age`. `None` outside
/// the valid years.
pub fn months_between(to: i64, from: i64) -> Option<(i32, i32, i64)> {
    if to < from {
        let (months, days, us) = months_between(from, to)?;
        return Some((-months, -days, -us));
    }
    let (to, from) = (DateTime::from_timestamp_micros(to)?, DateTime::from_timestamp_micros(from)?);
    let (last, first) = (to.date_naive(), from.date_naive());
    let of_day = |us: i64| us.rem_euclid(US_PER_DAY);
    let mut us = of_day(to.timestamp_micros()) - of_day(from.timestamp_micros());
    let mut days = last.day() as i32 - first.day() as i32;
    let mut months = 12 * (last.year() - first.year()) + last.month() as i32 - first.month() as i32;
    if us < 0 {
        us += US_PER_DAY;
        days -= 1;
    }
    if days < 0 {
        days += i32::from(first.num_days_in_month());
        months -= 1;
    }
    Some((months, days, us))
}

/// The time of a year, month, day, hour and minute, and microseconds from 0 to a minute; `None` if there is none.
pub fn timestamp_of(parts: [i64; 5], us: i128) -> Option<i64> {
    let [_, month, day, hour, minute] = parts.map(|part| u32::try_from(part).ok());
    let date = NaiveDate::from_ymd_opt(i32::try_from(parts[0]).ok()?, month?, day?)?;
    let start = date.and_hms_opt(hour?, minute?, 0)?.and_utc().timestamp_micros();
    let us = i64::try_from(us).ok().filter(|us| (0..=60_000_000).contains(us))?;
    Some(start + us).filter(|us| timestamp_in_range(*us))
}

fn in_range(us: i64) -> Result<i64, CastFault> {
    if timestamp_in_range(us) { Ok(us) } else { Err(CastFault::OutOfRange) }
}

/// The rest of the text. Every step consumes what it parses, or gives `None` if the text is malformed.
struct TimeScanner<'a>(&'a [u8]);

impl TimeScanner<'_> {
    /// Takes one byte out of `any`.
    fn eat(&mut self, any: &[u8]) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if any.contains(first) => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// Takes `min` to `max` digits; `max` is at most 9.
    fn digits(&mut self, min: usize, max: usize) -> Option<i64> {
        let n = self.0.iter().take(max).take_while(|b| b.is_ascii_digit()).count();
        if n < min {
            return None;
        }
        let (digits, rest) = self.0.split_at(n);
        self.0 = rest;
        Some(digits.iter().fold(0, |sum, b| sum * 10 + i64::from(b - b'0')))
    }

    /// Takes one or two digits below `limit`.
    fn two(&mut self, limit: i64) -> Option<i64> {
        self.digits(1, 2).filter(|&n| n < limit)
    }

    /// Days since 1970-01-01. The outer `None`: not of this form; the inner error: no such day.
    fn date(&mut self) -> Option<Result<i32, CastFault>> {
        let year = self.digits(4, 6)?;
        let month = self.eat(b"-").then(|| self.digits(1, 2))??;
        let day = self.eat(b"-").then(|| self.digits(1, 2))??;
        if !(1..=9999).contains(&year) {
            return Some(Err(CastFault::OutOfRange));
        }
        let date = NaiveDate::from_ymd_opt(year as i32, month as u32, day as u32);
        let missing = || CastFault::Malformed(Some("the calendar has no such day".into()));
        Some(date.map(|d| d.num_days_from_ce() - 719_163).ok_or_else(missing))
    }

    /// Takes spaces if a digit comes after them.
    fn time_follows(&mut self) -> bool {
        let rest = self.0.trim_ascii_start();
        let follows = rest.len() < self.0.len() && rest.first().is_some_and(u8::is_ascii_digit);
        if follows {
            self.0 = rest;
        }
        follows
    }

    /// Microseconds since midnight.
    fn time(&mut self) -> Option<i64> {
        let hours = self.two(24)?;
        let minutes = self.eat(b":").then(|| self.two(60))??;
        let seconds = if self.eat(b":") { self.two(60)? } else { 0 };
        let fraction_us = if self.eat(b".") { self.fraction_us()? } else { 0 };
        Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction_us)
    }

    /// Digits after the point, as microseconds; the seventh rounds, the others are dropped.
    fn fraction_us(&mut self) -> Option<i64> {
        let before = self.0.len();
        let kept = self.digits(1, 6)?;
        let us = kept * 10i64.pow(6 - (before - self.0.len()) as u32);
        let up = matches!(self.0.first(), Some(b'5'..=b'9'));
        let beyond = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        self.0 = &self.0[beyond..];
        Some(us + i64::from(up))
    }

    /// Seconds east of UTC; the inner `None`: no zone is written.
    fn zone(&mut self) -> Option<Option<i64>> {
        self.0 = self.0.trim_ascii_start();
        if self.0.is_empty() {
            return Some(None);
        }
        if self.0.eq_ignore_ascii_case(b"utc") || self.0.eq_ignore_ascii_case(b"z") {
            self.0 = &[];
            return Some(Some(0));
        }
        let west = self.0[0] == b'-';
        if !self.eat(b"+-") {
            return None;
        }
        let hours = self.digits(2, 2).filter(|&h| h < 16)?;
        let colon = self.eat(b":");
        let minutes = if colon || !self.0.is_empty() { self.digits(2, 2).filter(|&m| m < 60)? } else { 0 };
        let offset = (hours * 60 + minutes) * 60;
        Some(Some(if west { -offset } else { offset }))
    }
}

/// Most hours by which a zone's clocks were ever set forward: a day, where the date line moved.
const SKIPPED_HOURS_MAX: i64 = 24;

/// The instant at which the clocks of a zone show a time, both in microseconds; `None` outside chrono's years. A
/// skipped time uses the offset before the change, an ambiguous one the offset after it, as in PostgreSQL.
pub fn moment_at(shown: i64, zone: &impl TimeZone) -> Option<i64> {
    let local = super::datetime_of(shown)?;
    let mut before = (0..=SKIPPED_HOURS_MAX).filter_map(|h| local.checked_sub_signed(Duration::hours(h)));
    let offset = before.find_map(|local| zone.offset_from_local_datetime(&local).latest())?;
    shown.checked_sub(i64::from(offset.fix().local_minus_utc()) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_whole_and_days_as_long_as_the_month_they_began_in() {
        let at = |text: &str| ParsedTime::parse(text).unwrap().local().unwrap();
        let hours = |n: i64| n * 3_600_000_000;
        for (to, from, months, days, us) in [
            ("2024-03-01", "2024-01-15 12:00", 1, 16, hours(12)),
            ("2001-04-10", "1957-06-13", 525, 27, 0),
            ("2024-03-30", "2024-02-29", 1, 1, 0),
            ("2024-02-29", "2024-01-31", 0, 29, 0),
            ("2024-01-01 01:00", "2024-01-01", 0, 0, hours(1)),
        ] {
            assert_eq!(months_between(at(to), at(from)), Some((months, days, us)), "{to} {from}");
            assert_eq!(months_between(at(from), at(to)), Some((-months, -days, -us)), "{from} {to}");
        }
    }
}
